"""One checkpoint by all ranks."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor

from ...errors import LabError
from ...project.atomic import private_folder
from ..checkpoints import rank_checkpoints


def begin(path: Path) -> Path:
    """In rank 0: the folder that becomes the checkpoint `path`. Raises LabError."""
    part = path.with_suffix(".part")
    try:
        shutil.rmtree(part, ignore_errors=True)
        private_folder(part)
    except OSError as error:
        raise LabError(f"The checkpoint {path} could not be written: {error}.") from error
    return part


def write_together(tensors: Mapping[str, Tensor], folder: Path) -> None:
    """In each rank. Raises LabError, and RuntimeError if a rank has ended."""
    sees = torch.tensor(int(folder.is_dir()))
    dist.all_reduce(sees, dist.ReduceOp.MIN)
    if not sees:
        raise rank_checkpoints.NotShared(
            f"Not all processes see {folder}: a sharded model is written by all of them.",
            hint="Give --run DIR with a folder that all machines share.",
        )
    rank_checkpoints.write(tensors, folder)


def end(part: Path, path: Path) -> None:
    """In rank 0: the folder is whole. Raises LabError."""
    try:
        if path.exists():
            shutil.rmtree(path)
        part.rename(path)
    except OSError as error:
        raise LabError(f"The checkpoint {path} could not be written: {error}.") from error
