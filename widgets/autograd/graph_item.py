"""One graphics item that paints a whole autograd graph from arrays."""

from __future__ import annotations

from collections.abc import Set

import numpy as np
import shiboken6
from numpy.typing import NDArray
from PySide6.QtCore import QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import QPainter, QPainterPath, QPen, QPolygonF
from PySide6.QtWidgets import QGraphicsItem, QStyleOptionGraphicsItem, QWidget

from engine.protocol import GraphNode, GraphSnapshot
from widgets import theme
from widgets.autograd.graph_layout import NODE_HEIGHT, NODE_WIDTH, GraphLayout
from widgets.canvas.style import elided, font, text_width
from widgets.text import format_shape

TEXT_MIN_ZOOM = 0.45
"""Below this zoom nodes are plain boxes."""
EDGE_TEXT_MIN_ZOOM = 0.7
PAD = 8.0

WAITING, READY, EXECUTED, CURRENT = range(4)
"""States of a node: not reached, the next to run, has run, ran last."""

Floats = NDArray[np.float64]


def node_title(node: GraphNode) -> str:
    """A leaf by its parameter's name, an operation as torch calls its grad_fn."""
    return node.label if node.kind == "leaf" and node.label else node.name


def node_words(node: GraphNode) -> str:
    """The second line: what made the node, or the leaf's shape."""
    shape = format_shape(node.outputs[0].shape) if node.outputs else ""
    if node.kind == "leaf":
        return f"leaf · {shape}"
    return node.block or shape


class GraphItem(QGraphicsItem):
    """Boxes and curves with culling and two levels of detail; knows states and the selection."""

    def __init__(self) -> None:
        super().__init__()
        self.setFlag(QGraphicsItem.GraphicsItemFlag.ItemUsesExtendedStyleOption)
        self.nodes: tuple[GraphNode, ...] = ()
        self.corners: Floats = np.zeros((0, 2))
        """Top left corner of each node, by id."""
        self.states: NDArray[np.int8] = np.zeros(0, np.int8)
        self.selected: int | None = None
        self._leaf: NDArray[np.bool_] = np.zeros(0, bool)
        self._ends: NDArray[np.intp] = np.zeros((0, 2), np.intp)
        self._paths: list[QPainterPath] = []
        self._edge_boxes: Floats = np.zeros((0, 4))
        self._edge_texts: list[str] = []
        self._names: dict[str, str] = {}
        self._bounds = QRectF()

    # -- what it shows ---------------------------------------------------------------------------

    def show_graph(self, graph: GraphSnapshot, layout: GraphLayout, names: dict[str, str]) -> None:
        """`names` are the blocks' names by id. Raises KeyError when a node has no position."""
        self.prepareGeometryChange()
        self.nodes = graph.nodes
        self._names = names
        self.corners = np.array([layout.positions[n.id] for n in graph.nodes]).reshape(-1, 2)
        self.states = np.zeros(len(graph.nodes), np.int8)
        self._leaf = np.array([node.kind == "leaf" for node in graph.nodes], bool)
        self._ends = np.array(
            [(edge.source, edge.target) for edge in graph.edges], np.intp
        ).reshape(-1, 2)
        splines = layout.splines or ((),) * len(graph.edges)
        self._paths = [
            self._path(source, target, spline)
            for (source, target), spline in zip(self._ends.tolist(), splines, strict=True)
        ]
        self._edge_boxes = np.array(
            [path.boundingRect().getCoords() for path in self._paths], float
        ).reshape(-1, 4)
        self._edge_texts = [
            format_shape(graph.nodes[edge.target].outputs[edge.output].shape)
            if edge.output < len(graph.nodes[edge.target].outputs)
            else ""
            for edge in graph.edges
        ]
        self.selected = None
        box = QRectF()
        for x, y in self.corners.tolist():
            box = box.united(QRectF(x, y, NODE_WIDTH, NODE_HEIGHT))
        for path in self._paths:
            box = box.united(path.boundingRect())
        self._bounds = box if box.isEmpty() else box.adjusted(-PAD, -PAD, PAD, PAD)
        self.update()

    def show_states(self, executed: Set[int], current: int | None, ready: int | None) -> None:
        """Nodes that are not shown, because the graph was cut off, are left out."""
        known = len(self.nodes)
        self.states[:] = WAITING
        self.states[[node for node in executed if node < known]] = EXECUTED
        if ready is not None and ready < known:
            self.states[ready] = READY
        if current is not None and current < known:
            self.states[current] = CURRENT
        self.update()

    def select(self, node: int | None) -> None:
        self.selected = node
        self.update()

    def rect_of(self, node: int) -> QRectF:
        """Raises IndexError for an unknown node."""
        x, y = self.corners[node].tolist()
        return QRectF(x, y, NODE_WIDTH, NODE_HEIGHT)

    def node_at(self, point: QPointF) -> int | None:
        """The node under a scene point."""
        dx = point.x() - self.corners[:, 0]
        dy = point.y() - self.corners[:, 1]
        hits = np.flatnonzero((dx >= 0) & (dx <= NODE_WIDTH) & (dy >= 0) & (dy <= NODE_HEIGHT))
        return int(hits[-1]) if hits.size else None

    def second_line(self, node: GraphNode) -> str:
        """The block's name, or what `node_words` says."""
        words = node_words(node)
        return self._names.get(words, words)

    def _path(self, source: int, target: int, spline: tuple) -> QPainterPath:
        path = QPainterPath()
        if len(spline) >= 4:
            points = [QPointF(*point) for point in spline]
            path.moveTo(points[0])
            for i in range(1, len(points) - 2, 3):
                path.cubicTo(points[i], points[i + 1], points[i + 2])
            return path
        start = self.corners[source] + (NODE_WIDTH / 2, NODE_HEIGHT)
        end = self.corners[target] + (NODE_WIDTH / 2, 0.0)
        path.moveTo(*start.tolist())
        path.lineTo(*end.tolist())
        return path

    # -- painting --------------------------------------------------------------------------------

    def boundingRect(self) -> QRectF:
        return self._bounds

    def paint(
        self,
        painter: QPainter,
        option: QStyleOptionGraphicsItem,
        widget: QWidget | None = None,
    ) -> None:
        if not self.nodes:
            return
        seen = option.exposedRect
        zoom = painter.worldTransform().m11()
        nodes = self._seen_nodes(seen)
        edges = self._seen_edges(seen)
        if zoom < TEXT_MIN_ZOOM:
            self._paint_far(painter, nodes, edges)
        else:
            self._paint_near(painter, nodes, edges, zoom)

    def _seen_nodes(self, seen: QRectF) -> NDArray[np.intp]:
        x, y = self.corners[:, 0], self.corners[:, 1]
        inside = (x < seen.right()) & (x + NODE_WIDTH > seen.left())
        return np.flatnonzero(inside & (y < seen.bottom()) & (y + NODE_HEIGHT > seen.top()))

    def _seen_edges(self, seen: QRectF) -> NDArray[np.intp]:
        left, top, right, bottom = self._edge_boxes.T
        inside = (left <= seen.right()) & (right >= seen.left())
        return np.flatnonzero(inside & (top <= seen.bottom()) & (bottom >= seen.top()))

    def _paint_far(self, painter: QPainter, nodes: NDArray, edges: NDArray) -> None:
        colors = theme.current()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
        painter.setPen(_pen("border"))
        sources, targets = self._ends[edges].T
        middle = NODE_WIDTH / 2
        lines = np.concatenate(
            [self.corners[sources] + (middle, NODE_HEIGHT), self.corners[targets] + (middle, 0)],
            axis=1,
        )
        if len(lines):
            painter.drawLines(*_primitives(lines, QLineF))
        painter.setPen(Qt.PenStyle.NoPen)
        for state in (WAITING, EXECUTED, READY, CURRENT):
            for leaf in (False, True):
                some = nodes[(self.states[nodes] == state) & (self._leaf[nodes] == leaf)]
                if not some.size:
                    continue
                size = np.broadcast_to((NODE_WIDTH, NODE_HEIGHT), (len(some), 2))
                boxes = np.concatenate([self.corners[some], size], axis=1)
                role, alpha = _far_fill(state, leaf)
                painter.setBrush(colors.color(role, alpha))
                painter.drawRects(*_primitives(boxes, QRectF))
        if self.selected is not None:
            self._paint_selection(painter)

    def _paint_near(self, painter: QPainter, nodes: NDArray, edges: NDArray, zoom: float) -> None:
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        for edge in edges.tolist():
            self._paint_edge(painter, edge, zoom)
        for node in nodes.tolist():
            self._paint_node(painter, node)
        if self.selected is not None:
            self._paint_selection(painter)

    def _paint_edge(self, painter: QPainter, edge: int, zoom: float) -> None:
        source = int(self._ends[edge, 0])
        passed = self.states[source] in (EXECUTED, CURRENT)
        role = "gradient" if passed else "border"
        painter.setPen(_pen(role, 1.75 if passed else 1.25))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        path = self._paths[edge]
        painter.drawPath(path)
        painter.setBrush(theme.current().color(role))
        painter.setPen(Qt.PenStyle.NoPen)
        painter.drawPolygon(_arrow_head(path))
        if zoom >= EDGE_TEXT_MIN_ZOOM and self._edge_texts[edge]:
            painter.setFont(font(9))
            painter.setPen(theme.current().color("muted"))
            at = path.pointAtPercent(0.5) + QPointF(5, 3)
            painter.drawText(at, self._edge_texts[edge])

    def _paint_node(self, painter: QPainter, node: int) -> None:
        colors = theme.current()
        info = self.nodes[node]
        state = int(self.states[node])
        rect = self.rect_of(node)
        meaning = "leaf" if self._leaf[node] else "intermediate"
        painter.setBrush(colors.color("raised"))
        edge_role, width = _outline(state)
        painter.setPen(_pen(edge_role, width))
        painter.drawRoundedRect(rect, 5, 5)
        if state in (EXECUTED, CURRENT):
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(colors.color("gradient", 70 if state == CURRENT else 28))
            painter.drawRoundedRect(rect, 5, 5)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(colors.color(meaning))
        painter.drawRoundedRect(QRectF(rect.x() + 4, rect.y() + 6, 4, rect.height() - 12), 2, 2)
        left, room = rect.x() + 2 * PAD, rect.width() - 3 * PAD
        face = font(12, bold=True)
        painter.setFont(face)
        painter.setPen(colors.color("text"))
        painter.drawText(QPointF(left, rect.y() + 18), elided(node_title(info), face, room))
        face = font(11)
        painter.setFont(face)
        painter.setPen(colors.color("muted"))
        painter.drawText(QPointF(left, rect.y() + 35), elided(self.second_line(info), face, room))

    def _paint_selection(self, painter: QPainter) -> None:
        assert self.selected is not None
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(_pen("accent", 2))
        painter.drawRoundedRect(self.rect_of(self.selected).adjusted(-4, -4, 4, 4), 8, 8)


def paint_legend(painter: QPainter, room: QRectF) -> None:
    """What the colours mean, in the lower right corner of `room` (viewport pixels)."""
    colors = theme.current()
    entries = (
        ("intermediate", "operation"),
        ("leaf", "leaf: parameter"),
        ("accent", "next"),
        ("gradient", "has run"),
    )
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    face = font(11)
    painter.setFont(face)
    width = sum(text_width(text, face) + 26 for _, text in entries) + 8
    box = QRectF(room.right() - width - 8, room.bottom() - 34, width, 26)
    painter.setPen(QPen(colors.color("border"), 1))
    painter.setBrush(colors.color("surface"))
    painter.drawRoundedRect(box, 6, 6)
    x, y = box.left() + 10, box.center().y()
    for role, text in entries:
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(colors.color(role))
        painter.drawRoundedRect(QRectF(x, y - 4, 8, 8), 2, 2)
        painter.setPen(colors.color("muted"))
        painter.drawText(QPointF(x + 13, y + 4), text)
        x += text_width(text, face) + 26


def _outline(state: int) -> tuple[str, float]:
    """(role, width) of a node's outline."""
    return {
        WAITING: ("border", 1.0),
        READY: ("accent", 1.75),
        EXECUTED: ("gradient", 1.0),
        CURRENT: ("gradient", 2.5),
    }[state]


def _far_fill(state: int, leaf: bool) -> tuple[str, int]:
    """(role, alpha) of a node's box where there is no room for more."""
    if state == WAITING:
        return ("leaf" if leaf else "intermediate"), 150
    return {READY: ("accent", 255), EXECUTED: ("gradient", 150), CURRENT: ("gradient", 255)}[state]


def _pen(role: str, width: float = 1.0) -> QPen:
    pen = QPen(theme.current().color(role), width)
    pen.setCosmetic(True)
    return pen


def _primitives(array: Floats, kind: type) -> tuple[object, int]:
    """A C-ordered float64 array of 4 columns as Qt's own array of QLineF or QRectF: (first,
    count), for `drawLines` and `drawRects`. Valid while the array lives."""
    assert array.flags.c_contiguous and array.dtype == np.float64
    return shiboken6.wrapInstance(array.ctypes.data, kind), len(array)


def _arrow_head(path: QPainterPath) -> QPolygonF:
    """A triangle at the path's end, pointing along it."""
    end = path.pointAtPercent(1.0)
    before = path.pointAtPercent(max(0.0, 1.0 - 6.0 / max(path.length(), 6.0)))
    along = end - before
    length = max((along.x() ** 2 + along.y() ** 2) ** 0.5, 1e-6)
    along /= length
    across = QPointF(-along.y(), along.x())
    base = end - along * 7
    return QPolygonF([end, base + across * 3.5, base - across * 3.5])
