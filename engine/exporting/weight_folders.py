"""State_dicts as folders: a distributed checkpoint, and what the Hugging Face Hub has."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Mapping
from pathlib import Path

import safetensors.torch
import torch
from torch import Tensor

from ..protocol.exporting.formats import SHARD_BYTES
from .folders import new_folder
from .state import tied, untied

_DCP_FILES = (".metadata", "*.distcp")
_HF_FILES = ("config.json", "model*.safetensors", "model.safetensors.index.json")


def save_distributed(state: Mapping[str, Tensor], path: Path) -> list[Path]:
    """Write a folder of torch.distributed.checkpoint; returns its files. The state stands under
    `model` in it. Raises LabError."""
    from torch.distributed import checkpoint as dcp

    with new_folder(path, _DCP_FILES) as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about the one process that writes
        dcp.save({"model": dict(state)}, checkpoint_id=str(folder), no_dist=True)
    return sorted(path.iterdir())


def save_hugging_face(
    state: Mapping[str, Tensor], class_name: str, path: Path, shard_bytes: int = SHARD_BYTES
) -> list[Path]:
    """Write config.json and the tensors, in parts with an index if they are many; returns the
    files. Raises LabError."""
    tensors, others = untied(state), tied(state)
    parts = _parts(tensors, shard_bytes)
    floats = (t.dtype for t in tensors.values() if t.is_floating_point())
    dtype = str(next(floats, torch.float32)).removeprefix("torch.")
    config = {"architectures": [class_name], "torch_dtype": dtype}
    with new_folder(path, _HF_FILES) as folder:
        _write_json(folder / "config.json", config)
        places: dict[str, str] = {}
        for number, part in enumerate(parts, 1):
            name = "model.safetensors"
            if len(parts) > 1:
                name = f"model-{number:05}-of-{len(parts):05}.safetensors"
            metadata = {key: kept for key, kept in others.items() if kept in part}
            safetensors.torch.save_file(part, folder / name, {"format": "pt", **metadata})
            os.chmod(folder / name, 0o666 & ~_umask())
            places.update(dict.fromkeys(part, name))
        if len(parts) > 1:
            size = sum(t.numel() * t.element_size() for t in tensors.values())
            index = {"metadata": {"total_size": size}, "weight_map": places}
            _write_json(folder / "model.safetensors.index.json", index)
    return sorted(path.iterdir())


def _parts(tensors: Mapping[str, Tensor], most_bytes: int) -> list[dict[str, Tensor]]:
    parts: list[dict[str, Tensor]] = [{}]
    room = most_bytes
    for key, tensor in tensors.items():
        size = tensor.numel() * tensor.element_size()
        if size > room and parts[-1]:
            parts.append({})
            room = most_bytes
        parts[-1][key] = tensor
        room -= size
    return parts


def _write_json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
