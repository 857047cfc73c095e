"""The data of a live plot: named series over the optimizer's steps, raw and smoothed."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TextIO

import numpy as np
from numpy.typing import ArrayLike, NDArray

from widgets.training.pyramid import Pyramid

SMOOTHING = 0.9
"""Weight of the past in the exponential moving average."""


@dataclass(frozen=True)
class Series:
    """One line of a plot: `key` names it in code, `title` on screen; `color` is an index into the
    theme's series colours. `points` marks each point and does not smooth the line, for series with
    one point per epoch."""

    key: str
    title: str
    color: int = 0
    points: bool = False
    tip: str = ""


class Track:
    """The numbers of one series. Numbers that are not finite become gaps; `first_bad` is the first
    step with one."""

    def __init__(self) -> None:
        self.raw = Pyramid()
        self.smooth = Pyramid()
        self.first_bad: float | None = None
        self._sum = 0.0
        self._weight = 0.0

    def extend(self, x: ArrayLike, y: ArrayLike) -> None:
        """Append points; raises ValueError as `Pyramid.extend` does."""
        steps = np.atleast_1d(np.asarray(x, np.float64))
        values = np.atleast_1d(np.asarray(y, np.float64))
        bad = ~np.isfinite(values)
        self.raw.extend(steps, np.where(bad, np.nan, values))
        if self.first_bad is None and bad.any():
            self.first_bad = float(steps[bad][0])
        self.smooth.extend(steps, self._smoothed(values, bad))

    def _smoothed(self, values: NDArray[np.float64], bad: NDArray[np.bool_]) -> list[float]:
        """Exponential moving average, freed of its bias towards the start at zero (D. Kingma and
        J. Ba, "Adam", 2015, section 3). Gaps do not change it."""
        out: list[float] = []
        for value, skip in zip(values.tolist(), bad.tolist(), strict=True):
            if not skip:
                self._sum = SMOOTHING * self._sum + (1 - SMOOTHING) * value
                self._weight = SMOOTHING * self._weight + (1 - SMOOTHING)
            out.append(self._sum / self._weight if self._weight else float("nan"))
        return out


def write_csv(file: TextIO, series: Sequence[Series], tracks: dict[str, Track]) -> None:
    """One row per step, one column per series; a cell is empty where the number is not finite."""
    rows: dict[float, dict[str, float]] = {}
    for line in series:
        raw = tracks[line.key].raw
        for step, value in zip(raw.x.tolist(), raw.y.tolist(), strict=True):
            row = rows.setdefault(step, {})
            if value == value:
                row[line.key] = value
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(["step", *(line.key for line in series)])
    for step in sorted(rows):
        writer.writerow(
            [
                f"{step:g}" if step % 1 else int(step),
                *(rows[step].get(line.key, "") for line in series),
            ]
        )
