"""Reading exported weights as anybody would, with the library of each format."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import safetensors
import safetensors.torch
import torch
from torch import Tensor

INDEX = "model.safetensors.index.json"


def read(format: str, path: str) -> dict[str, Tensor]:
    """The state_dict in the file or folder, every key of it."""
    return _READERS[format](path)


def _pt(path: str) -> dict[str, Tensor]:
    return torch.load(path, weights_only=True, map_location="cpu", mmap=True)


def _checkpoint(path: str) -> dict[str, Tensor]:
    return torch.load(path, weights_only=True, map_location="cpu", mmap=True)["model"]


def _safetensors(path: str) -> dict[str, Tensor]:
    """A key that was left out, since its tensor stands under another one, is in the metadata, as
    safetensors.torch.save_model writes it."""
    state = safetensors.torch.load_file(path)
    with safetensors.safe_open(path, "pt") as file:
        tied = {k: v for k, v in (file.metadata() or {}).items() if v in state and k not in state}
    return {**state, **{left_out: state[kept] for left_out, kept in tied.items()}}


def _hugging_face(path: str) -> dict[str, Tensor]:
    folder = Path(path)
    index = folder / INDEX
    if not index.exists():
        return _safetensors(str(folder / "model.safetensors"))
    files = set(json.loads(index.read_text())["weight_map"].values())
    return {k: v for name in sorted(files) for k, v in _safetensors(str(folder / name)).items()}


def _distributed(path: str) -> dict[str, Tensor]:
    from torch.distributed import checkpoint as dcp

    reader = dcp.FileSystemReader(path)
    told = reader.read_metadata().state_dict_metadata
    state = {
        key: torch.empty(value.size, dtype=value.properties.dtype)  # pyright: ignore
        for key, value in told.items()
    }
    dcp.load(state, storage_reader=reader, no_dist=True)
    return {key.removeprefix("model."): tensor for key, tensor in state.items()}


_READERS: dict[str, Callable[[str], dict[str, Tensor]]] = {
    "pt": _pt,
    "safetensors": _safetensors,
    "checkpoint": _checkpoint,
    "hf": _hugging_face,
    "dcp": _distributed,
}
