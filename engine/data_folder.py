"""The folder for what the engine keeps on disk by itself: runs, long outputs."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs

_CHOSEN = "TENSORLAB_DATA_DIR"


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
