"""The autograd graph on a canvas: pan, zoom, select, walk along the edges by keyboard."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QPointF, QRectF, Qt, Signal
from PySide6.QtGui import (
    QContextMenuEvent,
    QHelpEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QResizeEvent,
)
from PySide6.QtWidgets import QGraphicsScene, QMenu, QToolTip, QWidget

from engine.protocol import BackwardSnapshot, GraphSnapshot
from widgets import theme
from widgets.autograd.graph_item import GraphItem, node_title, paint_legend
from widgets.autograd.graph_layout import NODE_HEIGHT, GraphLayout
from widgets.autograd.words import rule
from widgets.canvas.view import CanvasView
from widgets.canvas.zoom_bar import ZoomBar
from widgets.text import format_bytes, format_shape
from widgets.theme import GRID

EMPTY_TEXT = (
    "No graph yet.\n\nRun the forward pass to the loss, then start the backward pass: the graph"
    " that autograd recorded appears here, from the loss at the top to the parameters."
)
LEGIBLE_ZOOM = 0.6
"""A new graph is shown at least at this zoom."""
_KEYS = {
    Qt.Key.Key_Down: "down",
    Qt.Key.Key_Up: "up",
    Qt.Key.Key_Left: "left",
    Qt.Key.Key_Right: "right",
}


class GraphView(CanvasView):
    """Shows a `GraphSnapshot` where a layout puts it, and how far backward has come.

    Arrow keys walk: down along an edge (towards the leaves), up against it, left and right within
    a layer. Enter or a double click asks to run to the node.
    """

    node_selected = Signal(int)
    run_to_requested = Signal(int)

    MIN_ZOOM = 0.02
    FIT_BOTTOM_PX = 40

    def __init__(self, parent: QWidget | None = None) -> None:
        scene = QGraphicsScene()
        super().__init__(scene, parent)
        scene.setParent(self)
        self.setObjectName("autograd_graph")
        self.setAccessibleName("Autograd graph")
        self._graph: GraphSnapshot | None = None
        self._targets: dict[int, list[int]] = {}
        self._sources: dict[int, list[int]] = {}
        self._empty_text = EMPTY_TEXT
        self._item = GraphItem()
        self.scene().addItem(self._item)
        self._zoom_bar = ZoomBar(self)

    # -- what it shows ---------------------------------------------------------------------------

    def show_graph(
        self, graph: GraphSnapshot, layout: GraphLayout, names: dict[str, str] | None = None
    ) -> None:
        """Show a graph; `names` are the blocks' names by id."""
        self._graph = graph
        self._targets = {node.id: [] for node in graph.nodes}
        self._sources = {node.id: [] for node in graph.nodes}
        for edge in graph.edges:
            if edge.target not in self._targets[edge.source]:
                self._targets[edge.source].append(edge.target)
                self._sources[edge.target].append(edge.source)
        self._item.show_graph(graph, layout, names or {})
        self._look_at_start()
        self.viewport().update()

    def _look_at_start(self) -> None:
        """All of the graph, or where that is too small to read, its root at the top."""
        self.fit()
        if self.zoom < LEGIBLE_ZOOM and self._item.nodes:
            root = self._item.rect_of(0).center()
            half_height = self.viewport().height() / LEGIBLE_ZOOM / 2
            self.set_view(LEGIBLE_ZOOM, root.x(), root.y() - NODE_HEIGHT + half_height)

    def clear(self, text: str = EMPTY_TEXT) -> None:
        """Show no graph, but `text`."""
        self._graph = None
        self._empty_text = text
        nothing = GraphSnapshot(nodes=(), edges=(), plan=())
        self._item.show_graph(nothing, GraphLayout({}, ()), {})
        self.resetCachedContent()
        self.viewport().update()

    def show_backward(self, snapshot: BackwardSnapshot) -> None:
        """Mark what has run, what ran last and what is next."""
        if self._graph is None:
            return
        plan = self._graph.plan
        executed = set(plan[: snapshot.position])
        current = snapshot.step.node if snapshot.step else None
        ready = plan[snapshot.position] if snapshot.position < len(plan) else None
        self._item.show_states(executed, current, ready)
        following = current if current is not None else ready
        if following is not None and following < len(self._graph.nodes):
            self.reveal(self._item.rect_of(following))

    def state_of(self, node: int) -> int:
        """WAITING, READY, EXECUTED or CURRENT of `graph_item`."""
        return int(self._item.states[node])

    @property
    def selected(self) -> int | None:
        return self._item.selected

    def select(self, node: int) -> None:
        """Select a node, bring it into view and tell it."""
        self._item.select(node)
        self.reveal(self._item.rect_of(node))
        info = self._item.nodes[node]
        self.setAccessibleDescription(f"{node_title(info)}, {self._item.second_line(info)}")
        self.node_selected.emit(node)

    def node_rect(self, node: int) -> QRectF:
        """Where a node is, in scene pixels."""
        return self._item.rect_of(node)

    # -- gestures --------------------------------------------------------------------------------

    def _node_under(self, event: QMouseEvent) -> int | None:
        return self._item.geometry.node_at(self.mapToScene(event.position().toPoint()))

    def mousePressEvent(self, event: QMouseEvent) -> None:
        node = self._node_under(event)
        if not self.pan_event(event):
            if event.button() == Qt.MouseButton.LeftButton and node is not None:
                self.select(node)
            else:
                super().mousePressEvent(event)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        node = self._node_under(event)
        if node is not None and event.button() == Qt.MouseButton.LeftButton:
            self.run_to_requested.emit(node)
        else:
            super().mouseDoubleClickEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        direction = _KEYS.get(Qt.Key(event.key()))
        if direction and self._item.nodes:
            self.select(self._neighbour(direction))
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and self.selected is not None:
            self.run_to_requested.emit(self.selected)
        else:
            super().keyPressEvent(event)

    def _neighbour(self, direction: str) -> int:
        """Where an arrow key leads from the selected node; the node itself at an end."""
        node = self.selected
        if node is None:
            return 0
        corners = self._item.geometry.corners
        if direction in ("down", "up"):
            near = (self._targets if direction == "down" else self._sources)[node]
            return min(near, key=lambda n: abs(corners[n, 0] - corners[node, 0]), default=node)
        side = 1 if direction == "right" else -1
        in_layer = [
            n
            for n in range(len(corners))
            if abs(corners[n, 1] - corners[node, 1]) < 1
            and (corners[n, 0] - corners[node, 0]) * side > 0
        ]
        return min(in_layer, key=lambda n: abs(corners[n, 0] - corners[node, 0]), default=node)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.fill_menu(menu, self._item.geometry.node_at(self.mapToScene(event.pos())))
        menu.popup(event.globalPos())

    def fill_menu(self, menu: QMenu, node: int | None) -> None:
        if node is not None:
            menu.addAction("Run to here", lambda: self.run_to_requested.emit(node))
            menu.addSeparator()
        menu.addAction("Fit\tF", self.fit)
        self.add_picture_actions(menu)

    def viewportEvent(self, event: QEvent) -> bool:
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            node = self._item.geometry.node_at(self.mapToScene(event.pos()))
            if node is None:
                QToolTip.hideText()
            else:
                QToolTip.showText(event.globalPos(), self.tooltip(node), self)
            return True
        return super().viewportEvent(event)

    def tooltip(self, node: int) -> str:
        """What a node is, what it does, what it keeps."""
        info = self._item.nodes[node]
        lines = [f"{node_title(info)} · {self._item.second_line(info)}", rule(info)]
        shapes = ", ".join(f"{format_shape(o.shape)} {o.dtype}" for o in info.outputs)
        if shapes:
            lines.append(f"Takes a gradient of {shapes}")
        if info.saved_bytes:
            lines.append(f"Keeps {format_bytes(info.saved_bytes)} from forward")
        return "\n".join(lines)

    # -- painting --------------------------------------------------------------------------------

    def content_rect(self) -> QRectF:
        return self._item.boundingRect()

    def drawForeground(self, painter: QPainter, rect: QRectF | object) -> None:
        painter.save()
        painter.resetTransform()
        room = QRectF(self.viewport().rect())
        if self._item.nodes:
            paint_legend(painter, room.adjusted(self._zoom_bar.geometry().right(), 0, 0, 0))
        else:
            painter.setPen(theme.current().color("muted"))
            flags = int(Qt.AlignmentFlag.AlignCenter) | int(Qt.TextFlag.TextWordWrap)
            painter.drawText(room.adjusted(32, 32, -32, -32), flags, self._empty_text)
        painter.restore()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        bar = self._zoom_bar
        bar.adjustSize()
        bar.move(GRID, self.height() - bar.height() - GRID)

    def point_of(self, node: int) -> QPointF:
        """The middle of a node in viewport pixels (for tests and the tour)."""
        return QPointF(self.mapFromScene(self._item.rect_of(node).center()))
