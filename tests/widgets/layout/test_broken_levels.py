"""Levels broken into columns: where the lines of ports run."""

from __future__ import annotations

from dataclasses import replace

import pytest

from widgets.layout.columns import _lines_below, broken
from widgets.layout.level import Level, LevelEdge, place_level

BOXES = 8


@pytest.fixture
def chain() -> Level:
    """A chain of boxes with a port above and one below it."""
    last = BOXES + 1
    edges = [LevelEdge(box, box + 1, 50, 50) for box in range(1, BOXES)]
    edges += [LevelEdge(0, 1, 0, 50), LevelEdge(BOXES, last, 50, 0)]
    sizes = ((0.0, 0.0), *((100.0, 40.0),) * BOXES, (0.0, 0.0))
    return Level(sizes, tuple(edges), 1, (0,))


@pytest.mark.parametrize("box", [6, 7, 8])
def test_a_line_from_a_port_above_runs_over_all_boxes_to_its_column(chain: Level, box) -> None:
    level = replace(chain, edges=(*chain.edges, LevelEdge(0, box, 0, 50)))
    placed = broken(place_level(level), 300.0)
    boxes = placed.places[1 : BOXES + 1]
    assert len({x for x, _ in boxes}) > 1  # there are columns
    port, above, over = placed.ways[-1][:3]
    assert port[0] == above[0] and port[1] == 0 < above[1] == over[1] < min(y for _, y in boxes)
    assert over[0] > boxes[0][0] + 100
    assert placed.ways[-1][-1] == (boxes[box - 1][0] + 50, boxes[box - 1][1])


@pytest.mark.parametrize("box", [1, 2, 3, 5, 6, 7])
def test_a_line_to_a_port_below_runs_under_all_boxes(chain: Level, box) -> None:
    level = replace(chain, edges=(*chain.edges, LevelEdge(box, BOXES + 1, 50, 0)))
    placed = broken(place_level(level), 300.0)
    boxes = placed.places[1 : BOXES + 1]
    under, below, port = placed.ways[-1][-3:]
    assert under[1] == below[1] > max(y for _, y in boxes) + 40
    assert port[1] == placed.size[1] > below[1] and port[0] == below[0]
    assert placed.ways[-1][0] == (boxes[box - 1][0] + 50, boxes[box - 1][1] + 40)
    heights = [y for _, y in placed.ways[-1]]
    assert heights == sorted(heights)  # it never turns back


@pytest.mark.parametrize(
    ("more", "passing"),
    [
        ([], [1, 1, 1, 1, 1, 1, 1]),
        ([(0, 5), (3, 9)], [1, 1, 1, 1, 1, 1, 1]),  # those of ports do not count
        ([(1, 4)], [2, 2, 1, 1, 1, 1, 1]),  # at box 4 it has joined the line of box 3
        ([(1, 6), (2, 6), (3, 6)], [2, 3, 3, 2, 1, 1, 1]),
        ([(1, 4), (1, 6), (1, 7)], [4, 4, 3, 3, 2, 1, 1]),
    ],
)
def test_the_lines_between_two_rows_are_counted(chain: Level, more, passing) -> None:
    """Also upside down, where joined lines share their upper end."""
    ends = [
        LevelEdge(upper, lower, 50 * (upper > 0), 50 * (lower <= BOXES)) for upper, lower in more
    ]
    placed = place_level(replace(chain, edges=(*chain.edges, *ends)))
    assert _lines_below(placed) == [0, *passing, 0, 0]
    assert _lines_below(placed.turned_over()) == [0, *reversed(passing), 0, 0]
