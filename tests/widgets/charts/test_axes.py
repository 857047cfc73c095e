"""From numbers to pixels and back, and the round numbers of an axis."""

from __future__ import annotations

from math import inf, nan

import pytest
from PySide6.QtCore import QPointF, QRectF

from widgets.charts.axes import Axes, Scale, scale_of


def test_a_number_is_where_its_share_of_the_axis_is() -> None:
    axes = Axes(QRectF(10, 20, 200, 100), Scale(0.0, 4.0), Scale(1.0, 100.0, True))
    assert axes.at(1.0, 10.0) == QPointF(60, 70)
    x, y = axes.value_at(QPointF(60, 70)) or (0, 0)
    assert (x, y) == (pytest.approx(1.0), pytest.approx(10.0))
    assert axes.value_at(QPointF(5, 70)) is None


@pytest.mark.parametrize(
    ("scale", "count", "ticks"),
    [
        (Scale(0.0, 10.0), 5, [0, 2, 4, 6, 8, 10]),
        (Scale(-0.3, 0.31), 6, [-0.2, 0.0, 0.2]),
        (Scale(0.5, 2000.0, True), 6, [1, 10, 100, 1000]),
        (Scale(1e-9, 1.0, True), 5, [1e-9, 1e-7, 1e-5, 1e-3, 1e-1]),
        (Scale(0.0015, 0.045, True), 5, [0.002, 0.005, 0.01, 0.02]),
        (Scale(2.0, 8.0, True), 4, [2, 4, 6, 8]),  # too short for powers of ten
    ],
)
def test_ticks_are_round_numbers_within_the_axis(scale, count, ticks) -> None:
    assert scale.ticks(count) == pytest.approx(ticks)


def test_a_scale_is_around_the_finite_numbers() -> None:
    assert scale_of([1.0, nan, 3.0, inf], room=0.5) == Scale(0.0, 4.0)
    assert scale_of([5.0, 5.0]) == Scale(4.5, 5.5)
    assert scale_of([nan]) == Scale(0.0, 1.0)
    low = scale_of([-1.0, 0.0, 1e-3, 10.0], is_log=True)
    assert low.is_log and 0 < low.low < 1e-3 and low.high > 10
