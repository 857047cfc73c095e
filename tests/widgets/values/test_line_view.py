"""Lines on the screen: a spike among a million columns is seen, read and selected."""

from __future__ import annotations

import itertools

import pytest
import torch
from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import QColor
from PySide6.QtTest import QTest

from engine.protocol import LinesCommand, LinesSnapshot, RunCellCommand
from engine.server.session import Session
from widgets import theme
from widgets.values.line_view import LineView


@pytest.fixture
def view(qtbot) -> LineView:
    view = LineView()
    qtbot.addWidget(view)
    view.resize(900, 300)
    view.show()
    qtbot.waitExposed(view)
    return view


def lines_of(source: str) -> LinesSnapshot:
    """All of `x`'s lines."""
    sent: list = []
    session = Session(sent.append)
    session.handle(RunCellCommand(source=source))
    session.handle(LinesCommand(expression="x", restart=True))
    while sent[-1].done < sent[-1].total:
        session.handle(LinesCommand(expression="x"))
    session.close()
    return sent[-1]


def is_painted(view: LineView, point: QPointF) -> bool:
    """Whether a pixel near is of the first line's colour rather than of the ground's."""
    image = view.grab().toImage()
    at, ratio = point.toPoint(), image.devicePixelRatio()
    line, ground = QColor(theme.current().series[0]), theme.current().color("surface")
    near = (
        image.pixelColor(int((at.x() + dx) * ratio), int(at.y() * ratio)) for dx in range(-2, 3)
    )
    return any(apart(color, line) < apart(color, ground) for color in near)


def apart(a: QColor, b: QColor) -> int:
    return abs(a.red() - b.red()) + abs(a.green() - b.green()) + abs(a.blue() - b.blue())


@pytest.mark.parametrize("at", [1, 314_159, 999_998])
def test_one_spike_among_a_million_is_painted_read_and_selected(view, at) -> None:
    found = lines_of(f"x = torch.zeros(1_000_000)\nx[{at}] = 4.0")
    view.show_lines(found)
    point = at // found.bin_columns
    top = view.point_at(0, point)
    halfway = (top + view.point_at(0, point, highest=False)) / 2
    assert is_painted(view, halfway)
    assert not is_painted(view, halfway + QPointF(20 if point < 500 else -20, 0))
    chosen: list[tuple[int, int]] = []
    view.element_chosen.connect(lambda row, column: chosen.append((row, column)))
    for _ in range(point + 1):
        QTest.keyClick(view, Qt.Key.Key_Right)
    assert view.readout().endswith(": 0 to 4")
    QTest.keyClick(view, Qt.Key.Key_Return)
    assert chosen == [(0, at)]
    QTest.mouseClick(view, Qt.MouseButton.LeftButton, pos=top.toPoint())
    assert abs(chosen[1][1] - at) <= 2 * found.bin_columns  # a pixel may hold two points


def test_lines_still_under_way_ask_for_more_and_say_so(view) -> None:
    wanted: list[bool] = []
    view.more_wanted.connect(lambda: wanted.append(True))
    t = torch.zeros(2).numpy().astype("<f8").tobytes()
    at = torch.zeros(2, dtype=torch.int64).numpy().tobytes()
    half = LinesSnapshot(
        expression="x", slice="", rows=1, columns=4, lines=1, bin_columns=2,
        low=t, high=t, low_at=at, high_at=at, done=2, total=4,
    )  # fmt: skip
    view.show_lines(half)
    assert wanted == [True]
    view.show_lines(lines_of("x = torch.randn(8, 3)"))
    assert wanted == [True] and view.spans()[0].shape == (6, 3)


def test_large_numbers_have_points_of_their_own(view) -> None:
    view.show_lines(lines_of("x = 1_700_000_000 + torch.arange(100)"))
    heights = [view.point_at(0, point).y() for point in range(100)]
    assert all(low > high for low, high in itertools.pairwise(heights))


@pytest.mark.parametrize("number", ["2**60", "1e300", "-1e308", "0"])
def test_a_constant_is_a_line_half_way_up(view, number: str) -> None:
    view.show_lines(lines_of(f"x = torch.full((5,), {number}, dtype=torch.float64)"))
    view.grab()
    top, bottom = view.point_at(0, 0).y(), view.point_at(0, 4).y()
    assert top == bottom == pytest.approx(view._area().center().y(), abs=1)


@pytest.mark.parametrize(("lines", "columns"), [(0, 4), (4, 0), (0, 0)])
def test_a_tensor_without_rows_or_columns_has_no_lines(view, lines, columns) -> None:
    view.show_lines(lines_of("x = torch.randn(8, 3)"))
    none = LinesSnapshot(
        expression="x", slice="", rows=lines, columns=columns, lines=lines, bin_columns=1,
        low=b"", high=b"", low_at=b"", high_at=b"", done=0, total=0,
    )  # fmt: skip
    view.show_lines(none)
    assert view.spans()[0].size == view.spans()[1].size == 0


def test_an_empty_tensor_has_words_instead_of_lines(view) -> None:
    view.show_lines(lines_of("x = torch.zeros(3, device='meta')"))
    assert view.spans()[0].size == 0 and view.readout() == ""
    QTest.keyClick(view, Qt.Key.Key_Right)
    QTest.mouseClick(view, Qt.MouseButton.LeftButton)
    assert view.readout() == ""
