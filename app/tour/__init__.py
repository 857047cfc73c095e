"""The tour: the real window, driven by real mouse and key events through the whole main job."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any


def run(out: str | Path, as_json: bool = False) -> int:
    """Drive the window offscreen and leave pictures, `model.py`, `model.pt`, `model.safetensors`
    and `report.json` in the folder `out`. Returns 0, or 1 when any of it failed.

    What an earlier tour left there gives way. The user's settings and recovery files are left
    alone.
    """
    os.environ["QT_QPA_PLATFORM"] = "offscreen"  # before Qt is imported
    from .guide import guide

    folder = Path(out).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    for pattern in ("[0-9][0-9]-*.png", "model.*", "report.json"):
        for earlier in folder.glob(pattern):
            earlier.unlink()
    started_s = time.monotonic()
    report: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="tensorlab-tour-") as private:
        failure = guide(folder, Path(private), report, quiet=as_json)
    report["seconds"] = round(time.monotonic() - started_s, 2)
    report["failure"] = failure
    text = json.dumps(report, indent=2)
    (folder / "report.json").write_text(text + "\n", encoding="utf-8")
    if as_json:
        print(text)
    elif failure:
        print(f"The tour failed: {failure}", file=sys.stderr)
    else:
        accuracy, seconds = report["val_accuracy"], report["seconds"]
        print(f"Validation accuracy {accuracy:.3f}; {seconds:g} s. See {folder}.")
    return 1 if failure else 0
