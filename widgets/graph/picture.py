"""The drawn part of a graph: boxes that open in place, with a new layout each time."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from PySide6.QtCore import QPointF, Signal
from PySide6.QtWidgets import QWidget

from engine.protocol import GraphSnapshot
from widgets.boxes.boxes import VisibleGraph
from widgets.boxes.facts import GraphFacts
from widgets.boxes.hierarchy import Hierarchy
from widgets.graph import work
from widgets.graph.canvas import BUSY_TEXT, EMPTY_TEXT, Anchor, GraphCanvas
from widgets.graph.painting.geometry import GraphGeometry
from widgets.later import Later
from widgets.layout.outline import Direction, EdgeStyle, NestedLayout

AT_ONCE_NODES = 1_000
"""A graph of at most this many nodes is prepared in the window's thread, within a frame."""


class GraphPicture(GraphCanvas):
    """Shows a `GraphSnapshot` as boxes within boxes.

    Every opening or closing of boxes emits `layout_requested`. The picture changes when
    `show_layout` answers it; the box that was opened or closed then stays under the cursor.
    """

    layout_requested = Signal(object, str, str)
    """(VisibleGraph, direction, style of the links). The owner computes the layout outside of the
    window's thread and answers with `show_layout`."""
    changed = Signal()
    """The open boxes, the picture or the marks have changed."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._graph: GraphSnapshot | None = None
        self._names: Mapping[str, str] = {}
        self._hierarchy: Hierarchy | None = None
        self._open: frozenset[str] = frozenset()
        self._direction: Direction = "backward"
        self._style: EdgeStyle = "smooth"
        self._later = Later(self)
        self._under_way = False
        self._requested: VisibleGraph | None = None
        self._arrive: Callable[[], None] = self.look_at_start

    # -- the graph -------------------------------------------------------------------------------

    def show_graph(self, graph: GraphSnapshot, names: Mapping[str, str] | None = None) -> None:
        """Show a graph as soon as it is laid out; `names` are the blocks' names by id."""
        self.clear(BUSY_TEXT)
        self._graph, self._names = graph, names or {}
        self._begin(graph)
        self._arrive, self._under_way = self.look_at_start, True
        self._later.run(lambda: work.opened(graph), self._open_at_first, self._is_quick)

    @property
    def _is_quick(self) -> bool:
        return self._graph is None or len(self._graph.nodes) <= AT_ONCE_NODES

    def _open_at_first(self, built: tuple[Hierarchy, frozenset[str]]) -> None:
        self._hierarchy, self._open = built
        self._ask_for_layout(self._arrive)

    def show_layout(self, visible: VisibleGraph, layout: NestedLayout) -> None:
        """Draw a layout that `layout_requested` asked for; an answer to an older request is
        ignored."""
        if visible is not self._requested or self._graph is None:
            return
        graph, names, direction = self._graph, self._names, self._direction
        self._later.run(
            lambda: work.picture(graph, names, visible, layout, direction),
            self._show_picture,
            self._is_quick,
        )

    def _show_picture(self, picture: tuple[GraphFacts, GraphGeometry]) -> None:
        self._requested, self._under_way = None, False
        before, selected = self._item.facts, self._item.selected
        self._item.show_picture(*picture)
        self.resetCachedContent()
        self.setSceneRect(self.sceneRect().united(self._item.boundingRect()))
        self._draw_over(before, selected)
        self._arrive()
        self.place_map()
        self.show_busy(self._under_way)
        self.changed.emit()

    def clear(self, text: str = EMPTY_TEXT) -> None:
        """Show `text` instead of a graph."""
        self._later.drop()
        self._graph = self._hierarchy = self._requested = None
        self._open = frozenset()
        self._empty_text = text
        self._item.clear()
        self.place_map()
        self.resetCachedContent()
        self.show_busy(False)
        self.changed.emit()

    @property
    def laid_out(self) -> bool:
        """Whether the picture shows the boxes that are open now."""
        return self._item.facts is not None and not self._under_way

    @property
    def hierarchy(self) -> Hierarchy | None:
        """All boxes of the graph that is shown."""
        return self._hierarchy

    def _ask_for_layout(self, arrive: Callable[[], None]) -> None:
        """Ask for a picture of the boxes that are open now; `arrive` is called when it is there."""
        self._arrive = arrive
        hierarchy, keys = self._hierarchy, self._open
        if hierarchy is None:
            return
        self._requested, self._under_way = None, True
        self.show_busy(True)
        self._later.run(
            lambda: work.outlined(hierarchy, keys), self._request_layout, self._is_quick
        )

    def _request_layout(self, visible: VisibleGraph) -> None:
        self._requested = visible
        self.layout_requested.emit(visible, self._direction, self._style)

    def _begin(self, graph: GraphSnapshot) -> None:
        """Called for a new graph: subclasses set up their data for it."""

    def _draw_over(self, before: GraphFacts | None, selected: int | None) -> None:
        """Called for a new picture: subclasses draw their states and marks over it. In the picture
        `before`, the box `selected` was selected."""

    # -- opening and closing ---------------------------------------------------------------------

    @property
    def open_keys(self) -> frozenset[str]:
        return self._open

    def set_open(self, keys: frozenset[str], anchor: Anchor | None = None) -> None:
        """Open exactly these boxes. `anchor` stays where it is on screen; without one the selected
        box does, or the box in the middle."""
        if keys != self._open:
            self._open = keys
            anchor = anchor or self.anchor(self._item.selected) or self.anchor_in_middle()
            self._ask_for_layout(lambda: self.settle(anchor))

    def toggle(self, box: int, at: QPointF | None = None) -> None:
        """Open a closed box or close an open one; `at` is the cursor's place in the viewport."""
        assert self.facts is not None
        shown = self.facts.visible.boxes[box]
        if shown.kind not in ("node", "cut"):
            self.set_open(self._open ^ {shown.key}, self.anchor(box, at))

    def open_inside(self, box: int, at: QPointF | None = None) -> None:
        """Open a box and all boxes in it."""
        assert self.facts is not None and self._hierarchy is not None
        within = self._hierarchy.keys_within(self.facts.visible.boxes[box].key)
        self.set_open(self._open | within, self.anchor(box, at))

    def open_all(self) -> None:
        """Open every box: the picture then shows every node."""
        if self._hierarchy is not None:
            self.set_open(self._hierarchy.open_all())

    def close_all(self) -> None:
        """Close every box and show the whole picture."""
        if self._open:
            self._open = frozenset()
            self._ask_for_layout(self.look_at_start)

    def set_direction(self, direction: Direction) -> None:
        """`backward`: the loss at the top, arrows along the gradient; `forward`: the leaves at the
        top, arrows along the data."""
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

    def _hidden(self, node: int) -> bool:
        """Whether a node is in a closed box of the picture, or of the next one if that is being
        computed."""
        if self._hierarchy is None or node >= len(self._hierarchy.graph.nodes):
            return False
        return not self._hierarchy.keys_to(node) <= self._open
