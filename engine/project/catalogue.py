"""The catalogue, as data: blocks, losses, optimizers, schedulers and data sets. No torch.

The rows are written by hand (`catalogue.toml`: group, icon, words, ports); the parameters come
from torch's own signatures and docstrings. `python -m engine.models.signatures` joins both into
`catalogue.json`, which is read here: the window knows it before torch has loaded.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from .document import Block, ParamValue
from .kinds import BlockKind, DatasetKind, OtherLoss, Param, ParamType, Port, TransformKind
from .values import parse_value

__all__ = [
    "BlockKind",
    "DatasetKind",
    "OtherLoss",
    "Param",
    "ParamType",
    "Port",
    "TransformKind",
    "arguments",
    "datasets",
    "defaults",
    "kind",
    "kinds",
    "losses",
    "no_loss",
    "optimizers",
    "other_losses",
    "parse_value",
    "ports",
    "schedulers",
    "transforms",
]


PATH = Path(__file__).with_name("catalogue.json")


class Catalogue(Struct, frozen=True):
    """What `catalogue.json` holds, by key."""

    kinds: dict[str, BlockKind]
    other_losses: dict[str, OtherLoss]
    optimizers: dict[str, tuple[Param, ...]]
    schedulers: dict[str, tuple[Param, ...]]
    datasets: dict[str, DatasetKind]
    transforms: dict[str, TransformKind]


@cache
def _catalogue() -> Catalogue:
    return msgspec.json.decode(PATH.read_bytes(), type=Catalogue)


def kinds() -> dict[str, BlockKind]:
    """Return every kind of block by key, the loss blocks included, in the palette's order."""
    return _catalogue().kinds


def kind(key: str) -> BlockKind:
    """Return one kind of block. Raises KeyError when the catalogue has none of this key."""
    return kinds()[key]


def ports(block: Block) -> tuple[tuple[Port, ...], tuple[Port, ...]]:
    """Return (inputs, outputs) of a block; a variadic one has `tensor0`, `tensor1`, ...

    Raises KeyError when the catalogue does not have its kind.
    """
    found = kind(block.kind)
    if not found.variadic:
        return found.inputs, found.outputs
    (each,) = found.inputs
    count = block.params.get("inputs", found.param("inputs").default)
    # A file may hold any number; `wiring.check` reports one that is out of range.
    count = min(max(count, 2), 16) if isinstance(count, int) else 2
    inputs = tuple(replace(each, name=f"{each.name}{index}") for index in range(count))
    return inputs, found.outputs


def defaults(key: str) -> dict[str, ParamValue]:
    """Return the `params` that a new block of this kind starts with: what torch requires, and
    what had better differ from torch's default (`batch_first`).

    Raises KeyError when the catalogue has no such kind.
    """
    return {
        param.name: param.initial
        for param in kind(key).params
        if param.required or param.initial is not None
    }


def arguments(block: Block) -> dict[str, ParamValue]:
    """Return the value of every parameter of a block: those set on it, else torch's defaults.

    A required parameter that is not set is left out. Raises KeyError for an unknown kind.
    """
    params = kind(block.kind).params
    values = {param.name: param.default for param in params if not param.required}
    known = {param.name for param in params}
    values.update((name, value) for name, value in block.params.items() if name in known)
    return values


@cache
def losses() -> dict[str, BlockKind]:
    """Return the kinds of loss by key (`"nn.CrossEntropyLoss"`)."""
    return {key: found for key, found in kinds().items() if found.call == "loss"}


def other_losses() -> dict[str, OtherLoss]:
    """Return torch's losses that take more than a prediction and a target, by key. They are no
    blocks: a step of a module of the user's own has them."""
    return _catalogue().other_losses


def no_loss(key: str) -> str:
    """Why a model of blocks cannot have this loss, in a sentence."""
    if key in other_losses():
        return f"A model of blocks cannot have {key}: it takes {other_losses()[key].takes}."
    return f"There is no loss “{key}”."


def optimizers() -> dict[str, tuple[Param, ...]]:
    """Return the parameters of each optimizer by key (`"optim.SGD"`)."""
    return _catalogue().optimizers


def schedulers() -> dict[str, tuple[Param, ...]]:
    """Return the parameters of each learning-rate scheduler by key (`"lr_scheduler.StepLR"`)."""
    return _catalogue().schedulers


def datasets() -> dict[str, DatasetKind]:
    """Return the built-in data sets by key."""
    return _catalogue().datasets


def transforms() -> dict[str, TransformKind]:
    """Return the changes of samples by name (`"RandomCrop"`)."""
    return _catalogue().transforms
