"""Pauses Python's cycle collector while very many objects are made."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_collection() -> Iterator[None]:
    """Pause the cycle collector; also a decorator. While objects are only made, the collector finds
    nothing, and its searches take half of the time for a picture of 50,000 nodes."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
