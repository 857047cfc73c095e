"""Boxes found by their place, compared with looking at every box."""

from __future__ import annotations

import random

import pytest
from PySide6.QtCore import QRectF

from widgets.canvas.obstacles import CELL, Obstacles, box_of


def rects(count: int, side: float, seed: int) -> list[QRectF]:
    """Rects within `side` pixels of the origin; some have their edges on the edges of cells."""
    draw = random.Random(seed)
    places = (lambda: draw.uniform(-side, side), lambda: CELL * draw.randint(-3, 3))
    return [
        QRectF(draw.choice(places)(), draw.choice(places)(), draw.choice((64.0, CELL, 700.0)), 40.0)
        for _ in range(count)
    ]


def touch(a: QRectF, b: QRectF) -> bool:
    return (
        a.left() <= b.right()
        and a.right() >= b.left()
        and a.top() <= b.bottom()
        and a.bottom() >= b.top()
    )


@pytest.mark.parametrize("side", [300.0, 5_000.0, 1e9])
def test_near_finds_each_box_that_overlaps_or_touches_once(side):
    there = rects(200, side, seed=0)
    obstacles = Obstacles(there)
    assert obstacles.boxes == [box_of(rect) for rect in there]
    for area in [*rects(100, side, seed=1), QRectF(-2 * side, -2 * side, 4 * side, 4 * side)]:
        expected = [box_of(rect) for rect in there if touch(rect, area)]
        assert sorted(obstacles.near(area)) == sorted(expected)


def test_boxes_are_left_out_by_their_numbers():
    obstacles = Obstacles([QRectF(0, 0, 10, 10), QRectF(5, 5, 10, 10)])
    obstacles.add(QRectF(8, 8, 600, 600))
    area = QRectF(9, 9, 1, 1)
    assert len(obstacles.near(area)) == 3
    assert obstacles.near(area, without=(0, 2)) == [(5, 5, 15, 15)]
    assert Obstacles().near(area) == []


@pytest.mark.parametrize(("x", "y"), [(-10, 0), (10, 0), (0, -10), (0, 10)])
def test_boxes_side_by_side_touch(x, y):
    obstacles = Obstacles([QRectF(0, 0, 10, 10)])
    assert obstacles.near(QRectF(x, y, 10, 10)) == [(0, 0, 10, 10)]
    assert obstacles.near(QRectF(1.1 * x, 1.1 * y, 10, 10)) == []
