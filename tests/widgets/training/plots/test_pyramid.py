"""The pyramid of minima and maxima: it keeps every extreme and few points."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from widgets.training.plots.pyramid import FACTOR, Pyramid

series = hnp.arrays(
    np.float64,
    st.integers(1, 3000),
    elements=st.floats(-1e6, 1e6) | st.just(float("nan")),
    fill=st.floats(-10, 10),
)


def built(y: np.ndarray, cuts: list[int] | None = None) -> Pyramid:
    """A pyramid of y over 0, 1, 2, ..., appended in pieces."""
    pyramid = Pyramid()
    edges = sorted({0, len(y), *(cut % (len(y) + 1) for cut in cuts or [])})
    for start, stop in itertools.pairwise(edges):
        pyramid.extend(np.arange(start, stop), y[start:stop])
    return pyramid


@given(series, st.lists(st.integers(0, 3000), max_size=6), st.integers(1, 400))
def test_no_extreme_is_lost_and_none_is_made_up(y, cuts, pixels) -> None:
    pyramid = built(y, cuts)
    x_out, y_out = pyramid.query(0, len(y), pixels)
    assert len(x_out) == len(y_out) <= 4 * pixels + 6
    finite = y[np.isfinite(y)]
    shown = y_out[np.isfinite(y_out)]
    if finite.size:
        assert shown.min() == finite.min()
        assert shown.max() == finite.max()
        assert np.isin(shown, finite).all()
    else:
        assert not shown.size


@given(series, st.data(), st.integers(1, 100))
def test_a_part_keeps_its_extremes_and_covers_its_ends(y, data, pixels) -> None:
    pyramid = built(y)
    x0 = data.draw(st.integers(0, len(y) - 1))
    x1 = data.draw(st.integers(x0, len(y) - 1))
    x_out, y_out = pyramid.query(x0, x1, pixels)
    assert len(x_out) <= 4 * pixels + 6
    assert (np.diff(x_out) >= 0).all()
    assert x_out[0] <= x0
    inside = y[x0 : x1 + 1]
    if np.isfinite(inside).any():
        assert np.nanmin(y_out) <= np.nanmin(inside)
        assert np.nanmax(y_out) >= np.nanmax(inside)
    # Blocks reach at most one block beyond either end.
    block = max(1, FACTOR * (x1 - x0 + 3) // (2 * pixels))
    around = y[max(0, x0 - block - 1) : x1 + block + 2]
    assert np.isin(y_out[np.isfinite(y_out)], around).all()


def test_few_points_come_back_as_they_are() -> None:
    pyramid = built(np.array([3.0, 1.0, 2.0]))
    x_out, y_out = pyramid.query(0, 2, 100)
    assert x_out.tolist() == [0, 1, 2]
    assert y_out.tolist() == [3, 1, 2]


def test_a_part_brings_one_neighbour_on_each_side() -> None:
    pyramid = built(np.arange(10.0))
    assert pyramid.query(3.5, 5.5, 100)[0].tolist() == [3, 4, 5, 6]


def test_a_block_of_nan_is_a_gap() -> None:
    y = np.ones(64)
    y[16:32] = np.nan
    _, y_out = built(y).query(0, 64, 8)
    assert np.isnan(y_out).any()
    assert set(y_out[np.isfinite(y_out)]) == {1.0}


def test_levels_hold_the_extremes_of_their_blocks() -> None:
    y = np.random.default_rng(0).normal(size=1000)
    pyramid = built(y[:601], [1, 2, 3, 17, 600])
    pyramid.query(0, len(y), 8)  # levels are completed when they are read
    pyramid.extend(np.arange(601, len(y)), y[601:])
    pyramid.query(0, len(y), 8)
    assert len(pyramid._levels) > 1
    for level, (low, high) in enumerate(pyramid._levels, start=1):
        block = FACTOR**level
        full = len(y) // block
        blocks = y[: full * block].reshape(full, block)
        assert low.view.tolist() == blocks.min(axis=1).tolist()
        assert high.view.tolist() == blocks.max(axis=1).tolist()


def test_a_picture_of_many_points_reads_few() -> None:
    """Ten million points in a query that touches thousands: what makes it take milliseconds."""
    y = np.zeros(10_000_000, np.float64)
    y[7_654_321] = 5.0
    y[1_234_567] = -5.0
    pyramid = built(y)
    x_out, y_out = pyramid.query(0, len(y), 1000)
    assert len(x_out) <= 4006
    assert (y_out.min(), y_out.max()) == (-5.0, 5.0)
    assert abs(x_out[y_out.argmax()] - 7_654_321) < 10_000_000 / 500


def test_nearest() -> None:
    pyramid = Pyramid()
    assert pyramid.nearest(3) is None
    pyramid.extend([1, 2, 10], [0.1, 0.2, 0.3])
    assert pyramid.nearest(-5) == (1, 0.1)
    assert pyramid.nearest(5.9) == (2, 0.2)
    assert pyramid.nearest(6.1) == (10, 0.3)
    assert pyramid.nearest(99) == (10, 0.3)


def test_refuses_what_is_no_series() -> None:
    pyramid = Pyramid()
    pyramid.extend([], [])
    assert len(pyramid) == 0
    with pytest.raises(ValueError, match="differ"):
        pyramid.extend([1, 2], [1])
    pyramid.extend(5, 1)
    with pytest.raises(ValueError, match="fall"):
        pyramid.extend(4, 1)
    with pytest.raises(ValueError, match="finite"):
        pyramid.extend(np.inf, 1)
    assert pyramid.x.tolist() == [5]


@pytest.mark.parametrize("count", [400, 401, 403, 404, 1601, 1615, 1616])
def test_the_last_points_are_there_whether_or_not_their_block_is_full(count) -> None:
    y = np.zeros(count)
    y[-1] = 7.0
    x_out, y_out = built(y).query(0, count, 20)
    assert len(x_out) <= 4 * 20 + 6 and y_out[-1] == 7.0 and x_out[-1] > count - 66


def test_points_of_different_lengths_are_refused_and_none_is_none() -> None:
    pyramid = Pyramid()
    with pytest.raises(ValueError, match="differ"):
        pyramid.extend([1, 2], [1.0])
    with pytest.raises(ValueError, match="finite"):
        pyramid.extend([math.inf], [1.0])
    pyramid.extend([], [])
    assert len(pyramid) == 0 and pyramid.nearest(3) is None


def test_the_nearest_of_two_as_near_is_the_first() -> None:
    pyramid = Pyramid()
    pyramid.extend([1, 3, 7], [10.0, 30.0, 70.0])
    found = {x: pyramid.nearest(x) for x in (-5, 1, 2, 2.1, 5, 5.1, 99)}
    assert found == {
        -5: (1, 10), 1: (1, 10), 2: (1, 10), 2.1: (3, 30), 5: (3, 30), 5.1: (7, 70), 99: (7, 70),
    }  # fmt: skip
