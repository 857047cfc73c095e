"""The description of this process, for windows."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from ..connecting.greeting import About
from .notebooks import notebook_name


def about_this(name: str, version: str) -> About:
    """`name` is what windows call it; without one, that of its script or notebook."""
    script = str(Path(sys.argv[0]).resolve()) if sys.argv and sys.argv[0] else ""
    return About(
        name=name or notebook_name() or Path(script).name or "python",
        pid=os.getpid(),
        script=script,
        version=version,
        started_s=time.time(),
        rank=int(os.environ.get("RANK", "0")),
        world_size=int(os.environ.get("WORLD_SIZE", "1")),
        group=_group(),
    )


def _group() -> str:
    """The group of the ranks of one run: where they meet, and torchrun's name of the run. By a
    launcher that tells neither, its process."""
    if "WORLD_SIZE" not in os.environ:
        return ""
    names = ("MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID")
    address, port, run = (os.environ.get(name, "") for name in names)
    return f"{address}:{port}:{run}" if address and port else str(os.getppid())
