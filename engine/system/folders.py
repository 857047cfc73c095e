"""The folder for what the engine keeps on disk by itself: runs, long outputs. The temporary folder
of an engine, which holds its log; the window that made it removes it."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import platformdirs

_CHOSEN = "TENSORLAB_DATA_DIR"
_TEMPORARY = "tensorlab-engine-"


def data_folder() -> Path:
    """The user's data folder, or `TENSORLAB_DATA_DIR` if that is set; it need not exist."""
    chosen = os.environ.get(_CHOSEN)
    return Path(chosen) if chosen else platformdirs.user_data_path("tensorlab", appauthor=False)


def former_folder() -> Path | None:
    """Where earlier versions kept the same: the user's cache folder, which cleaners may empty. None
    if the user has chosen the folder."""
    if os.environ.get(_CHOSEN):
        return None
    return platformdirs.user_cache_path("tensorlab", appauthor=False)


def make_folder() -> tempfile.TemporaryDirectory[str]:
    """A folder whose name holds the id of this process. Raises OSError."""
    return tempfile.TemporaryDirectory(prefix=f"{_TEMPORARY}{os.getpid()}-")


def sweep() -> None:
    """Remove the temporary folders of windows that were killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_TEMPORARY}[0-9]*-*"):
        pid = int(folder.name.removeprefix(_TEMPORARY).partition("-")[0])
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
