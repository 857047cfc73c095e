"""The trace's view, on a trace told by hand."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QFontInfo
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QComboBox, QLabel, QPushButton, QToolButton

from engine.project.examples import trace_examples
from engine.protocol import (
    ErrorReport,
    OutputSnapshot,
    Picture,
    SourceLine,
    TensorSummary,
    TraceCall,
    TraceSnapshot,
    TraceStepSnapshot,
    Value,
)
from tests.widgets.failed_operands import OPERANDS
from widgets import theme
from widgets.shapes.failure_view import FailureView
from widgets.trace.call_view import PASSED_ON, facts
from widgets.trace.model import COLUMNS, MARKS, NODES, RESULT, TraceModel
from widgets.trace.traced_lines import TraceLines, ordinal
from widgets.trace.view import TraceView

SOURCE = "for _ in range(3):\n    x = x.log() * 2\ny = net(x)\n"
FILE = "<cell 1>"
LINES = (
    SourceLine(FILE, 2, "x = x.log() * 2"),
    SourceLine(FILE, 3, "y = net(x)"),
    SourceLine("<cell 0>", 7, "return F.relu(x)"),
)


def _turn(turn: int, first: int) -> tuple[TraceCall, ...]:
    mark = ("", "made_nan", "passed_on")[turn - 1]
    return (
        TraceCall(-1, "function", "log", "", 0, "(2,) float32", 1, mark=mark, turn=turn),
        TraceCall(first, "op", "aten::log", "", 0, "(2,) float32", 1, mark=mark, turn=turn),
        TraceCall(-1, "function", "mul", "", 0, "(2,) float32", 1, turn=turn),
    )


CALLS = (
    *(call for turn in (1, 2, 3) for call in _turn(turn, 3 * (turn - 1))),
    TraceCall(-1, "module", "Net", "net", 1, "(1,) float32", 2, turn=1),
    TraceCall(9, "module", "Linear", "net.0", 1, "(1,) float32", 1, turn=1),
    TraceCall(10, "function", "linear", "net.0", 1, "(1,) float32", 1, turn=1),
    TraceCall(9, "function", "relu_", "net", 2, "(1,) float32", 1, writes=True, turn=1),
)
TRACE = TraceSnapshot(
    calls=CALLS, lines=LINES, modules={"net": "Net"}, source=SOURCE, file=FILE, origin=4
)


def value_of(label: str, *numbers: float) -> Value:
    array = np.array(numbers, "<f4")
    summary = TensorSummary(shape=array.shape, dtype="float32", device="cpu", size_bytes=8)
    return Value(label, summary, Picture((1, len(numbers)), array.tobytes(), array.shape))


@pytest.fixture
def view(qtbot) -> TraceView:
    view = TraceView()
    qtbot.addWidget(view)
    view.resize(1400, 800)
    view.show()
    view.show_ready(True)
    return view


@pytest.fixture
def traced(view) -> TraceView:
    view.show_trace(TRACE)
    QApplication.processEvents()
    return view


def text(view, name: str) -> str:
    return view.findChild(QLabel, name).text()


def stand(view, position: int, **facts) -> None:
    view.show_step(TraceStepSnapshot(position=position, **facts))
    QApplication.processEvents()


# -- the tree


def test_the_tree_has_each_call_at_its_place(qtmodeltester):
    model = TraceModel()
    model.show_trace(TRACE)
    qtmodeltester.check(model)
    assert model.rowCount(model.index(0, 0)) == 1 and model.rowCount(model.index(0, 1)) == 0
    assert not model.index(-1, 0).isValid() and not model.index(0, -1).isValid()
    assert [model.index(row, 0).data() for row in range(model.rowCount())] == [
        "log", "mul", "log", "mul", "log", "mul", "net · Net",
    ]  # fmt: skip
    for number, call in enumerate(CALLS):
        index = model.index_of(number)
        assert index.internalId() == number
        assert (index.parent().internalId() if index.parent().isValid() else -1) == call.parent
    last = model.index_of(12)
    assert [last.siblingAtColumn(column).data() for column in range(len(COLUMNS))] == [
        "relu_", "7", "(1,) float32", "1", "in place",
    ]  # fmt: skip
    assert model.index_of(4, MARKS).data() == "makes NaN"
    assert model.index_of(7, MARKS).data() == "passes it on"
    assert "inside net.0" in model.index_of(11).data(Qt.ItemDataRole.ToolTipRole)


def test_what_has_not_run_is_dimmed(traced):
    stand(traced, 4)
    model = traced.tree.calls
    colors = theme.current()

    def color(number: int, column: int):
        return model.index_of(number, column).data(Qt.ItemDataRole.ForegroundRole)

    assert color(3, NODES) == colors.color("text") and color(4, NODES) == colors.color(
        "intermediate"
    )
    assert color(5, NODES) == color(12, NODES) == colors.color("muted", 190)
    assert color(4, MARKS) == colors.color("error") and color(7, MARKS).alpha() == 190
    assert color(4, RESULT) == colors.color("muted")


def test_going_to_a_call_by_mouse_and_keys(traced, qtbot):
    moves = []
    traced.moved.connect(lambda move, call: moves.append((move, call)))
    tree = traced.tree
    at = tree.visualRect(tree.calls.index_of(10)).center()
    QTest.mouseClick(tree.viewport(), Qt.MouseButton.LeftButton, pos=at)
    assert moves == [("to", 10)]
    stand(traced, 10)
    assert moves == [("to", 10)]  # being shown where it stands is no wish
    tree.setFocus()
    QTest.keyClick(tree, Qt.Key.Key_Down)
    assert moves[-1] == ("to", 11)


def test_coming_to_the_tree_chooses_nothing(traced):
    moves = []
    traced.moved.connect(lambda move, call: moves.append((move, call)))
    traced.source.reader.setFocus()
    traced.tree.setFocus()
    assert traced.tree.hasFocus() and moves == []
    assert not traced.tree.currentIndex().isValid()
    QTest.keyClick(traced.tree, Qt.Key.Key_Down)
    assert moves == [("to", 0)]


def test_after_a_run_the_keys_are_the_trees(view):
    view.source.input.setFocus()
    view.show_running()
    view.show_trace(TRACE)
    assert view.tree.hasFocus()


def test_a_closed_call_opens_around_the_current_one(traced):
    traced.tree.collapseAll()
    stand(traced, 11)
    assert traced.tree.isExpanded(traced.tree.calls.index_of(10))
    assert traced.tree.currentIndex().internalId() == 11
    stand(traced, -1)
    assert not traced.tree.currentIndex().isValid()


# -- the code


def test_the_line_and_its_turn(traced):
    assert text(traced, "trace_where") == "Before the first call"
    stand(traced, 4)
    assert text(traced, "trace_where") == "Line 2, 2nd time of 3"
    assert traced.source.reader.marked_lines() == (2,)
    stand(traced, 9)
    assert text(traced, "trace_where") == "Line 3"
    stand(traced, 12)
    assert text(traced, "trace_where") == "<cell 0>, line 7: return F.relu(x)"
    assert traced.source.reader.marked_lines() == ()


def test_a_click_on_a_line_goes_to_its_next_turn(traced):
    moves = []
    traced.moved.connect(lambda move, call: moves.append((move, call)))
    reader = traced.source.reader

    def click(line: int) -> None:
        at = QPoint(20, reader.line_rect(line).center().y())
        QTest.mouseClick(reader.viewport(), Qt.MouseButton.LeftButton, pos=at)

    for position in (-1, 0, 4, 8):
        stand(traced, position)
        click(2)
    assert moves == [("to", 0), ("to", 3), ("to", 6), ("to", 0)]
    click(1)
    assert len(moves) == 4  # torch ran nothing there


def test_lines_of_calls_that_know_no_turn():
    lines = TraceLines(TraceSnapshot(calls=(TraceCall(-1, "op", "a", "", 0),), lines=LINES[1:2]))
    assert lines.mark(0).text == "Line 3" and lines.next_call(3, -1) == 0
    assert lines.next_call(2, -1) is None


@pytest.mark.parametrize(
    ("number", "word"),
    [
        (1, "1st"),
        (2, "2nd"),
        (3, "3rd"),
        (4, "4th"),
        (11, "11th"),
        (12, "12th"),
        (21, "21st"),
        (1113, "1,113th"),
    ],
)
def test_ordinals(number, word):
    assert ordinal(number) == word


def test_where_the_code_failed_is_marked_at_first(view):
    error = ErrorReport(type="ValueError", message="no", hint="try yes", line=3)
    view.show_trace(TraceSnapshot(calls=CALLS, lines=LINES, source=SOURCE, file=FILE, error=error))
    assert text(view, "trace_where") == "The code ended at line 3"
    assert view.source.reader.marked_lines() == (3,) and view.source.reader.role == "error"
    assert text(view, "trace_problem") == "ValueError: no (line 3)"
    assert text(view, "trace_hint") == "try yes"
    stand(view, 0)
    assert view.source.reader.marked_lines() == (2,) and view.source.reader.role == "accent"


def test_an_interrupt_that_says_nothing_is_told_by_its_name(view):
    view.show_error(
        ErrorReport(type="KeyboardInterrupt", message="", line=3, hint="It was stopped.")
    )
    assert view.findChild(QLabel, "trace_problem").text() == "KeyboardInterrupt (line 3)"
    assert view.findChild(QLabel, "trace_hint").text() == "It was stopped."


def test_code_that_cannot_begin_stays_in_the_editor_at_its_error(view):
    view.source.input.set_source("x = 1\ny = = 2\n")
    error = ErrorReport(type="SyntaxError", message="invalid syntax", line=2)
    view.show_trace(TraceSnapshot(calls=(), source="x = 1\ny = = 2\n", file=FILE, error=error))
    assert view.source.input.isVisible()
    assert view.source.input.textCursor().blockNumber() == 1
    assert text(view, "trace_call_facts") == "No line of this code ran."


# -- the call


def test_what_a_call_did(traced):
    stand(
        traced,
        12,
        inputs=(value_of("input = x", -1, 2),),
        outputs=(value_of("result", 0, 2),),
        arguments=(("inplace", "True"),),
        nodes=1,
        note="dropped: too large",
    )
    assert text(traced, "trace_call_name") == "relu_"
    assert text(traced, "trace_call_facts") == (
        "torch function in net · writes in place · made 1 autograd node"
    )
    assert text(traced, "trace_call_arguments") == "inplace = True"
    assert text(traced, "trace_call_note") == "dropped: too large"
    cards = traced.call.values.shown_cards()
    assert [card._label.text() for card in cards] == ["result", "input = x"]
    out, given = (card.mapTo(traced, card.rect().topLeft()) for card in cards)
    assert out.y() == given.y() and out.x() + cards[0].width() <= given.x()
    stand(traced, 7, note="Too large.")
    assert text(traced, "trace_call_mark") == ""
    assert text(traced, "trace_call_note") == f"{PASSED_ON} Too large."
    stand(traced, 4, grad_enabled=False)
    assert text(traced, "trace_call_mark").startswith("NaN is made here")
    assert not traced.call.values.shown_cards()
    stand(traced, 12, arguments=(("inplace", "True"),), nodes=1, note="dropped: too large")
    traced.call.show_step(None, None)
    told = [label.text() for label in traced.call._labels if label.text()]
    assert len(told) == 1 and told[0].startswith("Press Start, then choose a call")
    assert [label.text() for label in traced.call._labels if label.isVisible()] == told


def test_the_node_on_the_graph(traced, qtbot):
    button = traced.findChild(QPushButton, "trace_show_node")
    stand(traced, 0, nodes=1, first_node=5)
    assert button.isVisible()
    traced.call.show_node(False)
    assert button.isEnabled() and "Read the graph" in button.toolTip()
    traced.call.show_node(True)
    assert button.toolTip().startswith("Go to the node")
    with qtbot.waitSignal(traced.graph_requested):
        QTest.mouseClick(button, Qt.MouseButton.LeftButton)


# -- controls


def test_what_can_be_done_where(traced):
    def enabled() -> set[str]:
        return {key for key, button in traced.bar.buttons.items() if button.isEnabled()}

    on = {"step", "over", "out", "line", "end"}
    assert enabled() == {*on, "origin"}
    stand(traced, 4)
    back = {"start", "back", "back_line"}
    assert enabled() == {*back, *on, "origin"}
    stand(traced, len(CALLS) - 1)
    assert enabled() == {*back, "origin"}
    traced.show_running()
    assert enabled() == set() and traced.findChild(QPushButton, "trace_interrupt").isVisible()
    traced.show_ready(False)
    assert not traced.findChild(QPushButton, "trace_start").isEnabled()


def test_starting_code(view):
    started = []
    view.started.connect(started.append)
    editor = view.source.input
    assert editor.isVisible() and editor.source() == trace_examples()["loop_and_if"].code
    editor.set_source("")
    QTest.keyClicks(editor, "x = 1")
    QTest.keyClick(editor, Qt.Key.Key_Return)  # a new line, unlike in the console
    assert started == [] and editor.source() == "x = 1\n"
    QTest.keyClick(editor, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    assert started == ["x = 1\n"]
    editor.set_source("  \n")
    QTest.mouseClick(view.findChild(QPushButton, "trace_start"), Qt.MouseButton.LeftButton)
    assert len(started) == 1 and "no code yet" in text(view, "trace_hint")


def test_starting_the_batch(view):
    started = []
    view.started.connect(started.append)
    view.findChild(QComboBox, "trace_what").setCurrentIndex(1)
    assert view.findChild(QLabel, "trace_batch_hint").isVisible()
    assert not view.findChild(QPushButton, "trace_examples").isVisible()
    QTest.mouseClick(view.findChild(QPushButton, "trace_start"), Qt.MouseButton.LeftButton)
    assert started == [""]
    view.show_trace(TraceSnapshot(calls=CALLS[:3], lines=LINES), "model\ncode\n")
    assert view.source.reader.toPlainText() == "model\ncode\n"
    stand(view, 0)
    assert view.source.reader.marked_lines() == (2,)


def test_choosing_what_to_trace_keeps_the_trace(traced):
    what = traced.findChild(QComboBox, "trace_what")
    what.setCurrentIndex(1)
    assert traced.source.reader.isVisible() and traced.trace is TRACE
    what.setCurrentIndex(0)
    assert traced.source.reader.isVisible()
    traced.show_trace(TraceSnapshot(calls=CALLS[:3], lines=LINES), "model\ncode\n")
    what.setCurrentIndex(1)
    assert traced.source.reader.isVisible()
    what.setCurrentIndex(0)  # there is code to write
    assert traced.source.input.isVisible()


def test_examples_and_editing(traced):
    edit = traced.findChild(QToolButton, "trace_edit")
    assert traced.source.reader.isVisible()
    QTest.mouseClick(edit, Qt.MouseButton.LeftButton)
    assert traced.source.input.isVisible() and edit.text() == "Show the trace"
    QTest.mouseClick(edit, Qt.MouseButton.LeftButton)
    assert traced.source.reader.isVisible()
    menu = traced.findChild(QPushButton, "trace_examples").menu()
    assert [a.text() for a in menu.actions()] == [e.title for e in trace_examples().values()]
    menu.actions()[2].trigger()
    assert traced.source.input.isVisible()
    assert traced.source.input.source() == trace_examples()["nan"].code
    traced.source.input.undo()
    assert traced.source.input.source() == trace_examples()["loop_and_if"].code


def test_output_is_shown_and_cleared(view):
    assert not view.source.output.isVisible()
    view.add_output(OutputSnapshot(stream="stdout", text="hello\n"))
    view.add_output(OutputSnapshot(stream="stdout", text="there\n"))
    assert view.source.output.isVisible()
    assert view.source.output.toPlainText() == "hello\nthere\n"
    view.show_running()
    assert not view.source.output.isVisible()


def test_clearing_keeps_the_code(traced):
    traced.source.input.set_source("mine")
    traced.clear()
    assert traced.trace is None and traced.tree.calls.rowCount() == 0
    assert traced.source.input.isVisible() and traced.source.input.source() == "mine"
    assert not traced.bar.buttons["step"].isEnabled()
    traced.show_step(TraceStepSnapshot(position=3))  # a late answer
    assert text(traced, "trace_state") == ""


def test_a_long_trace(traced):
    calls = tuple(
        TraceCall(-1 if number % 20 == 0 else number - number % 20, "op", f"op{number}", turn=1)
        for number in range(20_000)
    )
    traced.show_trace(TraceSnapshot(calls=calls, source=SOURCE, file=FILE))
    assert traced.tree.calls.rowCount() == 1000
    stand(traced, 19_999)
    tree = traced.tree
    assert tree.currentIndex().data() == "op19999"
    assert tree.viewport().rect().intersects(tree.visualRect(tree.currentIndex()))
    assert not tree.isExpanded(tree.calls.index_of(0))


def test_the_operands_of_a_call_that_failed_are_drawn_at_that_call(view):
    error = ErrorReport("RuntimeError", "no", operands=OPERANDS)
    view.show_trace(replace(TRACE, error=error))
    failed = view.findChild(FailureView)
    stand(view, 8, error="RuntimeError: no")
    assert failed.isVisible() and failed.failed == OPERANDS
    stand(view, 3)
    assert not failed.isVisible()
    view.show_trace(replace(TRACE, error=ErrorReport("RuntimeError", "no")))
    stand(view, 8, error="RuntimeError: no")
    assert not failed.isVisible()


def test_a_call_tells_what_it_is_and_where_it_ran(qapp):
    model = TraceModel()
    model.show_trace(TRACE)
    told = [model.index_of(number).data(Qt.ItemDataRole.ToolTipRole) for number in (4, 9, 11, 12)]
    assert told == [
        "aten::log. An operator of torch\ngives (2,) float32\n"
        "<cell 1>, line 2: x = x.log() * 2\nmakes NaN",
        "net · Net. A module\ngives (1,) float32\n<cell 1>, line 3: y = net(x)",
        "linear. A function of torch, inside net.0\ngives (1,) float32\n"
        "<cell 1>, line 3: y = net(x)",
        "relu_. A function of torch, inside net\ngives (1,) float32\n"
        "<cell 0>, line 7: return F.relu(x)\nin place",
    ]


@pytest.mark.parametrize(
    ("sources", "mark"),
    [
        ({}, ((), "accent", "<cell 0>, line 7: return F.relu(x)", FILE)),
        ({"<cell 0>": "def f(x):"}, ((7,), "accent", "<cell 0> · Line 7", "<cell 0>")),
    ],
)
def test_a_line_of_another_file_is_marked_there_if_the_file_is_known(sources, mark):
    assert TraceLines(replace(TRACE, sources=sources)).mark(12) == mark


def test_the_code_can_be_edited_only_while_a_trace_is_shown(view):
    edit = view.source._edit
    assert not edit.isVisible()
    view.show_trace(TRACE)
    assert edit.isVisible() and edit.text() == "Edit"
    edit.click()
    assert edit.text() == "Show the trace"


@pytest.mark.parametrize(
    ("kind", "bold", "fixed"), [(9, True, False), (11, False, False), (4, False, True)]
)
def test_modules_are_bold_and_operators_in_the_face_of_code(qapp, kind, bold, fixed):
    model = TraceModel()
    model.show_trace(TRACE)
    font = model.index_of(kind).data(Qt.ItemDataRole.FontRole)
    assert (font is not None and font.bold()) == bold
    assert (font is not None and QFontInfo(font).fixedPitch()) == fixed


def test_where_there_is_no_room_the_rarer_moves_fold_first(traced):
    bar, folded = traced.bar, []
    widest, least = bar.sizeHint().width(), bar.minimumSizeHint().width()
    for width in range(widest, least - 1, -10):
        bar.setFixedWidth(width)
        QApplication.processEvents()
        folded += [key for key in bar.buttons if bar.buttons[key].isHidden() and key not in folded]
    assert folded == ["end", "start", "origin", "back_line", "out"]


def test_the_bar_asks_for_its_moves(traced):
    asked = []
    traced.moved.connect(lambda *move: asked.append(move))
    traced.bar.moved.emit("step")
    assert asked == [("step", -1)]


@pytest.mark.parametrize(
    ("call", "step", "words"),
    [
        ({"kind": "line"}, {}, "line"),
        ({"kind": "line"}, {"grad_enabled": False}, "line · no autograd node: grad mode is off"),
        ({}, {}, "operator · no autograd node"),
        ({}, {"grad_enabled": False}, "operator · no autograd node: grad mode is off"),
        ({"nodes": 1}, {}, "operator · made 1 autograd node"),
        ({"kind": "module", "module": "net.0", "nodes": 2}, {}, "module · made 2 autograd nodes"),
        (
            {"kind": "function", "module": "net.0", "nodes": 1200, "writes": True},
            {},
            "torch function in net.0 · writes in place · made 1,200 autograd nodes",
        ),
    ],
)
def test_the_kind_of_a_call_and_the_nodes_it_made(call, step, words) -> None:
    made = TraceCall(**{"parent": -1, "kind": "op", "name": "log", **call})
    assert facts(made, TraceStepSnapshot(position=0, **step)) == words


def test_each_text_about_a_call_explains_itself_and_hides_when_it_has_none(traced) -> None:
    texts = {name: traced.findChild(QLabel, f"trace_call_{name}") for name in TEXTS}
    assert {name for name, label in texts.items() if label.toolTip()} == {
        "facts", "arguments", "results"}  # fmt: skip
    assert {name for name, label in texts.items() if label.isVisible()} == {"facts"}
    stand(traced, 12, arguments=(("inplace", "True"),), results=(("k", "3"),), note="Cut.")
    told = {name: label.text() for name, label in texts.items() if label.isVisible()}
    assert told == {
        "name": "relu_",
        "facts": "torch function in net · writes in place · made 1 autograd node",
        "arguments": "inplace = True",
        "results": "k = 3",
        "note": "Cut.",
    }


TEXTS = ("name", "facts", "mark", "error", "arguments", "note", "results")


def test_long_texts_about_a_call_wrap_and_widen_nothing(traced) -> None:
    width = traced.call.minimumSizeHint().width()
    words = "many words in a row " * 40
    stand(traced, 4, error=words, note=words, arguments=(("a", words),), results=(("b", words),))
    assert traced.call.minimumSizeHint().width() < width + 200
    for name in ("mark", "error", "arguments", "note", "results"):
        label = traced.findChild(QLabel, f"trace_call_{name}")
        assert label.isVisible() and label.wordWrap(), name


@pytest.mark.parametrize(
    ("kind", "results", "told"),
    [
        ("line", (("k", "3"), ("return", "4")), "sets k = 3\nreturn 4"),
        ("line", (("goes on at", "line 2"),), "goes on at line 2"),
        ("function", (("k", "3"),), "k = 3"),
    ],
)
def test_what_came_out_that_is_no_tensor(view, kind, results, told) -> None:
    view.show_trace(replace(TRACE, calls=(TraceCall(-1, kind, "k", "", 0),)))
    stand(view, 0, results=results, arguments=(("j", "2"),))
    assert text(view, "trace_call_results") == told
    reads = "reads " if kind == "line" else ""
    assert text(view, "trace_call_arguments") == f"{reads}j = 2"


@pytest.mark.parametrize(
    ("kind", "sections"),
    [("line", ["Sets", "y", "Reads", "x"]), ("function", ["Out", "y", "In", "x"])],
)
def test_the_values_of_a_line_are_set_and_read(view, kind, sections) -> None:
    view.show_trace(replace(TRACE, calls=(TraceCall(-1, kind, "k", "", 0),)))
    inputs, outputs = (value_of("x", 1, 2),), (value_of("y", 3),)
    stand(view, 0, inputs=inputs, outputs=outputs)
    labels = view.call.values.findChildren(QLabel)
    assert [each.text() for each in labels if each.property("role") == "heading"] == sections


def test_only_calls_that_another_view_has_chosen_have_a_ground(traced):
    calls, role = traced.tree.calls, Qt.ItemDataRole.BackgroundRole
    calls.chosen = frozenset({1, 9})
    lit = theme.current().color("text", theme.CHOSEN_ALPHA)
    grounds = [calls.index_of(number).data(role) for number in range(len(CALLS))]
    assert [number for number, color in enumerate(grounds) if color is not None] == [1, 9]
    assert grounds[1] == grounds[9] == lit


def test_a_call_chosen_while_the_trace_is_hidden_is_in_sight_afterwards(traced):
    tree = traced.tree
    tree.collapseAll()
    traced.hide()
    stand(traced, 11)
    assert tree.isExpanded(tree.calls.index_of(10))
