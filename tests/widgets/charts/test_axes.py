"""From numbers to pixels and back, and the round numbers of an axis."""

from __future__ import annotations

from math import inf, isnan, nan

import pytest
from PySide6.QtCore import QPointF, QRectF

from widgets.charts.axes import Axes, Scale, area_of, scale_of


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


@pytest.mark.parametrize("scale", [Scale(-2.0, 6.0), Scale(0.01, 100.0, True)])
def test_a_share_is_the_inverse_of_its_number(scale) -> None:
    for share in (0.0, 0.25, 0.5, 1.0, 1.5):
        assert scale.share(scale.value(share)) == pytest.approx(share)
    assert scale.value(0.0) == pytest.approx(scale.low)
    assert scale.value(1.0) == pytest.approx(scale.high)
    assert (scale.value(0.5)) == pytest.approx(1.0 if scale.is_log else 2.0)
    assert isnan(scale.share(0.0)) == isnan(scale.share(-1.0)) == scale.is_log


@pytest.mark.parametrize(
    ("scale", "count", "ticks"),
    [
        (Scale(0.0, 10.0), 10, list(range(11))),
        (Scale(0.0, 10.0), 9, [0, 2, 4, 6, 8, 10]),
        (Scale(0.0, 10.0), 1, [0, 10]),
        (Scale(0.0, 10.0), 0, [0, 10]),
        (Scale(1.0, 9.0), 2, [5]),
        (Scale(-25.0, 25.0), 5, [-20, -10, 0, 10, 20]),
        (Scale(0.0, 0.05), 5, [0, 0.01, 0.02, 0.03, 0.04, 0.05]),
        (Scale(1.0, 1000.0, True), 1, [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000]),
        (Scale(1.0, 1000.0, True), 4, [1, 10, 100, 1000]),
        (Scale(1.0, 1000.0, True), 3, [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000]),
        (Scale(1.0, 10000.0, True), 3, [1, 100, 10000]),
        (Scale(9.0, 110.0, True), 5, [10, 20, 50, 100]),
        (Scale(3.0, 12.0, True), 5, [4, 6, 8, 10, 12]),
    ],
)
def test_about_as_many_ticks_as_there_is_room_for(scale, count, ticks) -> None:
    assert scale.ticks(count) == pytest.approx(ticks)


def test_room_around_numbers() -> None:
    assert scale_of([1.0, 3.0]) == Scale(0.9, 3.1)
    assert scale_of([0.0, 0.0]) == Scale(-1.0, 1.0)
    assert scale_of([-5.0]) == Scale(-5.5, -4.5)
    assert scale_of([], is_log=True) == scale_of([-1.0, inf], is_log=True) == Scale(1.0, 10.0, True)
    narrow, wide = scale_of([2.0, 2.0], is_log=True), scale_of([1.0, 1e4], is_log=True)
    assert (narrow.low, narrow.high) == pytest.approx((2 / 1.05, 2.1))
    assert (wide.low, wide.high) == pytest.approx((10**-0.2, 10**4.2))


def test_an_area_has_room_for_numbers_and_at_least_a_pixel() -> None:
    assert area_of(400, 300) == QRectF(58, 10, 400 - 58 - 16, 300 - 10 - 34)
    assert area_of(10, 20) == QRectF(58, 10, 1, 1)
