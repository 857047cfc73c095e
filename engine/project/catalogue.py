"""The catalogue: which blocks, losses, optimizers and data sets there are, as data. No torch.

The rows are written by hand (`table.py`: group, icon, words, ports); the parameters come from
torch's own signatures and docstrings, read once by `engine.models.signatures` into
`signatures.json`, so that the window knows them before torch has loaded.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import msgspec
from msgspec.structs import replace

from .document import Block, ParamValue
from .kinds import BlockKind, DatasetKind, Param, ParamType, Port
from .table import BOUNDS, DATASETS, INPUTS, OPTIMIZERS, ROWS, Row
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
]


@lru_cache
def kinds() -> dict[str, BlockKind]:
    """Return every kind of block by key, the loss blocks included, in the palette's order."""
    return {row.key: _kind(row) for row in ROWS}


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
    count = block.params.get("inputs", INPUTS.default)
    # A file may say anything; `wiring.check` tells of a number out of range.
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
    return {key: tuple(map(_bounded, _signatures()[key])) for key in OPTIMIZERS}


@lru_cache
def datasets() -> dict[str, DatasetKind]:
    """Return the built-in data sets by key."""
    return {dataset.key: dataset for dataset in DATASETS}


@lru_cache
def _signatures() -> dict[str, tuple[Param, ...]]:
    data = (Path(__file__).parent / "signatures.json").read_bytes()
    return msgspec.json.decode(data, type=dict[str, tuple[Param, ...]])


def _kind(row: Row) -> BlockKind:
    read = tuple(p for p in _signatures()[row.key] if p.name not in row.omit)
    params = [*row.extra, *map(_bounded, read)]
    if row.variadic:
        params.insert(0, INPUTS)
    for name in {*row.initial, *row.override} - {param.name for param in params}:
        raise LookupError(f"{row.key} has no parameter {name!r}")
    merged = []
    for param in params:
        param = replace(param, **row.override.get(param.name, {}))
        if param.name in row.initial:
            param = replace(param, initial=row.initial[param.name])
        merged.append(param)
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
        params=tuple(merged),
        stem=row.stem,
        keywords=row.keywords,
        variadic=row.variadic,
    )


def _bounded(param: Param) -> Param:
    minimum, maximum = BOUNDS.get(param.name, (None, None))
    if param.type not in ("int", "float", "ints", "floats"):
        return param
    return replace(param, minimum=minimum, maximum=maximum)
