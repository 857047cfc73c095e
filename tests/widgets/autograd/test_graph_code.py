"""The code beside a graph: which lines are lit, and what a click on a line tells."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel

from engine.protocol import BackwardSnapshot, GraphNode, GraphSnapshot, NextNode, NodeStep
from engine.protocol.autograd_snapshots import SourceLine
from widgets import theme
from widgets.autograd.graph_code import GraphCode, line_of

FIRST, SECOND = "<cell 1>", "<cell 2>"
SOURCES = {FIRST: "w = leaf()\nx = w * 2\nw = x\n\n", SECOND: "y = x + 1\nz = y * y\nb = leaf()\n"}


def node(place: int, file: str = "", line: int = 0, label: str = "") -> GraphNode:
    source = SourceLine(file, line) if file else None
    return GraphNode(
        place, "Node", label, "operation" if file else "leaf", None, -1, (), source=source
    )


GRAPH = GraphSnapshot(
    nodes=(node(0, SECOND, 2), node(1, FIRST, 2), node(2, label="w"), node(3, label="unknown")),
    edges=(),
    plan=(0, 1, 2, 3),
    sources=SOURCES,
)


@pytest.fixture
def code(qtbot) -> GraphCode:
    code = GraphCode()
    qtbot.addWidget(code)
    code.resize(300, 200)
    return code


def step(last: int | None, following: int | None = None) -> BackwardSnapshot:
    ran = None if last is None else NodeStep(node=last, incoming=(), outgoing=())
    next_ = None if following is None else NextNode(following, ())
    return BackwardSnapshot(position=1, step=ran, gradients=(), next=next_)


def marks(code: GraphCode) -> list[tuple[int, str]]:
    """Line and colour of each mark."""
    found = []
    for mark in code.text.extraSelections():
        color = mark.format.background().color()
        names = {
            "gradient": theme.current().color("gradient", 60),
            "next": theme.current().color("accent", 36),
            "chosen": theme.current().color("text", theme.CHOSEN_ALPHA),
        }
        (name,) = (name for name, each in names.items() if each == color)
        found.append((mark.cursor.blockNumber() + 1, name))
    return found


def title(code: GraphCode) -> str:
    label = code.findChild(QLabel, "graph_code_title")
    assert label is not None
    return label.text()


def test_the_line_of_a_node_is_where_it_ran_or_got_its_name() -> None:
    assert [line_of(each, SOURCES) for each in GRAPH.nodes] == [
        (SECOND, 2), (FIRST, 2), (FIRST, 1), None,
    ]  # fmt: skip
    assert line_of(node(0, "<cell 9>", 1), SOURCES) is None
    assert line_of(node(0, label="b"), SOURCES) == (SECOND, 3)
    again = {**SOURCES, "<cell 3>": "%magic\n", "<cell 4>": "b = w = 1\n"}
    assert line_of(node(0, label="w"), again) == ("<cell 4>", 1)  # the newest
    assert line_of(node(0, label="net.weight"), SOURCES) is None
    assert line_of(replace(node(0, label="w"), kind="operation"), SOURCES) is None


def test_it_is_shown_only_where_code_is_known(code) -> None:
    assert code.isHidden()
    code.show_graph(GRAPH)
    assert not code.isHidden() and code.text.isReadOnly()
    assert title(code) == "Code · cell 2"
    assert code.text.toPlainText() == SOURCES[SECOND].rstrip("\n")
    code.show_graph(replace(GRAPH, sources={}))
    assert code.isHidden()
    code.show_backward(step(0))  # there is nothing to light
    code.show_graph(GRAPH)
    code.show_graph(None)
    assert code.isHidden()
    leaves = replace(GRAPH, nodes=GRAPH.nodes[3:])
    code.show_graph(leaves)
    assert title(code) == "Code · cell 1"


def test_lines_of_the_last_and_the_next_node_are_lit(code) -> None:
    code.show_graph(GRAPH)
    assert (code.lit, marks(code)) == ((0, 0), [])
    code.show_backward(step(None, 0))
    assert (code.lit, marks(code)) == ((0, 2), [(2, "next")])
    code.show_backward(step(0, 1))  # the next node is of another cell
    assert (code.lit, marks(code)) == ((2, 0), [(2, "gradient")])
    code.show_backward(step(1, 2))
    assert title(code) == "Code · cell 1"
    assert (code.lit, marks(code)) == ((2, 1), [(2, "gradient"), (1, "next")])
    assert code.text.textCursor().blockNumber() == 1
    code.show_backward(step(2, 2))
    assert (code.lit, marks(code)) == ((1, 1), [(1, "gradient")])
    code.show_backward(step(3, 99))
    assert (code.lit, marks(code), title(code)) == ((0, 0), [], "Code · cell 1")
    code.show_backward(step(3, 0))
    assert (code.lit, title(code)) == ((0, 2), "Code · cell 2")
    assert code.text.textCursor().blockNumber() == 1
    code.show_graph(GRAPH)
    assert (code.lit, marks(code)) == ((0, 0), [])


def test_lines_that_another_view_chose_are_lit_in_their_own_code(code) -> None:
    code.show_graph(GRAPH)
    code.show_backward(step(0))
    code.show_chosen([(SECOND, 3), (SECOND, 1), (FIRST, 2), ("<cell 9>", 1)])
    assert code.chosen == (3, 1)
    assert marks(code) == [(3, "chosen"), (1, "chosen"), (2, "gradient")]
    assert code.text.textCursor().blockNumber() == 0  # the first of them
    code.show_chosen([(FIRST, 3)])
    assert (title(code), code.chosen, code.lit) == ("Code · cell 1", (3,), (0, 0))
    assert marks(code) == [(3, "chosen")]
    assert code.text.textCursor().blockNumber() == 2
    code.show_chosen([])
    assert code.chosen == () and marks(code) == [] and title(code) == "Code · cell 1"


def test_the_view_stays_while_it_has_the_focus(code, qtbot) -> None:
    code.show_graph(GRAPH)
    code.show()
    code.activateWindow()
    code.text.setFocus()
    qtbot.waitUntil(code.text.hasFocus)
    code.show_chosen([(FIRST, 3)])
    assert title(code) == "Code · cell 2" and code.chosen == ()
    code.reveal_chosen()
    assert title(code) == "Code · cell 1" and code.chosen == (3,)


def test_a_click_tells_its_line_and_a_selection_none(code, qtbot) -> None:
    code.show_graph(GRAPH)
    code.show()
    told: list[tuple[str, int]] = []
    code.line_chosen.connect(lambda file, line: told.append((file, line)))
    text, viewport = code.text, code.text.viewport()

    def at(line: int, column: int = 0) -> QPoint:
        cursor = code._cursor(line)
        cursor.setPosition(cursor.position() + column)
        return text.cursorRect(cursor).center()

    QTest.mouseClick(viewport, Qt.MouseButton.LeftButton, pos=at(3))
    QTest.mouseClick(viewport, Qt.MouseButton.MiddleButton, pos=at(1))
    assert told == [(SECOND, 3)]
    QTest.mousePress(viewport, Qt.MouseButton.LeftButton, pos=at(1))
    QTest.mouseMove(viewport, at(2, 4))
    QTest.mouseRelease(viewport, Qt.MouseButton.LeftButton, pos=at(2, 4))
    assert text.textCursor().hasSelection() and told == [(SECOND, 3)]
