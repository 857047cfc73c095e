"""Answers with a subject's parameters, between the steps of a run and inside the user's loop."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import nullcontext

from msgspec.structs import replace
from torch import nn
from torch.optim import Optimizer

from ...lab import Lab
from ...loops.updates import Update
from ...protocol import ReadParametersCommand, Snapshot, StructureSnapshot, WeightRow
from ...subjects.structure import module_rows, totals, weight_rows
from ...system.errors import sendable
from ..subjects.find import subject_of
from .reading import structure_in_parts


def read_parameters(lab: Lab, command: ReadParametersCommand) -> Iterator[Snapshot]:
    """Raises LabError if there is no such subject, and what its code raises; while code runs, also
    for a subject that is not made yet."""
    subjects = lab.subjects
    with subjects.making_nothing() if lab.inside is not None else nullcontext():
        subject = subject_of(lab, command)
    updates = subjects.updates
    known = updates.of(subject.module)
    updates.ask(subject.module)
    optimizers = _named(updates.optimizers, subject.optimizers())
    rows = _with_updates(subject.module, optimizers, known, in_midst=lab.inside is not None)
    whole = StructureSnapshot(
        title=subject.title,
        totals=totals(subject.module),
        made=subject.made,
        optimizers=tuple(map(sendable, optimizers)),
    )
    yield from structure_in_parts(whole, module_rows(subject.module), rows)


def _named(stepped: list[Optimizer], named: dict[str, Optimizer]) -> dict[str, Optimizer]:
    """The named optimizers, and those that have stepped and have no name, by their class."""
    found = dict(named)
    for optimizer in stepped:
        if not any(optimizer is known for known in found.values()):
            title = type(optimizer).__name__
            number = sum(known.partition(" ")[0] == title for known in found) + 1
            found[title if number == 1 else f"{title} {number}"] = optimizer
    return found


def _with_updates(
    module: nn.Module,
    optimizers: Mapping[str, Optimizer],
    known: Mapping[str, Update],
    in_midst: bool,
) -> list[WeightRow]:
    """The rows of parameters and buffers. In the midst of code that runs, `.grad` may just be empty
    or half done: the gradient of the last measured step goes before it."""
    rows = []
    for row in weight_rows(module, optimizers):
        if row.kind == "parameter":
            names = (row.name, *row.shared_with)
            update = next((known[name] for name in names if name in known), None)
            if update is not None:
                gradient = update.gradient if in_midst else row.gradient
                row = replace(row, gradient=gradient, update=update.ratio)
        rows.append(row)
    return rows
