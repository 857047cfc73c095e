"""Pauses Python's cycle collector while very many objects are made."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_collection() -> Iterator[None]:
    """Pause the cycle collector; also a decorator. It would walk the growing lists again and again,
    which takes up to half of the time at 10,000 nodes."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
