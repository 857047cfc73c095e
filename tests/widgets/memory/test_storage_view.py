"""The storage of a tensor: cells, sums over strides, and readers, with the engine as oracle."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
import torch
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QComboBox, QLabel, QSpinBox
from torch import nn

from engine.operations.memory.locating import locate
from engine.operations.memory.storage import read_window
from engine.protocol import LocationSnapshot, WrittenBy
from engine.tensors.reach import Reached, reach
from tests.pictures import assert_same_picture
from widgets import theme
from widgets.memory.storage_view import StorageView
from widgets.memory.strip_picture import BY_POSITION


@pytest.fixture
def view(qtbot) -> StorageView:
    view = StorageView()
    qtbot.addWidget(view)
    view.resize(1000, 440)
    view.show()
    qtbot.waitExposed(view)
    return view


def shown(name: str, t: torch.Tensor, first: int | None = None, count: int = 1024):
    return read_window(name, t, first, count)


def label(view: StorageView, name: str) -> str:
    found = view.findChild(QLabel, name)
    assert found is not None
    return found.text()


def click_cell(qtbot, view: StorageView, cell: int) -> None:
    point = view.strip.cell_rect(cell).center().toPoint()
    qtbot.mouseClick(view.strip.viewport(), Qt.MouseButton.LeftButton, pos=point)


def pixel(view: StorageView, cell: int):
    """The colour of a cell's fill, away from its number."""
    rect = view.strip.cell_rect(cell)
    image = view.strip.viewport().grab().toImage()
    ratio = image.devicePixelRatio()
    point = QPointF(rect.left() + 5, rect.bottom() - 4) * ratio
    return image.pixelColor(point.toPoint())


def test_the_sum_leads_to_the_cell_that_torch_reads(view, qtbot) -> None:
    t = torch.arange(20).as_strided((3, 4), (4, 1), 4)
    view.show_storage(shown("x", t))
    view.show_element((1, 2))
    assert view.text("sum") == "x[1, 2] → offset 4 + 1·4 + 2·1 = 10"
    assert view.strip.cell == 10 == int(t[1, 2])
    for index in np.ndindex(3, 4):
        view.show_element(tuple(index))
        assert view.strip.cell == int(t[index])


def test_a_clicked_cell_is_told_with_its_element(view, qtbot) -> None:
    t = torch.arange(12).view(3, 4).T
    view.show_storage(shown("y", t))
    cells, elements = [], []
    view.cell_selected.connect(cells.append)
    view.element_selected.connect(elements.append)
    click_cell(qtbot, view, 9)
    assert cells == [9]
    assert [int(t[index]) for index in elements] == [9]
    assert view.text("sum").endswith("= 9")
    click_cell(qtbot, view, 0)
    assert elements[-1] == (0, 0)


@pytest.mark.parametrize(
    ("shape", "by"), [((1, 3, 4), 1), ((3, 1, 4), 0), ((1, 5), BY_POSITION), ((), BY_POSITION)]
)
def test_cells_are_coloured_by_the_outermost_of_two_long_dimensions(view, shape, by) -> None:
    view.show_storage(shown("x", torch.zeros(shape)))
    assert view.findChild(QComboBox, "storage_color_by").currentData() == by


def test_the_right_button_chooses_no_cell(view, qtbot) -> None:
    view.show_storage(shown("x", torch.arange(12)))
    chosen = []
    view.cell_selected.connect(chosen.append)
    point = view.strip.cell_rect(3).center().toPoint()
    qtbot.mouseClick(view.strip.viewport(), Qt.MouseButton.RightButton, pos=point)
    assert chosen == []
    click_cell(qtbot, view, 3)
    assert chosen == [3]


def test_a_gap_is_told_without_an_element(view, qtbot) -> None:
    view.show_storage(shown("g", torch.arange(8)[1::2]))
    told = []
    view.element_selected.connect(told.append)
    with qtbot.waitSignal(view.cell_selected) as signal:
        click_cell(qtbot, view, 2)
    assert signal.args == [2]
    assert told == []
    assert "a gap" in view.text("sum")


def test_arrows_walk_over_the_cells_and_escape_lets_go(view, qtbot) -> None:
    view.show_storage(shown("x", torch.arange(60).view(10, 6)[1:]))
    chosen = []
    view.cell_selected.connect(chosen.append)
    view.strip.setFocus()
    qtbot.keyClick(view.strip, Qt.Key.Key_Right)  # from nowhere: where the tensor starts
    qtbot.keyClick(view.strip, Qt.Key.Key_Right)
    qtbot.keyClick(view.strip, Qt.Key.Key_Down)
    assert chosen == [6, 7, 7 + view.strip.columns]
    assert view.strip.columns % 6 == 0  # rows of the picture end where a stride does
    with qtbot.waitSignal(view.selection_cleared):
        qtbot.keyClick(view.strip, Qt.Key.Key_Escape)
    assert view.strip.cell is None
    view.show_storage(shown("y", torch.arange(3)))
    for key in (Qt.Key.Key_Right, Qt.Key.Key_Right, Qt.Key.Key_Left, Qt.Key.Key_Left):
        qtbot.keyClick(view.strip, key)
    assert chosen[3:] == [0, 1, 0]  # and not beyond the first
    for _ in range(3):
        qtbot.keyClick(view.strip, Qt.Key.Key_Right)
    assert chosen[6:] == [1, 2]


def test_readers_of_a_cell_are_listed_and_can_be_gone_to(view, qtbot) -> None:
    x = torch.arange(12).view(3, 4)
    view.show_storage(shown("x", x))
    view.show_element((1, 2))
    held = Reached({"x": x, "y": x.T, "e": x[1, 2].expand(2)})
    view.show_location(locate("x", x, held, index=(1, 2)))
    listed = [view.readers.item(row).text() for row in range(view.readers.count())]
    assert listed == ["x[1, 2]", "y[2, 1]", "e[0]", "e[1]"]
    rect = view.readers.visualItemRect(view.readers.item(1))
    with qtbot.waitSignal(view.reader_activated) as signal:
        qtbot.mouseClick(view.readers.viewport(), Qt.MouseButton.LeftButton, pos=rect.center())
        qtbot.keyClick(view.readers, Qt.Key.Key_Return)
    assert signal.args == ["y", (2, 1)]


def test_a_gap_without_readers_and_more_readers_than_listed_say_so(view) -> None:
    view.show_location(LocationSnapshot(expression="x", index=None, cell=3, readers=()))
    assert view.readers.item(0).text() == "No element reads it: a gap."
    t = torch.zeros(1).expand(1000)
    view.show_location(locate("t", t, Reached({"t": t}), cell=0))
    assert view.readers.item(view.readers.count() - 1).text() == "t: and more"


def test_arrays_are_listed_but_not_gone_to_and_what_was_not_looked_at_is_told(view, qtbot) -> None:
    model = nn.Linear(2, 2)
    w = model.weight
    held = reach({"w": w, "model": model, "a": w.detach().numpy()})
    view.show_location(locate("w", w, Reached(held.held, "Only some were."), index=(1, 0)))
    rows = [view.readers.item(row) for row in range(view.readers.count())]
    assert [row.text() for row in rows] == [
        "w[1, 0]", "a[1, 0] (NumPy)", "model.weight[1, 0]", "Only some were."]  # fmt: skip
    went = []
    view.reader_activated.connect(lambda name, index: went.append((name, index)))
    for row in rows:
        view.readers.setCurrentItem(row)
        view.readers.setFocus()
        qtbot.keyClick(view.readers, Qt.Key.Key_Return)
    assert {name for name, _ in went} == {"w", "model.weight"}


def test_cells_are_coloured_by_where_they_land(view, qtbot) -> None:
    view.show_storage(shown("y", torch.arange(12).view(3, 4).T))
    colors = [pixel(view, cell) for cell in range(12)]
    assert colors[0] == colors[4] == colors[8]  # row 0 of the transposed tensor
    assert colors[0] != colors[1]
    box = view.findChild(QComboBox, "storage_color_by")
    qtbot.keyClick(box, Qt.Key.Key_Down)
    colors = [pixel(view, cell) for cell in range(12)]
    assert colors[0] == colors[1] == colors[3] != colors[4]
    qtbot.keyClick(box, Qt.Key.Key_End)
    assert box.currentData() == BY_POSITION
    assert pixel(view, 0) != pixel(view, 4) != pixel(view, 8)


def test_gaps_overlaps_and_stride_0_look_different(view) -> None:
    view.show_storage(shown("g", torch.arange(8)[::2]))
    assert pixel(view, 0) != pixel(view, 1)
    assert "A gap" in view.strip.tooltip(1)
    view.show_storage(shown("e", torch.arange(2).unsqueeze(1).expand(2, 3)))
    assert "3 elements read this one cell" in view.strip.tooltip(0)
    view.show_storage(shown("u", torch.arange(9).unfold(0, 3, 2)))
    assert "2 elements read this one cell" in view.strip.tooltip(2)
    assert "elements" not in view.strip.tooltip(1)


@pytest.mark.parametrize(
    ("t", "words"),
    [
        (torch.zeros(3, 4), "Contiguous"),
        (torch.zeros(3, 4).T, ".contiguous() would copy 48 B"),
        (torch.zeros(1, 3, 4, 5).contiguous(memory_format=torch.channels_last), "channels_last"),
    ],
)
def test_contiguity_is_explained(view, t, words) -> None:
    view.show_storage(shown("x", t))
    assert words in view.text("contiguity")
    assert label(view, "storage_contiguity") == view.text("contiguity")


def test_facts_strides_and_the_last_write_are_written_out(view) -> None:
    snapshot = shown("x", torch.arange(24.0).view(2, 3, 4)[:, 1:])
    where = WrittenBy("add_", "<cell 3>", 2, "x.add_(1)")
    view.show_storage(msgspec.structs.replace(snapshot, written_by=where))
    assert label(view, "storage_facts") == (
        "x: (2, 2, 4) float32 · strides (12, 4, 1) · offset 4 · storage 24 cells, 96 B · version 0"
        " · last written by add_ in cell 3, line 2: x.add_(1)"
    )
    assert "stride 12 (48 B)" in label(view, "storage_strides")


def test_cells_that_changed_stand_out_until_the_next_look(view) -> None:
    t = torch.arange(12).view(3, 4)
    view.show_storage(shown("x", t))
    t[1] += 100
    view.show_storage(shown("x", t))
    assert view.strip.changed == {4, 5, 6, 7}
    view.show_storage(shown("x", t))
    assert view.strip.changed == frozenset()
    view.show_storage(shown("other", torch.zeros(3, 4)))
    assert view.strip.changed == frozenset()


def test_only_what_is_in_sight_is_asked_for(view, qtbot) -> None:
    t = torch.zeros(10_000_000, dtype=torch.int8)
    asked = []

    def answer(first: int, count: int) -> None:
        asked.append((first, count))
        view.show_storage(shown("big", t, first, count))

    view.window_requested.connect(answer)
    view.show_storage(shown("big", t, *view.wanted()))
    view.strip.verticalScrollBar().setValue(view.strip.verticalScrollBar().maximum())
    assert view.strip.cell_rect(9_999_999).bottom() <= view.strip.viewport().height()
    click_cell(qtbot, view, 9_999_999)
    assert view.text("sum").endswith("= 9999999")
    assert asked and all(count < 2000 for _, count in asked)
    view.show_element((5_000_000,))
    assert 0 <= view.strip.cell_rect(5_000_000).top() < view.strip.viewport().height()
    assert asked[-1][0] <= 5_000_000 < asked[-1][0] + asked[-1][1]


def test_a_window_that_ends_within_sight_is_asked_for_again(view) -> None:
    t = torch.zeros(100_000)
    view.show_storage(shown("t", t, 0, 1024))
    asked = []
    view.window_requested.connect(lambda first, count: asked.append((first, count)))
    view.show_storage(shown("t", t, 0, 1024))
    assert asked == []
    first, count = view.wanted()
    view.show_storage(shown("t", t, 0, first + count - 1))
    assert asked == [(first, count)]


def test_rows_do_not_break_elsewhere_while_one_scrolls(view) -> None:
    t = torch.cat([torch.full((50_000,), 0.123456), torch.zeros(50_000)])
    asked = []

    def answer(first: int, count: int) -> None:
        asked.append(first)
        view.show_storage(shown("t", t, first, count))

    view.window_requested.connect(answer)
    view.show_storage(shown("t", t, *view.wanted()))
    columns = view.strip.columns
    view.strip.verticalScrollBar().setValue(view.strip.verticalScrollBar().maximum())
    assert view.strip.columns == columns
    assert len(asked) <= 2


def test_a_chosen_cell_is_brought_into_view_to_either_side(view, qapp) -> None:
    view.show_storage(shown("x", torch.arange(400)))
    view.strip.set_wrap(200)
    room = view.strip.viewport().width()
    for cell in (150, 3, 399, 0):
        view.show_element((cell,))
        qapp.processEvents()
        rect = view.strip.cell_rect(cell)
        assert rect.left() >= 0 and rect.right() <= room
        assert rect.top() >= 0 and rect.bottom() <= view.strip.viewport().height()


def test_one_can_scroll_away_from_the_selected_element(view) -> None:
    t = torch.zeros(100_000)
    view.show_storage(shown("t", t))
    view.show_element((3,))
    bar = view.strip.verticalScrollBar()
    bar.setValue(1000)
    view.show_storage(shown("t", t, *view.wanted()))
    view.show_element((3,))
    assert bar.value() == 1000
    assert view.text("sum").endswith("= 3")


def test_a_tensor_deep_in_its_storage_is_shown_from_its_start(view) -> None:
    t = torch.zeros(1_000_000)[777_777:]
    view.show_storage(shown("t", t))
    rect = view.strip.cell_rect(777_777)
    assert 0 <= rect.top() < view.strip.viewport().height()
    assert view.wanted()[0] <= 777_777 < sum(view.wanted())


def test_the_wrap_can_be_set(view, qtbot) -> None:
    view.show_storage(shown("x", torch.arange(24)))
    spin = view.findChild(QSpinBox, "storage_wrap")
    spin.setValue(5)
    assert view.strip.columns == 5
    assert view.strip.cell_rect(5).top() > view.strip.cell_rect(4).top()
    assert view.strip.cell_at(view.strip.cell_rect(7).center()) == 7
    assert view.strip.cell_at(QPointF(2, 2)) is None


def test_without_a_tensor_or_a_storage_it_says_why(view) -> None:
    assert view.text("facts") == ""
    assert not view.findChild(QComboBox, "storage_color_by").isEnabled()
    view.show_storage(shown("s", torch.eye(3).to_sparse()))
    assert "_values()" in view.text("contiguity")
    view.show_element((0, 0))
    assert view.strip.cell is None
    view.show_storage(shown("empty", torch.zeros(0, 3)))
    view.show_element((0, 0))
    assert view.strip.cell is None


def test_an_index_that_no_longer_exists_is_let_go(view) -> None:
    view.show_storage(shown("x", torch.zeros(3, 4)))
    view.show_element((2, 3))
    view.show_storage(shown("x", torch.zeros(2)))
    assert view.strip.cell is None
    view.show_element((7,))  # of another tensor: not ours to show
    assert view.strip.cell is None


def test_the_strip_can_be_copied_as_a_picture(view, qtbot) -> None:
    view.show_storage(shown("x", torch.zeros(3)))
    QGuiApplication.clipboard().clear()
    qtbot.keyClick(view.strip, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert not QGuiApplication.clipboard().image().isNull()


def test_the_theme_changes_every_colour(view, qapp) -> None:
    view.show_storage(shown("x", torch.arange(12).view(3, 4)))
    view.show_element((1, 1))
    light = pixel(view, 0), label(view, "storage_sum")
    theme.apply(qapp, theme.DARK)
    assert pixel(view, 0) != light[0]
    assert label(view, "storage_sum") != light[1]


def test_the_arc_of_a_dimension_starts_at_the_chosen_element(view) -> None:
    view.show_storage(shown("x", torch.arange(12).view(3, 4)))
    view.show_element((1, 1))
    with_5 = view.strip.viewport().grab().toImage()
    apex = view.strip.cell_rect(5).center().toPoint() - QPoint(-20, 30)
    view.show_element((0, 0))
    without = view.strip.viewport().grab().toImage()
    region = (apex.x() - 12, apex.y() - 8, 24, 20)
    assert with_5.copy(*region) != without.copy(*region)


def test_without_a_tensor_it_looks_as_it_did(view, qapp) -> None:
    qapp.processEvents()
    assert_same_picture(view, "storage_empty")
