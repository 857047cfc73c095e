"""The tour: drives the real window by mouse and key events through building, training and export.

Not here: the tests of single flows (`tests/flows`).
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from app.commands.failures import BAD_ARGUMENTS, CommandFailure


def run(out: str | Path, as_json: bool = False) -> int:
    """Drive the window offscreen, and write pictures, `model.py`, `model.pt`, `model.safetensors`
    and `report.json` into the folder `out`. Returns 0, or 1 if anything failed.

    Files of an earlier tour there are replaced. The user's settings and recovery files are not
    touched. Raises CommandFailure if the folder cannot be written to.
    """
    os.environ["QT_QPA_PLATFORM"] = "offscreen"  # before Qt is imported
    folder = Path(out).absolute()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for pattern in ("[0-9][0-9]-*.png", "model.*", "report.json"):
            for earlier in folder.glob(pattern):
                earlier.unlink()
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise CommandFailure(f"--out {out}: {error.strerror}.", BAD_ARGUMENTS) from None
    from app.tour.guide import guide  # loads Qt

    started_s = time.monotonic()
    report: dict[str, Any] = {}
    temporary = tempfile.TemporaryDirectory(prefix="tensorlab-tour-")
    with temporary as private, _without_offscreen_warnings():
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


@contextmanager
def _without_offscreen_warnings() -> Iterator[None]:
    """Drop Qt's warnings that an offscreen window cannot be raised, resized or given the
    keyboard."""
    from PySide6.QtCore import QMessageLogContext, QtMsgType, qInstallMessageHandler

    def tell(kind: QtMsgType, context: QMessageLogContext, message: str) -> None:
        if not message.startswith("This plugin does not support "):
            print(message, file=sys.stderr)

    before = qInstallMessageHandler(tell)
    try:
        yield
    finally:
        qInstallMessageHandler(before)
