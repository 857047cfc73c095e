"""Which source files are the user's own: neither Python's nor a package's nor ours; the texts of
code that is in no file; the frames of theirs that run, and their variables."""

from __future__ import annotations

import inspect
import linecache
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

_ROOT = Path(__file__).resolve().parents[2]
_OURS = tuple(str(_ROOT / folder) for folder in ("engine", "app", "widgets"))
GENERATED = "<eval_with_key"
"""Files in which torch.fx writes the forward of a GraphModule: the canvas's."""
_GENERATED = ("<frozen", "<string", GENERATED, "<__", "<attrs", "<torch_package")
"""Names of code that some library wrote: imports, dataclasses, graphs of torch.fx."""


def is_user_file(name: str) -> bool:
    """True for a cell (`"<cell 3>"`), a notebook's cell, and a file of the user's."""
    if not name:
        return False
    if name.startswith("<"):
        return not name.startswith(_GENERATED)
    return not name.startswith(_NOT_USERS)


_NOT_USERS = tuple(
    folder.rstrip("/\\") + ("\\" if "\\" in folder else "/")
    for folder in {
        *_OURS,
        *(sysconfig.get_path(key) for key in ("stdlib", "platstdlib", "purelib", "platlib")),
        *(path for path in sys.path if path.endswith(("site-packages", "dist-packages"))),
    }
)


def keep_source(name: str, source: str) -> None:
    """Let linecache have a text under the name that the frames of its code carry: for tracebacks,
    `inspect.getsource`, torch.jit, and all views that show lines of code."""
    # None keeps linecache.checkcache from dropping it.
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)


def own_name(name: str, source: str) -> str:
    """A name in angle brackets that no other text has: `name`, or with a number where another text
    has that one (`<example>`, `<example #2>`). `source_title` leaves the number out."""
    own, number = name, 1
    while (known := linecache.getlines(own)) and "".join(known) != source:
        number += 1
        own = f"{name.removesuffix('>')} #{number}>"
    return own


def variables_of(frame: FrameType) -> dict[str, Any]:
    """The variables of the frame's own, copied. No value lives longer for it: see `forget`."""
    own = dict(frame.f_locals)
    forget(frame)
    return own


def forget(frame: FrameType) -> None:
    """Empty what Python before 3.13 keeps with the frame of a function once `f_locals` was read: a
    dict, in which values live on that the function has dropped. Not one that the user's code has
    from `locals()`, and not while a trace function runs: Python takes the variables back from it.
    """
    if sys.version_info >= (3, 13) or frame.f_locals is frame.f_globals or sys.gettrace():
        return
    if frame.f_code.co_flags & inspect.CO_OPTIMIZED:
        kept = frame.f_locals
        if sys.getrefcount(kept) <= 3:  # the frame's, ours, and the argument of this call
            kept.clear()


MAX_INSTRUCTIONS = 10_000


class UsersFrames:
    """Finds the user's line that runs; `files` tells the user's own source files by name."""

    def __init__(self, files: Callable[[str], bool] = is_user_file) -> None:
        self._is_user_file = files
        self._known: dict[str, bool] = {}
        self._places: dict[tuple[str, int], tuple[str, int]] = {}
        # By an instruction: to find its line takes long. The code is kept, so that its id is.
        self._at: dict[tuple[int, int], tuple[tuple[str, int], CodeType]] = {}

    def innermost(self, skipped: int = 1) -> FrameType | None:
        """The innermost frame of the user's code; None if none of it runs. The innermost `skipped`
        frames are known to be ours."""
        frame = sys._getframe(skipped)
        known = self._known
        while frame is not None:
            file = frame.f_code.co_filename
            if file not in known:
                known[file] = self._is_user_file(file)
            if known[file]:
                return frame
            frame = frame.f_back
        return None

    def place(self, skipped: int = 1) -> tuple[str, int] | None:
        """The file and the line that the innermost frame is at. Equal ones are one object."""
        frame = sys._getframe(skipped)
        at, known = self._at, self._known
        while frame is not None:
            code = frame.f_code
            instruction = id(code), frame.f_lasti
            found = at.get(instruction)
            if found is not None:
                return found[0]
            is_users = known.get(code.co_filename)
            if is_users is None:
                is_users = known[code.co_filename] = self._is_user_file(code.co_filename)
            if is_users:
                if len(at) >= MAX_INSTRUCTIONS:
                    at.clear()
                place = code.co_filename, frame.f_lineno
                at[instruction] = self._places.setdefault(place, place), code
                return at[instruction][0]
            frame = frame.f_back
        return None
