"""The reports of commands as JSON."""

from __future__ import annotations

import json
import math
from pathlib import Path

from app.commands.failures import CommandFailure
from engine.project.atomic import write_atomically

STDOUT = "-"


def write_report(report: dict, out: str | Path) -> None:
    """Print the report as JSON if `out` is "-", else write it to that file. Raises
    CommandFailure."""
    text = json.dumps(report, indent=2, allow_nan=False, ensure_ascii=False)
    if out == STDOUT:
        print(text)
        return
    try:
        write_atomically(Path(out), f"{text}\n".encode())
    except OSError as error:
        raise CommandFailure(f"--json {out}: {error.strerror}.") from None


def number(value: float) -> float | str | None:
    """The value for JSON, which has no NaN and no infinities: NaN, which means "none", becomes
    null."""
    if math.isnan(value):
        return None
    return value if math.isfinite(value) else str(value)
