"""A live plot's refresh beside pyqtgraph's own, which draws peaks of what is in view.

Both hold the same noisy line. In each round both get ten points more and are painted, in turn; the
process's CPU time is counted. `fill` is the CPU time to append ten million points at once, with
their running average.

    python -m tests.bench.bench_plot
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable
from time import process_time

import numpy as np
import pyqtgraph as pg
from PySide6.QtWidgets import QApplication

from widgets import theme
from widgets.training.plots.plots import LivePlot
from widgets.training.plots.series import Series, Track

ROUNDS, MORE = 30, 10
SIZE = (800, 300)


def noisy(start: int, count: int) -> np.ndarray:
    numbers = np.random.default_rng(start)
    return np.exp(-np.arange(start, start + count) / 5e4) + 0.1 * numbers.normal(size=count)


def peers(points: int) -> tuple[Callable[[int], object], Callable[[int], object]]:
    """Functions that append MORE points after so many, and paint."""
    ours = LivePlot("Loss", "", [Series("loss", "training")])
    ours.resize(*SIZE)
    ours.append("loss", np.arange(points), noisy(0, points))
    theirs = pg.PlotWidget()
    theirs.resize(*SIZE)
    curve = theirs.plot(pen=pg.mkPen("b"), antialias=True)
    curve.setDownsampling(auto=True, method="peak")
    curve.setClipToView(True)
    y = np.empty(points + (ROUNDS + 1) * MORE)
    y[:points] = noisy(0, points)
    x = np.arange(len(y), dtype=np.float64)
    ours.show()
    theirs.show()

    def our_turn(start: int) -> object:
        ours.append("loss", x[start : start + MORE], noisy(start, MORE))
        ours.refresh()
        return ours.grab()

    def their_turn(start: int) -> object:
        y[start : start + MORE] = noisy(start, MORE)
        curve.setData(x[: start + MORE], y[: start + MORE])
        return theirs.grab()

    return our_turn, their_turn


def seconds(act: Callable[[], object]) -> float:
    started = process_time()
    act()
    return process_time() - started


def refresh_row(points: int) -> dict[str, float | int | str]:
    our_turn, their_turn = peers(points)
    ours, theirs = [], []
    for turn in range(ROUNDS + 1):
        start = points + turn * MORE
        ours.append(seconds(lambda start=start: our_turn(start)))
        theirs.append(seconds(lambda start=start: their_turn(start)))
    pairs = list(zip(ours, theirs, strict=True))[1:]
    return {
        "bench": "plot",
        "points": points,
        "refresh_ms": statistics.median(ours[1:]) * 1e3,
        "pyqtgraph_ms": statistics.median(theirs[1:]) * 1e3,
        "refresh_over_pyqtgraph": statistics.median(a / b for a, b in pairs),
    }


def fill_row(points: int) -> dict[str, float | int | str]:
    x, y, track = np.arange(points), noisy(0, points), Track()
    took_s = seconds(lambda: track.extend(x, y))
    return {"bench": "plot", "points": points, "fill_s": took_s}


def main() -> None:
    application = QApplication.instance() or QApplication([])
    assert isinstance(application, QApplication)
    theme.apply(application, theme.LIGHT)
    for points in (10_000, 100_000, 1_000_000):
        print(json.dumps(refresh_row(points)), flush=True)
    print(json.dumps(fill_row(10_000_000)), flush=True)


if __name__ == "__main__":
    main()
