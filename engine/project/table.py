"""Reads `catalogue.toml`, what is written by hand of the catalogue, one row a line, and joins it
with torch's parameters. Its first lines say what a row holds."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import asdict, replace

from .catalogue import Catalogue
from .document import ParamValue
from .kinds import BlockKind, Call, DatasetKind, OtherLoss, Param, Port, Target, TransformKind

PATH = Path(__file__).with_name("catalogue.toml")
_NAMESPACES: dict[str, tuple[str, Call]] = {
    "nn": ("torch.nn", "module"),
    "torch": ("torch", "function"),
    "Tensor": ("torch.Tensor", "method"),
}
_INPUTS = ["input: the tensor to work on"]
_OUTPUTS = ["output: the result"]

Changes = dict[str, ParamValue | dict[str, Any]]
"""By parameter: its starting value, or the fields of `Param` that differ from torch's."""


class TableProblem(ValueError):
    """A row of a table is not as it must be; the message names the file, the row, the field."""


class Row(Struct, frozen=True, forbid_unknown_fields=True):
    """The row of a block."""

    key: str
    group: str
    title: str
    stem: str
    icon: str
    summary: str
    torch_name: str
    call: Call
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    params: Changes = {}
    omit: tuple[str, ...] = ()
    extra: tuple[Param, ...] = ()
    schema: str = ""
    keywords: tuple[str, ...] = ()
    target: Target = ""


class ClassRow(Struct, frozen=True, forbid_unknown_fields=True):
    """The row of an optimizer or a scheduler."""

    params: Changes = {}


class LossRow(ClassRow, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The row of a loss that takes more than a prediction and a target; see `OtherLoss`. Arguments
    of one that `has_weights` are given where the user's module makes it."""

    takes: str
    step: tuple[str, ...]
    has_weights: bool = False


class Bounds(Struct, frozen=True, forbid_unknown_fields=True):
    """Holds for every number of torch's that has one of these names."""

    names: tuple[str, ...]
    minimum: float | None = None
    maximum: float | None = None


class Table(Struct, frozen=True):
    rows: tuple[Row, ...]
    other_losses: dict[str, LossRow]
    optimizers: dict[str, ClassRow]
    schedulers: dict[str, ClassRow]
    datasets: dict[str, DatasetKind]
    transforms: dict[str, TransformKind]
    bounds: tuple[Bounds, ...]


@lru_cache
def table() -> Table:
    return read(PATH.read_text(encoding="utf-8"))


def read(text: str) -> Table:
    """Raises TableProblem."""
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise TableProblem(f"{PATH.name}: {error}") from error
    ours = {
        name: checked(Param, {"name": name, **line}, PATH, name)
        for name, line in found["parameters"].items()
    }
    return Table(
        rows=tuple(
            _row(group, key, line, ours)
            for group, lines in found["blocks"].items()
            for key, line in lines.items()
        ),
        other_losses=_classes(LossRow, found["other_losses"]),
        optimizers=_classes(ClassRow, found["optimizers"]),
        schedulers=_classes(ClassRow, found["schedulers"]),
        datasets=_kinds(DatasetKind, found["datasets"], ours),
        transforms=_kinds(TransformKind, found["transforms"], ours),
        bounds=checked(tuple[Bounds, ...], found["bounds"], PATH, "bounds"),
    )


Form = TypeVar("Form")


def _classes(form: type[Form], lines: Mapping[str, Any]) -> dict[str, Form]:
    return {key: checked(form, line, PATH, key) for key, line in lines.items()}


def checked(form: type[Form], fields: object, path: Path, row: str) -> Form:
    """The plain values of a row as a `form`. Raises TableProblem."""
    try:
        return msgspec.convert(fields, form)
    except msgspec.ValidationError as error:
        raise TableProblem(f"{path.name}, {row}: {error}.") from error


def _kinds(
    form: type[Form], lines: Mapping[str, Any], ours: Mapping[str, Param]
) -> dict[str, Form]:
    """The rows of what has parameters of our own only."""
    found = {}
    for key, line in lines.items():
        line = {"key": key, **line, "params": _named(line.get("params", ()), ours, key)}
        found[key] = checked(form, line, PATH, key)
    return found


def _row(group: str, key: str, line: dict[str, Any], ours: Mapping[str, Param]) -> Row:
    namespace, _, name = key.rpartition(".")
    if namespace in _NAMESPACES:
        full, call = _NAMESPACES[namespace]
        line = {"torch_name": f"{full}.{name}", "call": call, **line}
    line = {"title": name, "inputs": _INPUTS, "outputs": _OUTPUTS, **line}
    line["inputs"], line["outputs"] = _ports(line["inputs"]), _ports(line["outputs"])
    line["extra"] = _named(line.get("extra", ()), ours, key)
    return checked(Row, {"key": key, "group": group, **line}, PATH, key)


def _named(names: Iterable[str], ours: Mapping[str, Param], key: str) -> list[Param]:
    for name in names:
        if name not in ours:
            raise TableProblem(f"{PATH.name}, {key}: [parameters] has no “{name}”.")
    return [ours[name] for name in names]


def _ports(ports: list[str | dict[str, Any]]) -> list[dict[str, Any]]:
    """`"name: words"` as the fields of a Port."""
    found = []
    for port in ports:
        if isinstance(port, str):
            name, _, doc = port.partition(": ")
            port = {"name": name, "doc": doc}
        found.append(port)
    return found


# -- with torch's parameters -----------------------------------------------------------------------

Params = Mapping[str, tuple[Param, ...]]
"""The parameters that torch has, by the key of their row."""


def complete(table: Table, torchs: Params) -> Catalogue:
    """Raises TableProblem for a correction of a parameter that torch has not, or of a field that a
    parameter has not."""
    bounded = {key: [_bounded(param, table) for param in params] for key, params in torchs.items()}

    def classes(rows: Mapping[str, ClassRow]) -> dict[str, tuple[Param, ...]]:
        return {key: _corrected(bounded[key], row.params, key) for key, row in rows.items()}

    return Catalogue(
        kinds={row.key: _kind(row, bounded[row.key]) for row in table.rows},
        other_losses={
            key: OtherLoss(
                takes=row.takes,
                step=row.step,
                params=() if row.has_weights else _corrected(bounded[key], row.params, key),
            )
            for key, row in table.other_losses.items()
        },
        optimizers=classes(table.optimizers),
        schedulers=classes(table.schedulers),
        datasets=table.datasets,
        transforms=table.transforms,
    )


def _kind(row: Row, torchs: Iterable[Param]) -> BlockKind:
    kept = [param for param in torchs if param.name not in row.omit]
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
        params=_corrected([*row.extra, *kept], row.params, row.key),
        stem=row.stem,
        keywords=row.keywords,
        target=row.target,
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


def _bounded(param: Param, table: Table) -> Param:
    if param.type in ("int", "float", "ints", "floats"):
        for bounds in table.bounds:
            if param.name in bounds.names:
                return replace(param, minimum=bounds.minimum, maximum=bounds.maximum)
    return param
