"""`breakpoint()` in a cell."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from ..tensors.error_help import NO_DEBUGGER


@contextmanager
def breakpoints_told() -> Iterator[None]:
    """While this context is open, `breakpoint()` does not stop. The first one says what to use
    instead. A hook of the user's own stays."""
    before, told = sys.breakpointhook, False

    def tell(*args: object, **kwargs: object) -> None:
        nonlocal told
        if not told:
            line = sys._getframe(1).f_lineno
            print(f"breakpoint() in line {line} did not stop. {NO_DEBUGGER}", file=sys.stderr)
        told = True

    if before is sys.__breakpointhook__:
        sys.breakpointhook = tell
    try:
        yield
    finally:
        if sys.breakpointhook is tell:
            sys.breakpointhook = before
