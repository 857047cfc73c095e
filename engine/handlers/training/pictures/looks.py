"""Answers about how the parameters of a run moved, from the run's folder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isnan, nan, sqrt
from pathlib import Path

from ....lab import Lab
from ....protocol import (
    MAX_IMAGE_STEPS,
    MAX_LINES,
    MAX_NAMES,
    HistogramsSnapshot,
    ImagesSnapshot,
    ModuleNormsSnapshot,
    NormLine,
    ReadHistogramsCommand,
    ReadImagesCommand,
    ReadModuleNormsCommand,
)
from ....runs import folders, parameter_reading
from ....runs.parameter_figures import ParameterRow, spread
from ....runs.parameter_reading import Source
from ....runs.record import load
from ....runs.summary import is_out_of_reach
from ....system.errors import sendable
from ..runs import as_lab_errors

LOOP = "the newest loop"
"""In place of a run's folder: a loop has none."""
MAX_STEPS = 400
MAX_HISTOGRAMS = 256


def read_module_norms(lab: Lab, command: ReadModuleNormsCommand) -> Iterator[ModuleNormsSnapshot]:
    """Raises LabError if the run cannot be read."""
    found = _figures(lab, command)
    if found is None:
        yield ModuleNormsSnapshot(folder="")
        return
    path, as_copy = found
    with as_lab_errors():
        rows = parameter_reading.read_rows(path, MAX_STEPS, as_copy)
    places = {step: i for i, step in enumerate(dict.fromkeys(row.step for row in rows))}
    groups: dict[str, list[ParameterRow]] = {}
    deepest = 0
    for row in rows:
        path_of, _, _ = row.name.rpartition(".")
        parts = path_of.split(".") if path_of else []
        deepest = max(deepest, len(parts))
        name = row.name if command.by_parameter else ".".join(parts[: command.depth])
        groups.setdefault(name, []).append(row)
    wanted = [name for name in groups if name in command.names] or list(groups)
    yield ModuleNormsSnapshot(
        folder=command.folder or LOOP,
        steps=tuple(places),
        names=tuple(map(sendable, list(groups)[:MAX_NAMES])),
        deepest=deepest,
        lines=tuple(_line(name, groups[name], places) for name in wanted[:MAX_LINES]),
    )


def _line(name: str, rows: Sequence[ParameterRow], places: dict[int, int]) -> NormLine:
    """The norms of all these parameters together."""
    squares = [[nan] * len(places) for _ in range(3)]
    for row in rows:
        norms = row.gradient_norm, row.weight_norm, row.update_norm
        for of_kind, norm in zip(squares, norms, strict=True):
            place = places[row.step]
            if not isnan(norm):
                before = of_kind[place]
                of_kind[place] = norm * norm + (0.0 if isnan(before) else before)
    return NormLine(sendable(name), *(tuple(map(sqrt, of_kind)) for of_kind in squares))


def read_histograms(lab: Lab, command: ReadHistogramsCommand) -> Iterator[HistogramsSnapshot]:
    """Raises LabError if the run cannot be read."""
    source = _figures(lab, command)
    logged = lab.console.namespace.lab.tensors
    logged_names = logged.histogram_names() if command.of_loop else []
    kind = "logged" if source is None and logged_names else command.kind
    if kind == "logged":
        names = logged_names
        name = command.name if command.name in names else next(iter(names), "")
        found = logged.histograms(name)
    elif source is None:
        yield HistogramsSnapshot(folder="")
        return
    else:
        path, as_copy = source
        with as_lab_errors():
            names = parameter_reading.names(path, as_copy)
            name = command.name if command.name in names else next(iter(names), "")
            found = parameter_reading.read_histograms(path, name, kind, MAX_HISTOGRAMS, as_copy)
    yield HistogramsSnapshot(
        folder=command.folder or LOOP,
        name=sendable(name),
        kind=kind,
        names=tuple(map(sendable, names[:MAX_NAMES])),
        steps=tuple(each.step for each in found),
        lows=tuple(each.low for each in found),
        highs=tuple(each.high for each in found),
        others=tuple(each.others for each in found),
        counts=b"".join(each.counts for each in found),
    )


def read_images(lab: Lab, command: ReadImagesCommand) -> Iterator[ImagesSnapshot]:
    logged = lab.console.namespace.lab.tensors
    names = logged.image_names()
    name = command.name if command.name in names else next(iter(names), "")
    found = logged.images(name)
    chosen = set(spread([each.step for each in found], MAX_IMAGE_STEPS))
    yield ImagesSnapshot(
        name=sendable(name),
        names=tuple(map(sendable, names)),
        steps=tuple(each for each in found if each.step in chosen),
    )


def _figures(
    lab: Lab, command: ReadModuleNormsCommand | ReadHistogramsCommand
) -> tuple[Source, bool] | None:
    """The tables of the newest loop, or the file of a run's figures, and whether only a copy of it
    can be read; None if there is neither. Raises LabError."""
    if command.of_loop:
        tables = lab.subjects.loop_looks
        return None if tables is None else (tables, False)
    if not command.folder:
        return None
    with as_lab_errors():
        folder = Path(command.folder)
        return folder / folders.METRICS, is_out_of_reach(load(folder))
