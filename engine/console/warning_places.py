"""Warnings tell the user's own line, though the recorder's frames stand between it and torch."""

from __future__ import annotations

import linecache
import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from ..errors import is_ours
from ..recording import modes
from ..recording.user_files import is_user_file


@contextmanager
def warnings_at_users_lines() -> Iterator[None]:
    """While this context is open, a warning whose place is a frame of this program is given again
    at the user's line under which it arose; the filters then decide as for any other. One of a
    library names the user's line too."""
    before = warnings.showwarning

    def show(message, category, filename, lineno, file=None, line=None) -> None:
        place = _users_frame(sys._getframe(1))
        if place is None or file is not None or is_user_file(filename):
            before(message, category, filename, lineno, file, line)
        elif is_ours(filename):
            names = place.f_globals
            warnings.warn_explicit(
                message,
                category,
                place.f_code.co_filename,
                place.f_lineno,
                names.get("__name__") or "<unknown>",
                names.setdefault("__warningregistry__", {}),
            )
        else:
            before(message, category, filename, lineno, file, line)
            name, number = place.f_code.co_filename, place.f_lineno
            source = linecache.getline(name, number).strip()
            print(f"  from {name}:{number}: {source}", file=sys.stderr)

    _let_through()
    warnings.showwarning = show
    try:
        yield
    finally:
        if warnings.showwarning is show:  # else the user's code has set its own
            warnings.showwarning = before


def _let_through() -> None:
    """No filter but this one applies to a warning at a frame of the recorder. (Each change of the
    filters makes Python forget what was shown already.)"""
    module = re.escape(modes.__name__) + r"\Z"
    ours = ("always", None, Warning, re.compile(module), 0)
    if not warnings.filters or warnings.filters[0] != ours:
        warnings.filterwarnings("always", module=module)


def _users_frame(frame: FrameType | None) -> FrameType | None:
    while frame is not None and not is_user_file(frame.f_code.co_filename):
        frame = frame.f_back
    return frame
