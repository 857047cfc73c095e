"""The bars of a histogram: where they stand, and what pointer and keys choose."""

from __future__ import annotations

import pytest
import torch
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtTest import QTest

from engine.protocol import Histogram
from tests.pictures import taken
from widgets.values.histogram_view import HistogramView

WIDTH, HEIGHT = 488, 260
LEFT, TOP, RIGHT, BOTTOM = 72, 28, WIDTH - 16, HEIGHT - 32
"""The area of the bars."""


def histogram_of(x: torch.Tensor, low: float, high: float, bars: int) -> Histogram:
    counts, edges = torch.histogram(x, bars, range=(low, high))
    return Histogram(low, float(edges[1] - edges[0]), tuple(map(int, counts)))


COUNTS = histogram_of(torch.tensor([-2.0, -1.5, 0.5, 0.5, 0.75, 0.5, 1.5]), -2, 2, 4)


@pytest.fixture
def view(qtbot) -> HistogramView:
    view = HistogramView()
    qtbot.addWidget(view)
    view.resize(WIDTH, HEIGHT)
    view.show()
    return view


def move(view: HistogramView, x: float) -> None:
    QTest.mouseMove(view, QPoint(5, 5))
    QTest.mouseMove(view, QPointF(x, 100).toPoint())


def test_bars_are_as_high_as_their_counts(view) -> None:
    view.show_histogram(COUNTS)
    assert COUNTS.counts == (2, 0, 4, 1)
    width, height = (RIGHT - LEFT) / 4, BOTTOM - TOP
    for bar, count in enumerate(COUNTS.counts):
        rect = view.bar_rect(bar)
        assert (rect.x(), rect.width()) == (LEFT + bar * width, width)
        assert (rect.height(), rect.bottom()) == (height * count / 4, BOTTOM)
    view.show_histogram(Histogram(0.0, 1.0, (1, 10_000_000, 0)))
    assert [view.bar_rect(bar).height() for bar in range(3)] == [1, height, 0]
    view.show_histogram(Histogram(0.0, 1.0, (0, 0)))
    assert view.bar_rect(0).height() == 0


def test_the_pointer_chooses_a_bar_and_leaves_it(view) -> None:
    chosen: list[int | None] = []
    view.bar_changed.connect(chosen.append)
    move(view, 200)  # there is no histogram yet
    view.show_histogram(COUNTS)
    assert view.readout() == ""
    said = []
    for x in (LEFT, LEFT + 150, LEFT + 208, LEFT + 250, RIGHT - 1, RIGHT + 2):
        move(view, x)
        said.append(view.readout())
    assert said == [
        "-2 ≤ x < -1: 2 elements", "-1 ≤ x < 0: 0 elements", "0 ≤ x < 1: 4 elements",
        "0 ≤ x < 1: 4 elements", "1 ≤ x < 2: 1 element", "",
    ]  # fmt: skip
    assert [bar for bar in chosen if bar is not None] == [0, 1, 2, 2, 3]
    assert chosen[-1] is None
    move(view, RIGHT - 1)
    view.leaveEvent(None)
    assert view.readout() == "" and chosen[-2:] == [3, None]


def test_arrow_keys_go_from_bar_to_bar_and_stop_at_the_ends(view) -> None:
    chosen: list[int | None] = []
    view.bar_changed.connect(chosen.append)
    QTest.keyClick(view, Qt.Key.Key_Right)
    view.show_histogram(COUNTS)
    for key in (*[Qt.Key.Key_Right] * 5, Qt.Key.Key_Up, *[Qt.Key.Key_Left] * 4):
        QTest.keyClick(view, key)
    assert chosen == [0, 1, 2, 3, 2, 1, 0]
    assert view.accessibleDescription() == view.readout() == "-2 ≤ x < -1: 2 elements"


def test_a_bar_stays_chosen_while_there_is_such_a_bar(view) -> None:
    view.show_histogram(COUNTS)
    for _ in range(3):
        QTest.keyClick(view, Qt.Key.Key_Right)
    view.show_histogram(Histogram(0.0, 0.5, (1_204, 7, 9)))
    assert view.readout() == "1 ≤ x < 1.5: 9 elements"
    view.show_histogram(Histogram(0.0, 0.5, (1_204, 7)))
    assert view.readout() == ""
    QTest.keyClick(view, Qt.Key.Key_Left)
    assert view.readout() == "0 ≤ x < 0.5: 1,204 elements"
    view.show_histogram(None)
    assert view.readout() == ""


def test_words_stand_where_there_are_no_bars(view) -> None:
    none_yet = taken(view)
    view.show_histogram(None)
    nothing = taken(view)
    view.show_histogram(None, "Reading …")
    reading = taken(view)
    view.show_histogram(None, "No finite numbers to count")
    assert taken(view) == nothing
    assert none_yet != nothing != reading != none_yet


@pytest.mark.parametrize(
    ("low", "width", "is_marked"),
    [(-2.0, 1.0, True), (0.0, 1.0, False), (-0.125, 1.0, False), (-3.875, 1.0, False)],
)
def test_zero_has_a_mark_where_there_is_room(view, low, width, is_marked) -> None:
    view.show_histogram(Histogram(low, width, (2, 0, 4, 1)))
    picture, ground = view.grab().toImage(), view.grab().toImage().pixelColor(LEFT + 30, BOTTOM + 3)
    x = round(LEFT + (RIGHT - LEFT) * -low / 4)
    seen = {picture.pixelColor(at, BOTTOM + 3).name() for at in range(x - 1, x + 2)}
    assert (seen != {ground.name()}) == is_marked
