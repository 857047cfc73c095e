"""Checkpoints that ranks write together: folders of torch.distributed.checkpoint (DCP).

Each rank writes a part of the tensors of the model and of the optimizer. All else is in one more
tensor of bytes, so that a folder has nothing but tensors, and reading it runs no code.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ...errors import LabError
from .checkpoint_fields import Checkpoint, encode

SUFFIX = ".dcp"
_REST = "rest"


class NotShared(LabError):
    """A rank does not see the folder of the run: it is on a machine of its own."""


def tensors_of(model: Mapping[str, Tensor], optimizer: Mapping[str, Any]) -> dict[str, Tensor]:
    """The tensors of two state_dicts that ranks share out, by their names in the folder."""
    found = {f"model.{name}": tensor for name, tensor in model.items()}
    for index, state in optimizer["state"].items():
        for name, entry in state.items():
            if isinstance(entry, Tensor) and entry.ndim:  # a number takes less in the rest
                found[f"optimizer.{index}.{name}"] = entry
    return found


def rest_of(checkpoint: Checkpoint) -> dict[str, Tensor]:
    """The part of a checkpoint that rank 0 writes beside the tensors."""
    fields = encode(checkpoint)
    state = {
        index: {n: e for n, e in entries.items() if not (isinstance(e, Tensor) and e.ndim)}
        for index, entries in fields["optimizer"]["state"].items()
    }
    fields["optimizer"] = {**fields["optimizer"], "state": state}
    del fields["model"]
    buffer = io.BytesIO()
    torch.save(fields, buffer)
    return {_REST: torch.frombuffer(bytearray(buffer.getvalue()), dtype=torch.uint8)}


def load_writer() -> None:
    """Import what `write` needs. The first checkpoint would take so long for it that the next one
    would come minutes later."""
    import torch.distributed.checkpoint  # noqa: F401


def write(tensors: Mapping[str, Tensor], folder: Path) -> None:
    """Write this rank's share of the tensors, together with the others. Raises LabError if one of
    them cannot, and RuntimeError if one has ended."""
    import torch.distributed.checkpoint as dcp  # takes half a second, which only ranks need

    try:
        dcp.save(dict(tensors), storage_writer=dcp.FileSystemWriter(folder))
    except dcp.CheckpointException as error:
        told = "; ".join(str(each) for each, _ in error.failures.values())
        raise LabError(
            f"The checkpoint {folder} could not be written: {told}.",
            hint="Free some disk space.",
        ) from error


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
