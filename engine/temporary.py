"""The temporary folder of an engine, which holds its log; the window that made it removes it."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

_NAME = "tensorlab-engine-"


def make_folder() -> tempfile.TemporaryDirectory[str]:
    """A folder whose name holds the id of this process. Raises OSError."""
    return tempfile.TemporaryDirectory(prefix=f"{_NAME}{os.getpid()}-")


def sweep() -> None:
    """Remove the temporary folders of windows that were killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_NAME}[0-9]*-*"):
        pid = int(folder.name.removeprefix(_NAME).partition("-")[0])
        if not _lives(pid):
            shutil.rmtree(folder, ignore_errors=True)  # another user's cannot be removed


def _lives(pid: int) -> bool:
    """Whether a process of this number lives. True on Windows, where asking would end it."""
    if os.name == "nt":
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        pass
    return True
