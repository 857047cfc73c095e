"""Opening a window on this process."""

from __future__ import annotations

import os
import subprocess
import sys

from ..system.program import program_file


def open_window(*where: object) -> None:
    """Start a window that attaches to this process, and outlives it. `where` is what `tensorlab
    attach` is given. Raises OSError."""
    subprocess.Popen(
        [sys.executable, str(program_file()), "attach", *map(str, where)],
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )


def has_display() -> bool:
    """Whether a window can be shown; a rank but the first opens none."""
    if os.environ.get("RANK", "0") != "0":
        return False
    if sys.platform in ("win32", "darwin"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
