"""The tensors of a module as they are written: under their own names, on the CPU, maybe cast."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor, nn

from ..recording.compiled import own_path
from ..system.errors import LabError
from ..verifier.values import Difference, difference


class Cast(NamedTuple):
    """A state in another dtype; how far its numbers are from the first ones, and how many have
    become infinite."""

    state: dict[str, Tensor]
    difference: Difference
    overflown: int


def own_state(module: nn.Module) -> dict[str, Tensor]:
    """The state_dict under the names without torch.compile, with the versions of its modules.
    Raises LabError for an extra state that is no tensor."""
    state = module.state_dict()
    for key, value in state.items():
        if not isinstance(value, Tensor):
            raise LabError(
                f"`{key}` of the state_dict is of type {type(value).__name__}, not a tensor.",
                hint="Let get_extra_state return a tensor.",
            )
    copied: dict[tuple, Tensor] = {}
    own = OrderedDict(
        (own_path(key), copied.setdefault(place_of(tensor), _portable(tensor)))
        for key, tensor in state.items()
    )
    versions = getattr(state, "_metadata", {})
    own._metadata = {own_path(key): told for key, told in versions.items()}  # pyright: ignore
    return own


def place_of(tensor: Tensor) -> tuple:
    """Equal for tensors that are one and the same memory, seen in the same way."""
    if tensor.layout != torch.strided or tensor.numel() == 0:
        return (id(tensor),)
    storage = tensor.untyped_storage()._cdata
    return storage, tensor.storage_offset(), tensor.shape, tensor.stride(), tensor.dtype


def cast(state: Mapping[str, Tensor], dtype: str) -> Cast:
    """The numbers with a fraction in the dtype; tensors that were tied stay so."""
    wanted: torch.dtype = getattr(torch, dtype)
    made: dict[tuple, Tensor] = {}
    absolute = relative = 0.0
    overflown = 0
    result = OrderedDict()
    for key, tensor in state.items():
        if not tensor.is_floating_point():
            result[key] = tensor
            continue
        if (place := place_of(tensor)) not in made:
            new = made[place] = tensor.to(wanted)
            apart = difference(tensor, new)
            absolute, relative = max(absolute, apart.absolute), max(relative, apart.relative)
            overflown += int((new.isinf() & tensor.isfinite()).sum())
        result[key] = made[place]
    result._metadata = getattr(state, "_metadata", {})  # pyright: ignore
    return Cast(result, Difference(absolute, relative, True), overflown)


def tied(state: Mapping[str, Tensor]) -> dict[str, str]:
    """The keys whose tensor stands under another key already, with that one."""
    first: dict[tuple, str] = {}
    found = {}
    for key, tensor in state.items():
        kept = first.setdefault(place_of(tensor), key)
        if kept != key:
            found[key] = kept
    return found


def untied(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Each tensor once, contiguous and with a storage of its own, as safetensors requires."""
    left_out = tied(state)
    seen: set[int] = set()
    result = {}
    for key, tensor in state.items():
        if key in left_out:
            continue
        tensor = tensor.contiguous()
        storage = tensor.untyped_storage()._cdata
        result[key] = tensor.clone() if storage in seen else tensor
        seen.add(storage)
    return result


def _portable(tensor: Tensor) -> Tensor:
    """The tensor on the CPU, and copied if it is a view of a larger storage, which would be written
    too."""
    tensor = tensor.detach().cpu()
    if tensor.layout == torch.strided and (
        tensor.untyped_storage().nbytes() > tensor.numel() * tensor.element_size()
    ):
        return tensor.clone()
    return tensor
