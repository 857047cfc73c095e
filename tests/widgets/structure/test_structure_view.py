"""The structure of code: its tree and table, what is said above them, and the lines below."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QItemSelectionModel, QPoint, Qt
from PySide6.QtGui import QGuiApplication

from engine.project.document import replace
from engine.protocol import ErrorReport, InitialValues, InitPreviewSnapshot, ModuleCall
from tests.pictures import assert_same_picture
from tests.widgets.structure.small_structure import BARE, GRAPH, MODULES, WEIGHTS, WHOLE
from tests.words import assert_same_words
from widgets import theme
from widgets.layout.nested_layout import layout_nested
from widgets.structure import modules_model, weights_model
from widgets.structure.view import StructureView


@pytest.fixture
def view(qtbot) -> StructureView:
    view = StructureView()
    qtbot.addWidget(view)
    view.resize(1368, 640)
    calls = view.calls.view
    calls.layout_requested.connect(
        lambda v, d, s: calls.show_layout(v, layout_nested(v.outline, d, s))
    )
    view.show()
    view.show_structure(WHOLE, "Net()")
    view.bar.show_subject("Net()", "It runs in the file.")
    calls.show_graph(GRAPH)
    return view


def tree_texts(view: StructureView, column: int) -> list[str]:
    """The texts of a column in the tree, from the top, of the rows that are shown."""
    tree, texts = view.tree.tree, []
    index = tree.model().index(0, 0)
    while index.isValid():
        texts.append(index.siblingAtColumn(column).data())
        index = tree.indexBelow(index)
    return texts


def table_texts(view: StructureView, column: int) -> list[str]:
    rows = range(view.weights.filter.rowCount())
    return [view.weights.filter.index(row, column).data() for row in rows]


def choose_module(view: StructureView, path: str) -> None:
    tree = view.tree
    tree.tree.setCurrentIndex(tree._filter.mapFromSource(tree.model.index_at(path)))


def choose_rows(view: StructureView, *rows: int) -> None:
    selection = view.weights.table.selectionModel()
    selection.clear()
    flags = QItemSelectionModel.SelectionFlag
    for row in rows:
        selection.select(view.weights.filter.index(row, 0), flags.Select | flags.Rows)


def choose_action(view: StructureView, title: str) -> None:
    view.bar.action.setCurrentIndex(view.bar.action.findText(title))


# -- what is shown ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["light", "dark"])
def test_it_looks_as_it_did(view, qapp, name):
    theme.apply(qapp, {"light": theme.LIGHT, "dark": theme.DARK}[name])
    choose_rows(view, 0, 1)
    choose_action(view, "Initialise")
    view.show_preview(
        InitPreviewSnapshot(
            rows=(InitialValues("body.0.weight", 0.5, 1.0), InitialValues("body.0.bias", 0.0, 0.0))
        )
    )
    qapp.processEvents()
    assert_same_picture(view, f"structure_{name}")
    if name == "light":
        assert_same_words(view, "structure_shown")


def test_the_tree_is_that_of_the_modules(view):
    assert tree_texts(view, modules_model.NAME) == ["Net()", "body", "0", "1", "head"]
    assert tree_texts(view, modules_model.SHAPES) == [
        "(8, 4) → (8, 2)",
        "not called",
        "(8, 4) → (8, 2)",
        "(8, 4) → (8, 2) …",
        "(8, 4) → (8, 2)",
    ]
    assert tree_texts(view, modules_model.CALLS) == ["", "", "×2", "×2", ""]
    assert tree_texts(view, modules_model.MODE) == [
        "train, partly frozen",
        "train, partly frozen",
        "train, frozen",
        "eval",
        "train",
    ]
    assert tree_texts(view, modules_model.PARAMETERS) == ["32", "22", "10", "12", "10"]
    assert tree_texts(view, modules_model.SIZE) == ["128 B", "88 B", "40 B", "48 B", "40 B"]
    assert tree_texts(view, modules_model.MACS) == ["224", "", "128", "", "32"]
    assert tree_texts(view, modules_model.KEPT) == ["2 KiB", "", "", "", "128 B"]
    assert tree_texts(view, modules_model.TIME) == ["1.5", "", "0.5", "0.0625", "0.25"]
    tip = view.tree.model.index_at("head").data(Qt.ItemDataRole.ToolTipRole)
    assert "(8, 4) → (8, 2), 64 MACs, keeps 128 B, 0.25 ms" in tip


def test_the_table_has_every_parameter_and_buffer(view):
    columns = weights_model
    assert table_texts(view, columns.NAME) == [row.name for row in WEIGHTS]
    assert table_texts(view, columns.SHAPE)[:2] == ["(2, 4)", "(2,)"]
    assert table_texts(view, columns.MEAN) == [
        "0.25", "-0.125", "1", "0", "0", "3", "0.1", "nan"
    ]  # fmt: skip
    assert table_texts(view, columns.STD)[5:] == ["–", "1.25", "nan"]
    assert table_texts(view, columns.GRADIENT) == [
        "", "", "0.125", "none", "", "", "none", "none"
    ]  # fmt: skip
    assert table_texts(view, columns.TRAINABLE) == [
        "frozen", "frozen", "yes", "yes", "", "", "yes", "yes"
    ]  # fmt: skip
    assert table_texts(view, columns.OPTIMIZER) == [
        "opt", "opt", "opt, other", "opt", "", "", "none", "none"
    ]  # fmt: skip
    assert table_texts(view, columns.KIND)[4:7] == ["buffer", "buffer, not saved", "parameter"]
    assert table_texts(view, columns.SHARED)[6:] == ["tied.weight", ""]


def test_what_is_said_above(view):
    assert view._totals.text() == (
        "5 modules · 32 parameters, 10 frozen · 128 B · 7 elements in buffers, 32 B"
        " · 224 MACs a batch · 2 KiB of activations"
    )
    assert "first batch, (float32 (8, 4), int64 (8,))" in view._batch.text()
    assert view._unfed.text() == (
        "No optimizer holds head.weight, head.bias: a step of opt, other leaves them as is."
    )
    assert not view.data_button.isVisibleTo(view)
    assert not view._unregistered.isVisibleTo(view)
    view.show_structure(replace(WHOLE, unregistered=("layers", "a.b")), "Net()")
    assert view._unregistered.text().startswith("layers, a.b hold modules or parameters in a plain")
    raised = ErrorReport("RuntimeError", "no", hint="Try on.", line=9, traceback="File net.py\n")
    view.show_structure(replace(WHOLE, unrun=raised), "Net()")
    assert view._batch.text() == (
        "No shapes, MACs and times: the step did not run on (float32 (8, 4), int64 (8,))."
        " RuntimeError in line 9: no Try on."
    )
    assert view._batch.toolTip() == "File net.py"
    assert view._batch.property("role") == "error"


def test_without_data_it_says_what_to_do(view, qtbot):
    view.show_structure(BARE, "model")
    assert view._batch.text() == (
        "Name data under Train to see shapes, MACs, activations and times."
    )
    assert not view._unfed.isVisibleTo(view)
    for column in modules_model.OF_A_RUN:
        assert view.tree.tree.isColumnHidden(column)
    assert view.weights.table.isColumnHidden(weights_model.OPTIMIZER)
    assert view.weights.table.isColumnHidden(weights_model.SHARED)
    with qtbot.waitSignal(view.data_requested):
        view.data_button.click()


def test_a_trouble_has_one_button(view, qtbot):
    view.show_trouble("net.py has not run.", "Run net.py", "It runs.")
    assert not view.shows_structure and view.trouble.text() == "net.py has not run."
    assert view.remedy.isVisibleTo(view) and view.remedy.text() == "Run net.py"
    with qtbot.waitSignal(view.remedy_requested):
        view.remedy.click()
    view.show_trouble("There is no engine.")
    assert not view.remedy.isVisibleTo(view)
    view.show_structure(WHOLE, "Net()")
    assert view.shows_structure


# -- watching --------------------------------------------------------------------------------------


def test_a_mark_asks_to_watch_a_module_and_shows_what_came_of_it(view, qtbot):
    tree, model = view.tree, view.tree.model

    def mark(path: str):
        index = model.index_at(path).siblingAtColumn(modules_model.WATCH)
        return Qt.CheckState(index.data(Qt.ItemDataRole.CheckStateRole))

    def click(path: str) -> None:
        index = model.index_at(path).siblingAtColumn(modules_model.WATCH)
        cell = tree.tree.visualRect(tree._filter.mapFromSource(index))
        middle = QPoint(cell.left() + 10, cell.center().y())
        qtbot.mouseClick(tree.tree.viewport(), Qt.MouseButton.LeftButton, pos=middle)

    assert not model.setData(model.index_at("head"), 2)  # another role
    with qtbot.waitSignal(tree.watch_wanted) as wanted:
        click("head")
    assert wanted.args == [("head",)] and mark("head") == Qt.CheckState.Unchecked
    model.show_watched(("head",))
    assert mark("head") == Qt.CheckState.Checked
    with qtbot.waitSignal(tree.watch_wanted) as wanted:
        click("body.1")
    assert wanted.args == [("head", "body.1")]
    view.show_structure(replace(WHOLE, watched=("body.1", "head")), "Net()")
    with qtbot.waitSignal(tree.watch_wanted) as wanted:
        click("head")
    assert wanted.args == [("body.1",)]


# -- finding ---------------------------------------------------------------------------------------


def test_a_module_filters_the_table_and_both_are_searched(view):
    choose_module(view, "body.1")
    inside = ["body.1.weight", "body.1.bias", "body.1.running_mean", "body.1.seen"]
    assert table_texts(view, weights_model.NAME) == inside
    assert view.weights.count.text() == "4 of 8"
    view.weights.search.setText("INT64")
    assert table_texts(view, weights_model.NAME) == ["body.1.seen"]
    view.weights.search.setText("frozen")
    assert view.weights.empty.isVisibleTo(view) and "has this text" in view.weights.empty.text()
    view.weights.search.clear()
    view.tree.search.setText("batchnorm")
    assert tree_texts(view, modules_model.NAME) == ["Net()", "body", "1"]


def test_a_module_has_no_rows_of_one_whose_name_starts_alike(view):
    other = replace(WEIGHTS[2], name="body.10.weight")
    view.show_structure(replace(WHOLE, weights=(*WEIGHTS, other)), "Net()")
    choose_module(view, "body.1")
    assert view.weights.count.text() == "4 of 9"


def test_modules_open_and_close(view, qtbot):
    view.tree.collapse_button.click()
    assert tree_texts(view, modules_model.NAME) == ["Net()", "body", "head"]
    view.show_structure(replace(WHOLE, modules=MODULES[:4]), "Net()")
    assert tree_texts(view, modules_model.NAME) == ["Net()", "body"]
    view.tree.expand_button.click()
    assert tree_texts(view, modules_model.NAME) == ["Net()", "body", "0", "1"]
    view.tree.collapse_button.click()
    view.show_structure(replace(WHOLE, title="other.py: Net()", modules=MODULES[:3]), "Net()")
    assert tree_texts(view, modules_model.NAME) == ["Net()", "body", "0"]  # another one opens whole
    qtbot.keyClick(view.tree.tree, Qt.Key.Key_Down)
    assert view.tree.chosen == MODULES[0] or view.tree.chosen == MODULES[1]


def test_columns_are_sorted_by_their_numbers(view):
    table = view.weights.table
    table.sortByColumn(weights_model.MEAN, Qt.SortOrder.DescendingOrder)
    assert table_texts(view, weights_model.MEAN) == [
        "3", "1", "0.25", "0.1", "0", "0", "-0.125", "nan"
    ]  # fmt: skip
    many = replace(WEIGHTS[2], elements=100)
    view.show_structure(replace(WHOLE, weights=(many, *WEIGHTS[:1])), "Net()")
    table.sortByColumn(weights_model.COUNT, Qt.SortOrder.AscendingOrder)
    assert table_texts(view, weights_model.COUNT) == ["8", "100"]
    view.show_structure(WHOLE, "Net()")
    table.sortByColumn(weights_model.SHAPE, Qt.SortOrder.AscendingOrder)
    assert table_texts(view, weights_model.SHAPE) == [
        "()", "(2,)", "(2,)", "(6,)", "(6,)", "(6,)", "(2, 4)", "(2, 4)"
    ]  # fmt: skip


def test_the_tree_is_sorted_by_its_numbers_and_back(view):
    tree = view.tree.tree
    tree.sortByColumn(modules_model.TIME, Qt.SortOrder.AscendingOrder)
    assert tree_texts(view, modules_model.NAME) == ["Net()", "body", "1", "0", "head"]
    tree.sortByColumn(modules_model.PARAMETERS, Qt.SortOrder.AscendingOrder)
    assert tree_texts(view, modules_model.NAME) == ["Net()", "head", "body", "0", "1"]
    tree.sortByColumn(-1, Qt.SortOrder.AscendingOrder)
    assert tree_texts(view, modules_model.NAME) == ["Net()", "body", "0", "1", "head"]


def test_histograms_are_sorted_by_their_bins_and_painted(view):
    table = view.weights.table
    table.sortByColumn(weights_model.HISTOGRAM, Qt.SortOrder.DescendingOrder)
    assert table_texts(view, weights_model.NAME)[:2] == ["head.weight", "body.0.weight"]
    cell = table.visualRect(view.weights.filter.index(0, weights_model.HISTOGRAM))
    image = table.viewport().grab(cell).toImage()
    leaf = theme.current().color("leaf").rgb()
    bottom = image.height() - 5
    third = image.width() // 3
    painted = [image.pixel(x, bottom) == leaf for x in (third // 2, third + third // 2)]
    assert painted == [False, True]


def test_a_gradient_is_not_cut_and_its_column_stays_as_wide(view):
    table = view.weights.table
    rows = (replace(WEIGHTS[0], gradient=-1.234e-09, update=1.234e-05), *WEIGHTS[1:])
    view.show_structure(replace(WHOLE, weights=rows), "Net()")
    wide = table.columnWidth(weights_model.GRADIENT)
    needed = table.fontMetrics().horizontalAdvance("-1.234e-09")
    assert wide >= needed
    view.show_structure(WHOLE, "Net()")
    assert table.columnWidth(weights_model.GRADIENT) == wide


def test_what_is_selected_stays_when_numbers_change(view):
    choose_module(view, "body.1")
    choose_rows(view, 1)
    view.tree.tree.collapse(view.tree._filter.mapFromSource(view.tree.model.index_at("body.1")))
    changed = tuple(replace(row, mean=7.0) for row in WEIGHTS)
    view.show_structure(replace(WHOLE, weights=changed), "Net()")
    assert view.tree.chosen == MODULES[3]
    assert [row.name for row in view.weights.chosen] == ["body.1.bias"]
    assert table_texts(view, weights_model.MEAN) == ["7", "7", "7", "7"]


def test_both_are_copied_as_text(view):
    view.tree.copy_button.click()
    lines = QGuiApplication.clipboard().text().splitlines()
    assert lines[2] == "    0\t\tLinear\t(8, 4) → (8, 2)\t×2\t10\t128\t\t0.5\t40 B\ttrain, frozen"
    assert len(lines) == 5
    choose_rows(view, 0, 6)
    view.weights.copy_button.click()
    lines = QGuiApplication.clipboard().text().splitlines()
    assert [line.split("\t")[0] for line in lines] == ["body.0.weight", "head.weight"]
    assert lines[0].split("\t")[1:8] == ["(2, 4)", "0.25", "0.5", "1 2 4 1", "", "–", "frozen"]


# -- acting ----------------------------------------------------------------------------------------


def test_a_line_is_shown_before_it_runs(view, qtbot):
    assert view.bar.source == view.bar.line.text() == "Net().requires_grad_(False)"
    choose_module(view, "body.1")
    choose_action(view, "eval()")
    assert view.bar.target.text() == "body.1"
    assert view.bar.line.text() == "Net().body[1].eval()"
    with qtbot.waitSignal(view.bar.run_requested) as run:
        view.bar.run_button.click()
    assert run.args == ["Net().body[1].eval()"]
    view.bar.copy_button.click()
    assert QGuiApplication.clipboard().text() == "Net().body[1].eval()"
    assert view.bar.run_button.toolTip() == "It runs in the file."


def test_rows_are_frozen_and_initialised_and_buffers_initialised_only(view):
    choose_rows(view, 6, 7)
    assert view.bar.target.text() == "2 rows"
    assert view.bar.source.splitlines() == [
        "Net().head.weight.requires_grad_(False)",
        "Net().head.bias.requires_grad_(False)",
    ]
    titles = [view.bar.action.itemText(i) for i in range(view.bar.action.count())]
    assert titles == ["Freeze", "Unfreeze", "Initialise", "Tie"]
    choose_rows(view, 4)
    assert view.bar.action.count() == 1 and view.bar.action.currentText() == "Initialise"
    assert view.bar.source.startswith("torch.nn.init.kaiming_uniform_(Net().body[1].running_mean, ")
    choose_rows(view, *range(6))
    assert view.bar.line.text().count("\n") == 3
    assert view.bar.line.text().endswith("# and 3 more lines")
    assert len(view.bar.source.splitlines()) == 6
    choose_rows(view)
    assert view.bar.source == "Net().requires_grad_(False)"


def test_two_parameters_of_one_shape_are_tied(view, qtbot):
    choose_rows(view, 0, 6)
    choose_action(view, "Tie")
    assert view.bar.source == "Net().head.weight = Net().body[0].weight"
    assert view.bar.run_button.isEnabled()
    with qtbot.waitSignal(view.bar.run_requested) as run:
        view.bar.run_button.click()
    assert run.args == ["Net().head.weight = Net().body[0].weight"]
    choose_rows(view, 0, 7)
    choose_action(view, "Tie")
    assert view.bar.source == ""
    assert view.bar.told.text().endswith("these have (2, 4) and (2,).")
    assert not view.bar.run_button.isEnabled()
    choose_rows(view, 0, 1, 6)
    assert view.bar.action.findText("Tie") < 0 and view.bar.told.text() == ""
    choose_rows(view, 0, 4)
    assert view.bar.action.findText("Tie") < 0


def test_initialising_is_tried_first(view, qtbot):
    choose_rows(view, 6)
    with qtbot.waitSignal(view.bar.preview_requested) as asked:
        choose_action(view, "Initialise")
    assert asked.args[0] == ("head.weight",) and asked.args[1] == "kaiming_uniform_"
    view.bar.function.setCurrentIndex(view.bar.function.findText("normal_"))
    with qtbot.waitSignal(view.bar.preview_requested) as asked:
        view.bar.arguments.setText("std=0.02")
    assert asked.args == [("head.weight",), "normal_", "std=0.02"]
    view.show_preview(InitPreviewSnapshot(rows=(InitialValues("head.weight", 0.5, 0.02),)))
    assert table_texts(view, weights_model.MEAN)[6] == "0.1 → 0.5"
    assert table_texts(view, weights_model.STD)[6] == "1.25 → 0.02"
    assert view.bar.told.text() == "This gives mean 0.5 and std 0.02."
    view.show_preview(
        InitPreviewSnapshot(rows=(InitialValues("head.weight", problem="ValueError: no"),))
    )
    assert view.bar.told.text() == "head.weight: ValueError: no"
    assert not view.bar.run_button.isEnabled()
    with qtbot.waitSignal(view.bar.preview_ended):
        choose_action(view, "Freeze")
    view.show_preview(None)
    assert view.bar.run_button.isEnabled() and view.bar.told.text() == ""
    assert table_texts(view, weights_model.MEAN)[6] == "0.1"


def test_the_names_of_modules_have_room(view):
    tree = view.tree.tree
    assert tree.columnWidth(modules_model.NAME) == 152
    named = [replace(row, path=row.path.replace("head", "h" * 24)) for row in WHOLE.modules]
    view.show_structure(replace(WHOLE, modules=tuple(named)), "Net()")
    assert 152 < tree.sizeHintForColumn(modules_model.NAME) < tree.columnWidth(modules_model.NAME)
    named = [replace(row, path=row.path.replace("head", "h" * 99)) for row in WHOLE.modules]
    view.show_structure(replace(WHOLE, modules=tuple(named)), "Net()")
    assert tree.columnWidth(modules_model.NAME) == 240


def test_a_preview_repaints_all_rows(qtbot):
    model = weights_model.WeightsModel()
    model.show_structure(WHOLE)
    with qtbot.waitSignal(model.dataChanged) as changed:
        model.show_preview({"head.weight": InitialValues("head.weight", 0.5, 0.02)})
    first, last, _ = changed.args
    assert (first.row(), first.column()) == (0, 0)
    assert (last.row(), last.column()) == (model.rowCount() - 1, model.columnCount() - 1)


def test_the_shapes_of_a_call_are_not_cut_where_there_is_room(view):
    shape = (64, 128, 32)
    call = ModuleCall(inputs=(shape,), outputs=(shape,))
    rows = tuple(replace(row, calls=(call,), call_count=1) for row in WHOLE.modules)
    tree, before = view.tree.tree, view.tree.tree.columnWidth(modules_model.SHAPES)
    view.show_structure(replace(WHOLE, modules=rows), "Net()")
    assert tree.columnWidth(modules_model.SHAPES) > before
    assert tree.columnWidth(modules_model.SHAPES) >= tree.sizeHintForColumn(modules_model.SHAPES)
