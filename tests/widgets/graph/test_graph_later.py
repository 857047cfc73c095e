"""The picture of a large graph is prepared in a thread; the newest request counts."""

from __future__ import annotations

import threading

import pytest
from PySide6.QtCore import QPointF

from engine.protocol import GraphEdge, GraphNode, GraphSnapshot, TensorSpec
from widgets.graph import picture as graph_picture
from widgets.graph import work as graph_work
from widgets.graph.pane import GraphPane
from widgets.graph.view import GraphView
from widgets.later import Later

SPEC = (TensorSpec((4,), "float32"),)


def alternating(count: int) -> GraphSnapshot:
    """A chain whose nodes repeat in twos, so that it folds."""
    nodes = tuple(
        GraphNode(i, ("Mul", "Tanh")[i % 2] + "Backward0", "", "operation", None, count - i, SPEC)
        for i in range(count)
    )
    edges = tuple(GraphEdge(i, i + 1, 0, 0) for i in range(count - 1))
    return GraphSnapshot(nodes=nodes, edges=edges, plan=tuple(range(count)))


LARGE = alternating(2 * graph_picture.AT_ONCE_NODES)


@pytest.fixture
def later(qtbot) -> Later:
    return Later()


def test_work_is_done_in_another_thread_and_answered_in_the_windows(later, qtbot) -> None:
    got: list[tuple[int, int]] = []
    window = threading.get_ident()
    later.run(threading.get_ident, lambda worker: got.append((worker, threading.get_ident())))
    assert not got
    qtbot.waitUntil(lambda: bool(got))
    assert got[0][0] != window and got[0][1] == window


def test_only_the_newest_work_is_answered_and_none_that_is_dropped(later, qtbot) -> None:
    got: list[int] = []
    gate = threading.Event()

    def held() -> int:
        gate.wait()
        return 1

    later.run(held, got.append)
    later.run(lambda: 2, got.append)
    qtbot.waitUntil(lambda: bool(got))
    later.run(held, got.append)
    later.drop()
    gate.set()
    later.run(lambda: 3, got.append)
    qtbot.waitUntil(lambda: len(got) == 2)
    later.run(lambda: 4, got.append, at_once=True)
    assert got == [2, 3, 4]


def test_what_the_work_raises_is_raised_in_the_window(later, qtbot) -> None:
    with qtbot.capture_exceptions() as raised:
        later.run(lambda: 1 // 0, lambda _: None)
        qtbot.waitUntil(lambda: bool(raised))
    assert raised[0][0] is ZeroDivisionError


@pytest.fixture
def view(pane: GraphPane) -> GraphView:
    return pane.view


def test_a_large_graph_does_not_hold_the_window(view, qtbot, monkeypatch) -> None:
    threads: list[int] = []
    build = graph_work.opened

    def watched(graph: GraphSnapshot):
        threads.append(threading.get_ident())
        return build(graph)

    monkeypatch.setattr(graph_work, "opened", watched)
    view.show_graph(LARGE)
    assert not view.laid_out and view.hierarchy is None
    qtbot.waitUntil(lambda: view.laid_out)
    assert threads[0] != threading.get_ident()
    assert len(view.facts.visible.boxes) == 1
    view.open_all()
    assert not view.laid_out  # the old picture stays meanwhile
    assert len(view.facts.visible.boxes) == 1
    qtbot.waitUntil(lambda: view.laid_out)
    assert len(view.facts.visible.boxes) == 1 + len(LARGE.nodes) // 2 + len(LARGE.nodes)


def test_closing_while_it_is_laid_out_puts_the_open_picture_aside(view, qtbot) -> None:
    view.show_graph(LARGE)
    qtbot.waitUntil(lambda: view.laid_out)
    shown: list[int] = []
    view.changed.connect(lambda: shown.append(len(view.facts.visible.boxes)))
    view.open_all()
    view.close_all()
    qtbot.waitUntil(lambda: view.laid_out)
    assert set(shown) == {1} and view.open_keys == frozenset()


def test_another_graph_takes_the_place_of_one_under_way(view, qtbot) -> None:
    view.show_graph(LARGE)
    small = alternating(8)
    view.show_graph(small)
    assert view.laid_out and view.facts.graph is small
    view.show_graph(LARGE)
    view.clear()
    other = alternating(2 * graph_picture.AT_ONCE_NODES)
    view.show_graph(other)
    qtbot.waitUntil(lambda: view.laid_out)
    assert view.facts.graph is other


def test_a_node_asked_for_before_there_are_boxes_is_gone_to_when_they_are(view, qtbot) -> None:
    view.show_graph(LARGE)
    view.open_to(1_001)
    assert view.selected is None
    qtbot.waitUntil(lambda: view.selected == 1_001)
    assert view.facts.visible.boxes[view.box_of(1_001)].key == "#1001"


@pytest.mark.parametrize("across", [0.1, 0.5, 0.95])
def test_a_box_that_opens_into_columns_begins_where_it_began(view, qtbot, across) -> None:
    view.show_graph(LARGE)
    qtbot.waitUntil(lambda: view.laid_out)
    (fold,) = view.facts.visible.boxes
    rect = view.box_rect(fold.key)
    at = QPointF(view.mapFromScene(QPointF(rect.left() + across * rect.width(), rect.center().y())))
    left = view.mapFromScene(rect.topLeft()).x()
    view.toggle(0, at)
    qtbot.waitUntil(lambda: view.laid_out)
    opened = view.box_rect(fold.key)
    assert opened.width() > 10 * rect.width()
    assert abs(view.mapFromScene(opened.topLeft()).x() - left) <= 1
    first = view.mapFromScene(view.box_rect(f"{fold.key}/{fold.repeat - 1}").center())
    assert view.viewport().rect().contains(first)


def test_a_box_in_columns_that_opens_or_closes_stays_where_it_is(view, qtbot) -> None:
    view.show_graph(LARGE)
    qtbot.waitUntil(lambda: view.laid_out)
    (fold,) = view.facts.visible.boxes
    view.set_open(frozenset({fold.key}))
    qtbot.waitUntil(lambda: view.laid_out)
    a_round = f"{fold.key}/{fold.repeat // 2}"  # columns before it and columns after it
    center = view.box_rect(a_round).center()
    view.set_view(1.0, center.x(), center.y())
    for _ in range(2):  # open, close
        top = view.mapFromScene(view.box_rect(a_round).topLeft())
        at = QPointF(top.x() + 12, top.y() + 12)
        view.toggle(view.facts.index_of[a_round], at)
        qtbot.waitUntil(lambda: view.laid_out)
        moved = view.mapFromScene(view.box_rect(a_round).topLeft()) - top
        assert abs(moved.x()) <= 4 and abs(moved.y()) <= 1
