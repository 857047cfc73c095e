"""The points of a line: smooth or in right angles, from station to station."""

from __future__ import annotations

from itertools import pairwise
from math import dist, hypot

import pytest

from widgets.layout.routes import TURN, corners, curve

Points = list[tuple[float, float]]


def pieces(points: Points) -> list[Points]:
    """The cubic pieces of a spline."""
    assert len(points) % 3 == 1
    return [points[start : start + 4] for start in range(0, len(points) - 1, 3)]


def sampled(piece: Points, count: int = 40) -> Points:
    def at(t: float) -> tuple[float, float]:
        weights = (1 - t) ** 3, 3 * (1 - t) ** 2 * t, 3 * (1 - t) * t**2, t**3
        x, y = (sum(w * p[axis] for w, p in zip(weights, piece, strict=True)) for axis in (0, 1))
        return x, y

    return [at(step / count) for step in range(count + 1)]


def directions(points: Points) -> list[tuple[float, float]]:
    """The unit tangents at the start and the end of each piece."""
    found = []
    for a, b, c, d in pieces(points):
        for (x0, y0), (x1, y1) in ((a, b), (c, d)):
            length = hypot(x1 - x0, y1 - y0)
            found.append(((x1 - x0) / length, (y1 - y0) / length))
    return found


@pytest.mark.parametrize("side", [1, -1])
@pytest.mark.parametrize("down", [1, -1])
def test_a_corner_of_an_upright_and_a_level_piece_is_a_quarter_of_a_circle(side, down) -> None:
    across, foot, end = 80.0 * side, 100.0 * down, 200.0 * down
    points = curve([(0.0, 0.0), (0.0, foot), (across, foot), (across, end)])
    before, first, level, second, after = map(sampled, pieces(points))
    assert (points[0], points[-1]) == ((0.0, 0.0), (across, end))
    assert [x for x, _ in before] == [0.0] * len(before)
    assert [x for x, _ in after] == pytest.approx([across] * len(after))
    assert [y for _, y in level] == pytest.approx([foot] * len(level))
    centres = (TURN * side, foot - TURN * down), (across - TURN * side, foot + TURN * down)
    for turn, centre in zip((first, second), centres, strict=True):
        assert all(dist(point, centre) == pytest.approx(TURN, rel=0.005) for point in turn)
    for end_of_one, start_of_next in list(pairwise(directions(points)))[1::2]:
        assert start_of_next == pytest.approx(end_of_one)


def test_the_corners_of_a_short_level_piece_meet_in_its_middle() -> None:
    points = curve([(0.0, 0.0), (0.0, 50.0), (6.0, 50.0), (6.0, 100.0)])
    assert (3.0, 50.0) in points
    drawn = [point for piece in pieces(points) for point in sampled(piece)]
    assert all(-1e-9 <= x <= 6 + 1e-9 for x, _ in drawn)
    assert all(above[1] <= below[1] + 1e-9 for above, below in pairwise(drawn))


def test_a_line_moves_sideways_between_two_rows_in_an_upright_curve() -> None:
    points = curve([(0.0, 0.0), (0.0, 40.0), (60.0, 100.0), (60.0, 140.0)])
    straight, bend, on = pieces(points)
    assert bend == [(0.0, 40.0), (0.0, 70.0), (60.0, 70.0), (60.0, 100.0)]
    for piece, x, top in ((straight, 0.0, 0.0), (on, 60.0, 100.0)):
        assert [point[0] for point in piece] == [x] * 4
        assert [point[1] - top for point in piece] == pytest.approx([0, 40 / 3, 80 / 3, 40])


def test_right_angles_turn_halfway_between_two_rows() -> None:
    stations = [(0.0, 0.0), (0.0, 40.0), (60.0, 100.0), (60.0, 140.0), (90.0, 140.0)]
    assert corners(stations) == [
        (0.0, 0.0), (0.0, 40.0), (0.0, 70.0), (60.0, 70.0), (60.0, 100.0), (60.0, 140.0),
        (90.0, 140.0),
    ]  # fmt: skip


def test_a_line_of_one_station_stays_there() -> None:
    assert curve([(3.0, 4.0)]) == [(3.0, 4.0)] * 4
    assert corners([(3.0, 4.0)]) == [(3.0, 4.0)] * 2
