"""One graphics item that paints a whole autograd graph from arrays."""

from __future__ import annotations

from collections.abc import Set
from typing import Any

import numpy as np
import shiboken6
from numpy.typing import NDArray
from PySide6.QtCore import QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import QPainter, QPen
from PySide6.QtWidgets import QGraphicsItem, QStyleOptionGraphicsItem, QWidget

from engine.protocol import GraphNode, GraphSnapshot
from widgets import theme
from widgets.autograd.graph_geometry import Floats, GraphGeometry, Ints
from widgets.autograd.graph_layout import NODE_HEIGHT, NODE_WIDTH, GraphLayout
from widgets.canvas.style import elided, font, text_width
from widgets.text import format_shape

TEXT_MIN_ZOOM = 0.45
"""Below this zoom nodes are plain boxes."""
EDGE_TEXT_MIN_ZOOM = 0.7
ROUND_MIN_ZOOM = 0.6
PAD = 8.0

WAITING, READY, EXECUTED, CURRENT = range(4)
"""States of a node: not reached, the next to run, has run, ran last."""


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
        nothing = GraphSnapshot(nodes=(), edges=(), plan=())
        self.show_graph(nothing, GraphLayout({}, ()), {})

    # -- what it shows ---------------------------------------------------------------------------

    def show_graph(self, graph: GraphSnapshot, layout: GraphLayout, names: dict[str, str]) -> None:
        """`names` are the blocks' names by id. Raises KeyError when a node has no position."""
        self.prepareGeometryChange()
        self.nodes = graph.nodes
        self.geometry = GraphGeometry(graph, layout)
        self.states: NDArray[np.int8] = np.zeros(len(graph.nodes), np.int8)
        self.selected: int | None = None
        self._leaf = np.array([node.kind == "leaf" for node in graph.nodes], bool)
        self._names = names
        self._edge_texts = [
            format_shape(graph.nodes[edge.target].outputs[edge.output].shape)
            if edge.output < len(graph.nodes[edge.target].outputs)
            else ""
            for edge in graph.edges
        ]
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
        return QRectF(*self.geometry.boxes[node].tolist())

    def second_line(self, node: GraphNode) -> str:
        """The block's name, or what `node_words` says."""
        words = node_words(node)
        return self._names.get(words, words)

    # -- painting --------------------------------------------------------------------------------

    def boundingRect(self) -> QRectF:
        return self.geometry.bounds

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
        nodes, edges = self.geometry.nodes_in(seen), self.geometry.edges_in(seen)
        if zoom < TEXT_MIN_ZOOM:
            self._paint_far(painter, nodes, edges)
        else:
            self._paint_near(painter, nodes, edges, zoom)
        if self.selected is not None:
            self._paint_selection(painter)

    def _paint_far(self, painter: QPainter, nodes: Ints, edges: Ints) -> None:
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
        painter.setPen(_pen("border"))
        _draw_lines(painter, self.geometry.lines[edges])
        painter.setPen(Qt.PenStyle.NoPen)
        for state in (WAITING, EXECUTED, READY, CURRENT):
            for leaf in (False, True):
                some = nodes[(self.states[nodes] == state) & (self._leaf[nodes] == leaf)]
                role, alpha = _far_fill(state, leaf)
                painter.setBrush(theme.current().color(role, alpha))
                _draw_rects(painter, self.geometry.boxes[some])

    def _paint_near(self, painter: QPainter, nodes: Ints, edges: Ints, zoom: float) -> None:
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        passed = np.isin(self.states[self.geometry.ends[edges, 0]], (EXECUTED, CURRENT))
        for role, width, some in (
            ("border", 1.25, edges[~passed]),
            ("gradient", 1.75, edges[passed]),
        ):
            self._paint_edges(painter, some, role, width)
        if zoom >= EDGE_TEXT_MIN_ZOOM:
            painter.setFont(font(9))
            painter.setPen(theme.current().color("muted"))
            for edge in edges.tolist():
                painter.drawText(self.geometry.text_points[edge], self._edge_texts[edge])
        for state in (WAITING, EXECUTED, READY, CURRENT):
            self._paint_boxes(painter, nodes[self.states[nodes] == state], state, zoom)
        self._paint_meanings(painter, nodes)
        self._paint_texts(painter, nodes)

    def _paint_edges(self, painter: QPainter, edges: Ints, role: str, width: float) -> None:
        painter.setPen(_pen(role, width))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        straight = ~self.geometry.curved[edges]
        _draw_lines(painter, self.geometry.lines[edges[straight]])
        for edge in edges[~straight].tolist():
            painter.drawPath(self.geometry.paths[edge])
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.current().color(role))
        for edge in edges.tolist():
            painter.drawPolygon(self.geometry.heads[edge])

    def _paint_boxes(self, painter: QPainter, nodes: Ints, state: int, zoom: float) -> None:
        """The boxes of one state; their corners are rounded where that can be seen."""
        boxes = self.geometry.boxes[nodes]
        role, width = _outline(state)
        fills = [(_pen(role, width), theme.current().color("raised"))]
        if state in (EXECUTED, CURRENT):
            tint = theme.current().color("gradient", 70 if state == CURRENT else 28)
            fills.append((QPen(Qt.PenStyle.NoPen), tint))
        for pen, color in fills:
            painter.setPen(pen)
            painter.setBrush(color)
            if zoom < ROUND_MIN_ZOOM:
                _draw_rects(painter, boxes)
                continue
            for x, y, w, h in boxes.tolist():
                painter.drawRoundedRect(QRectF(x, y, w, h), 5, 5)

    def _paint_meanings(self, painter: QPainter, nodes: Ints) -> None:
        """The bar at a node's left: leaf or intermediate."""
        painter.setPen(Qt.PenStyle.NoPen)
        for role, some in (
            ("leaf", nodes[self._leaf[nodes]]),
            ("intermediate", nodes[~self._leaf[nodes]]),
        ):
            painter.setBrush(theme.current().color(role))
            _draw_rects(
                painter, self.geometry.boxes[some] * (1, 1, 0, 0) + (4, 6, 4, NODE_HEIGHT - 12)
            )

    def _paint_texts(self, painter: QPainter, nodes: Ints) -> None:
        room = NODE_WIDTH - 3 * PAD
        lines = (
            (font(12, bold=True), "text", 18, node_title),
            (font(11), "muted", 35, self.second_line),
        )
        for face, role, below, text_of in lines:
            painter.setFont(face)
            painter.setPen(theme.current().color(role))
            for node in nodes.tolist():
                x, y = self.geometry.corners[node].tolist()
                text = elided(text_of(self.nodes[node]), face, room)
                painter.drawText(QPointF(x + 2 * PAD, y + below), text)

    def _paint_selection(self, painter: QPainter) -> None:
        assert self.selected is not None
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(_pen("accent", 2))
        painter.drawRoundedRect(self.rect_of(self.selected).adjusted(-4, -4, 4, 4), 8, 8)


def paint_legend(painter: QPainter, room: QRectF) -> None:
    """What the colours mean, in the lower right corner of `room` (viewport pixels); nothing where
    there is no room for it."""
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
    if width + 16 > room.width():
        return
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


def _draw_lines(painter: QPainter, lines: Floats) -> None:
    """Draw an (N, 4) array of x1, y1, x2, y2 in one call, as Qt's own array of QLineF."""
    held = np.ascontiguousarray(lines, np.float64)
    if len(held):
        first: Any = shiboken6.wrapInstance(held.ctypes.data, QLineF)
        painter.drawLines(first, len(held))


def _draw_rects(painter: QPainter, rects: Floats) -> None:
    """Draw an (N, 4) array of x, y, width, height in one call, as Qt's own array of QRectF."""
    held = np.ascontiguousarray(rects, np.float64)
    if len(held):
        first: Any = shiboken6.wrapInstance(held.ctypes.data, QRectF)
        painter.drawRects(first, len(held))
