"""The list of variables: columns, selection, menu, and the tint of shared memory."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel, QMenu

from engine.protocol import Variable, VariablesSnapshot
from tests.pictures import assert_same_picture
from widgets.console.variables_model import (
    COLUMNS,
    DTYPE,
    SHAPE,
    VALUE,
    VERSION,
    VariablesModel,
)
from widgets.console.variables_view import VariablesView
from widgets.memory.storage_color import storage_color


def tensor(name: str, storage: int | None, version: int = 0, **more) -> Variable:
    known = {"shape": (2, 3), "dtype": "float32", "device": "cpu", "size_bytes": 24, **more}
    return Variable(name, "tensor", "Tensor", storage=storage, version=version, **known)


def snapshot(*variables: Variable, left_out: int = 0) -> VariablesSnapshot:
    return VariablesSnapshot(variables=variables, left_out=left_out)


X, Y, Z = tensor("x", 1), tensor("y", 1), tensor("z", 2, requires_grad=True, is_leaf=True)
MODULE = Variable("m", "module", "Linear", text="9 parameters", device="cpu", size_bytes=36)


@pytest.fixture
def view(qtbot):
    view = VariablesView()
    qtbot.addWidget(view)
    view.resize(760, 300)
    view.show()
    return view


def row(view: VariablesView, number: int) -> list[str]:
    model = view.table.model()
    return [model.index(number, column).data() for column in range(len(COLUMNS))]


def click(view: VariablesView, number: int) -> None:
    rect = view.table.visualRect(view.table.model().index(number, 1))
    QTest.mouseClick(
        view.table.viewport(),
        Qt.MouseButton.LeftButton,
        Qt.KeyboardModifier.NoModifier,
        rect.center(),
    )


def test_says_what_to_do_while_there_is_nothing(view):
    assert view.empty.isVisible() and not view.table.isVisible()
    view.show_variables(snapshot(X))
    assert view.table.isVisible() and not view.empty.isVisible()


def test_shows_every_field(view):
    made = tensor("s", 3, 2, shape=(), text="6.0", grad_fn="SumBackward0", requires_grad=True)
    view.show_variables(snapshot(made, Z, MODULE, left_out=7))
    assert row(view, 0) == [
        "3", "s", "()", "float32", "2", "6.0", "SumBackward0", "24 B", "cpu",
    ]  # fmt: skip
    assert row(view, 1)[6] == "leaf, requires grad"
    assert row(view, 2) == ["", "m", "Linear", "", "", "9 parameters", "", "36 B", "cpu"]
    assert view._left_out.isVisible() and view._left_out.text() == "7 more are not listed."


def test_a_long_dtype_is_not_cut_off(view):
    view.show_variables(snapshot(X))
    before = view.table.columnWidth(DTYPE)
    view.show_variables(snapshot(X, tensor("f", 2, dtype="float8_e4m3fnuz")))
    wide = view.table.columnWidth(DTYPE)
    assert before < view.table.sizeHintForColumn(DTYPE) <= wide
    view.show_variables(snapshot(X))
    assert view.table.columnWidth(DTYPE) == wide


def test_a_long_shape_is_not_cut_off_and_values_that_are_empty_have_no_column(view):
    view.show_variables(snapshot(X))
    assert view.table.isColumnHidden(VALUE)
    view.show_variables(snapshot(X, tensor("y", 2, shape=(64, 128, 32, 32))))
    assert view.table.columnWidth(SHAPE) >= view.table.sizeHintForColumn(SHAPE)
    assert view.table.isColumnHidden(VALUE)
    view.show_variables(snapshot(X, tensor("s", 3, shape=(), text="6.0")))
    assert view.table.columnWidth(VALUE) >= view.table.sizeHintForColumn(VALUE)
    view.show_variables(snapshot(X))
    assert view.table.isColumnHidden(VALUE)


def test_of_many_variables_a_bounded_number_is_measured(view, monkeypatch):
    asked = []
    data = VariablesModel.data
    monkeypatch.setattr(VariablesModel, "data", lambda *each: asked.append(1) or data(*each))
    costs = []
    for count in (400, 1600):
        view.show_variables(snapshot(*(tensor(f"t{i}", i) for i in range(count))))
        asked.clear()
        view.show_variables(snapshot(*(tensor(f"t{i}", i) for i in range(1, count + 1))))
        costs.append(len(asked))
    assert costs[1] < 1.5 * costs[0]


def test_a_click_chooses_and_tells_once(view, qtbot):
    view.show_variables(snapshot(X, Y, Z))
    with qtbot.waitSignal(view.variable_selected) as told:
        click(view, 1)
    assert (told.args, view.selected) == (["y"], "y")
    with qtbot.assertNotEmitted(view.variable_selected):
        view.select("z")
        view.show_variables(snapshot(X, Y, Z))
    assert view.selected == "z"


def test_the_choice_stays_with_its_name_and_goes_with_its_variable(view):
    view.show_variables(snapshot(X, Y, Z))
    view.select("z")
    view.show_variables(snapshot(MODULE, X, Z))
    assert view.table.currentIndex().row() == 2
    view.show_variables(snapshot(X))
    assert (view.selected, view.table.selectionModel().hasSelection()) == ("", False)


def test_sharers_of_the_chosen_memory_are_tinted(view, qtbot):
    view.show_variables(snapshot(X, Y, Z))
    view.select("x")
    assert [view.shares_with_selected(v) for v in (X, Y, Z)] == [False, True, False]
    image = view.grab().toImage()
    table = view.table

    def background(number: int):
        rect = table.visualRect(table.model().index(number, 8))
        at = table.viewport().mapTo(view, rect.topRight())
        return image.pixelColor(at.x() - 3, at.y() + 3)

    assert background(1) != background(2)


def test_chips_of_one_memory_have_one_colour(view):
    view.show_variables(snapshot(X, Y, Z))
    image = view.grab().toImage()
    table = view.table

    def chip(number: int):
        rect = table.visualRect(table.model().index(number, 0))
        at = table.viewport().mapTo(view, rect.center())
        return image.pixelColor(at.x() - 9, at.y())

    assert chip(0) == chip(1) == storage_color(1)
    assert chip(2) == storage_color(2)


def test_a_version_that_changed_is_bold_in_all_who_share(view):
    view.show_variables(snapshot(X, Y, Z))
    view.show_variables(snapshot(tensor("x", 1, 1), tensor("y", 1, 1), Z))
    model = view.table.model()
    bold = [
        font is not None and font.bold()
        for font in (
            model.index(number, VERSION).data(Qt.ItemDataRole.FontRole) for number in range(3)
        )
    ]
    assert bold == [True, True, False]


def test_delete_asks_to_run_del(view, qtbot):
    view.show_variables(snapshot(X, Y))
    click(view, 0)
    with qtbot.waitSignal(view.run_requested) as asked:
        QTest.keyClick(view.table, Qt.Key.Key_Delete)
    assert asked.args == ["del x"]


def test_filtering_keeps_the_choice(view):
    view.show_variables(snapshot(X, Y, MODULE))
    view.select("y")
    QTest.keyClicks(view.filter_edit, "linear")
    assert [row(view, i)[1] for i in range(view.table.model().rowCount())] == ["m"]
    view.filter_edit.clear()
    assert (view.selected, view.table.currentIndex().row()) == ("y", 1)


def test_the_menu_leads_to_the_graph_of_a_tensor_that_has_one(view, qtbot):
    made = tensor("s", 3, 2, shape=(), text="6.0", grad_fn="SumBackward0", requires_grad=True)
    view.show_variables(snapshot(X, made))
    for number, has_graph in ((0, False), (1, True)):
        view.table.customContextMenuRequested.emit(
            view.table.visualRect(view.table.model().index(number, 1)).center()
        )
        menu = view.findChildren(QMenu)[-1]
        action = next(a for a in menu.actions() if a.text() == "Show its autograd graph")
        assert action.isEnabled() is has_graph
        if has_graph:
            with qtbot.waitSignal(view.graph_requested) as told:
                action.trigger()
            assert told.args == ["s"]
        menu.close()


def test_the_table_looks_as_it_did(view, qapp):
    view.show_variables(snapshot(X, Y, Z, MODULE, left_out=3))
    qapp.processEvents()
    assert_same_picture(view, "variables")


@pytest.mark.parametrize(
    ("left_out", "words"),
    [(0, ""), (1, "1 more are not listed."), (5678, "5,678 more are not listed.")],
)
def test_what_is_not_listed_is_counted(view, left_out, words):
    view.show_variables(snapshot(X, left_out=left_out))
    told = view.findChild(QLabel, "variables_left_out")
    assert (told.text() if told.isVisible() else "") == words
