"""The picture of the autograd graph: what it shows, opens and answers."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec import structs
from PySide6.QtCore import QPoint, QPointF, QRect, QRectF, QSize, Qt
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QApplication, QLabel, QLineEdit, QMenu, QToolButton

from engine.protocol import BackwardSnapshot, GraphEdge, GraphNode, GraphSnapshot, TensorSpec
from engine.protocol.autograd_snapshots import GraphCut
from tests.engine.autograd.recorded_graphs import recorded
from tests.engine.autograd.shaped_models import gpt2, resnet50
from tests.widgets.backward.autograd_snapshots import GRAPH, NAMES, backward
from tests.widgets.graph.nested_graph import NESTED
from widgets import save_picture, theme
from widgets.boxes.boxes import NODE_HEIGHT, Box, VisibleGraph
from widgets.boxes.facts import GraphFacts
from widgets.boxes.hierarchy import Hierarchy
from widgets.boxes.operation_words import rule
from widgets.boxes.sums import CURRENT, EXECUTED, READY, WAITING
from widgets.diagram import scene_picture
from widgets.diagram.scene_picture import MAX_PICTURE_AREA_PX
from widgets.graph import picture as graph_picture
from widgets.graph.canvas import LEGIBLE_ZOOM, Anchor
from widgets.graph.finder import filtered
from widgets.graph.painting.geometry import TEXT_MIN_ZOOM, GraphGeometry
from widgets.graph.pane import GraphPane
from widgets.graph.view import GraphView
from widgets.layout.nested_layout import layout_nested
from widgets.layout.outline import NestedLayout


@pytest.fixture
def view(pane: GraphPane) -> GraphView:
    """All of GRAPH is open: it is small."""
    pane.view.show_graph(GRAPH, NAMES)
    return pane.view


@pytest.fixture
def nested(pane: GraphPane) -> GraphView:
    """NESTED with `body` open, and `body.fc` and `head` closed."""
    pane.view.show_graph(NESTED)
    pane.view.set_open(frozenset({"body"}))
    return pane.view


def keys(view: GraphView) -> list[str]:
    assert view.facts is not None
    return [box.key for box in view.facts.visible.boxes]


def place(view: GraphView, key: str) -> int:
    assert view.facts is not None
    return view.facts.index_of[key]


def viewport_point(view: GraphView, key: str) -> QPointF:
    """The middle of a box's title bar, in viewport pixels."""
    return view.viewportTransform().map(view._item.geometry.head_rect(place(view, key)).center())


def nested_backward(position: int) -> BackwardSnapshot:
    return BackwardSnapshot(position=position, step=None, gradients=())


def chain(count: int) -> GraphSnapshot:
    nodes = tuple(
        GraphNode(i, f"Op{i}Backward0", "", "operation", None, i, (TensorSpec((2,), "float32"),))
        for i in range(count)
    )
    edges = tuple(GraphEdge(i, i + 1, 0, 0) for i in range(count - 1))
    return GraphSnapshot(nodes=nodes, edges=edges, plan=tuple(range(count)))


def different(count: int) -> GraphSnapshot:
    """As `chain`, of nodes of other names and shapes each, so that nothing folds."""
    spec = [(TensorSpec((i + 1,), "float32"),) for i in range(count)]
    nodes = tuple(
        GraphNode(i, f"Op{i}Backward0", "", "operation", None, count - i, spec[i], op=f"op{i}")
        for i in range(count)
    )
    return GraphSnapshot(nodes=nodes, edges=chain(count).edges, plan=tuple(range(count)))


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
    QApplication.processEvents()
    image = view.viewport().grab().toImage()
    found = {}
    for node, role in ((3, "leaf"), (2, "intermediate")):
        point = view.mapFromScene(view.node_rect(node).topLeft() + QPointF(6, NODE_HEIGHT / 2))
        found[role] = image.pixelColor(point).name()
    assert found == {role: theme.current().color(role).name() for role in ("leaf", "intermediate")}


def test_a_cut_off_graph_ignores_nodes_beyond_it(view: GraphView) -> None:
    cut = GraphSnapshot(nodes=GRAPH.nodes[:3], edges=GRAPH.edges[:2], plan=GRAPH.plan, truncated=3)
    view.show_graph(cut, NAMES)
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
    assert view.accessibleDescription() == "linear1.weight, leaf · (2, 2)"
    view.select(1)
    assert view.accessibleDescription() == "ReluBackward0, relu1"


def test_tooltip_teaches(view: GraphView) -> None:
    assert view.tooltip(1) == (
        "ReluBackward0 · relu1\n"
        "Lets the gradient through where the output was above zero, and stops it elsewhere.\n"
        "Takes a gradient of (2, 2) float32\n"
        "Keeps 32 B from forward\n"
        "Sequence number 8"
    )


def test_tooltip_tells_the_device_where_it_is_known() -> None:
    specs = (TensorSpec((2,), "float32"), TensorSpec((), "unknown"), TensorSpec((), "float64"))
    node = GraphNode(0, "TopkBackward0", "topk", "operation", None, 3, specs, device="cuda:1")
    graph = GraphSnapshot(nodes=(node,), edges=(), plan=(0,))
    facts = GraphFacts(graph, Hierarchy(graph).visible(frozenset()), {})
    assert "Takes a gradient of (2,) float32, () float64 cuda:1" in facts.tooltip(0).splitlines()


def test_unknown_operations_have_words_too() -> None:
    node = GraphNode(0, "ErfinvBackward0", "erfinv", "operation", None, 0, (), op="erfinv")
    graph = GraphSnapshot(nodes=(node,), edges=(), plan=(0,))
    assert rule(node, graph) == "The backward rule of erfinv."


def test_menu_offers_to_run_and_to_save(view: GraphView) -> None:
    menu = QMenu(view)
    view.fill_menu(menu, place(view, "#2"))
    texts = [action.text() for action in menu.actions() if action.text()]
    assert texts[0] == "Run to here"
    assert "Copy picture" in texts and "Save as SVG…" in texts


def grid(count: int, side: int) -> tuple[VisibleGraph, NestedLayout]:
    boxes = tuple(Box(f"#{i}", "node", None, False, "", "", 1, 1, i) for i in range(count))
    rects = np.array([((i % side) * 220.0, (i // side) * 90.0, 184.0, 44.0) for i in range(count)])
    size = (float(rects[:, 0].max() + 184), float(rects[:, 1].max() + 44))
    layout = NestedLayout(rects, np.zeros((0, 2)), np.zeros(1, np.int64), False, size)
    return VisibleGraph(boxes, (), np.arange(count, dtype=np.int32)), layout


def test_far_away_ten_thousand_nodes_are_boxes(qtbot) -> None:
    """Below the zoom for text, all boxes of a state are one call: every pixel row has some."""
    view = GraphView()
    qtbot.addWidget(view)
    view.resize(900, 800)
    count = 10_000
    visible, layout = grid(count, 100)
    graph = GraphSnapshot(nodes=chain(count).nodes, edges=(), plan=tuple(range(count)))
    view._item.show_picture(GraphFacts(graph, visible, {}), GraphGeometry(visible, layout))
    view.fit()
    assert view.zoom < 0.1
    image = view.viewport().grab().toImage()
    canvas = theme.current().color("canvas").name()
    middle = image.height() // 2
    columns = [
        image.pixelColor(x, middle + dy).name() for x in range(image.width()) for dy in range(24)
    ]
    assert np.mean([color != canvas for color in columns]) > 0.2


def test_a_large_graph_opens_legibly_at_its_root(view: GraphView) -> None:
    view.show_graph(different(200))
    view.open_all()
    view.look_at_start()
    seen = view.mapToScene(view.viewport().rect()).boundingRect()
    assert view.zoom >= TEXT_MIN_ZOOM
    assert seen.contains(view.node_rect(0)) and not seen.intersects(view.node_rect(199))


def test_a_graph_that_came_while_hidden_is_looked_at_when_it_is_seen(
    pane: GraphPane, qtbot
) -> None:
    """Another workspace was in front, and the view had another size."""
    view = pane.view
    view.show_graph(different(200))
    view.open_all()
    view.look_at_start()
    first = view.visible_rect()
    pane.hide()
    pane.resize(300, 200)
    view.show_graph(different(199))
    view.open_all()
    view.look_at_start()
    pane.resize(900, 840)
    pane.show()
    qtbot.waitExposed(pane)
    assert view.visible_rect().top() == pytest.approx(first.top(), abs=2)
    view.pan_by(QPoint(0, -120))
    moved = view.visible_rect()
    pane.hide()
    pane.show()
    qtbot.waitExposed(pane)
    assert view.visible_rect() == moved, "what a person looked at stays"


def test_only_what_is_seen_is_painted(view: GraphView) -> None:
    seen = view.node_rect(2).adjusted(4, 4, -4, -4)
    geometry = view._item.geometry
    found = geometry.boxes_in(seen).tolist()
    assert [box for box in found if not geometry.open[box]] == [place(view, "#2")]
    beyond = QRectF(10_000, 10_000, 10, 10)
    assert geometry.boxes_in(beyond).size == 0
    assert geometry.links_in(beyond).size == 0


# -- opening and closing ---------------------------------------------------------------------------


def test_a_small_graph_opens_wholly(pane: GraphPane) -> None:
    pane.view.show_graph(NESTED)
    assert {f"#{node.id}" for node in NESTED.nodes} <= set(keys(pane.view))
    assert "!4.0" in keys(pane.view)


def test_a_double_click_opens_in_place_and_closes_again(nested: GraphView, qtbot) -> None:
    at = viewport_point(nested, "body.fc")
    assert "#4" not in keys(nested)
    left = Qt.MouseButton.LeftButton
    qtbot.mouseDClick(nested.viewport(), left, pos=at.toPoint())
    assert {"#4", "#5", "#6", "!4.0"} <= set(keys(nested))
    head = nested._item.geometry.head_rect(place(nested, "body.fc"))
    assert head.contains(nested.scene_point(at))  # the cursor lies on the title bar now
    qtbot.mouseDClick(nested.viewport(), left, pos=at.toPoint())
    assert "#4" not in keys(nested)
    assert nested.box_rect("body.fc").contains(nested.scene_point(at))


def test_a_click_on_a_chevron_opens_and_closes(nested: GraphView, qtbot) -> None:
    left = Qt.MouseButton.LeftButton

    def chevron(zoom: float = 1.0) -> QPoint:
        geometry = nested._item.geometry
        at = geometry.chevron_rect(place(nested, "body.fc"), zoom).center()
        return nested.viewportTransform().map(at).toPoint()

    qtbot.mouseClick(nested.viewport(), left, pos=viewport_point(nested, "body.fc").toPoint())
    assert "#4" not in keys(nested)
    qtbot.mouseClick(nested.viewport(), left, pos=chevron())
    assert "#4" in keys(nested)
    qtbot.mouseClick(nested.viewport(), left, pos=chevron())
    assert "#4" not in keys(nested)
    at = chevron()
    qtbot.mouseClick(nested.viewport(), left, pos=at)
    qtbot.mouseDClick(nested.viewport(), left, pos=at)  # the second half of a double click
    assert "#4" in keys(nested)
    nested.set_view(0.2, *nested.box_rect("body.fc").center().toTuple())
    qtbot.mouseClick(nested.viewport(), left, pos=chevron(0.2))  # from afar, titles keep their size
    assert "#4" not in keys(nested)
    assert nested._item.geometry.chevron_rect(place(nested, "body.fc"), 0.2).isEmpty()


def test_keys_open_and_close(nested: GraphView, qtbot) -> None:
    nested.select_box(place(nested, "body.fc"))
    qtbot.keyClick(nested, Qt.Key.Key_Plus)
    assert "#4" in keys(nested)
    nested.select(4)
    qtbot.keyClick(nested, Qt.Key.Key_Minus)
    assert "#4" not in keys(nested)
    assert nested.selected_box == place(nested, "body.fc")
    qtbot.keyClick(nested, Qt.Key.Key_Return)
    assert "#4" in keys(nested)
    qtbot.keyClick(nested, Qt.Key.Key_Minus)
    qtbot.keyClick(nested, Qt.Key.Key_Minus)
    assert keys(nested) == ["#0", "head", "body"]
    zoom = nested.zoom
    qtbot.keyClick(nested, Qt.Key.Key_Plus, Qt.KeyboardModifier.ControlModifier)
    assert nested.zoom > zoom


def test_leaves_are_called_as_seen_from_the_box_around_them(nested: GraphView) -> None:
    nested.open_all()
    assert nested.facts is not None
    assert nested.facts.title(place(nested, "#6")) == "weight"
    inner = structs.replace(NESTED.nodes[6], label="net[1].body.fc.weight")
    renamed = structs.replace(NESTED, nodes=(*NESTED.nodes[:6], inner))
    facts = GraphFacts(renamed, nested.facts.visible, {})
    assert facts.title(place(nested, "#6")) == "weight"
    elsewhere = structs.replace(inner, module="body.fc.inner")
    renamed = structs.replace(NESTED, nodes=(*NESTED.nodes[:6], elsewhere))
    facts = GraphFacts(renamed, nested.facts.visible, {})
    assert facts.title(place(nested, "#6")) == "inner.weight"


def test_open_all_and_close_all_keep_the_selected_node_known(nested: GraphView) -> None:
    nested.select(6)
    assert nested.selected_box == place(nested, "body.fc")
    nested.open_all()
    assert nested.selected_box == place(nested, "#6")
    nested.close_all()
    assert keys(nested) == ["#0", "head", "body"]
    assert nested.selected == 6 and nested.selected_box == place(nested, "body")


def test_escape_selects_nothing(nested: GraphView, qtbot) -> None:
    nested.select(3)
    qtbot.keyClick(nested, Qt.Key.Key_Escape)
    assert nested.selected is None and nested.selected_box is None


def test_open_all_inside_a_box(nested: GraphView) -> None:
    nested.close_all()
    nested.open_inside(place(nested, "body"))
    assert {"#3", "#4", "#5", "#6"} <= set(keys(nested)) and "#1" not in keys(nested)


def test_answers_to_older_requests_are_dropped(qtbot) -> None:
    view = GraphView()
    qtbot.addWidget(view)
    asked: list[VisibleGraph] = []
    view.layout_requested.connect(lambda visible, *_: asked.append(visible))
    view.show_graph(NESTED)
    view.set_open(frozenset())
    older, newer = asked
    view.show_layout(older, layout_nested(older.outline))
    assert view.facts is None and not view.laid_out
    view.show_layout(newer, layout_nested(newer.outline))
    assert keys(view) == ["#0", "head", "body"] and view.laid_out
    view.set_open(frozenset({"head"}))
    view.clear("nothing")
    view.show_layout(asked[-1], layout_nested(asked[-1].outline))
    assert view.facts is None


def test_links_have_curves_or_corners(nested: GraphView, pane: GraphPane, qtbot) -> None:
    button = pane.findChild(QToolButton, "graph_style")
    assert button is not None and nested._item.geometry.curved
    qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    geometry = nested._item.geometry
    assert not geometry.curved
    pieces = geometry.pieces(np.arange(len(geometry.ends)), 1.0)
    straight = (pieces[:, 0] == pieces[:, 2]) | (pieces[:, 1] == pieces[:, 3])
    assert len(pieces) and straight.all()


def test_curves_are_cut_into_pieces_that_lie_on_them(nested: GraphView) -> None:
    nested.open_all()
    geometry = nested._item.geometry
    for link in range(len(geometry.ends)):
        pieces = geometry.pieces(np.array([link]), 1.0)
        path = geometry.path(link)
        assert pieces[0, :2].tolist() == pytest.approx(path.pointAtPercent(0).toTuple())
        assert pieces[-1, 2:].tolist() == pytest.approx(path.pointAtPercent(1).toTuple())
        assert pieces[1:, :2].tolist() == pieces[:-1, 2:].tolist()  # without a gap
        length = np.hypot(pieces[:, 2] - pieces[:, 0], pieces[:, 3] - pieces[:, 1]).sum()
        assert length == pytest.approx(path.length(), rel=0.01)
    whole = geometry.pieces(np.arange(len(geometry.ends)), 1.0)
    assert len(whole) == sum(
        len(geometry.pieces(np.array([link]), 1.0)) for link in range(len(geometry.ends))
    )


def test_a_new_direction_turns_the_picture_round(nested: GraphView) -> None:
    assert nested.node_rect(0).y() < nested.node_rect(3).y()
    link = next(
        i
        for i, link in enumerate(nested.facts.visible.links)
        if link.source == place(nested, "#3") and link.target == place(nested, "body.fc")
    )
    tip = nested._item.geometry.heads[link, 0]
    assert nested.box_rect("body.fc").adjusted(-2, -2, 2, 2).contains(QPointF(*tip))
    nested.set_direction("forward")
    assert nested.node_rect(0).y() > nested.node_rect(3).y()
    tip = nested._item.geometry.heads[link, 0]
    assert nested.node_rect(3).adjusted(-2, -2, 2, 2).contains(QPointF(*tip))


# -- how far backward has come, in closed boxes ----------------------------------------------------


def test_closed_boxes_add_up_what_is_inside(nested: GraphView) -> None:
    facts, fc, head = nested.facts, place(nested, "body.fc"), place(nested, "head")
    assert facts is not None
    assert (facts.second_line(fc), facts.third_line(fc)) == ("Linear", "3 nodes")
    assert facts.third_line(head) == "2 nodes · keeps ≤ 2 KiB"
    assert facts.spoken(head) == "head, Linear, 2 nodes · keeps ≤ 2 KiB"
    assert facts.leaves[[fc, head]].tolist() == [1, 1]
    body = place(nested, "body")
    assert facts.saved_bytes[body] == 128 and facts.stale[body] and not facts.stale[fc]


def test_states_of_closed_boxes_follow_the_pass(nested: GraphView) -> None:
    facts, fc, head = nested.facts, place(nested, "body.fc"), place(nested, "head")
    assert facts is not None
    nested.show_backward(nested_backward(1))
    assert facts.box_states[[fc, head]].tolist() == [WAITING, READY]
    nested.show_backward(nested_backward(4))  # 0, 1, 3, 4 have run; 5 is next
    assert facts.executed[[fc, head]].tolist() == [1, 1]
    assert facts.box_states[fc] == READY
    nested.show_backward(nested_backward(7))
    assert facts.executed[[fc, head]].tolist() == [3, 2]
    assert facts.box_states[[fc, head]].tolist() == [EXECUTED, EXECUTED]


def test_part_of_a_closed_box_shows_as_a_bar(nested: GraphView) -> None:
    nested.show_backward(nested_backward(4))
    rect = nested.box_rect("body.fc")
    nested.set_view(2.0, rect.center().x(), rect.center().y())
    QApplication.processEvents()
    image = nested.viewport().grab().toImage()

    def color(across: float) -> str:
        point = QPointF(rect.left() + across * rect.width(), rect.bottom() - 2.5)
        return image.pixelColor(nested.viewportTransform().map(point).toPoint()).name()

    gradient = theme.current().color("gradient").name()
    assert color(0.2) == gradient != color(0.6)  # 1 of 3 nodes


def test_follow_opens_what_hides_the_node_of_a_step(nested: GraphView) -> None:
    nested.show_backward(nested_backward(3))
    assert "#4" not in keys(nested)
    nested.follow = True
    nested.show_backward(nested_backward(3))
    assert "#4" in keys(nested)


# -- search, filters, paths ------------------------------------------------------------------------


def hits(pane: GraphPane) -> str:
    label = pane.findChild(QLabel, "graph_hits")
    assert label is not None
    return label.text()


def marked(view: GraphView) -> set[str]:
    assert view.facts is not None and view._item.hits is not None
    return {keys(view)[box] for box in np.flatnonzero(view._item.hits).tolist()}


def test_search_marks_counts_and_goes_through_the_hits(
    nested: GraphView, pane: GraphPane, qtbot
) -> None:
    field = pane.findChild(QLineEdit, "graph_search")
    assert field is not None
    qtbot.keyClicks(field, "weight 8x8")
    assert hits(pane) == "2 found" and marked(nested) == {"head", "body.fc"}
    nested.search("addmm"), nested.close_all()
    assert nested._item.hits is not None
    assert nested._item.hits.tolist() == [0, 1, 1]  # the loss, the head, the body
    nested.set_open(frozenset({"body"}))
    nested.search("weight 8x8")
    qtbot.keyClick(field, Qt.Key.Key_Return)
    assert hits(pane) == "1 of 2" and nested.selected == 6  # the plan comes to body.fc first
    assert "#6" in keys(nested) and "#2" not in keys(nested)
    qtbot.keyClick(field, Qt.Key.Key_Return)
    assert hits(pane) == "2 of 2" and nested.selected == 2 and "#2" in keys(nested)
    qtbot.keyClick(field, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    assert nested.selected == 6
    field.setText("nothing like it")
    assert hits(pane) == "no node"
    qtbot.keyClick(field, Qt.Key.Key_Escape)
    assert hits(pane) == "" and nested._item.lit is None


def lit_keys(view: GraphView) -> set[str]:
    assert view._item.lit is not None
    return {keys(view)[box] for box in np.flatnonzero(view._item.lit).tolist()}


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("addmm", {"head", "body.fc"}),
        ("BODY.act", {"#3"}),
        ("self.act", {"body.fc"}),
        ("aten::", {"body.fc"}),
        ("4 × 8 tanh", {"#3"}),
        ("(4, 8) tanh", {"#3"}),
        ("4×8 tanh", {"#3"}),
        ("[8, 8]", {"head", "body.fc"}),
        ("self.act( self.fc(x", {"body.fc"}),
        ("self.act(self.fc(x))", {"body.fc"}),
        ("#3", {"#3"}),
        ("fc.bias", {"body.fc"}),  # a cut
        ("\N{GREEK SMALL LETTER OMEGA}\\\"'<&[(", set()),
    ],
)
def test_search_knows_names_operations_shapes_modules_and_lines(
    nested: GraphView, query: str, found: set[str]
) -> None:
    nested.search(query)
    assert marked(nested) == found


@pytest.mark.parametrize(
    ("key", "found"),
    [
        ("leaves", {"head", "body.fc"}),
        ("cuts", {"body.fc"}),
        ("frozen", {"body.fc"}),
        ("stale", {"#3"}),
        ("saved:0", {"head", "#3"}),
        ("saved:1024", {"head"}),
    ],
)
def test_filters(nested: GraphView, pane: GraphPane, key: str, found: set[str]) -> None:
    pane.bar.filters[key].trigger()
    assert marked(nested) == found
    assert [each for each, action in pane.bar.filters.items() if action.isChecked()] == [key]
    pane.bar.filters["all"].trigger()
    assert nested._item.hits is None and not pane.bar.filters[key].isChecked()


def test_the_filter_of_the_frozen_leaves_other_cuts_out() -> None:
    cuts = GraphCut(0, 1, "detach"), GraphCut(1, 1, "frozen"), GraphCut(4, 1, "input")
    graph = structs.replace(NESTED, cuts=cuts)
    assert np.flatnonzero(filtered(graph, "frozen")).tolist() == [1]
    assert np.flatnonzero(filtered(graph, "cuts")).tolist() == [0, 1, 4]


def test_a_link_to_one_of_several_outputs_tells_which() -> None:
    spec = TensorSpec((4,), "float32")
    nodes = (
        GraphNode(0, "AddBackward0", "add", "operation", None, 3, (spec,)),
        GraphNode(1, "MulBackward0", "mul", "operation", None, 2, (spec,)),
        GraphNode(2, "SplitBackward0", "split", "operation", None, 1, (spec,) * 3),
    )
    ends = ((0, 1, 0, 0), (0, 2, 1, 2), (1, 2, 0, 0), (1, 2, 1, 1))
    graph = GraphSnapshot(nodes=nodes, edges=tuple(GraphEdge(*e) for e in ends), plan=(0, 1, 2))
    hierarchy = Hierarchy(graph)
    facts = GraphFacts(graph, hierarchy.visible(hierarchy.open_all()), {})
    texts = {facts.link_text(link) for link in range(len(facts.visible.links))}
    assert texts == {"(4,)", "output 2  (4,)", "output 0, 1  (4,)  ×2"}


def test_in_another_graph_the_same_is_sought(nested: GraphView, pane: GraphPane) -> None:
    pane.bar.field.setText("weight")
    assert hits(pane) == "2 found"
    nested.show_graph(GRAPH, NAMES)
    wanted = {n.id for n in GRAPH.nodes if "weight" in n.label}
    assert wanted and hits(pane) == f"{len(wanted)} found"
    assert nested._marks is not None and nested._marks.finder.hits is not None
    assert set(np.flatnonzero(nested._marks.finder.hits).tolist()) == wanted
    pane.bar.field.clear()
    pane.bar.filters["frozen"].trigger()
    button = pane.bar._filter_button
    assert hits(pane) == "no such node" and "now: Frozen" in button.toolTip()
    nested.show_graph(NESTED)
    assert hits(pane) == "1 found"
    pane.bar.filters["all"].trigger()
    assert hits(pane) == "" and "now" not in button.toolTip()


@pytest.mark.parametrize("model", [gpt2, resnet50])
def test_a_large_model_opens_closed_to_a_picture_that_can_be_read(pane: GraphPane, model) -> None:
    """In what a window of 1440 x 900 leaves for it: all of its width, and its first box."""
    pane.resize(640, 800)
    view = pane.view
    view.show_graph(recorded(*model()))
    seen, whole = view.visible_rect(), view.content_rect()
    assert seen.left() <= whole.left() and whole.right() <= seen.right()
    assert seen.contains(view.node_rect(0)) and whole.height() < 1.25 * seen.height()
    assert view.zoom >= LEGIBLE_ZOOM >= 0.8 and view.facts is not None
    assert any(box.repeat > 1 or not box.open for box in view.facts.visible.boxes)


def test_the_variable_of_a_result_stands_on_its_node() -> None:
    spec = (TensorSpec((2, 3), "float32"),)
    nodes = (
        GraphNode(0, "AddBackward0", "d['a = b'] = add", "operation", None, 2, spec, op="add"),
        GraphNode(1, "MulBackward0", "mul", "operation", None, 1, spec, op="mul"),
        GraphNode(2, "AccumulateGrad", "d['c = d']", "leaf", None, -1, spec),
    )
    graph = GraphSnapshot(nodes=nodes, edges=(), plan=(0, 1, 2))
    facts = GraphFacts(graph, Hierarchy(graph).visible(frozenset()), {})
    lines = {facts.second_line(box) for box in range(3)}
    assert lines == {"d['a = b'] · (2, 3)", "(2, 3)", "leaf · (2, 3)"}


def test_a_cut_is_lit_with_the_node_that_it_cuts_off(nested: GraphView) -> None:
    nested.open_all()
    nested.search("", "cuts")
    assert marked(nested) == {"#4", "!4.0"}


def test_paths_light_the_ways_to_the_loss_and_to_the_leaves(
    nested: GraphView, pane: GraphPane, qtbot
) -> None:
    nested.open_all()
    nested.select(3)
    button = pane.findChild(QToolButton, "graph_paths")
    assert button is not None
    qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    lit = lit_keys(nested)
    assert lit == {"#0", "head", "#1", "body", "#3", "body.fc", "#4", "!4.0", "#5", "#6"}
    nested.select(2)
    lit = lit_keys(nested)
    assert lit == {"#0", "head", "#1", "#2"}
    qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    assert nested._item.lit is None


# -- words, menu, breakpoints ----------------------------------------------------------------------


def test_tooltips_of_boxes_and_cuts_teach(nested: GraphView) -> None:
    facts = nested.facts
    assert facts is not None
    assert facts.tooltip(place(nested, "body.fc")) == (
        "fc · Linear\nThe nodes that this module's forward recorded\n3 nodes (1 leaf)\nDouble"
        " click opens it"
    )
    nested.open_all()
    assert nested.facts is not None
    cut = nested.facts.tooltip(place(nested, "!4.0"))
    assert "frozen" in cut and "It would have gone to body.fc.bias" in cut
    assert "<cell 3>, line 7: x = self.act(self.fc(x))" in nested.tooltip(4)
    assert "Stale" in nested.tooltip(3)


def test_menu_of_a_closed_box(nested: GraphView, qtbot) -> None:
    menu = QMenu(nested)
    nested.fill_menu(menu, place(nested, "body.fc"))
    actions = {action.text(): action for action in menu.actions()}
    assert "Run to here" not in actions and "Open all inside" in actions
    with qtbot.waitSignal(nested.breakpoint_toggled) as asked:
        actions["Toggle breakpoint"].trigger()
    assert asked.args == ["body.fc"]
    actions["Copy name"].trigger()
    assert QApplication.clipboard().text() == "body.fc"
    actions["Open"].trigger()
    assert "#4" in keys(nested)


def test_what_another_view_has_chosen_is_lit_whichever_boxes_are_open(nested: GraphView, qtbot):
    with qtbot.assertNotEmitted(nested.node_selected):
        nested.show_chosen((4, 5))
    box = nested.box_of(4)
    assert nested._item.chosen is not None
    assert {box, nested.box_of(5)} == set(np.flatnonzero(nested._item.chosen))
    assert nested.selected == 4 and nested.selected_box == box
    nested.open_all()
    assert {place(nested, "#4"), place(nested, "#5")} == set(np.flatnonzero(nested._item.chosen))
    nested.show_chosen((4, 5), "body.fc")
    assert nested.selected_box == place(nested, "body.fc") and nested.selected is None
    assert set(np.flatnonzero(nested._item.chosen)) == {place(nested, "body.fc")}
    nested.show_chosen(())
    assert nested._item.chosen is nested.selected_box is None


def test_what_was_chosen_is_brought_up_from_closed_boxes(nested: GraphView):
    nested.close_all()
    nested.bring_up_chosen()  # nothing was chosen
    assert not nested.open_keys
    nested.show_chosen((4,))
    assert not nested.open_keys  # to be lit opens nothing
    nested.bring_up_chosen()
    assert nested.selected_box == place(nested, "#4")


def test_a_breakpoint_inside_shows_on_the_closed_box(nested: GraphView) -> None:
    nested.show_breakpoints({"#5", "head"})
    dots = nested._item.breakpoints
    assert dots is not None
    assert {keys(nested)[box] for box in np.flatnonzero(dots)} == {"head", "body.fc"}
    nested.show_breakpoints(())
    assert nested._item.breakpoints is None


def test_a_module_that_is_selected_is_told_by_its_path(nested: GraphView, qtbot) -> None:
    with qtbot.waitSignal(nested.module_selected) as selected:
        nested.select_box(place(nested, "body.fc"))
    assert selected.args == ["body.fc"] and nested.selected is None
    with qtbot.assertNotEmitted(nested.module_selected):
        nested.select_box(place(nested, "#3"))


def test_to_show_a_selection_tells_nothing(nested: GraphView, qtbot) -> None:
    with qtbot.assertNotEmitted(nested.node_selected):
        nested.show_selected(3)
    assert nested.selected == 3 and nested.selected_box == place(nested, "#3")


def test_export_asks_for_a_format(nested: GraphView, pane: GraphPane, qtbot) -> None:
    button = pane.findChild(QToolButton, "graph_save")
    assert button is not None and button.menu() is not None
    actions = {action.text(): action for action in button.menu().actions()}
    with qtbot.waitSignal(pane.bar.export_requested) as asked:
        actions["Save graph as GraphML…"].trigger()
    assert asked.args == ["graphml"]


def test_the_bar_rests_while_nothing_is_drawn(pane: GraphPane) -> None:
    names = ("graph_filter", "graph_direction", "graph_paths", "graph_open_all", "graph_save")
    buttons = [pane.findChild(QToolButton, name) for name in names]
    assert not any(button.isEnabled() for button in buttons)
    pane.view.show_graph(NESTED)
    assert all(button.isEnabled() for button in buttons)
    assert all(button.toolTip() and button.accessibleName() for button in buttons)


def test_the_map_is_there_while_a_part_is_seen(nested: GraphView) -> None:
    nested.fit()
    assert not nested.map.isVisible()
    nested.set_view(4.0, *nested.node_rect(0).center().toTuple())
    assert nested.map.isVisible()
    nested.map._picture = None
    nested.map.grab()
    assert nested.map._picture is not None


def test_the_map_of_a_chain_is_narrow_and_goes_out_of_the_way_of_a_node(qtbot) -> None:
    view = GraphView()
    qtbot.addWidget(view)
    view.resize(500, 600)
    view.show()
    visible, layout = grid(40, 1)
    graph = GraphSnapshot(nodes=chain(40).nodes, edges=(), plan=())
    view._item.show_picture(GraphFacts(graph, visible, {}), GraphGeometry(visible, layout))
    node, edge = view._item.geometry.rect(0), view.map.EDGE_PX
    beside = node.center().x()
    view.set_view(1.0, beside, node.center().y())
    lower = QRect(view.rect().bottomRight() + QPoint(1 - edge, 1 - edge), view.map.size())
    lower.translate(-lower.width(), -lower.height())
    assert view.map.geometry() == lower and lower.width() < lower.height() == 112
    view.set_view(1.0, node.left() - 200, node.center().y() - 200)  # the node is under the map
    assert view.map.at_top and view.map.isVisible()
    on_screen = view.viewportTransform().mapRect(node)
    assert lower.intersects(on_screen.toRect())
    assert not view.map.geometry().intersects(on_screen.toRect())


def test_a_tower_of_boxes_is_seen_on_the_map(qtbot) -> None:
    """Each is far narrower than a pixel there."""
    view = GraphView()
    qtbot.addWidget(view)
    view.resize(900, 800)
    visible, layout = grid(3_000, 1)
    graph = GraphSnapshot(nodes=chain(3_000).nodes, edges=(), plan=())
    view._item.show_picture(GraphFacts(graph, visible, {}), GraphGeometry(visible, layout))
    view.set_view(1.0, 0.0, 0.0)
    view.map.grab()
    image = view.map._picture.toImage()
    margin = round(view.map.MARGIN_PX)
    inked = [
        any(image.pixelColor(x, y).alpha() > 0 for x in range(image.width()))
        for y in range(margin, image.height() - margin)
    ]
    assert sum(inked) > 0.9 * len(inked)


@pytest.mark.parametrize("across", [0.0, 0.5, 1.0])
def test_a_box_much_larger_than_the_window_opens_onto_what_is_in_it(qtbot, across: float) -> None:
    view = GraphView()
    qtbot.addWidget(view)
    view.resize(900, 800)
    boxes = (
        Box("m", "module", None, True, "m", "", 2, 1, None),
        Box("#0", "node", 0, False, "", "", 1, 1, 0),
        Box("#1", "node", 0, False, "", "", 1, 1, 1),
    )
    rects = np.array([(0, 0, 4e4, 2e4), (3e4, 9e3, 184, 44), (100, 1e4, 184, 44)], float)
    visible = VisibleGraph(boxes, (), np.array([1, 2], np.int32))
    layout = NestedLayout(rects, np.zeros((0, 2)), np.zeros(1, np.int64), False, (4e4, 2e4))
    view._item.show_picture(
        GraphFacts(chain(2), visible, {}), GraphGeometry(visible, layout, "backward")
    )
    view.settle(Anchor("m", across, 10.0, QPointF(450, 400)))
    nearest = 1 if across < 0.5 else 0  # in the middle of the box's title, the right one is nearer
    seen = view.visible_rect()
    assert seen.contains(view.node_rect(nearest)) and not seen.intersects(
        view.node_rect(1 - nearest)
    )
    view.set_view(1.0, *view.node_rect(0).center().toTuple())
    before = view.center()
    view._look_at_something()
    assert view.center() == before  # something is seen already


@pytest.mark.parametrize(
    ("zoom", "shown"), [(1.0, "100 %"), (0.014, "1 %"), (0.0004, "0.04 %"), (1e-9, "0.01 %")]
)
def test_the_zoom_is_never_shown_as_nothing(nested: GraphView, zoom: float, shown: str) -> None:
    nested.set_view(zoom, 0.0, 0.0)
    button = nested.findChild(QToolButton, "actual_size")
    assert button is not None and button.text() == shown


def test_inside_an_open_box_there_is_canvas_to_pan_on(nested: GraphView, qtbot) -> None:
    body = nested.box_rect("body")
    beside = QPointF(body.left() + 4, body.center().y())
    at = nested.viewportTransform().map(beside)
    center = nested.center()
    with qtbot.assertNotEmitted(nested.changed):
        qtbot.mouseClick(nested.viewport(), Qt.MouseButton.LeftButton, pos=at.toPoint())
    assert nested.selected_box is None and nested.center() == center
    assert nested.box_at(at, body=True) == place(nested, "body")


def test_a_click_selects_without_moving_the_picture(nested: GraphView, qtbot) -> None:
    rect = nested.box_rect("#3")
    nested.set_view(1.0, rect.center().x(), rect.bottom() + nested.viewport().height() / 2 - 10)
    center = nested.center()
    at = nested.viewportTransform().map(rect.center() + QPointF(0, rect.height() / 2 - 4))
    qtbot.mouseClick(nested.viewport(), Qt.MouseButton.LeftButton, pos=at.toPoint())
    assert nested.selected == 3 and nested.center() == center


def test_from_afar_titles_are_as_large_to_click_as_they_look(nested: GraphView) -> None:
    nested.set_view(0.2, *nested.node_rect(0).center().toTuple())
    corner = nested.viewportTransform().map(nested.box_rect("body").topLeft())
    assert nested.box_at(corner + QPointF(3, 6)) == place(nested, "body")


def test_what_is_revealed_goes_above_the_map(nested: GraphView) -> None:
    nested.open_all()
    nested.set_view(1.5, *nested.node_rect(0).center().toTuple())
    nested.select(6)
    bottom = nested.viewportTransform().map(nested.node_rect(6).bottomLeft()).y()
    assert nested.map.isVisible() and bottom < nested.map.y()


def test_crumbs_tell_where_one_is_once_titles_are_out_of_sight(nested: GraphView) -> None:
    nested.open_all()
    assert nested.crumbs() == []
    nested.set_view(4.0, *nested.node_rect(5).center().toTuple())
    assert nested.crumbs() == ["body", "fc"]


def test_a_drag_pans_from_anywhere(nested: GraphView, qtbot) -> None:
    before = nested.center()
    start = nested.point_of(0).toPoint()
    left = Qt.MouseButton.LeftButton
    qtbot.mousePress(nested.viewport(), left, pos=start)
    qtbot.mouseMove(nested.viewport(), start + QPoint(60, 40))
    qtbot.mouseRelease(nested.viewport(), left, pos=start + QPoint(60, 40))
    moved = (before - nested.center()) * nested.zoom
    assert (round(moved.x()), round(moved.y())) == (60, 40)


def test_a_large_graph_is_saved_whole_as_svg_and_within_bounds_as_png(
    pane: GraphPane, tmp_path, monkeypatch
) -> None:
    area_px = 2_000_000  # a picture of the largest size takes seconds
    monkeypatch.setattr(scene_picture, "MAX_PICTURE_AREA_PX", area_px)
    monkeypatch.setattr(graph_picture, "AT_ONCE_NODES", 400)
    pane.view.show_graph(different(400))
    pane.view.open_all()
    whole = pane.view.content_rect()
    height = whole.height()
    assert whole.width() * height > area_px
    save_picture.save_picture(str(tmp_path / "graph.svg"), *pane.view.picture(bounded=False))
    text = (tmp_path / "graph.svg").read_text()
    assert "Op399Backward0" in text and "<image" not in text  # shapes and words, no pixels
    assert float(text.split('viewBox="0 0 ')[1].split()[1].rstrip('"')) > height
    save_picture.save_picture(str(tmp_path / "graph.png"), *pane.view.picture())
    image = QImage(str(tmp_path / "graph.png"))
    assert 0.99 < image.width() * image.height() / (4 * area_px) <= 1


def test_the_menu_saves_a_large_graph_whole_as_svg_and_within_bounds_as_png(
    pane: GraphPane, monkeypatch
) -> None:
    monkeypatch.setattr(graph_picture, "AT_ONCE_NODES", 2_000)
    pane.view.show_graph(different(2_000))
    pane.view.open_all()
    asked: dict[str, QSize] = {}
    monkeypatch.setattr(
        save_picture, "ask_and_save", lambda _, suffix, size, __: asked.update({suffix: size})
    )
    menu = QMenu()
    pane.view.add_picture_actions(menu)
    for action in menu.actions():
        if action.text().startswith("Save as"):
            action.trigger()
    assert asked["svg"].height() > pane.view.content_rect().height()
    assert asked["png"].width() * asked["png"].height() <= MAX_PICTURE_AREA_PX
