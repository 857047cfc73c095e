"""Reading exported weights as anybody would, with the library of each format."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import safetensors
import safetensors.torch
import torch
from torch import Tensor

AT_ONCE_BYTES = 64 * 2**20
"""The bytes of a distributed checkpoint that are read into memory at a time; at least one tensor
is."""
INDEX = "model.safetensors.index.json"


def read(format: str, path: str) -> Iterator[tuple[str, Tensor]]:
    """The state_dict in the file or folder, every key of it; memory need not hold all of it."""
    found = _READERS[format](path)
    yield from found.items() if isinstance(found, dict) else found


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


def _distributed(path: str) -> Iterator[tuple[str, Tensor]]:
    """dcp.load fills tensors that are there: only some at a time."""
    from torch.distributed import checkpoint as dcp

    told = dcp.FileSystemReader(path).read_metadata().state_dict_metadata
    waiting: dict[str, Tensor] = {}
    for key, value in told.items():
        waiting[key] = torch.empty(value.size, dtype=value.properties.dtype)  # pyright: ignore
        if sum(tensor.nbytes for tensor in waiting.values()) >= AT_ONCE_BYTES:
            yield from _filled(waiting, path)
            waiting = {}
    yield from _filled(waiting, path)


def _filled(state: dict[str, Tensor], path: str) -> Iterator[tuple[str, Tensor]]:
    from torch.distributed import checkpoint as dcp

    dcp.load(state, checkpoint_id=path, no_dist=True)
    for key, tensor in state.items():
        yield key.removeprefix("model."), tensor


_READERS: dict[str, Callable[[str], dict[str, Tensor] | Iterator[tuple[str, Tensor]]]] = {
    "pt": _pt,
    "safetensors": _safetensors,
    "checkpoint": _checkpoint,
    "hf": _hugging_face,
    "dcp": _distributed,
}
