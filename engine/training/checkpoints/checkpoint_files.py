"""Checkpoints: one file each, with all that a run needs to go on bit for bit.

Their paths are `<data folder>/runs/<run>/step-00001200.pt`. The data folder is the user's cache
folder, or `TENSORLAB_DATA_DIR` if that is set.
"""

from __future__ import annotations

import io
import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch

from ...data_folder import data_folder
from ...errors import LabError
from ...project.atomic import private_folder, regular_target, write_atomically
from .checkpoint_fields import FORMAT, Checkpoint, FieldProblem, decode, encode

__all__ = ["Checkpoint", "load", "newest_of_each_run", "runs_folder", "save"]

KEPT_CHECKPOINTS = 3
KEPT_RUNS = 20


def runs_folder() -> Path:
    """Return the folder that holds a folder for each run; it need not exist."""
    return data_folder() / "runs"


def save(checkpoint: Checkpoint) -> Path:
    """Write the checkpoint and return its path. Old checkpoints of the run, and old runs, are
    removed.

    Raises LabError if the file cannot be written.
    """
    buffer = io.BytesIO()
    torch.save(encode(checkpoint), buffer)
    folder = runs_folder() / checkpoint.run
    path = folder / f"step-{checkpoint.step:08}.pt"
    try:
        if not folder.exists():
            private_folder(runs_folder())
            private_folder(folder)
            _remove_old_runs(folder)
        write_atomically(path, buffer.getvalue(), private=True)
        # By time, not by step: a run resumed from an early checkpoint writes smaller steps later.
        written = sorted(folder.glob("step-*.pt"), key=lambda file: file.stat().st_mtime_ns)
        for old in written[:-KEPT_CHECKPOINTS]:
            old.unlink()
    except OSError as error:
        raise LabError(
            f"The checkpoint {path} could not be written: {error.strerror or error}.",
            hint="Free some disk space, or set TENSORLAB_DATA_DIR to a folder you can write to.",
        ) from error
    return path


def newest_of_each_run() -> list[Path]:
    """The last checkpoint of every run on this computer, newest first."""
    found: list[tuple[int, Path]] = []
    folders = runs_folder().iterdir() if runs_folder().is_dir() else ()
    for folder in folders:
        written = []
        for file in folder.glob("step-*.pt"):
            with suppress(FileNotFoundError):  # another engine removes an old run
                written.append((file.stat().st_mtime_ns, file))
        found += sorted(written)[-1:]
    return [file for _, file in sorted(found, reverse=True)]


def load(path: str | os.PathLike[str]) -> Checkpoint:
    """Read a checkpoint; its tensors are on the CPU.

    Raises LabError if the file is missing, damaged, or not a checkpoint of this program. Nothing in
    the file is executed.
    """
    fields = _read(Path(path))
    version = fields.get("format")
    if type(version) is int and version != FORMAT:
        raise LabError(
            f"{path} has checkpoint format {version}; this program reads {FORMAT}.",
            hint="Open it with the version of Tensor Lab that wrote it.",
        )
    try:
        return decode(fields)
    except FieldProblem as problem:
        raise LabError(
            f"{path} is not a checkpoint of a training run. {problem}.",
            hint="Choose a step-*.pt file from a run's folder.",
        ) from problem


def _read(path: Path) -> dict[str, Any]:
    """Unpickle without executing anything; raises LabError."""
    if not path.exists():
        raise LabError(
            f"There is no checkpoint {path}.", hint="It may have been deleted: train again."
        )
    try:
        regular_target(path)
        fields = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # the unpickler meets damaged bytes with errors of any kind
        # torch's message is left out: it advises to switch safe loading off.
        raise LabError(
            f"{path} cannot be read as a checkpoint: it is damaged or of another kind.",
            hint="Resume from an earlier checkpoint of the same folder, or train again.",
        ) from error
    if not isinstance(fields, dict):
        raise LabError(
            f"{path} holds a {type(fields).__name__}, not a checkpoint of a training run.",
            hint="Choose a step-*.pt file from a run's folder.",
        )
    return fields


def _remove_old_runs(current: Path) -> None:
    runs = [folder for folder in current.parent.iterdir() if folder.is_dir()]
    runs.sort(key=lambda folder: folder.stat().st_mtime)
    for folder in runs[:-KEPT_RUNS]:
        shutil.rmtree(folder, ignore_errors=True)  # another engine may be removing the same folder
