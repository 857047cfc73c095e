"""Curves of other runs, drawn over a live plot."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from engine.protocol import KeptRunSnapshot
from widgets.training.plots.figure_plots import RATES, place_of
from widgets.training.plots.series import Overlay, Series

Points = tuple[Sequence[float], Sequence[float]]


def overlay_of(
    title: str, color: int, run: KeptRunSnapshot, plot: str, series: Sequence[Series], scale: float
) -> Overlay | None:
    """The line of a run in the plot of a name: the last of its series that is a line there, which
    is validation if the run has validated twice. None without any."""
    found = _points_of(run, plot)
    lines = [line for line in series if len(found.get(line.key, ((), ()))[0]) > 1]
    if not lines:
        return None
    line = lines[0] if plot == RATES else lines[-1]
    steps, values = found[line.key]
    about = title if len(series) == 1 else f"{title} {line.title}"
    scaled = [value * scale for value in values]
    notes = tuple((each.step, each.text) for each in run.annotations if each.plot == plot)
    return Overlay(about, color, steps, scaled, not line.points, notes)


def figures_in(run: KeptRunSnapshot) -> list[str]:
    """The names of the plots of all named figures of a run."""
    names = [place_of(name)[0] for name in run.steps.figures]
    for row in run.epoch_rows:
        names += [*row.train_figures, *row.validation_figures]
    return list(dict.fromkeys(names))


def _points_of(run: KeptRunSnapshot, plot: str) -> Mapping[str, Points]:
    """The points of each series of a plot, without those that are not known."""
    found: dict[str, Points] = {}
    columns, rows = run.steps, run.epoch_rows
    for key in (
        *("loss", "accuracy", "gradient_norm", "learning_rate", "step_ms", "rss_bytes"),
        *("samples_per_second", "gpu_percent"),
    ):
        found[key] = _known(columns.step, getattr(columns, key))
    for key in ("cuda_allocated_bytes", "cuda_reserved_bytes"):
        found[key] = _known(columns.step, getattr(columns, key)) if columns.rss_bytes else ((), ())
    for key in ("train_loss", "train_accuracy", "validation_loss", "validation_accuracy"):
        found[key] = _known([row.step for row in rows], [getattr(row, key) for row in rows])
    for name, values in columns.figures.items():
        of_plot, key = place_of(name)
        if of_plot == plot:
            found[key] = _known(columns.step, values)
    for key, named in (
        ("train", [row.train_figures for row in rows]),
        ("validation", [row.validation_figures for row in rows]),
    ):
        values = [figures.get(plot, math.nan) for figures in named]
        if not all(map(math.isnan, values)):
            found[key] = _known([row.step for row in rows], values)
    return found


def _known(steps: Sequence[float], values: Sequence[float | None]) -> Points:
    points = zip(steps, values, strict=False)
    kept = [(s, v) for s, v in points if v is not None and not math.isnan(v)]
    return [s for s, _ in kept], [v for _, v in kept]
