"""Which source files are the user's own: neither Python's nor a package's nor ours; the frames of
theirs that run."""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path
from types import FrameType

_ROOT = Path(__file__).resolve().parents[2]
_OURS = tuple(str(_ROOT / folder) for folder in ("engine", "app", "widgets"))
_GENERATED = ("<frozen", "<string", "<eval_with_key", "<__", "<attrs", "<torch_package")
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


class UsersFrames:
    """Finds the user's line that runs; `files` tells the user's own source files by name."""

    def __init__(self, files: Callable[[str], bool] = is_user_file) -> None:
        self._is_user_file = files
        self._known: dict[str, bool] = {}
        self._places: dict[tuple[str, int], tuple[str, int]] = {}

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
        frame = self.innermost(skipped + 1)
        if frame is None:
            return None
        key = frame.f_code.co_filename, frame.f_lineno
        return self._places.setdefault(key, key)
