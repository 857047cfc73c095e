"""The values of a tensor through the real engine's session, by pointer and keys."""

from __future__ import annotations

import pytest
import torch
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel, QLineEdit, QSlider, QToolButton

from engine.protocol import (
    BitsCommand,
    Command,
    ErrorSnapshot,
    ReadValuesCommand,
    RunCellCommand,
    Snapshot,
    StatisticsCommand,
    VariablesSnapshot,
)
from engine.server.session import Session
from engine.tensors.values import state, statistics
from tests.pictures import assert_same_picture, taken
from widgets.values.number_table import NumberTable
from widgets.values.values_view import ValuesView


class Bench:
    """A view whose commands a session answers, at once or when told to."""

    def __init__(self, qtbot, source: str) -> None:
        self.view = ValuesView()
        qtbot.addWidget(self.view)
        self.session = Session(self._answer)
        self.lines: list[str] = []
        self.asked: list[Command] = []
        self.held: list[Command] | None = None
        self._command = Command()
        self.session.handle(RunCellCommand(source=source))
        self.view.asked.connect(self._ask)
        self.view.run_requested.connect(self._run)
        self.view.resize(900, 700)
        self.view.show()
        qtbot.waitExposed(self.view)
        self.view.show_tensor("x")

    @property
    def variables(self) -> dict:
        assert self.session.lab.console.namespace is not None
        return self.session.lab.console.namespace.variables

    def _ask(self, command: Command) -> None:
        self.asked.append(command)
        if self.held is not None:
            self.held.append(command)
        else:
            self.answer(command)

    def answer(self, command: Command) -> None:
        self._command = command
        self.session.handle(command)

    def _answer(self, snapshot: Snapshot) -> None:
        if isinstance(snapshot, ErrorSnapshot):
            self.view.show_error(self._command, snapshot.error)
        else:
            self.view.show_snapshot(snapshot)

    def _run(self, line: str) -> None:
        self.lines.append(line)
        self.session.handle(RunCellCommand(source=line))
        self.view.refresh()

    def text(self, name: str) -> str:
        label = self.view.findChild(QLabel, name)
        assert label is not None
        return label.text() if label.isVisible() else ""

    def click(self, row: int, column: int, twice: bool = False) -> None:
        table = self.view.table
        act = QTest.mouseDClick if twice else QTest.mouseClick
        at = table.cell_rect(row, column).center()
        act(table.viewport(), Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, at)

    def type(self, text: str) -> None:
        editors = self.view.findChildren(QLineEdit, "cell_editor")
        (editor,) = (editor for editor in editors if editor.isVisible())
        editor.selectAll()
        QTest.keyClicks(editor, text)
        QTest.keyClick(editor, Qt.Key.Key_Return)

    def slice(self, text: str) -> None:
        edit = self.view.slice_bar.edit
        edit.setText(text)
        QTest.keyClick(edit, Qt.Key.Key_Return)


def test_numbers_statistics_and_bits_are_torchs(qtbot) -> None:
    bench = Bench(qtbot, "x = torch.tensor([[0.1, -2.0, 0.0], [3.5, float('nan'), 1.0]])")
    table = bench.view.table
    x = bench.variables["x"]
    for row in range(2):
        for column in range(3):
            shown = torch.tensor(float(table.text_at(row, column) or ""))
            assert torch.equal(shown, x[row, column]) or shown.isnan()
    assert bench.text("statistics_text") == (
        "6 elements · finite only · min -2 · max 3.5 · mean 0.52 · std 1.994 · zeros 1"
    )
    assert bench.text("statistics_bad") == "1 NaN"
    chosen: list = []
    bench.view.element_selected.connect(chosen.append)
    bench.click(0, 0)
    assert chosen == [(0, 0)]
    assert bench.text("values_readout") == "x[0, 0] = 0.1  ·  version 0"
    assert bench.view.bits.words() == (
        "1.60000002384185791015625 × 2^-4 = 0.100000001490116119384765625",
    )
    QTest.keyClick(table, Qt.Key.Key_Right)
    QTest.keyClick(table, Qt.Key.Key_Down)
    assert chosen[1:] == [(0, 1), (1, 1)]


CONTROL = Qt.KeyboardModifier.ControlModifier
NONE = Qt.KeyboardModifier.NoModifier


@pytest.mark.parametrize(
    ("key", "modifier", "found"),
    [
        (Qt.Key.Key_Up, NONE, (0, 2)), (Qt.Key.Key_Down, NONE, (2, 2)),
        (Qt.Key.Key_Left, NONE, (1, 1)), (Qt.Key.Key_Right, NONE, (1, 3)),
        (Qt.Key.Key_Home, NONE, (1, 0)), (Qt.Key.Key_End, NONE, (1, 3)),
        (Qt.Key.Key_Home, CONTROL, (0, 0)), (Qt.Key.Key_End, CONTROL, (2, 3)),
        (Qt.Key.Key_PageUp, NONE, (0, 2)), (Qt.Key.Key_PageDown, NONE, (2, 2)),
    ],
)  # fmt: skip
def test_keys_go_from_cell_to_cell(qtbot, key, modifier, found) -> None:
    bench = Bench(qtbot, "x = torch.arange(12.).view(3, 4)")
    bench.click(1, 2)
    chosen: list = []
    bench.view.element_selected.connect(chosen.append)
    QTest.keyClick(bench.view.table, key, modifier)
    assert chosen == [found]
    for _ in range(4):
        QTest.keyClick(bench.view.table, key, modifier)
    row, column = chosen[-1]
    assert 0 <= row < 3 and 0 <= column < 4


def test_a_slice_is_typed_dragged_and_undone(qtbot) -> None:
    bench = Bench(qtbot, "x = torch.arange(60).reshape(3, 4, 5)")
    bench.slice("x[1, :, ::2]")
    assert bench.view.table.text_at(3, 2) == "39"
    assert bench.view.slice_bar.edit.text() == "1, :, ::2"
    slider = bench.view.findChild(QSlider, "dim_slider_1")
    assert slider is not None
    slider.setFocus()
    QTest.keyClick(slider, Qt.Key.Key_Right)
    QTest.keyClick(slider, Qt.Key.Key_Right)
    assert bench.view.slice_bar.edit.text() == "1, 2, ::2"
    assert [bench.view.table.text_at(0, i) for i in range(3)] == ["30", "32", "34"]
    bench.click(0, 1)
    assert bench.view.element() == (1, 2, 2)
    release = bench.view.findChild(QToolButton, "dim_shown_1")
    assert release is not None
    QTest.mouseClick(release, Qt.MouseButton.LeftButton)
    assert bench.view.slice_bar.edit.text() == "1, :, ::2"
    assert bench.view.table.selected() == (2, 1)  # the same element, where it is now
    everything = bench.view.findChild(QToolButton, "slice_all")
    assert everything is not None
    QTest.mouseClick(everything, Qt.MouseButton.LeftButton)
    assert bench.view.table.text_at(6, 2) == "32" and bench.view.table.selected() == (6, 2)


def test_a_slice_that_does_not_fit_leaves_the_one_before(qtbot) -> None:
    bench = Bench(qtbot, "x = torch.arange(6).reshape(2, 3)")
    bench.slice("1")
    bench.slice("7")
    assert "out of range: dim 0 has 2" in bench.view.slice_bar.error()
    assert bench.view.slice_bar.edit.text() == "7"  # nothing typed is lost
    assert bench.view.table.text_at(0, 0) == "3"
    assert bench.text("statistics_text").startswith("3 elements")
    bench.slice("0")
    assert bench.view.slice_bar.error() == ""
    bench.slice("1, 2")
    bench._run("x = torch.arange(4)")  # the slice no longer fits
    assert [bench.view.table.text_at(0, i) for i in range(4)] == ["0", "1", "2", "3"]


def test_an_element_is_edited_in_place_and_all_who_share_it_see(qtbot) -> None:
    bench = Bench(qtbot, "x = torch.zeros(2, 3); y = x.T")
    bench.click(1, 2, twice=True)
    bench.type("abc")
    assert "is not a number" in bench.text("values_problem") and bench.lines == []
    bench.type("2.5")
    assert bench.lines == ["x[1, 2] = 2.5"] and bench.text("values_problem") == ""
    assert bench.view.table.text_at(1, 2) == "2.5"
    assert bench.text("values_readout") == "x[1, 2] = 2.5  ·  version 1"
    assert bench.variables["y"][2, 1].item() == 2.5
    QTest.keyClicks(bench.view.table, "7")  # typing opens the editor
    bench.type("inf")
    assert bench.lines[1:] == ['x[1, 2] = float("inf")']
    assert bench.variables["x"][1, 2].item() == float("inf")


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("x = torch.ones(2, requires_grad=True)", "with torch.no_grad(): x[0] = 5.0"),
        ("x = torch.tensor(1.0)", "x.fill_(5.0)"),
        ("x = torch.tensor([1])", "x[0] = 5"),
        ("x = torch.tensor([1j])", "x[0] = complex(5.0, 0.0)"),
        ("x = torch.ones(2).bfloat16()", "x[0] = 5.0"),
    ],
)
def test_each_edit_is_a_line_that_runs(qtbot, source: str, line: str) -> None:
    bench = Bench(qtbot, source)
    bench.click(0, 0, twice=True)
    bench.type("5")
    assert bench.lines == [line]
    assert bench.variables["x"].reshape(-1)[0].item() == 5


def test_what_cannot_be_written_opens_no_editor(qtbot) -> None:
    bench = Bench(qtbot, "x = torch.eye(3).to_sparse()")
    bench.click(0, 0, twice=True)
    assert bench.view.findChild(QLineEdit, "cell_editor") is None
    assert bench.text("values_readout").endswith("read only")
    bench._run("x = torch.empty(2, 2, device='meta')")
    assert "meta" in bench.text("values_note")


def test_pictures_name_elements_of_the_tensor(qtbot) -> None:
    bench = Bench(qtbot, "x = torch.arange(24.0).reshape(2, 3, 4)")
    bench.slice("1, :, ::2")
    bench.view.tabs.setCurrentWidget(bench.view.heat_map)
    heat_map, chosen = bench.view.heat_map, []
    bench.view.element_selected.connect(chosen.append)
    heat_map.setFocus()
    for key in (Qt.Key.Key_Down, Qt.Key.Key_Down, Qt.Key.Key_Right, Qt.Key.Key_Return):
        QTest.keyClick(heat_map, key)
    assert heat_map.readout() == "x[1, 1, 2] = 18" and chosen == [(1, 1, 2)]
    bench.view.tabs.setCurrentWidget(bench.view.line)
    line = bench.view.line
    low, high = line.spans()
    assert low.tolist() == high.tolist() == [[12.0, 14.0], [16.0, 18.0], [20.0, 22.0]]
    at = line.point_at(2, 1).toPoint()
    QTest.mouseClick(line, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, at)
    assert chosen[1:] == [(1, 2, 2)]
    bench.view.tabs.setCurrentWidget(bench.view.histogram)
    histogram = bench.view.histogram
    QTest.mouseMove(histogram, histogram.bar_rect(0).center().toPoint() + QPoint(0, 0))
    assert histogram.readout().endswith(": 1 element")


def test_images_take_three_channels_as_colour(qtbot) -> None:
    bench = Bench(qtbot, "x = torch.zeros(2, 3, 4, 5); x[0, 0] = 1; x[1, 2] = 1")
    bench.view.tabs.setCurrentWidget(bench.view.images)
    images = bench.view.images
    assert images.images().shape == (2, 4, 5, 3)
    assert images.images()[0, 0, 0].tolist() == [255, 0, 0]
    assert images.images()[1, 3, 4].tolist() == [0, 0, 255]
    assert images.words() == "2 images in colour · black is 0, white 1"
    bench.slice("0, 0")
    assert images.words() == "1 image in grey · black is 0, white 1"


@pytest.mark.parametrize(
    ("source", "low", "high"),
    [
        ("torch.tensor([[-2.0, 0.5], [1.0, 6.0]])", -2, 6),
        ("torch.tensor([[0.0, 0.25], [0.5, 0.75]])", 0, 1),
        ("torch.tensor([[0.0, 2.0], [100.0, 200.0]])", 0, 255),
        ("torch.tensor([[0.0, 2.5], [100.0, 200.0]])", 0, 200),
        ("torch.tensor([[0.0, 1.0], [255.0, 256.0]])", 0, 256),
        ("torch.full((2, 2), 300.0)", 300, 301),
    ],
)
def test_grey_is_a_share_of_the_way_from_black_to_white(qtbot, source, low, high) -> None:
    bench = Bench(qtbot, f"x = {source}")
    bench.view.tabs.setCurrentWidget(bench.view.images)
    x = bench.variables["x"].double()
    grey = ((x - low) / (high - low) * 255).round().to(torch.uint8)
    shown = torch.from_numpy(bench.view.images.images()[0].copy())
    assert torch.equal(shown, grey[..., None].expand(2, 2, 3))
    assert bench.view.images.words() == f"1 image in grey · black is {low}, white {high}"


def test_a_single_element_is_counted_as_one(qtbot) -> None:
    bench = Bench(qtbot, "x = torch.tensor([2.0])")
    assert bench.text("statistics_text").startswith("1 element · ")


def test_only_one_window_is_on_its_way_and_the_newest_is_next(qtbot) -> None:
    bench = Bench(qtbot, "x = torch.arange(1_000_000).reshape(1000, 1000)")
    bench.held = []
    del bench.asked[:]
    for row in (100, 300, 900):
        bench.view.table.verticalScrollBar().setValue(row)
    reads = [c for c in bench.asked if isinstance(c, ReadValuesCommand)]
    assert [c.row_start for c in reads] == [100]
    bench.held = None
    bench.answer(reads[0])
    assert bench.view.table.text_at(900, 0) == "900000"
    reads = [c for c in bench.asked if isinstance(c, ReadValuesCommand)]
    assert [c.row_start for c in reads] == [100, 900]


def test_a_slice_that_is_typed_while_another_is_read_is_read_next(qtbot) -> None:
    bench = Bench(qtbot, "x = torch.arange(60).reshape(3, 4, 5)")
    bench.held = []
    bench.view.refresh()
    for text in ("1", "2"):
        bench.slice(text)
    reads = [c for c in bench.held if isinstance(c, ReadValuesCommand)]
    assert [c.slice for c in reads] == [""]
    bench.answer(reads[0])
    reads = [c for c in bench.held if isinstance(c, ReadValuesCommand)]
    assert [c.slice for c in reads] == ["", "2"]
    bench.held = None
    bench.answer(reads[1])
    assert bench.view.table.text_at(0, 0) == "40"


def test_counting_shows_progress_and_stops(qtbot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statistics, "CHUNK", 100)
    monkeypatch.setattr(state, "MOMENT_S", 0.0)
    bench = Bench(qtbot, "x = torch.zeros(1)")
    bench._run("x = torch.ones(1000)")
    assert bench.text("statistics_text").startswith("1,000 elements")
    bench.held = []
    bench.view.refresh()
    bench.answer(bench.held[0])
    held = [c for c in bench.held if isinstance(c, StatisticsCommand)]
    bench.answer(held[0])
    assert bench.text("statistics_text").startswith("first 100 of 1,000 elements")
    stop = bench.view.findChild(QToolButton, "statistics_stop")
    assert stop is not None and stop.isVisible()
    QTest.mouseClick(stop, Qt.MouseButton.LeftButton)
    bench.answer([c for c in bench.held if isinstance(c, StatisticsCommand)][1])
    count = sum(isinstance(c, StatisticsCommand) for c in bench.held)
    assert count == 2  # asked no more
    bench.held = None
    QTest.mouseClick(stop, Qt.MouseButton.LeftButton)
    assert bench.text("statistics_text").startswith("1,000 elements")
    assert not stop.isVisible()


def test_the_numbers_in_sight_come_before_all_is_counted(qtbot) -> None:
    bench = Bench(qtbot, "x = torch.ones(5)")

    def counts() -> list[str]:
        assert bench.held is not None
        return [c.slice for c in bench.held if isinstance(c, StatisticsCommand)]

    bench.held = []
    bench.view.show_tensor("x")
    assert [type(command) for command in bench.held] == [ReadValuesCommand]
    bench.answer(bench.held[0])
    assert bench.view.table.text_at(0, 0) == "1"
    assert counts() == [""]
    for command in bench.held[1:]:
        bench.answer(command)
    bench.held = []
    bench.view.slice_bar.slice_changed.emit("1:3")
    assert bench.held and counts() == []
    for command in bench.held:
        bench.answer(command)
    assert counts() == ["1:3"]


def test_out_of_sight_it_asks_for_nothing(qtbot) -> None:
    bench = Bench(qtbot, "x = torch.ones(3)")
    bench.view.hide()
    del bench.asked[:]
    bench.view.refresh()
    bench.view.show_tensor("x")
    bench.view.show_element((1,))
    assert bench.asked == []
    bench.view.show()
    kinds = {type(command) for command in bench.asked}
    assert {ReadValuesCommand, StatisticsCommand, BitsCommand} == kinds


def test_answers_to_other_questions_change_nothing(qtbot) -> None:
    bench = Bench(qtbot, "x = torch.ones(3)")
    before = taken(bench.view)
    bench.view.show_snapshot(VariablesSnapshot(variables=()))
    assert taken(bench.view) == before


def test_a_name_that_is_gone_is_told(qtbot) -> None:
    bench = Bench(qtbot, "x = torch.ones(3)")
    bench._run("del x")
    assert bench.view.table.cells_in_sight()[1] == 0
    assert bench.view.table.text_at(0, 0) is None


def test_words_in_place_of_numbers_go_with_the_next_tensor(qtbot) -> None:
    table = NumberTable()
    qtbot.addWidget(table)
    table.resize(400, 300)
    table.show_size(0, 3, str, str)
    empty = table.grab().toImage()
    table.show_empty("Reading …")
    assert table.grab().toImage() != empty
    table.show_size(0, 3, str, str)
    assert table.grab().toImage() == empty


def test_a_table_of_a_thousand_million_rows_scrolls_to_its_end(qtbot) -> None:
    table = NumberTable()
    qtbot.addWidget(table)
    table.resize(400, 300)
    table.show()
    rows = 5_000_000_000
    table.show_size(rows, 1, str, str)
    table.select((rows - 1, 0))
    first, count, _, _ = table.cells_in_sight()
    assert first + count == rows
    QTest.keyClick(table, Qt.Key.Key_Home, Qt.KeyboardModifier.ControlModifier)
    assert table.selected() == (0, 0) and table.cells_in_sight()[0] == 0


WAVE = """
x = torch.arange(-20.0, 20.0).view(5, 8) ** 3 / 8  # exact on every processor
x[1, 2], x[3, 4] = float("nan"), float("inf")
"""


@pytest.mark.parametrize("tab", ["table", "heat_map", "images", "histogram", "line"])
def test_the_values_look_as_they_did(qtbot, qapp, tab: str) -> None:
    bench = Bench(qtbot, WAVE)
    bench.view.resize(720, 560)
    bench.view.tabs.setCurrentWidget(getattr(bench.view, tab))
    bench.view.show_element((2, 3))
    qapp.processEvents()
    assert_same_picture(bench.view, f"values_{tab}")


@pytest.mark.parametrize("tab", ["heat_map", "line"])
def test_numbers_that_are_all_nan_look_as_they_did(qtbot, qapp, tab: str) -> None:
    bench = Bench(qtbot, "x = torch.full((2, 3), torch.nan)")
    bench.view.resize(480, 400)
    bench.view.tabs.setCurrentWidget(getattr(bench.view, tab))
    qapp.processEvents()
    assert_same_picture(bench.view, f"values_nan_{tab}")
