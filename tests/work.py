"""How much work a piece of the program does, counted and not timed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType


def work_of(do: Callable[[], object]) -> int:
    """How many lines and turns of loops `do` runs in this thread, and how many C functions it
    calls."""
    count = 0

    def trace(_frame: FrameType, event: str, _argument: object) -> Callable:
        nonlocal count
        count += event == "line"
        return trace

    def profile(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal count
        count += event == "c_call"

    before = sys.gettrace(), sys.getprofile()
    sys.settrace(trace)
    sys.setprofile(profile)
    try:
        do()
    finally:
        sys.settrace(before[0])
        sys.setprofile(before[1])
    return count
