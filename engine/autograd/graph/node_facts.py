"""Facts of torch's node objects: their outputs, and the tensors that they saved."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from typing import Any, NamedTuple

import torch

from ...protocol import TensorSpec
from ...tensors.readable import dtype_name


class SavedTensor(NamedTuple):
    """A tensor that a node saved for its backward rule. It is not unpacked.

    `data` is None when it cannot be shown; `note` says why (freed, packed by hooks).
    `storage_bytes` is the size of the whole storage that `data` keeps alive, `storage_id` tells
    this storage from others.
    """

    name: str
    data: torch.Tensor | None
    storage_id: int = 0
    storage_bytes: int = 0
    note: str = ""


device_name = cache(str)

_NO_TENSOR = TensorSpec((), "unknown")


Outputs = tuple[tuple[TensorSpec, ...], str]
"""`Node.outputs` and `Node.device`."""


class AlikeOutputs(dict[tuple[Any, ...], Outputs]):
    """The outputs of nodes with one output, by its sizes, dtype and device: most nodes of a graph
    are alike, and their specs are made once."""

    def __missing__(self, key: tuple[Any, ...]) -> Outputs:
        *shape, dtype, device = key
        found = self[key] = (_known_spec(tuple(shape), dtype),), device_name(device)
        return found


def outputs_of(metadata: Sequence[Any]) -> Outputs:
    """The outputs of any node, of its `_input_metadata`."""
    return output_specs(metadata), device_name(metadata[0].device) if metadata else ""


def output_specs(metadata: Sequence[Any]) -> tuple[TensorSpec, ...]:
    """`Node.outputs`, of a node's `_input_metadata`."""
    if len(metadata) == 1:
        return (_spec(metadata[0]),)
    return tuple(_NO_TENSOR if _is_undefined(each) else _spec(each) for each in metadata)


def _spec(metadata: Any) -> TensorSpec:
    if not metadata.is_nested_tensor:
        return _known_spec(tuple(metadata.shape), metadata.dtype)
    try:
        shape = tuple(n if isinstance(n, int) else str(n) for n in metadata.shape)
    except RuntimeError:  # a strided nested tensor has no one shape
        shape = ("nested",)
    return TensorSpec(shape, dtype_name(metadata.dtype))


@lru_cache(maxsize=4_096)
def _known_spec(shape: tuple[int | str, ...], dtype: torch.dtype) -> TensorSpec:
    return TensorSpec(shape, dtype_name(dtype))


def _is_undefined(metadata: Any) -> bool:
    """Whether an output has no metadata. torch gives the current default dtype for it, so the
    default is changed for a moment to see whether the answer changes too."""
    default = torch.get_default_dtype()
    try:
        if metadata.dtype is not default or len(metadata.shape):
            return False
    except RuntimeError:  # a strided nested tensor
        return False
    torch.set_default_dtype(torch.float64 if default is not torch.float64 else torch.float32)
    try:
        return metadata.dtype is not default
    finally:
        torch.set_default_dtype(default)


def storages_of(fn: Any, saves: tuple[str, ...]) -> dict[int, int]:
    """`Node.storages`, of a node's attributes `saves`."""
    return dict(map(storage_of, tensors_saved_by(fn, saves)))


def tensors_saved_by(fn: Any, saves: tuple[str, ...]) -> list[torch.Tensor]:
    """The tensors that `saved_by` shows."""
    found: list[torch.Tensor] = []
    for attribute in saves:
        try:
            saved = getattr(fn, attribute)
        except RuntimeError:  # freed
            continue
        for each in saved if isinstance(saved, tuple) else (saved,):
            data = each.data
            if isinstance(data, torch.Tensor):
                found.append(data)
    return found


def saved_by(fn: Any, saves: tuple[str, ...]) -> Iterator[SavedTensor]:
    """`Node.saved`, of a node's attributes `saves`."""
    for attribute in saves:
        name = attribute.removeprefix("_raw_saved_")
        try:
            saved = getattr(fn, attribute)
        except RuntimeError as error:
            yield SavedTensor(name, None, note="freed" if "freed" in str(error) else str(error))
            continue
        if isinstance(saved, tuple):
            for i, each in enumerate(saved):
                yield _saved_tensor(f"{name}[{i}]", each)
        else:
            yield _saved_tensor(name, saved)


def _why_empty(saved: Any) -> str:
    """Why a saved tensor has no data: torch refuses to unpack one that it has freed."""
    try:
        saved.unpack()
    except RuntimeError:
        return "freed"
    return "never set"


def _saved_tensor(name: str, saved: Any) -> SavedTensor:
    data, packed = saved.data, saved.unpack_hook is not None
    if not isinstance(data, torch.Tensor):
        return SavedTensor(name, None, note="packed by hooks" if packed else _why_empty(saved))
    note = "packed by hooks" if packed else ""
    return SavedTensor(name, data, *storage_of(data), note)


def storage_of(t: torch.Tensor) -> tuple[int, int]:
    """A number that tells the tensor's storage from others, and its bytes. A sparse tensor has no
    storage: its own id is used."""
    try:
        storage = t.untyped_storage()
    except Exception:  # layouts without a storage raise errors of several types
        return id(t), t.numel() * t.element_size()
    return storage._cdata, storage.nbytes()


def storage_id(t: torch.Tensor) -> int:
    """A number that tells the tensor's storage from others."""
    return storage_of(t)[0]
