"""What code prints, while an interrupt strikes anywhere."""

from __future__ import annotations

import sys
import threading
from types import FrameType

from engine.console import output as output_module
from engine.console.output import Output
from engine.system.control import Control

WATCHED = (output_module.__file__, threading.__file__)
"""The files in whose frames the interrupt strikes."""


def print_interrupted(output: Output, control: Control, at: int) -> bool:
    """Write a line as the user's code, and interrupt it at the point number `at`, as a signal's
    handler does. Returns False if there are fewer points."""
    points = 0

    def strike(frame: FrameType, event: str, arg: object):
        nonlocal points
        if frame.f_code.co_filename not in WATCHED:
            return None
        points += 1
        if points == at:
            control.interrupted = control.in_own_code
            if control.in_user_code:
                raise KeyboardInterrupt
        return strike

    before = sys.gettrace()
    try:
        with control.user_code():
            sys.settrace(strike)
            output.write("stdout", "x" * output_module.MAX_CHARACTERS)
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(before)
    return points >= at


def test_an_interrupt_at_any_point_of_a_print_leaves_the_output_usable():
    control = Control()
    at = 1
    while True:
        output = Output(lambda snapshot: None, shield=control.own_code)
        struck = print_interrupted(output, control, at)
        # A lock that is still held would let this thread, the flusher's part, wait for ever.
        flusher = threading.Thread(target=output.flush, daemon=True)
        flusher.start()
        flusher.join(timeout=10.0)
        assert not flusher.is_alive(), f"an interrupt at point {at} left a lock held"
        if not struck:
            break
        at += 1
    assert at > 10
