"""`tensorlab run`: runs a script as Python does, watched, so that a window can attach to it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from app.commands.failures import BAD_ARGUMENTS, CommandFailure
from engine.attached.running import command


def run_script(script: Path, arguments: Sequence[str], window: bool, wait: bool) -> int:
    """Become the script's process; on Windows, wait for it and return its exit code.

    Raises CommandFailure if there is no such file.
    """
    if not script.is_file():
        raise CommandFailure(f"{script}: no such file.", BAD_ARGUMENTS)
    options = [*(["--window"] if window else []), *(["--wait"] if wait else [])]
    started = command(script, arguments, options)
    if os.name == "nt":
        return subprocess.call(started)
    sys.stdout.flush()
    os.execv(started[0], started)
