"""The autograd graph's picture: boxes that open in place, states of a pass, selection, search."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

import numpy as np
from PySide6.QtCore import QPointF, Qt, Signal
from PySide6.QtGui import QContextMenuEvent, QKeyEvent, QMouseEvent
from PySide6.QtWidgets import QMenu, QWidget

from engine.protocol import BackwardSnapshot, GraphSnapshot
from widgets.boxes.boxes import VisibleGraph
from widgets.boxes.hierarchy import Hierarchy
from widgets.graph import keys as graph_keys
from widgets.graph import menu as graph_menu
from widgets.graph import work as graph_work
from widgets.graph.canvas import BUSY_TEXT, EMPTY_TEXT, LEGIBLE_ZOOM, Anchor, GraphCanvas
from widgets.graph.facts import GraphFacts
from widgets.graph.geometry import GraphGeometry
from widgets.graph.marks import GraphMarks
from widgets.later import Later
from widgets.layout import Direction, EdgeStyle, NestedLayout

AT_ONCE_NODES = 1_000
"""What a graph of no more nodes needs is found within a frame, in the window's thread."""


class GraphView(GraphCanvas):
    """Shows a `GraphSnapshot` as boxes within boxes, and how far backward has come.

    Whatever changes what is open ends in `layout_requested`; the picture changes once
    `show_layout` answers it, and the box that was clicked stays under the cursor. A click selects,
    on a chevron it opens or closes, as a double click does anywhere on a box; on a node that asks
    to run to it. A drag pans; `graph_keys` has the keys.
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

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("autograd_graph")
        self.setAccessibleName("Autograd graph")
        self._graph: GraphSnapshot | None = None
        self._names: Mapping[str, str] = {}
        self._hierarchy: Hierarchy | None = None
        self._marks: GraphMarks | None = None
        self._open: frozenset[str] = frozenset()
        self._direction: Direction = "backward"
        self._style: EdgeStyle = "smooth"
        self._later = Later(self)
        self._under_way = False
        self._requested: VisibleGraph | None = None
        self._arrive: Callable[[], None] = self.look_at_start
        self._backward: BackwardSnapshot | None = None
        self._selected_node: int | None = None
        self._paths = False
        self._breakpoints: frozenset[str] = frozenset()
        self._on_chevron = False
        self.follow = False
        """Open what hides the node that ran last."""

    # -- what it shows ---------------------------------------------------------------------------

    def show_graph(self, graph: GraphSnapshot, names: Mapping[str, str] | None = None) -> None:
        """Show a graph once it is laid out; `names` are the blocks' names by id."""
        self.clear(BUSY_TEXT)
        self._graph, self._names = graph, names or {}
        self._marks = GraphMarks(graph, self._names)
        self._arrive, self._under_way = self.look_at_start, True
        self._later.run(lambda: graph_work.opened(graph), self._open_at_first, self._is_quick)

    @property
    def _is_quick(self) -> bool:
        return self._graph is None or len(self._graph.nodes) <= AT_ONCE_NODES

    def _open_at_first(self, built: tuple[Hierarchy, frozenset[str]]) -> None:
        self._hierarchy, self._open = built
        self._ask_for_layout(self._arrive)

    def show_layout(self, visible: VisibleGraph, layout: NestedLayout) -> None:
        """Draw what `layout_requested` asked for; an answer to an older request is dropped."""
        if visible is not self._requested or self._graph is None:
            return
        graph, names, direction = self._graph, self._names, self._direction
        self._later.run(
            lambda: graph_work.picture(graph, names, visible, layout, direction),
            self._show_picture,
            self._is_quick,
        )

    def _show_picture(self, picture: tuple[GraphFacts, GraphGeometry]) -> None:
        self._requested, self._under_way = None, False
        before, selected = self._item.facts, self._item.selected
        self._item.show_picture(*picture)
        self.setSceneRect(self.sceneRect().united(self._item.boundingRect()))
        self._item.selected = self._box_after(before, selected)
        self._show_states()
        self._show_marks()
        self._arrive()
        self.place_map()
        self.show_busy(self._under_way)
        self.changed.emit()

    def clear(self, text: str = EMPTY_TEXT) -> None:
        """Show no graph, but `text`."""
        self._later.drop()
        self._under_way = False
        self._graph = self._hierarchy = self._marks = None
        self._requested = self._backward = self._selected_node = None
        self._open = frozenset()
        self._empty_text = text
        self._item.clear()
        self.place_map()
        self.resetCachedContent()
        self.show_busy(False)
        self.changed.emit()

    @property
    def laid_out(self) -> bool:
        """Whether what is open is what is drawn."""
        return self._item.facts is not None and not self._under_way

    @property
    def hierarchy(self) -> Hierarchy | None:
        """All boxes of the graph that is shown."""
        return self._hierarchy

    def _ask_for_layout(self, arrive: Callable[[], None]) -> None:
        """Ask for the picture of what is open now; `arrive` looks at it once it is there."""
        self._arrive = arrive
        hierarchy, keys = self._hierarchy, self._open
        if hierarchy is None:
            return
        self._requested, self._under_way = None, True
        self.show_busy(True)
        self._later.run(
            lambda: graph_work.outlined(hierarchy, keys), self._request_layout, self._is_quick
        )

    def _request_layout(self, visible: VisibleGraph) -> None:
        self._requested = visible
        self.layout_requested.emit(visible, self._direction, self._style)

    # -- how far backward has come -----------------------------------------------------------------

    def show_backward(self, snapshot: BackwardSnapshot) -> None:
        """Mark what has run, what ran last and what is next, and bring that into view."""
        if self._graph is None:
            return
        self._backward = snapshot
        self._show_states()
        current, ready = self._current_and_ready()
        following = current if current is not None else ready
        if following is None or following >= len(self._graph.nodes) or self.facts is None:
            return
        if self.follow and self._hidden(following):
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
        if self.facts is None or self._graph is None or self._backward is None:
            return
        current, ready = self._current_and_ready()
        self.facts.show_states(self._graph.plan[: self._backward.position], current, ready)
        self._item.update()
        self.map.refresh()

    def state_of(self, node: int) -> int:
        """WAITING, READY, EXECUTED or CURRENT of `graph_facts`."""
        assert self.facts is not None
        return int(self.facts.states[node])

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
        if self.facts is not None:
            self._mark(self.box_of(node))
            self._reveal_selected()

    def select_box(self, box: int) -> None:
        """Select a box by its place, where it is; a node's own box selects the node."""
        assert self.facts is not None
        shown = self.facts.visible.boxes[box]
        self._selected_node = shown.node if shown.kind == "node" else None
        self._mark(box)
        if self._selected_node is not None:
            self.node_selected.emit(self._selected_node)

    def select_none(self) -> None:
        self._selected_node = self._item.selected = None
        self.setAccessibleDescription("")
        self._show_marks()
        self.changed.emit()

    def walk(self, direction: str) -> None:
        """Select the neighbour `up`, `down`, `left` or `right` of the selected box."""
        box, geometry = self._item.selected, self._item.geometry
        if box is None:
            box = int(np.argmin(geometry.open))
        elif geometry.open[box] and direction == "down":
            box = int(np.flatnonzero(geometry.parents == box)[0])
        else:
            box = geometry.neighbour(box, direction)
        self.select_box(box)
        self._reveal_selected()

    def _mark(self, box: int) -> None:
        assert self.facts is not None
        self._item.selected = box
        self._item.update()
        self.setAccessibleDescription(self.facts.spoken(box))
        if self._paths:
            self._show_marks()
        self.changed.emit()

    def _reveal_selected(self) -> None:
        if self._item.selected is not None:
            self.reveal(self._item.geometry.head_rect(self._item.selected))

    def look_again(self) -> None:
        super().look_again()
        if self._backward is not None:
            self.show_backward(self._backward)
        self._reveal_selected()

    def _hidden(self, node: int) -> bool:
        """Whether a node is in a closed box of the picture, or of the one on its way."""
        if self._hierarchy is None or node >= len(self._hierarchy.graph.nodes):
            return False
        return not self._hierarchy.keys_to(node) <= self._open

    def _box_after(self, before: GraphFacts | None, selected: int | None) -> int | None:
        """Where the selection is in a new picture: the same box, or what it was closed into."""
        assert self.facts is not None
        if self._selected_node is not None:
            return self.box_of(self._selected_node)
        while before is not None and selected is not None:
            box = before.visible.boxes[selected]
            if box.key in self.facts.index_of:
                return self.facts.index_of[box.key]
            selected = box.parent
        return None

    # -- opening and closing ---------------------------------------------------------------------

    @property
    def open_keys(self) -> frozenset[str]:
        return self._open

    def set_open(self, keys: frozenset[str], anchor: Anchor | None = None) -> None:
        """Open exactly these boxes. `anchor` stays where it is on screen; without one the selected
        box does, or what is in the middle."""
        if keys != self._open:
            self._open = keys
            anchor = anchor or self.anchor(self._item.selected) or self.anchor_in_middle()
            self._ask_for_layout(lambda: self.settle(anchor))

    def toggle(self, box: int, at: QPointF | None = None) -> None:
        """Open a closed box or close an open one; `at`: where the cursor is in the viewport."""
        assert self.facts is not None
        shown = self.facts.visible.boxes[box]
        if shown.kind not in ("node", "cut"):
            self.set_open(self._open ^ {shown.key}, self.anchor(box, at))

    def activate(self, box: int, at: QPointF | None = None) -> None:
        """Ask to run to a node; open or close anything else."""
        assert self.facts is not None
        shown = self.facts.visible.boxes[box]
        if shown.kind == "node" and shown.node is not None:
            self.run_to_requested.emit(shown.node)
        else:
            self.toggle(box, at)

    def close_around(self, box: int) -> None:
        """Close an open box, or the one around a node or a closed box, and select it."""
        geometry = self._item.geometry
        around = [box] if geometry.open[box] else geometry.around(box)
        if around:
            self.select_box(around[0])
            self.toggle(around[0])

    def open_inside(self, box: int, at: QPointF | None = None) -> None:
        """Open a box and all boxes in it."""
        assert self.facts is not None and self._hierarchy is not None
        within = self._hierarchy.keys_within(self.facts.visible.boxes[box].key)
        self.set_open(self._open | within, self.anchor(box, at))

    def open_all(self) -> None:
        """Open every box: the picture is then the graph itself."""
        if self._hierarchy is not None:
            self.set_open(self._hierarchy.open_all())

    def close_all(self) -> None:
        """Close every box and show the whole picture."""
        if self._open:
            self._open = frozenset()
            self._ask_for_layout(self.look_at_start)

    def open_to(self, node: int) -> None:
        """Select a node and open what hides it."""
        if self._hierarchy is None:
            self._arrive = lambda: self.open_to(node)
        elif self._hidden(node):
            self._open |= self._hierarchy.keys_to(node)
            self._ask_for_layout(lambda: self._go_to(node))
        elif self.laid_out:
            self._go_to(node)
        else:
            self._arrive = lambda: self._go_to(node)

    def _go_to(self, node: int) -> None:
        if self.zoom < LEGIBLE_ZOOM:
            center = self.node_rect(node).center()
            self.set_view(LEGIBLE_ZOOM, center.x(), center.y())
        self.select(node)

    def set_direction(self, direction: Direction) -> None:
        """`backward`: the loss at the top, arrows the way of the gradient; `forward`: the leaves
        at the top, arrows the way of the data."""
        if direction != self._direction:
            self._direction = direction
            self._lay_out_again()

    def set_style(self, style: EdgeStyle) -> None:
        """Draw links as curves or with right angles."""
        if style != self._style:
            self._style = style
            self._lay_out_again()

    def _lay_out_again(self) -> None:
        anchor = self.anchor(self._item.selected)
        self._ask_for_layout(lambda: self.settle(anchor))

    # -- search, filter, paths, breakpoints --------------------------------------------------------

    def search(self, query: str, filter_key: str = "all") -> None:
        """Mark the nodes that hold every word of `query` and pass a filter of `graph_finder`;
        the rest is dimmed. Nothing is marked for an empty query and `all`."""
        if self._marks is not None:
            self._marks.finder.search(query, filter_key)
            self._show_marks()
            self._tell_hits()

    def next_hit(self, step: int = 1) -> None:
        """Select the next hit (the one before: -1), opening what hides it."""
        node = self._marks.finder.step(step) if self._marks is not None else None
        if node is not None:
            self.open_to(node)
            self._tell_hits()

    def _tell_hits(self) -> None:
        assert self._marks is not None
        finder = self._marks.finder
        self.hits_changed.emit(finder.place, -1 if finder.hits is None else finder.count)

    def show_paths(self, on: bool) -> None:
        """Highlight the ways from the selection to the loss and to the leaves; dim the rest."""
        self._paths = on
        self._show_marks()

    def show_breakpoints(self, keys: Collection[str]) -> None:
        """Put a dot on the boxes of these keys, or on the closed boxes around them."""
        self._breakpoints = frozenset(keys)
        self._show_marks()

    def _show_marks(self) -> None:
        if self._marks is not None:
            self._marks.apply(self._item, self._paths, self._breakpoints)
            self.map.refresh()

    # -- gestures --------------------------------------------------------------------------------

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if self.pan_event(event):
            return
        if event.button() != Qt.MouseButton.LeftButton:
            super().mousePressEvent(event)
            return
        box = self.box_at(event.position())
        self._on_chevron = box is not None and self.is_on_chevron(box, event.position())
        if box is not None:
            self.select_box(box)
            if self._on_chevron:
                self.toggle(box, event.position())
        self._pan_from = event.position().toPoint()  # to drag is to pan, wherever it begins

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        box = self.box_at(event.position())
        if box is not None and event.button() == Qt.MouseButton.LeftButton:
            if not self._on_chevron:  # its first click has opened or closed
                self.activate(box, event.position())
        else:
            super().mouseDoubleClickEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if not graph_keys.press(self, event):
            super().keyPressEvent(event)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        at = QPointF(event.pos())
        self.fill_menu(menu, self.box_at(at, body=True), at)
        menu.popup(event.globalPos())

    def fill_menu(self, menu: QMenu, box: int | None, at: QPointF | None = None) -> None:
        graph_menu.fill(menu, self, box, at)
