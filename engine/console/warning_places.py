"""Warnings tell the user's own line, though the recorder's frames stand between it and torch."""

from __future__ import annotations

import linecache
import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from .. import recording
from ..system.errors import is_ours
from ..system.user_files import is_user_file

MAX_SHOWN_TEXTS = 1_000


@contextmanager
def warnings_at_users_lines() -> Iterator[None]:
    """While this context is open, a warning whose place is a frame of this program is given again
    at the user's line under which it arose; the filters then decide as for any other. One of a
    library names the user's line too."""
    # Not `showwarning`: `catch_warnings(record=True)` of the user's code goes past that.
    before, showing = warnings._showwarnmsg, _showing()  # pyright: ignore[reportAttributeAccessIssue]
    if getattr(before, "__module__", "") == __name__:
        yield  # code inside other code: a cell while a run is paused
        return

    def show(told: warnings.WarningMessage) -> None:
        place = _users_frame(sys._getframe(1))
        if place is not None:
            _forget_many(place.f_globals)
        if place is None or told.file is not None or is_user_file(told.filename):
            before(told)
        elif is_ours(told.filename):
            names = place.f_globals
            warnings.warn_explicit(
                told.message,
                told.category,
                place.f_code.co_filename,
                place.f_lineno,
                names.get("__name__") or "<unknown>",
                names.setdefault("__warningregistry__", {}),
            )
        else:
            before(told)
            if _showing() != showing:
                return  # the user's code records or shows it
            name, number = place.f_code.co_filename, place.f_lineno
            source = linecache.getline(name, number).strip()
            print(f"  from {name}:{number}: {source}", file=sys.stderr)

    _let_through()
    warnings._showwarnmsg = show  # pyright: ignore[reportAttributeAccessIssue]
    try:
        yield
    finally:
        warnings._showwarnmsg = before  # pyright: ignore[reportAttributeAccessIssue]


def _showing() -> tuple[object, object]:
    """The function that shows a warning: user code may have put its own in place."""
    return warnings.showwarning, warnings._showwarnmsg_impl  # pyright: ignore[reportAttributeAccessIssue]


def _let_through() -> None:
    """No filter but this one applies to a warning at a frame of the recorder. (Each change of the
    filters makes Python forget what was shown already.)"""
    module = re.escape(recording.__name__) + r"\.(modes|light\.pauses|light\.library_modules)\Z"
    ours = ("always", None, Warning, re.compile(module), 0)
    if not warnings.filters or warnings.filters[0] != ours:
        warnings.filterwarnings("always", module=module)


def _forget_many(names: dict[str, Any]) -> None:
    """Python keeps each text that it has shown, to show it once: a loop of different warnings would
    take ever more memory. It may show the forgotten ones again."""
    shown = names.get("__warningregistry__", ())
    if len(shown) > MAX_SHOWN_TEXTS:
        shown.clear()


def _users_frame(frame: FrameType | None) -> FrameType | None:
    while frame is not None and not is_user_file(frame.f_code.co_filename):
        frame = frame.f_back
    return frame
