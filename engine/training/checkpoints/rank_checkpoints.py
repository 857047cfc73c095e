"""Reads the checkpoints that several processes wrote together up to 2026: folders of
torch.distributed.checkpoint (DCP).

The tensors of the model and of the optimizer are in parts. All else is in one more tensor of bytes,
so that a folder has nothing but tensors, and reading it runs no code.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ...system.errors import LabError

SUFFIX = ".dcp"
_REST = "rest"


def read(folder: Path) -> dict[str, Any]:
    """The fields of the checkpoint. Raises LabError, and whatever damaged bytes lead to."""
    from ...artifacts.weights.dcp_folder import open_dcp  # as above

    found: dict[str, Tensor] = {}
    for entry in open_dcp(folder).entries:
        if entry.place is None:
            raise LabError(f"{folder} cannot be read as a checkpoint: {entry.key} is not a tensor.")
        found[entry.key] = entry.place.read(entry.shape)
    data = found.pop(_REST).numpy().tobytes()
    fields = torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
    fields["model"] = {}
    for key, tensor in found.items():
        kind, _, name = key.partition(".")
        if kind == "model":
            fields["model"][name] = tensor
        else:
            index, _, entry = name.partition(".")
            fields["optimizer"]["state"][int(index)][entry] = tensor
    return fields
