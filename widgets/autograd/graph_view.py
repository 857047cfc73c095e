"""The autograd graph on a canvas: boxes that open in place, pan, zoom, select, walk by keyboard."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

import numpy as np
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
from widgets.autograd import graph_menu
from widgets.autograd.boxes import Direction, EdgeStyle, NestedLayout, VisibleGraph
from widgets.autograd.graph_facts import Bools, GraphFacts
from widgets.autograd.graph_finder import Finder, Reach
from widgets.autograd.graph_geometry import GraphGeometry
from widgets.autograd.graph_item import GraphItem
from widgets.autograd.graph_map import GraphMap
from widgets.autograd.graph_paint import paint_chip, paint_legend
from widgets.autograd.hierarchy import Hierarchy
from widgets.autograd.nested_layout import NODE_HEIGHT
from widgets.canvas.view import CanvasView
from widgets.canvas.zoom_bar import ZoomBar
from widgets.theme import GRID

EMPTY_TEXT = (
    "No graph yet.\n\nRun the forward pass to the loss, then start the backward pass: the graph"
    " that autograd recorded appears here, from the loss at the top to the parameters."
)
BUSY_TEXT = "Laying out the graph…"
LEGIBLE_ZOOM = 0.6
"""A new graph is shown at least at this zoom."""
SMALL_GRAPH_NODES = 60
"""A graph of no more nodes opens wholly."""
_KEYS = {
    Qt.Key.Key_Down: "down",
    Qt.Key.Key_Up: "up",
    Qt.Key.Key_Left: "left",
    Qt.Key.Key_Right: "right",
}


class Anchor(NamedTuple):
    """A box, a point in it (fraction of its width, pixels below its top) and where on screen that
    point is to stay."""

    key: str
    across: float
    below: float
    viewport_point: QPointF


class GraphView(CanvasView):
    """Shows a `GraphSnapshot` as boxes within boxes, and how far backward has come.

    Whatever changes what is open ends in `layout_requested`; the picture changes once
    `show_layout` answers it, and the box that was clicked stays under the cursor. Arrow keys walk:
    down and up along the links, left and right within a layer. Enter or a double click asks to
    run to a node, and opens or closes a box; + and - open and close too (without a selection, or
    with Ctrl, they zoom). Esc selects nothing.
    """

    node_selected = Signal(int)
    run_to_requested = Signal(int)
    layout_requested = Signal(object, str, str)
    """(VisibleGraph, direction, style of the links): to be answered by `show_layout`, off the
    window's thread."""
    breakpoint_toggled = Signal(str)
    """The key of a box: `#17` for node 17, else a module's path or a repeat."""
    code_requested = Signal(int)
    """Show the code that made a node."""
    hits_changed = Signal(int, int)
    """(number of the hit shown last, from 1, or 0; hits in all), -1 hits without a search."""
    changed = Signal()
    """What is open, shown or marked has changed."""

    MIN_ZOOM = 0.0005
    FIT_BOTTOM_PX = 40

    def __init__(self, parent: QWidget | None = None) -> None:
        scene = QGraphicsScene()
        super().__init__(scene, parent)
        scene.setParent(self)
        self.setObjectName("autograd_graph")
        self.setAccessibleName("Autograd graph")
        self._graph: GraphSnapshot | None = None
        self._names: Mapping[str, str] = {}
        self._hierarchy: Hierarchy | None = None
        self._finder: Finder | None = None
        self._reach: Reach | None = None
        self._open: frozenset[str] = frozenset()
        self._direction: Direction = "backward"
        self._style: EdgeStyle = "smooth"
        self._requested: VisibleGraph | None = None
        self._arrive: Callable[[], None] = lambda: None
        self._backward: BackwardSnapshot | None = None
        self._breakpoints: frozenset[str] = frozenset()
        self._selected_node: int | None = None
        self._paths = False
        self.follow = False
        """Open what hides the node that ran last."""
        self._empty_text = EMPTY_TEXT
        self._item = GraphItem()
        self.scene().addItem(self._item)
        self._zoom_bar = ZoomBar(self)
        self.map = GraphMap(self, self._item)
        self.view_changed.connect(lambda *_: self._place_map())

    # -- what it shows ---------------------------------------------------------------------------

    def show_graph(self, graph: GraphSnapshot, names: Mapping[str, str] | None = None) -> None:
        """Show a graph once it is laid out; `names` are the blocks' names by id."""
        self.clear(BUSY_TEXT)
        self._graph, self._names = graph, names or {}
        self._hierarchy = Hierarchy(graph)
        self._finder = Finder(graph, self._names)
        small = len(graph.nodes) <= SMALL_GRAPH_NODES
        self._open = self._hierarchy.open_all() if small else self._hierarchy.initial()
        self._ask_for_layout(self._look_at_start)

    def show_layout(self, visible: VisibleGraph, layout: NestedLayout) -> None:
        """Draw what `layout_requested` asked for; an answer to an older request is dropped."""
        if visible is not self._requested or self._graph is None:
            return
        self._requested = None
        before, selected = self._item.facts, self._item.selected
        facts = GraphFacts(self._graph, visible, self._names)
        self._item.show_picture(facts, GraphGeometry(visible, layout, self._direction))
        self.setSceneRect(self.sceneRect().united(self._item.boundingRect()))
        self._item.selected = self._box_after(before, selected)
        self._show_states()
        self._show_marks()
        self._arrive()
        self._place_map()
        self.changed.emit()
        self.viewport().update()

    def clear(self, text: str = EMPTY_TEXT) -> None:
        """Show no graph, but `text`."""
        self._graph = self._hierarchy = self._finder = self._reach = None
        self._requested = self._backward = self._selected_node = None
        self._open = frozenset()
        self._empty_text = text
        self._item.clear()
        self._place_map()
        self.resetCachedContent()
        self.changed.emit()
        self.viewport().update()

    @property
    def laid_out(self) -> bool:
        """Whether what is open is what is drawn."""
        return self._item.facts is not None and self._requested is None

    @property
    def facts(self) -> GraphFacts | None:
        """What is drawn, None before a graph is."""
        return self._item.facts

    @property
    def hierarchy(self) -> Hierarchy | None:
        """All boxes of the graph that is shown."""
        return self._hierarchy

    def _ask_for_layout(self, arrive: Callable[[], None]) -> None:
        """Ask for the picture of what is open now; `arrive` looks at it once it is there."""
        if self._hierarchy is None:
            return
        self._arrive = arrive
        self._requested = self._hierarchy.visible(self._open)
        self.viewport().update()
        self.layout_requested.emit(self._requested, self._direction, self._style)

    def _look_at_start(self) -> None:
        """All of the graph, or where that is too small to read, its first box at the top."""
        self.fit()
        facts = self._item.facts
        if self.zoom < LEGIBLE_ZOOM and facts is not None and facts.atom.size:
            rects = self._item.geometry.rects
            first = int(np.argmin(np.where(self._item.geometry.open, np.inf, rects[:, 1])))
            start = self._item.geometry.rect(first).center()
            half_height = self.viewport().height() / LEGIBLE_ZOOM / 2
            self.set_view(LEGIBLE_ZOOM, start.x(), start.y() - 2 * NODE_HEIGHT + half_height)

    # -- how far backward has come -----------------------------------------------------------------

    def show_backward(self, snapshot: BackwardSnapshot) -> None:
        """Mark what has run, what ran last and what is next, and bring that into view."""
        if self._graph is None:
            return
        self._backward = snapshot
        current, ready = self._current_and_ready()
        following = current if current is not None else ready
        hidden = following is not None and self._hidden(following)
        if self._item.facts is None:
            return
        self._show_states()
        if following is None or following >= len(self._graph.nodes):
            return
        if hidden and self.follow:
            self.open_to(following)
        elif self.laid_out:
            self.reveal(self.node_rect(following))

    def _current_and_ready(self) -> tuple[int | None, int | None]:
        assert self._graph is not None
        if self._backward is None:
            return None, None
        plan, position = self._graph.plan, self._backward.position
        current = self._backward.step.node if self._backward.step else None
        return current, plan[position] if position < len(plan) else None

    def _show_states(self) -> None:
        facts = self._item.facts
        if facts is None or self._graph is None or self._backward is None:
            return
        current, ready = self._current_and_ready()
        facts.show_states(self._graph.plan[: self._backward.position], current, ready)
        self._item.update()
        self.map.refresh()

    def state_of(self, node: int) -> int:
        """WAITING, READY, EXECUTED or CURRENT of `graph_facts`."""
        assert self._item.facts is not None
        return int(self._item.facts.states[node])

    # -- selection -------------------------------------------------------------------------------

    @property
    def selected(self) -> int | None:
        """The selected node, None when none is or a module's box is."""
        return self._selected_node

    @property
    def selected_box(self) -> int | None:
        """The place of the box that is marked as selected."""
        return self._item.selected

    def select(self, node: int) -> None:
        """Select a node, bring it or the closed box around it into view, and tell it."""
        self.show_selected(node)
        self.node_selected.emit(node)

    def show_selected(self, node: int) -> None:
        """As `select`, without telling it."""
        self._selected_node = node
        if self._item.facts is not None:
            self._mark(self._box_of(node))

    def select_box(self, box: int) -> None:
        """Select a box by its place; a node's own box selects the node."""
        facts = self._item.facts
        assert facts is not None
        node = facts.visible.boxes[box].node
        if facts.visible.boxes[box].kind == "node" and node is not None:
            self.select(node)
        else:
            self._selected_node = None
            self._mark(box)

    def select_none(self) -> None:
        self._selected_node = self._item.selected = None
        self.setAccessibleDescription("")
        self._show_marks()
        self.changed.emit()

    def _mark(self, box: int) -> None:
        facts = self._item.facts
        assert facts is not None
        self._item.selected = box
        self._item.update()
        self.reveal(self._item.geometry.head_rect(box))
        self.setAccessibleDescription(facts.spoken(box))
        if self._paths:
            self._show_marks()
        self.changed.emit()

    def _box_of(self, node: int) -> int:
        assert self._item.facts is not None
        return int(self._item.facts.visible.box_of[node])

    def _hidden(self, node: int) -> bool:
        """Whether a node is in a closed box, or in the one that is about to be drawn."""
        visible = self._requested or (self._item.facts.visible if self._item.facts else None)
        if visible is None or node >= len(visible.box_of):
            return False
        return visible.boxes[int(visible.box_of[node])].kind != "node"

    def _box_after(self, before: GraphFacts | None, selected: int | None) -> int | None:
        """Where the selection is in a new picture: the same box, or what it was closed into."""
        facts = self._item.facts
        assert facts is not None
        if self._selected_node is not None:
            return self._box_of(self._selected_node)
        while before is not None and selected is not None:
            box = before.visible.boxes[selected]
            if box.key in facts.index_of:
                return facts.index_of[box.key]
            selected = box.parent
        return None

    def node_rect(self, node: int) -> QRectF:
        """Where a node, or the closed box that it is in, is in scene pixels."""
        return self._item.geometry.rect(self._box_of(node))

    def box_rect(self, key: str) -> QRectF:
        """Where a box is, in scene pixels; raises KeyError for one that is not to be seen."""
        assert self._item.facts is not None
        return self._item.geometry.rect(self._item.facts.index_of[key])

    def point_of(self, node: int) -> QPointF:
        """The middle of a node in viewport pixels (for tests and the tour)."""
        return QPointF(self.mapFromScene(self.node_rect(node).center()))

    # -- opening and closing ---------------------------------------------------------------------

    @property
    def open_keys(self) -> frozenset[str]:
        return self._open

    def set_open(self, keys: frozenset[str], anchor: Anchor | None = None) -> None:
        """Open exactly these boxes; `anchor` stays where it is on screen."""
        if keys == self._open:
            return
        self._open = keys
        if anchor is None and self._item.facts is not None:
            selected, middle = self._item.selected, QRectF(self.viewport().rect()).center()
            seen = self._item.geometry.box_at(self.scene_point(middle))
            anchor = self._anchor(selected) if selected is not None else self._anchor(seen, middle)
        self._ask_for_layout(lambda: self._settle(anchor))

    def toggle(self, box: int, at: QPointF | None = None) -> None:
        """Open a closed box or close an open one; `at`: where the cursor is in the viewport."""
        facts = self._item.facts
        assert facts is not None
        key = facts.visible.boxes[box].key
        if facts.visible.boxes[box].kind in ("node", "cut"):
            return
        self.set_open(self._open ^ {key}, self._anchor(box, at))

    def open_inside(self, box: int, at: QPointF | None = None) -> None:
        """Open a box and all boxes in it."""
        facts = self._item.facts
        assert facts is not None and self._hierarchy is not None
        within = self._hierarchy.keys_within(facts.visible.boxes[box].key)
        self.set_open(self._open | within, self._anchor(box, at))

    def open_all(self) -> None:
        """Open every box: the picture is then the graph itself."""
        if self._hierarchy is not None:
            self.set_open(self._hierarchy.open_all())

    def close_all(self) -> None:
        """Close every box and show the whole picture."""
        if self._open:
            self._open = frozenset()
            self._ask_for_layout(self._look_at_start)

    def open_to(self, node: int) -> None:
        """Select a node and open what hides it."""
        assert self._hierarchy is not None
        if not self._hidden(node):
            self._go_to(node)
            return
        self._open |= self._hierarchy.keys_to(node)
        self._ask_for_layout(lambda: self._go_to(node))

    def _go_to(self, node: int) -> None:
        if self.zoom < LEGIBLE_ZOOM:
            center = self.node_rect(node).center()
            self.set_view(LEGIBLE_ZOOM, center.x(), center.y())
        self.select(node)

    def _anchor(self, box: int | None, at: QPointF | None = None) -> Anchor | None:
        """The point of a box that `at` lies on, or the middle of its title bar."""
        if box is None or self._item.facts is None:
            return None
        head = self._item.geometry.head_rect(box)
        if at is None:
            point = head.center()
            at = self.viewportTransform().map(point)
        else:
            point = self.scene_point(at)
        across = (point.x() - head.left()) / head.width()
        key = self._item.facts.visible.boxes[box].key
        return Anchor(key, min(max(across, 0.0), 1.0), point.y() - head.top(), at)

    def _settle(self, anchor: Anchor | None) -> None:
        facts = self._item.facts
        if facts is None:
            return
        if anchor is None or anchor.key not in facts.index_of:
            self._look_at_start()
            return
        head = self._item.geometry.head_rect(facts.index_of[anchor.key])
        below = min(max(anchor.below, 4.0), head.height() - 4.0)
        there = QPointF(head.left() + anchor.across * head.width(), head.top() + below)
        self._place(self.zoom, there, anchor.viewport_point)

    @property
    def direction(self) -> Direction:
        return self._direction

    def set_direction(self, direction: Direction) -> None:
        """`backward`: the loss at the top, arrows the way of the gradient; `forward`: the leaves
        at the top, arrows the way of the data."""
        if direction == self._direction:
            return
        self._direction = direction
        self._lay_out_again()

    def set_style(self, style: EdgeStyle) -> None:
        """Draw links as curves or with right angles."""
        if style != self._style:
            self._style = style
            self._lay_out_again()

    def _lay_out_again(self) -> None:
        anchor = self._anchor(self._item.selected)
        self._ask_for_layout(
            self._look_at_start if anchor is None else lambda: self._settle(anchor)
        )
        self.changed.emit()

    # -- search, filter, paths, breakpoints --------------------------------------------------------

    def search(self, query: str, filter_key: str = "all") -> None:
        """Mark the nodes that hold every word of `query` and pass a filter of `graph_finder`;
        the rest is dimmed. Nothing is marked for an empty query and `all`."""
        if self._finder is not None:
            self._finder.search(query, filter_key)
            self._show_marks()
            self._tell_hits()

    def next_hit(self, step: int = 1) -> None:
        """Select the next hit (the one before: -1), opening what hides it."""
        node = self._finder.step(step) if self._finder is not None else None
        if node is not None:
            self.open_to(node)
            self._tell_hits()

    def _tell_hits(self) -> None:
        assert self._finder is not None
        searching = self._finder.hits is not None
        self.hits_changed.emit(self._finder.place, self._finder.count if searching else -1)

    @property
    def paths(self) -> bool:
        return self._paths

    def show_paths(self, on: bool) -> None:
        """Highlight the ways from the selection to the loss and to the leaves; dim the rest."""
        self._paths = on
        self._show_marks()
        self.changed.emit()

    def show_breakpoints(self, keys: Collection[str]) -> None:
        """Put a dot on the boxes of these keys, or on the closed boxes around them."""
        self._breakpoints = frozenset(keys)
        self._show_marks()

    def _show_marks(self) -> None:
        facts, item = self._item.facts, self._item
        if facts is None or self._hierarchy is None or self._finder is None:
            return
        hits = self._finder.hits
        lit: Bools | None = None
        item.hits = None
        if hits is not None:
            lit = facts.holds(hits)
            counts = np.maximum(facts.sums(hits), lit)  # a cut is one hit
            item.hits = np.where(item.geometry.open, 0, counts).astype(np.int64)
        if self._paths and item.selected is not None:
            ways = facts.holds(self._ways(item.selected))
            lit = ways if lit is None else lit & ways
        if lit is not None and item.selected is not None:
            lit[item.selected] = True
        item.lit = lit
        item.breakpoints = self._boxes_with_breakpoints(facts)
        item.update()
        self.map.refresh()

    def _ways(self, box: int) -> Bools:
        assert self._graph is not None and self._item.facts is not None
        if self._reach is None:
            self._reach = Reach(self._graph)
        starts = self._item.facts.nodes_in(box)
        return self._reach.ways(starts, "loss") | self._reach.ways(starts, "leaves")

    def _boxes_with_breakpoints(self, facts: GraphFacts) -> Bools | None:
        if not self._breakpoints:
            return None
        marked = np.array([box.key in self._breakpoints for box in facts.visible.boxes], bool)
        for key in self._breakpoints:
            if key.startswith("#") and key[1:].isdigit() and int(key[1:]) < len(facts.states):
                marked[self._box_of(int(key[1:]))] = True
        return marked

    # -- gestures --------------------------------------------------------------------------------

    def _box_under(self, event: QMouseEvent) -> int | None:
        if self._item.facts is None:
            return None
        return self._item.geometry.box_at(self.scene_point(event.position()))

    def mousePressEvent(self, event: QMouseEvent) -> None:
        box = self._box_under(event)
        if self.pan_event(event):
            return
        if event.button() != Qt.MouseButton.LeftButton:
            super().mousePressEvent(event)
            return
        if box is not None:
            self.select_box(box)
        self._pan_from = event.position().toPoint()  # to drag is to pan, wherever it begins

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        box = self._box_under(event)
        if box is not None and event.button() == Qt.MouseButton.LeftButton:
            self._activate(box, event.position())
        else:
            super().mouseDoubleClickEvent(event)

    def _activate(self, box: int, at: QPointF | None = None) -> None:
        """Run to a node; open or close anything else."""
        assert self._item.facts is not None
        shown = self._item.facts.visible.boxes[box]
        if shown.kind == "node" and shown.node is not None:
            self.run_to_requested.emit(shown.node)
        else:
            self.toggle(box, at)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key = Qt.Key(event.key())
        direction = _KEYS.get(key)
        box, facts = self._item.selected, self._item.facts
        plain = not event.modifiers() & Qt.KeyboardModifier.ControlModifier
        if facts is None:
            super().keyPressEvent(event)
        elif direction and facts.atom.size:
            self.select_box(self._neighbour(direction))
        elif key in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and box is not None:
            self._activate(box)
        elif plain and box is not None and key in (Qt.Key.Key_Plus, Qt.Key.Key_Equal):
            if not facts.visible.boxes[box].open:
                self.toggle(box)
        elif plain and box is not None and key == Qt.Key.Key_Minus:
            self._close_around(box)
        elif key == Qt.Key.Key_Escape and box is not None:
            self.select_none()
        elif not plain and key in (Qt.Key.Key_Plus, Qt.Key.Key_Equal):
            self.zoom_by(1.2)
        elif not plain and key == Qt.Key.Key_Minus:
            self.zoom_by(1 / 1.2)
        else:
            super().keyPressEvent(event)

    def _close_around(self, box: int) -> None:
        """Close an open box, or the one around a node or a closed box."""
        around = [box] if self._item.geometry.open[box] else self._item.geometry.around(box)
        if around:
            if self._selected_node is not None:
                self._selected_node = None
            self._item.selected = around[0]
            self.toggle(around[0])

    def _neighbour(self, direction: str) -> int:
        """Where an arrow key leads from the selected box; the box itself at an end."""
        box, geometry = self._item.selected, self._item.geometry
        if box is None:
            return 0 if not geometry.open[0] else int(np.argmin(geometry.open))
        if geometry.open[box] and direction == "down":
            return int(np.flatnonzero(geometry.parents == box)[0])
        return geometry.neighbour(box, direction)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        at = QPointF(event.pos())
        box = None
        if self._item.facts is not None:
            box = self._item.geometry.box_at(self.scene_point(at))
        self.fill_menu(menu, box, at)
        menu.popup(event.globalPos())

    def fill_menu(self, menu: QMenu, box: int | None, at: QPointF | None = None) -> None:
        graph_menu.fill(menu, self, box, at)

    def viewportEvent(self, event: QEvent) -> bool:
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            facts = self._item.facts
            box = facts and self._item.geometry.box_at(self.mapToScene(event.pos()))
            if facts is None or box is None:
                QToolTip.hideText()
            else:
                QToolTip.showText(event.globalPos(), facts.tooltip(box), self)
            return True
        return super().viewportEvent(event)

    def tooltip(self, node: int) -> str:
        """What a node, or the closed box it is in, is, does and keeps."""
        assert self._item.facts is not None
        return self._item.facts.tooltip(self._box_of(node))

    # -- painting --------------------------------------------------------------------------------

    def content_rect(self) -> QRectF:
        return self._item.boundingRect()

    def drawForeground(self, painter: QPainter, rect: QRectF | object) -> None:
        painter.save()
        painter.resetTransform()
        room = QRectF(self.viewport().rect())
        if self._item.facts is not None:
            right = self.map.width() + GRID if self.map.isVisible() else 0
            paint_legend(painter, room.adjusted(self._zoom_bar.geometry().right(), 0, -right, 0))
            if self._requested is not None:
                paint_chip(painter, room, BUSY_TEXT)
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
        self._place_map()

    def _place_map(self) -> None:
        """The map is there while the window shows only a part of the picture."""
        whole = self.content_rect()
        self.map.setVisible(not whole.isEmpty() and not self.visible_rect().contains(whole))
        size = self.map.size()
        self.map.move(self.width() - size.width() - GRID, self.height() - size.height() - GRID)
