"""The catalogue, as data: blocks, losses, optimizers, schedulers and data sets. No torch.

The rows are written by hand (`catalogue.toml`: group, icon, words, ports); the parameters come
from torch's own signatures and docstrings, read once by `engine.models.signatures` into
`signatures.json`, so that the window knows them before torch has loaded.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

import msgspec
from msgspec.structs import asdict, replace

from .document import Block, ParamValue
from .kinds import BlockKind, DatasetKind, Param, ParamType, Port
from .table import PATH, Changes, Row, TableProblem, checked, table
from .values import parse_value

__all__ = [
    "BlockKind",
    "DatasetKind",
    "Param",
    "ParamType",
    "Port",
    "arguments",
    "datasets",
    "defaults",
    "kind",
    "kinds",
    "losses",
    "optimizers",
    "parse_value",
    "ports",
    "schedulers",
]


@lru_cache
def kinds() -> dict[str, BlockKind]:
    """Return every kind of block by key, the loss blocks included, in the palette's order."""
    return {row.key: _kind(row) for row in table().rows}


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


@lru_cache
def losses() -> dict[str, BlockKind]:
    """Return the kinds of loss by key (`"nn.CrossEntropyLoss"`)."""
    return {key: found for key, found in kinds().items() if found.call == "loss"}


@lru_cache
def optimizers() -> dict[str, tuple[Param, ...]]:
    """Return the parameters of each optimizer by key (`"optim.SGD"`)."""
    return {
        key: _corrected(_torchs(key), row.params, key) for key, row in table().optimizers.items()
    }


@lru_cache
def schedulers() -> dict[str, tuple[Param, ...]]:
    """Return the parameters of each learning-rate scheduler by key (`"lr_scheduler.StepLR"`)."""
    return {
        key: _corrected(_torchs(key), row.params, key) for key, row in table().schedulers.items()
    }


def datasets() -> dict[str, DatasetKind]:
    """Return the built-in data sets by key."""
    return table().datasets


@lru_cache
def _signatures() -> dict[str, tuple[Param, ...]]:
    data = (Path(__file__).parent / "signatures.json").read_bytes()
    return msgspec.json.decode(data, type=dict[str, tuple[Param, ...]])


def _torchs(key: str) -> list[Param]:
    """The parameters that torch has, with our bounds."""
    if key not in _signatures():
        raise TableProblem(
            f"{PATH.name}, {key}: its parameters are not in signatures.json yet. Run: python -m"
            " engine.models.signatures"
        )
    return [_bounded(param) for param in _signatures()[key]]


def _kind(row: Row) -> BlockKind:
    torchs = [param for param in _torchs(row.key) if param.name not in row.omit]
    return BlockKind(
        key=row.key,
        torch_name=row.torch_name,
        title=row.title,
        group=row.group,
        summary=row.summary,
        icon=row.icon,
        call=row.call,
        inputs=row.inputs,
        outputs=row.outputs,
        params=_corrected([*row.extra, *torchs], row.params, row.key),
        stem=row.stem,
        keywords=row.keywords,
        variadic="inputs" in [param.name for param in row.extra],
    )


def _corrected(params: Iterable[Param], changes: Changes, key: str) -> tuple[Param, ...]:
    found = {param.name: param for param in params}
    for name, change in changes.items():
        if name not in found:
            raise TableProblem(f"{PATH.name}, {key}: torch has no parameter “{name}”.")
        change = change if isinstance(change, dict) else {"initial": change}
        fields = {**asdict(found[name]), **change}
        found[name] = checked(Param, fields, PATH, f"{key}, {name}")
    return tuple(found.values())


def _bounded(param: Param) -> Param:
    if param.type in ("int", "float", "ints", "floats"):
        for bounds in table().bounds:
            if param.name in bounds.names:
                return replace(param, minimum=bounds.minimum, maximum=bounds.maximum)
    return param
