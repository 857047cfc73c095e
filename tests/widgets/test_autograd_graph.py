from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QPointF, QRectF, Qt
from PySide6.QtWidgets import QMenu

from engine.protocol import GraphEdge, GraphNode, GraphSnapshot, TensorSpec
from tests.widgets.autograd_snapshots import GRAPH, NAMES, backward
from widgets import theme
from widgets.autograd.graph_item import CURRENT, EXECUTED, READY, TEXT_MIN_ZOOM, WAITING
from widgets.autograd.graph_layout import NODE_HEIGHT, NODE_WIDTH, GraphLayout, layout_graph
from widgets.autograd.graph_view import GraphView
from widgets.autograd.words import rule


@pytest.fixture
def view(qtbot) -> GraphView:
    view = GraphView()
    qtbot.addWidget(view)
    view.resize(900, 800)
    view.show()
    qtbot.waitExposed(view)
    view.show_graph(GRAPH, layout_graph(GRAPH), NAMES)
    return view


def chain(count: int) -> GraphSnapshot:
    nodes = tuple(
        GraphNode(i, f"Op{i}Backward0", "", "operation", None, i, (TensorSpec((2,), "float32"),))
        for i in range(count)
    )
    edges = tuple(GraphEdge(i, i + 1, 0, 0) for i in range(count - 1))
    return GraphSnapshot(nodes=nodes, edges=edges, plan=tuple(range(count)))


# -- layout ----------------------------------------------------------------------------------------


def test_layers_run_from_the_root_down_without_overlap() -> None:
    layout = layout_graph(GRAPH)
    for edge in GRAPH.edges:
        assert layout.positions[edge.source][1] < layout.positions[edge.target][1]
    boxes = [QRectF(x, y, NODE_WIDTH, NODE_HEIGHT) for x, y in layout.positions.values()]
    assert not any(a.intersects(b) for i, a in enumerate(boxes) for b in boxes[i + 1 :])
    assert len(layout.splines) == len(GRAPH.edges)


def test_splines_end_at_their_nodes() -> None:
    layout = layout_graph(GRAPH)
    for edge, spline in zip(GRAPH.edges, layout.splines, strict=True):
        for node, end in ((edge.source, spline[0]), (edge.target, spline[-1])):
            box = QRectF(*layout.positions[node], NODE_WIDTH, NODE_HEIGHT)
            assert box.adjusted(-2, -2, 2, 2).contains(QPointF(*end))


def test_large_graphs_get_plain_layers() -> None:
    layout = layout_graph(chain(600))
    assert len(layout.positions) == 600
    assert set(layout.splines) == {()}


# -- the view --------------------------------------------------------------------------------------


def test_empty_view_says_what_to_do(qtbot) -> None:
    view = GraphView()
    qtbot.addWidget(view)
    view.resize(600, 400)
    blank = view.grab().toImage()
    view.clear("")
    assert blank != view.grab().toImage()


def test_states_follow_the_pass(view: GraphView) -> None:
    view.show_backward(backward(0))
    assert [view.state_of(node) for node in range(6)] == [READY] + [WAITING] * 5
    view.show_backward(backward(3))
    assert [view.state_of(node) for node in range(6)] == [
        EXECUTED,
        EXECUTED,
        CURRENT,
        READY,
        WAITING,
        WAITING,
    ]
    view.show_backward(backward(6))
    assert [view.state_of(node) for node in range(6)] == [EXECUTED] * 5 + [CURRENT]
    view.show_backward(backward(1))
    assert view.state_of(5) == WAITING


def test_states_look_different(view: GraphView) -> None:
    pictures = []
    for position in (0, 1, 3, 6):
        view.show_backward(backward(position))
        pictures.append(view.grab().toImage())
    assert all(a != b for i, a in enumerate(pictures) for b in pictures[i + 1 :])


def test_leaves_and_operations_take_their_colours(view: GraphView) -> None:
    view.set_view(1.0, *view.node_rect(3).center().toTuple())
    image = view.viewport().grab().toImage()
    found = {}
    for node, role in ((3, "leaf"), (2, "intermediate")):
        point = view.mapFromScene(view.node_rect(node).topLeft() + QPointF(6, NODE_HEIGHT / 2))
        found[role] = image.pixelColor(point).name()
    assert found == {role: theme.current().color(role).name() for role in ("leaf", "intermediate")}


def test_a_cut_off_graph_ignores_nodes_beyond_it(view: GraphView) -> None:
    cut = GraphSnapshot(nodes=GRAPH.nodes[:3], edges=GRAPH.edges[:2], plan=GRAPH.plan, truncated=3)
    view.show_graph(cut, layout_graph(cut), NAMES)
    view.show_backward(backward(6))
    assert [view.state_of(node) for node in range(3)] == [EXECUTED] * 3


def test_click_selects_and_double_click_asks_to_run(view: GraphView, qtbot) -> None:
    point = view.point_of(4).toPoint()
    with qtbot.waitSignal(view.node_selected) as selected:
        qtbot.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=point)
    assert selected.args == [4]
    assert view.selected == 4
    with qtbot.waitSignal(view.run_to_requested) as asked:
        qtbot.mouseDClick(view.viewport(), Qt.MouseButton.LeftButton, pos=point)
    assert asked.args == [4]


def test_a_click_beside_the_nodes_selects_nothing(view: GraphView, qtbot) -> None:
    with qtbot.assertNotEmitted(view.node_selected):
        qtbot.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=QPoint(2, 2))


def test_arrow_keys_walk_along_the_edges(view: GraphView, qtbot) -> None:
    visited = []
    view.node_selected.connect(visited.append)
    for _ in range(4):
        qtbot.keyClick(view, Qt.Key.Key_Down)
    assert visited[:3] == [0, 1, 2] and visited[3] in (3, 4)
    sideways = Qt.Key.Key_Right
    if view.node_rect(3).x() > view.node_rect(4).x():
        sideways = Qt.Key.Key_Left
    view.select(3)
    qtbot.keyClick(view, sideways)
    assert visited[-1] == 4
    qtbot.keyClick(view, Qt.Key.Key_Up)
    assert visited[-1] == 2
    qtbot.keyClick(view, Qt.Key.Key_Up)
    assert visited[-1] == 1
    with qtbot.waitSignal(view.run_to_requested) as asked:
        qtbot.keyClick(view, Qt.Key.Key_Return)
    assert asked.args == [1]


def test_selection_is_spoken(view: GraphView) -> None:
    view.select(5)
    assert view.accessibleDescription() == "linear1.weight, leaf · 2 × 2"
    view.select(1)
    assert view.accessibleDescription() == "ReluBackward0, relu1"


def test_tooltip_teaches(view: GraphView) -> None:
    assert view.tooltip(1) == (
        "ReluBackward0 · relu1\n"
        "Lets the gradient through where the output was above zero, and stops it elsewhere.\n"
        "Takes a gradient of 2 × 2 float32\n"
        "Keeps 32 B from forward"
    )


def test_unknown_operations_have_words_too() -> None:
    node = GraphNode(0, "ErfinvBackward0", "erfinv", "operation", None, 0, (), op="erfinv")
    assert rule(node) == "The backward rule of torch's erfinv."


def test_menu_offers_to_run_and_to_save(view: GraphView) -> None:
    menu = QMenu(view)
    view.fill_menu(menu, 2)
    texts = [action.text() for action in menu.actions() if action.text()]
    assert texts[0] == "Run to here"
    assert "Copy picture" in texts and "Save as SVG…" in texts


def test_far_away_ten_thousand_nodes_are_boxes(view: GraphView) -> None:
    """Below the zoom for text, all boxes of a state are one call: every pixel row has some."""
    count = 10_000
    graph = GraphSnapshot(nodes=chain(count).nodes, edges=(), plan=tuple(range(count)))
    side = 100
    places = {i: ((i % side) * 220.0, (i // side) * 90.0) for i in range(count)}
    view.show_graph(graph, GraphLayout(places, ()), {})
    view.fit()
    assert view.zoom < 0.1
    image = view.viewport().grab().toImage()
    canvas = theme.current().color("canvas").name()
    middle = image.height() // 2
    columns = [
        image.pixelColor(x, middle + dy).name() for x in range(image.width()) for dy in range(6)
    ]
    assert np.mean([color != canvas for color in columns]) > 0.2


def test_a_large_graph_opens_legibly_at_its_root(view: GraphView) -> None:
    graph = chain(200)
    view.show_graph(graph, layout_graph(graph), {})
    seen = view.mapToScene(view.viewport().rect()).boundingRect()
    assert view.zoom >= TEXT_MIN_ZOOM
    assert seen.contains(view.node_rect(0)) and not seen.intersects(view.node_rect(199))


def test_only_what_is_seen_is_painted(view: GraphView) -> None:
    seen = view.node_rect(2).adjusted(4, 4, -4, -4)
    assert view._item.geometry.nodes_in(seen).tolist() == [2]
    beyond = QRectF(10_000, 10_000, 10, 10)
    assert view._item.geometry.nodes_in(beyond).size == 0
    assert view._item.geometry.edges_in(beyond).size == 0
