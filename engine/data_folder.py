"""The folder for what the engine keeps on disk by itself: checkpoints, long outputs."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs


def data_folder() -> Path:
    """The user's cache folder, or `TENSORLAB_DATA_DIR` if that is set; it need not exist."""
    chosen = os.environ.get("TENSORLAB_DATA_DIR")
    return Path(chosen) if chosen else platformdirs.user_cache_path("tensorlab", appauthor=False)
