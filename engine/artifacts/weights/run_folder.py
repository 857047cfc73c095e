"""The folder of a run: its state and last figures, and the tensors of its newest checkpoint."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from ...runs.folders import checkpoints_of
from ...runs.summary import row_of
from ..contents.artifact import Artifact, plain


def open_run(folder: Path, open_file: Callable[[Path], Artifact]) -> Artifact:
    """The run in a folder. Raises LabError for a checkpoint that cannot be read."""
    row = row_of(folder)
    told = {
        "run": row.id,
        "subject": row.title,
        "state": row.state,
        "began": _time(row.began_s),
        "ended": _time(row.ended_s),
        "step": _count(row.step),
        "loss": "" if row.loss is None else f"{row.loss:.6g}",
        "epoch": _count(row.epoch.epoch if row.epoch else None),
        "epochs": _count(row.epochs),
        "went on from": row.origin,
        "note": row.note,
        "error": row.error,
        "problem": row.problem,
    }
    metadata = {name: plain(text) for name, text in told.items() if text}
    kept = checkpoints_of(folder)
    metadata["checkpoints"] = ", ".join(path.name for path in kept) or "none"
    if not kept:
        return Artifact(folder, "run", "folder of a run", metadata=metadata, parts=_files(folder))
    newest = open_file(kept[0])
    where = f"{kept[0].parent.name}/{kept[0].name}"
    entries = tuple(replace(entry, file=where) for entry in newest.entries)
    title = f"folder of a run, with the tensors of {kept[0].name}"
    return Artifact(folder, "run", title, entries, metadata, parts=(*_files(folder), *newest.files))


def _files(folder: Path) -> tuple[Path, ...]:
    found = sorted(path for path in folder.iterdir() if path.is_file())
    return tuple(found) or (folder,)


def _count(number: int | None) -> str:
    return f"{number:,}" if number else ""


def _time(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds)) if seconds else ""
