"""Checkpoints: one file each, with all that a run needs to go on bit for bit.

They are in the folder of their run: `checkpoints/step-00001200.pt` (see `engine/runs/folders.py`).
"""

from __future__ import annotations

import io
import os
import shutil
from pathlib import Path
from typing import Any

import torch

from ...project.atomic import regular_target, write_atomically
from ...runs import folders
from ...system.errors import LabError
from .checkpoint_fields import FORMAT, Checkpoint, FieldProblem, decode, encode
from .rank_checkpoints import SUFFIX
from .rank_checkpoints import read as read_folder

__all__ = ["Checkpoint", "load", "save"]

KEPT_CHECKPOINTS = 3


def dumps(checkpoint: Checkpoint) -> bytes:
    """The content of its file."""
    buffer = io.BytesIO()
    torch.save(encode(checkpoint), buffer)
    return buffer.getvalue()


def loads(data: bytes) -> Checkpoint:
    """The inverse of `dumps`, for what this program has made itself."""
    return decode(torch.load(io.BytesIO(data), map_location="cpu", weights_only=True))


def save(checkpoint: Checkpoint, run_folder: Path | None = None) -> Path:
    """Write the checkpoint into the folder of its run, by default one in the data folder, and
    return its path. Old checkpoints of the run are removed.

    Raises LabError if the file cannot be written.
    """
    run_folder = run_folder or folders.data_runs() / checkpoint.run
    name = f"step-{checkpoint.step:08}"
    path = run_folder / folders.CHECKPOINTS / f"{name}.pt"
    try:
        folders.make(run_folder)
        write_atomically(path, dumps(checkpoint), private=True)
        # By time, not by step: a run resumed from an early checkpoint writes smaller steps later.
        for old in folders.checkpoints_of(run_folder)[KEPT_CHECKPOINTS:]:
            if old.suffix == SUFFIX:
                shutil.rmtree(old)
            else:
                old.unlink()
    except OSError as error:
        raise LabError(
            f"The checkpoint {path} could not be written: {error.strerror or error}.",
            hint="Free some disk space, or set TENSORLAB_DATA_DIR to a folder you can write to.",
        ) from error
    return path


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
            hint="Choose one of the checkpoints of a run's folder.",
        ) from problem


def _read(path: Path) -> dict[str, Any]:
    """Unpickle without executing anything; raises LabError."""
    if not path.exists():
        raise LabError(
            f"There is no checkpoint {path}.", hint="It may have been deleted: train again."
        )
    try:
        if path.suffix == SUFFIX:
            fields = read_folder(path)
        else:
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
            hint="Choose one of the checkpoints of a run's folder.",
        )
    return fields
