"""The views of broadcasting, reductions, products and indexing, with a real engine behind them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QCheckBox, QComboBox, QLabel, QLineEdit, QPushButton, QToolButton

from engine.protocol import (
    Cells,
    Command,
    ErrorReport,
    ErrorSnapshot,
    OutputSnapshot,
    RunCellCommand,
    Snapshot,
)
from engine.server.session import Session
from tests.pictures import assert_same_picture
from widgets import theme
from widgets.shapes.broadcast_view import BroadcastView
from widgets.shapes.cells_grid import moved, stretched
from widgets.shapes.cells_view import CellsView
from widgets.shapes.operand_fields import OperandFields
from widgets.shapes.pick_view import PickView
from widgets.shapes.product_view import ProductView
from widgets.shapes.reduction_view import ReductionView
from widgets.shapes.shape_view import ShapeView

CELL = """
x = torch.arange(24.).reshape(2, 3, 4)
a = torch.tensor([[1., 2, 3], [4, 5, 6]])
b = torch.arange(12.).reshape(3, 4)
col = torch.tensor([[10], [20], [30]])
row = torch.arange(5)
"""

Show = Callable[[type[ShapeView]], ShapeView]


@pytest.fixture
def show(qtbot) -> Iterator[Show]:
    """Makes a view whose questions are answered at once."""
    answers: list[Snapshot] = []
    session = Session(answers.append)
    session.handle(RunCellCommand(source=CELL))

    def make(kind: type[ShapeView]) -> ShapeView:
        view = kind()
        qtbot.addWidget(view)

        def ask(command: Command) -> None:
            assert type(command) is view.QUESTION
            answers.clear()
            session.handle(command)
            answer = next(a for a in answers if not isinstance(a, OutputSnapshot))
            if isinstance(answer, ErrorSnapshot):
                view.show_error(answer.error)
            else:
                assert type(answer) is view.ANSWER
                view.show_snapshot(answer)

        view.asked.connect(ask)
        view.resize(1000, 800)
        view.show()
        qtbot.waitExposed(view)
        view.refresh()
        return view

    yield make
    session.close()


def text(view: ShapeView, name: str) -> str:
    label = view.findChild(QLabel, name)
    return label.text()


def enter(qtbot, view: ShapeView, name: str, typed: str) -> None:
    field = view.findChild(QLineEdit, name)
    field.setFocus()
    field.selectAll()
    qtbot.keyClicks(field, typed)


def click_cell(qtbot, cells: CellsView, index: tuple[int, ...]) -> None:
    qtbot.mouseClick(cells, Qt.MouseButton.LeftButton, pos=cells.cell_rect(index).center())


# -- broadcasting ----------------------------------------------------------------------------------


def test_the_issues_example_is_there_at_once(show: Show) -> None:
    view = show(BroadcastView)
    assert view.alignment.accessibleDescription().startswith("a's 1 is stretched to 5.")
    assert text(view, "broadcast_strides").endswith("a (6, 0, 1, 0),   b (0, 5, 0, 1)")
    assert view.result_cells.cells().shape == (8, 7, 6, 5)


def test_stepping_goes_leftwards_by_buttons_keys_and_clicks(qtbot, show: Show) -> None:
    view = show(BroadcastView)
    qtbot.mouseClick(view.findChild(QToolButton, "broadcast_start"), Qt.MouseButton.LeftButton)
    assert text(view, "broadcast_rule").startswith("Align the shapes")
    qtbot.mouseClick(view.findChild(QToolButton, "broadcast_next"), Qt.MouseButton.LeftButton)
    assert text(view, "broadcast_rule") == "Dim -1: a's 1 is stretched to 5."
    qtbot.keyClick(view.alignment, Qt.Key.Key_Left)
    assert text(view, "broadcast_rule") == "Dim -2: b's 1 is stretched to 6."
    qtbot.keyClick(view.alignment, Qt.Key.Key_Right)
    assert text(view, "broadcast_rule").startswith("Dim -1")
    place = view.alignment.box(1, -3).center()
    qtbot.mouseClick(view.alignment, Qt.MouseButton.LeftButton, pos=place)
    assert text(view, "broadcast_rule").startswith("Dim -3")
    qtbot.mouseClick(view.findChild(QToolButton, "broadcast_all"), Qt.MouseButton.LeftButton)
    assert text(view, "broadcast_rule").startswith("Dim -4: b has no such dimension")
    assert not view.findChild(QToolButton, "broadcast_next").isEnabled()


def test_before_the_first_answer_there_is_no_step(qtbot) -> None:
    view = BroadcastView()
    qtbot.addWidget(view)
    for name in ("start", "next", "all"):
        button = view.findChild(QToolButton, f"broadcast_{name}")
        assert button is not None
        button.setEnabled(True)
        button.click()
    assert view.alignment.accessibleDescription() == ""


def test_an_element_says_what_it_is_made_of(qtbot, show: Show) -> None:
    view = show(BroadcastView)
    enter(qtbot, view, "operand_a", "col")
    enter(qtbot, view, "operand_b", "row")
    click_cell(qtbot, view.result_cells, (1, 2))
    assert text(view, "broadcast_sum") == "result[1, 2] = col[1, 0] + row[2] = 20 + 2 = 22"
    marks = view.operand_cells[0].marks()
    assert marks[(1, 2)] == "ghost selected" and (1, 0) not in marks
    qtbot.keyClick(view.result_cells, Qt.Key.Key_Down)
    assert text(view, "broadcast_sum").endswith("= 30 + 2 = 32")
    with qtbot.waitSignal(view.run_requested) as run:
        qtbot.mouseClick(view.findChild(QPushButton, "shape_run"), Qt.MouseButton.LeftButton)
    assert run.args == ["col + row"]


def test_a_failing_dimension_is_shown_with_torchs_message(qtbot, show: Show) -> None:
    view = show(BroadcastView)
    enter(qtbot, view, "operand_a", "(8, 3, 6)")
    enter(qtbot, view, "operand_b", "(4, 6)")
    assert text(view, "broadcast_rule").startswith("Dim -2: a has 3 but b has 4")
    assert "size of tensor a (3) must match" in text(view, "shape_error")
    assert view.result_cells.isHidden()
    enter(qtbot, view, "operand_b", "(3, 6)")
    assert text(view, "shape_error") == "" and not view.result_cells.isHidden()


def test_in_place_is_stricter(qtbot, show: Show) -> None:
    view = show(BroadcastView)
    enter(qtbot, view, "operand_a", "(3, 1)")
    enter(qtbot, view, "operand_b", "(3, 4)")
    assert text(view, "shape_error") == ""
    view.findChild(QCheckBox, "broadcast_in_place").click()
    assert "doesn't match the broadcast shape" in text(view, "shape_error")
    assert "would have to grow to 4" in text(view, "broadcast_rule")


def test_what_cannot_be_read_keeps_the_picture(qtbot, show: Show) -> None:
    view = show(BroadcastView)
    enter(qtbot, view, "operand_a", "nothing")
    assert "no variable named `nothing`" in text(view, "shape_error")
    assert view.result_cells.cells().shape == (8, 7, 6, 5)
    assert not view.findChild(QPushButton, "shape_run").isEnabled()


def test_a_third_operand_comes_and_goes(qtbot, show: Show) -> None:
    view = show(BroadcastView)
    add = view.findChild(QToolButton, "operand_add")
    qtbot.mouseClick(add, Qt.MouseButton.LeftButton)
    enter(qtbot, view, "operand_c", "(6, 5)")
    assert view.operands.texts() == ("(8, 1, 6, 1)", "(7, 1, 5)", "(6, 5)")
    assert not view.operand_cells[2].isHidden()
    qtbot.mouseClick(view.findChild(QToolButton, "operand_remove"), Qt.MouseButton.LeftButton)
    assert len(view.operands.texts()) == 2 and view.operand_cells[2].isHidden()
    assert not view.findChild(QToolButton, "operand_remove").isEnabled()


# -- reductions ------------------------------------------------------------------------------------


def test_the_elements_that_fold_are_lit(qtbot, show: Show) -> None:
    view = show(ReductionView)
    view.show_expression("x")
    view.findChild(QCheckBox, "reduction_dim_1").click()
    click_cell(qtbot, view.result_cells, (1, 2))
    assert text(view, "reduction_fold") == "result[1, 2] = sum of x[1, :, 2] = 14 + 18 + 22 = 54"
    lit = {index for index, mark in view.source_cells.marks().items() if mark == "read"}
    assert lit == {(1, 0, 2), (1, 1, 2), (1, 2, 2)}
    assert text(view, "shape_code") == "x.sum(dim=1)"
    with qtbot.waitSignal(view.element_selected) as selected:
        click_cell(qtbot, view.source_cells, (0, 2, 3))
    assert selected.args == ["x", (0, 2, 3)]
    assert text(view, "reduction_fold") == "result[0, 3] = sum of x[0, :, 3] = 3 + 7 + 11 = 21"


def test_mean_max_and_keepdim(qtbot, show: Show) -> None:
    view = show(ReductionView)
    view.show_expression("a")
    view.findChild(QCheckBox, "reduction_dim_1").click()
    combo = view.findChild(QComboBox, "reduction_op")
    combo.setCurrentText("mean")
    assert text(view, "reduction_fold") == "result[0] = mean of a[0, :] = (1 + 2 + 3) / 3 = 2"
    combo.setCurrentText("max")
    assert text(view, "shape_code") == "a.max(dim=1).values"
    assert view.source_cells.marks()[(0, 2)] == "winner"
    view.findChild(QCheckBox, "reduction_keepdim").click()
    assert view.result_cells.cells().shape == (2, 1)
    click_cell(qtbot, view.source_cells, (1, 0))
    assert text(view, "reduction_fold").startswith("result[1, 0] = max of a[1, :]")


def test_dimensions_that_are_gone_are_no_longer_folded(show: Show) -> None:
    view = show(ReductionView)
    view.show_expression("x")
    view.findChild(QCheckBox, "reduction_dim_2").click()
    view.show_expression("a")
    assert text(view, "shape_error") == "" and text(view, "shape_code") == "a.sum()"


# -- products --------------------------------------------------------------------------------------


def test_row_meets_column(qtbot, show: Show) -> None:
    view = show(ProductView)
    enter(qtbot, view, "operand_a", "a")
    enter(qtbot, view, "operand_b", "b")
    click_cell(qtbot, view.result_cells, (1, 2))
    expected = "result[1, 2] = a[1, :] · b[:, 2] = 4 · 2 + 5 · 6 + 6 · 10 = 98"
    assert text(view, "product_sum") == expected
    assert set(view.operand_cells[0].marks()) == {(1, 0), (1, 1), (1, 2)}
    assert set(view.operand_cells[1].marks()) == {(0, 2), (1, 2), (2, 2)}
    click_cell(qtbot, view.operand_cells[0], (0, 1))
    click_cell(qtbot, view.operand_cells[1], (2, 3))
    assert text(view, "product_sum").startswith("result[0, 3] = a[0, :] · b[:, 3]")


def test_the_result_stands_where_row_and_column_cross(qtbot, show: Show) -> None:
    view = show(ProductView)
    enter(qtbot, view, "operand_a", "a")
    enter(qtbot, view, "operand_b", "b")
    view._ask((1, 2))
    a, b = view.operand_cells[0], view.operand_cells[1]
    qtbot.waitUntil(lambda: view.result_cells.height() == view.result_cells.sizeHint().height())

    def top_left(cells: CellsView, index: tuple[int, ...]) -> QPoint:
        return cells.mapTo(view, cells.cell_rect(index).topLeft())

    crossing = top_left(view.result_cells, (1, 2))
    assert crossing.y() == top_left(a, (1, 0)).y()
    assert crossing.x() == top_left(b, (0, 2)).x()


def test_the_mismatch_is_named(qtbot, show: Show) -> None:
    view = show(ProductView)
    enter(qtbot, view, "operand_a", "a")
    enter(qtbot, view, "operand_b", "(4, 3)")
    assert "cannot be multiplied (2x3 and 4x3)" in text(view, "shape_error")
    assert "b.mT is (3, 4)" in text(view, "shape_hint")
    assert view.result_cells.isHidden()


def test_einsum_takes_an_equation_and_any_number_of_operands(qtbot, show: Show) -> None:
    view = show(ProductView)
    assert view.findChild(QLineEdit, "product_equation").isHidden()
    view.findChild(QComboBox, "product_op").setCurrentText("einsum")
    enter(qtbot, view, "operand_a", "x")
    enter(qtbot, view, "operand_b", "b")
    enter(qtbot, view, "product_equation", "bij,kj->bik")
    assert text(view, "product_letters") == "x[b=2, i=3, j=4] · b[k=3, j=4]  →  result[b, i, k]"
    assert text(view, "product_meaning") == "j: multiplied pair by pair and summed"
    assert text(view, "shape_code") == 'torch.einsum("bij,kj->bik", x, b)'
    qtbot.mouseClick(view.findChild(QToolButton, "operand_remove"), Qt.MouseButton.LeftButton)
    enter(qtbot, view, "operand_a", "(3, 3)")
    enter(qtbot, view, "product_equation", "ii->")
    assert set(view.operand_cells[0].marks()) == {(0, 0), (1, 1), (2, 2)}


def test_einsum_takes_one_to_four_operands_and_a_product_two(qtbot, show: Show) -> None:
    view = show(ProductView)
    more, fewer = (view.findChild(QToolButton, f"operand_{way}") for way in ("add", "remove"))
    assert more.isHidden() and fewer.isHidden() and len(view.operands.texts()) == 2
    op = view.findChild(QComboBox, "product_op")
    op.setCurrentText("einsum")
    fields = [view.findChild(QLineEdit, f"operand_{letter}") for letter in "abcd"]
    for count in (3, 4):
        qtbot.mouseClick(more, Qt.MouseButton.LeftButton)
        assert [not field.isHidden() for field in fields].count(True) == count
    assert not more.isEnabled() and view.findChild(QLineEdit, "operand_e") is None
    for _ in range(3):
        qtbot.mouseClick(fewer, Qt.MouseButton.LeftButton)
    assert [not field.isHidden() for field in fields] == [True, False, False, False]
    assert not fewer.isEnabled()
    op.setCurrentText("matmul")
    assert [not field.isHidden() for field in fields] == [True, True, False, False]


# -- indexing --------------------------------------------------------------------------------------


def test_a_line_that_writes_shows_before_values_and_after(qtbot, show: Show) -> None:
    view = show(PickView)
    enter(qtbot, view, "pick_source", "x[0, [1, 1, 2], 0] = torch.tensor([5.0, 6.0, 7.0])")
    marks = view.source_cells.marks()
    assert {index: mark for index, mark in marks.items() if mark != "selected"} == {
        (0, 2, 0): "picked"}  # fmt: skip
    assert marks[0, 1, 0] == "selected"  # the first value's place
    assert view.result_cells.marks() == {(0,): "selected", (1,): "read"}
    assert text(view, "pick_read") == "x[0, 1, 0] = 4 gets 5, 6: afterwards 6"
    assert text(view, "pick_kind") == "3 values of shape (3,) → x"
    assert "one of the values stays" in text(view, "pick_why")
    view.result_cells.cell_chosen.emit((2,))
    assert view.source_cells.marks()[0, 1, 0] == "repeated"
    assert view.after_cells.isVisible()
    enter(qtbot, view, "pick_source", "x.masked_fill(x > 20, 0)")
    assert text(view, "pick_kind") == "3 values of shape (3,) → a copy"
    assert text(view, "pick_read") == "x[1, 2, 3] = 23 gets 0: afterwards 0"
    enter(qtbot, view, "pick_source", "x[x > 20]")
    assert not view.after_cells.isVisible()
    assert text(view, "pick_read") == "result[2] = x[1, 2, 3] = 23"


def test_picked_elements_are_coloured_and_parts_told(qtbot, show: Show) -> None:
    view = show(PickView)
    enter(qtbot, view, "pick_source", "x[0, :, ::2]")
    picked = set(view.source_cells.marks())
    assert picked == {(0, i, j) for i in range(3) for j in (0, 2)}
    click_cell(qtbot, view.result_cells, (1, 1))
    assert text(view, "pick_read") == "result[1, 1] = x[0, 1, 2] = 6"
    assert view.source_cells.marks()[(0, 1, 2)] == "selected"
    assert text(view, "pick_kind") == "(2, 3, 4) → (3, 2), a view"
    assert text(view, "pick_rule_0") == "takes index 0 of dim 0, which disappears"
    enter(qtbot, view, "pick_source", "x[x > 20]")
    assert text(view, "pick_kind") == "(2, 3, 4) → (3,), a copy"
    assert view.findChild(QLabel, "pick_rule_1").isHidden()
    assert view.failed.isHidden()
    enter(qtbot, view, "pick_source", "x[2]")
    assert "index 2 is out of bounds" in text(view, "shape_error")
    assert view.failed.isVisible() and view.failed.failed is not None
    assert view.failed.failed.operands[-1].failing == (0,)


def test_another_variable_is_indexed_and_an_index_of_it_kept(qtbot, show: Show) -> None:
    view = show(PickView)
    view.show_expression("a")
    assert text(view, "shape_code") == "a[...]"
    enter(qtbot, view, "pick_source", "a[1]")
    view.show_expression("a")
    assert text(view, "shape_code") == "a[1]"
    with qtbot.waitSignal(view.element_selected) as selected:
        click_cell(qtbot, view.source_cells, (0, 1))
    assert selected.args == ["a", (0, 1)]


# -- the parts -------------------------------------------------------------------------------------


def test_page_keys_go_from_tile_to_tile(qtbot, show: Show) -> None:
    view = show(ReductionView)
    view.show_expression("x")
    view.findChild(QCheckBox, "reduction_dim_0").click()
    view.findChild(QCheckBox, "reduction_keepdim").click()
    assert moved((2, 3, 4), (0, 1, 2), -3, 1) == (1, 1, 2)
    assert moved((2, 2, 3, 4), (0, 1, 1, 2), -3, 1) == (1, 0, 1, 2)
    assert moved((2, 2, 3, 4), (1, 1, 1, 2), -3, 1) == (1, 1, 1, 2)
    assert moved((3, 4), (2, 3), -1, 1) == (2, 3)
    chosen: list[object] = []
    view.source_cells.cell_chosen.connect(chosen.append)
    qtbot.keyClick(view.source_cells, Qt.Key.Key_PageDown)
    assert chosen == [(0, 0, 0)]


def test_stretching_repeats_texts_and_marks_ghosts() -> None:
    cells, ghosts = stretched(
        Cells((3, 1), (0, 0), (3, 1), ("1", "2", "3")), Cells((2, 3, 2), (0, 0, 0), (2, 3, 2))
    )
    assert cells.texts == ("1", "1", "2", "2", "3", "3") * 2
    assert set(ghosts) == {
        (k, i, j) for k in range(2) for i in range(3) for j in range(2) if (k, j) != (0, 0)
    }


def test_empty_tensors_and_scalars_have_a_picture(qtbot) -> None:
    view = CellsView("cells")
    qtbot.addWidget(view)
    for cells in (Cells((0, 3), (0, 0), (0, 3)), Cells((), (), (), ("7",))):
        view.show_cells(cells, "x", {(): "selected"})
        view.resize(view.sizeHint())
        view.grab()
        qtbot.keyClick(view, Qt.Key.Key_Down)
    assert view.cell_rect(()).height() > 0


def test_a_message_of_many_lines_takes_no_more_room_than_there_is(qtbot, show: Show) -> None:
    view = show(ReductionView)
    before = view.minimumSizeHint()
    lines = "\n".join(f"backend {number} has no such operation" for number in range(60))
    view.show_error(ErrorReport("NotImplementedError", lines, hint="Convert first."))
    qtbot.waitUntil(lambda: view.findChild(QLabel, "shape_error").height() > 400)
    assert view.minimumSizeHint() == before
    assert text(view, "shape_error") == f"NotImplementedError: {lines}"


def test_the_tensor_before_and_after_a_write_stand_side_by_side_where_there_is_room(
    qtbot, qapp, show: Show
) -> None:
    view = show(PickView)
    view.source.setText("b[[0, 2], 1] = torch.tensor([7., 8.])")
    grids = (view.source_cells, view.result_cells, view.after_cells)
    qtbot.waitUntil(lambda: grids[2].x() > 0)
    assert [grid.y() for grid in grids] == [grids[0].y()] * 3
    assert grids[0].geometry().right() < grids[1].x()
    assert grids[1].geometry().right() < grids[2].x()
    view.resize(320, 800)
    qtbot.waitUntil(lambda: grids[2].y() > grids[1].y() > grids[0].y())
    assert {grid.x() for grid in grids} == {grids[0].x()}


@pytest.mark.parametrize("colors", [theme.LIGHT, theme.DARK], ids=["light", "dark"])
def test_what_is_lit_looks_lit(qtbot, qapp, colors: theme.Theme) -> None:
    theme.apply(qapp, colors)
    view = CellsView("cells")
    qtbot.addWidget(view)
    view.show_cells(Cells((2,), (0,), (2,), ("", "")), "x", {(0,): "read"})
    view.resize(view.sizeHint())
    image: QImage = view.grab().toImage()
    lit, plain = (image.pixelColor(view.cell_rect((k,)).center()) for k in (0, 1))
    assert plain.name() == colors.surface and lit != plain


def test_operands_keep_their_number_within_limits(qtbot) -> None:
    fields = OperandFields(("x", "y", "z"), 2, 4)
    qtbot.addWidget(fields)
    fields.set_limits(2, 2)
    assert fields.texts() == ("x", "y")
    fields.show_names(["left", "right"])
    field = fields.findChild(QLineEdit, "operand_a")
    assert field.completer().model().stringList() == ["left", "right"]


def test_a_name_that_is_written_out_is_offered_no_more(qtbot) -> None:
    fields = OperandFields(("", ""), 2, 2)
    qtbot.addWidget(fields)
    fields.show_names(["weight", "bias"])
    fields.show()
    qtbot.waitExposed(fields)
    field = fields.findChild(QLineEdit, "operand_a")
    field.setFocus()
    popup = field.completer().popup()
    qtbot.keyClicks(field, "weigh")
    qtbot.waitUntil(popup.isVisible)
    qtbot.keyClicks(field, "t")
    qtbot.waitUntil(lambda: not popup.isVisible())
    assert field.text() == "weight"


@pytest.mark.parametrize("colors", [theme.LIGHT, theme.DARK], ids=["light", "dark"])
def test_broadcasting_and_products_look_as_they_did(
    qtbot, qapp, show: Show, colors: theme.Theme
) -> None:
    theme.apply(qapp, colors)
    broadcast = show(BroadcastView)
    broadcast.operands.show_texts(("col", "row"))
    broadcast._ask((1, 2))
    product = show(ProductView)
    product.operands.show_texts(("a", "b"))
    product._ask((1, 2))
    for view, name in ((broadcast, "broadcasting"), (product, "product")):
        view.resize(880, 560)
        view.setFocus()
        cells = view.result_cells
        qtbot.waitUntil(lambda cells=cells: cells.size() == cells.sizeHint())
        assert_same_picture(view, f"{name}_{colors.name}")
