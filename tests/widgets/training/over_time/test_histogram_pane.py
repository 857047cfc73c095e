"""Histograms over steps: one grid for all, what a cell says, what is chosen."""

from __future__ import annotations

import numpy as np
import pytest

from engine.protocol import BINS, HistogramsSnapshot
from tests.labels import said
from tests.pictures import assert_same_picture
from widgets import theme
from widgets.training.over_time.histogram_pane import HistogramPane
from widgets.training.over_time.resampling import (
    ROWS,
    looks_at,
    shares,
    step_scale,
    value_scale,
)

STEPS = (1, 2, 4, 8, 16, 32, 64)


def found(**fields) -> HistogramsSnapshot:
    """A normal distribution that widens with the steps."""
    random = np.random.default_rng(0)
    values = [random.normal(0, 1 + i, 2000) for i in range(len(STEPS))]
    counts = [np.histogram(each, BINS)[0].astype("<u4").tobytes() for each in values]
    known = {
        "folder": "f",
        "name": "linear1.weight",
        "names": ("linear1.weight", "linear1.bias"),
        "steps": STEPS,
        "lows": tuple(float(each.min()) for each in values),
        "highs": tuple(float(each.max()) for each in values),
        "others": (0,) * len(STEPS),
        "counts": b"".join(counts),
    }
    return HistogramsSnapshot(**{**known, **fields})


def test_each_column_has_all_elements_of_the_newest_look() -> None:
    each = found()
    x, y = step_scale(each), value_scale(each, False)
    assert (x.low, x.high) == (1, 64) and (y.low, y.high) == (min(each.lows), max(each.highs))
    grid = shares(each, x, y)
    assert grid.shape == (ROWS, 63)
    np.testing.assert_allclose(np.nansum(grid, axis=0), 1.0)
    assert looks_at(each, x)[[0, 1, 2, 6, 7, 62]].tolist() == [0, 1, 1, 2, 3, 5]


def test_bins_that_fit_the_grid_are_the_histogram_itself() -> None:
    counts = np.arange(BINS, dtype="<u4")
    each = found(steps=(1,), lows=(0.0,), highs=(64.0,), others=(0,), counts=counts.tobytes())
    grid = np.nan_to_num(shares(each, step_scale(each), value_scale(each, False)))[:, 0]
    np.testing.assert_allclose(  # two bins are three rows
        grid.reshape(-1, 3).sum(1), counts.reshape(-1, 2).sum(1) / counts.sum()
    )


def test_the_middle_leaves_out_half_a_percent_on_either_side() -> None:
    counts = np.zeros(BINS, "<u4")
    counts[[0, 31, 32, 63]] = 4, 500, 492, 4
    each = found(steps=(1,), lows=(0.0,), highs=(64.0,), others=(0,), counts=counts.tobytes())
    scale = value_scale(each, True)
    assert (scale.low, scale.high) == (31.0, 33.0)
    counts[[0, 31]] = 6, 498
    each = found(steps=(1,), lows=(0.0,), highs=(64.0,), others=(0,), counts=counts.tobytes())
    assert (value_scale(each, True).low, value_scale(each, True).high) == (0.0, 33.0)


def test_equal_elements_are_in_one_row() -> None:
    counts = np.zeros(BINS, "<u4")
    counts[0] = 5
    each = found(steps=(3,), lows=(0.0,), highs=(0.0,), others=(0,), counts=counts.tobytes())
    grid = shares(each, step_scale(each), value_scale(each, False))
    assert np.nansum(grid) == 1.0 and np.isfinite(grid).sum() == 1


@pytest.fixture
def pane(qtbot) -> HistogramPane:
    pane = HistogramPane()
    qtbot.addWidget(pane)
    pane.resize(640, 420)
    pane.show()
    return pane


def test_a_cell_says_which_values_and_how_many(pane: HistogramPane) -> None:
    pane.show_histograms(found())
    pane.map.point_at((ROWS // 2, 0))
    words = said(pane, "histograms_pointed")
    assert words.startswith("step 1: ") and "of 2,000 weights are in" in words
    pane.map.point_at((0, 0))
    assert "none of 2,000" in said(pane, "histograms_pointed")


def test_elements_that_are_not_finite_are_told(pane: HistogramPane) -> None:
    pane.show_histograms(found(others=(0, 0, 3, 0, 0, 0, 9)))
    told = said(pane, "histograms_bad")
    assert told == "3 elements were NaN or infinite at step 4; they are in no bin."
    pane.show_histograms(found(steps=(), lows=(), highs=(), others=(), counts=b""))
    assert "no finite weights" in said(pane, "histograms_pointed")


def test_another_parameter_is_asked_for_and_chosen(pane: HistogramPane) -> None:
    asked, chosen = [], []
    pane.asked.connect(lambda: asked.append((pane.name, pane.kind)))
    pane.chosen.connect(chosen.append)
    pane.show_histograms(found())
    pane._names.setCurrentIndex(1)
    pane._names.activated.emit(1)
    assert asked == [("linear1.bias", "weights")] and chosen == ["linear1.bias"]
    pane.show_chosen("linear1.weight")
    pane.show_chosen("conv.weight")  # this run has none
    assert asked[1:] == [("linear1.weight", "weights")] and len(chosen) == 1


def test_before_the_first_look_it_says_so(pane: HistogramPane) -> None:
    pane.show_histograms(HistogramsSnapshot(folder=""))
    assert said(pane, "histograms_trouble").startswith("No run yet")
    pane.show_histograms(HistogramsSnapshot(folder="f"))
    assert said(pane, "histograms_trouble").startswith("The run has started")


@pytest.mark.parametrize("name", ["light", "dark"])
def test_it_looks_as_it_did(pane: HistogramPane, name: str, qapp) -> None:
    theme.apply(qapp, {"light": theme.LIGHT, "dark": theme.DARK}[name])
    pane.show_histograms(found())
    assert_same_picture(pane, f"histograms_{name}")


def test_what_a_loop_logs_is_of_no_parameter(pane: HistogramPane) -> None:
    asked, chosen = [], []
    pane.asked.connect(lambda: asked.append((pane.name, pane.kind)))
    pane.chosen.connect(chosen.append)
    pane.show_histograms(found(kind="logged", name="out", names=("out", "x")))
    assert pane.kind == "logged"  # the engine has said so: nothing else was looked at
    pane._names.setCurrentIndex(1)
    pane._names.activated.emit(1)
    pane.show_chosen("out")
    assert asked == [("x", "logged")] and chosen == []
    pane.map.point_at((ROWS // 2, 0))
    assert "of 2,000 elements are in" in said(pane, "histograms_pointed")
    nothing = {"steps": (), "lows": (), "highs": (), "others": (), "counts": b""}
    pane.show_histograms(found(kind="logged", name="", names=(), **nothing))
    assert said(pane, "histograms_pointed").startswith("lab.log(name=tensor)")
    assert pane._kind.isVisible()  # the way back
