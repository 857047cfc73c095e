"""The view of an autograd graph: states of a pass, selection, search, keys, menu."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from PySide6.QtCore import QPointF, Qt, Signal
from PySide6.QtGui import QContextMenuEvent, QGuiApplication, QKeyEvent, QMouseEvent
from PySide6.QtWidgets import QMenu, QWidget

from engine.protocol import BackwardSnapshot, GraphSnapshot
from widgets import make
from widgets.boxes.facts import GraphFacts
from widgets.diagram.view import WHEEL_STEP
from widgets.graph import commands
from widgets.graph.canvas import EMPTY_TEXT, LEGIBLE_ZOOM
from widgets.graph.marks import GraphMarks
from widgets.graph.selected_picture import SelectedPicture


class GraphView(SelectedPicture):
    """A graph's picture with the progress of backward, the selection and the hits of a search.

    A click selects a box. A click on its chevron, or a double click anywhere on it, opens or closes
    it; a double click on a node asks to run to it. A drag pans. `commands` has the keys and the
    menu.
    """

    run_to_requested = Signal(int)
    breakpoint_toggled = Signal(str)
    """The key of a box: `#17` for node 17, else a module's path or a repeat."""
    hits_changed = Signal(int, int)
    """(number of the hit shown last, from 1, or 0; hits in all), -1 hits without a search."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        make.named(self, "autograd_graph", "Autograd graph")
        self._marks: GraphMarks | None = None
        self._backward: BackwardSnapshot | None = None
        self._paths = False
        self._breakpoints: frozenset[str] = frozenset()
        self._on_chevron = False
        self.follow = False
        """Open the boxes around the node that ran last."""

    def clear(self, text: str = EMPTY_TEXT) -> None:
        """Show `text` instead of a graph."""
        self._marks = self._backward = None
        super().clear(text)

    def _begin(self, graph: GraphSnapshot) -> None:
        self._marks = GraphMarks(graph, self._names)

    def _draw_over(self, before: GraphFacts | None, selected: int | None) -> None:
        super()._draw_over(before, selected)
        self._show_states()
        self._show_marks()

    # -- the progress of backward ------------------------------------------------------------------

    def show_backward(self, snapshot: BackwardSnapshot) -> None:
        """Mark the nodes that have run, the last of them and the next one; bring that into view."""
        if self._graph is None:
            return
        self._backward = snapshot
        self._show_states()
        self._bring_up_step()
        self._follow_pass(snapshot)

    def _bring_up_step(self) -> None:
        current, ready = self._current_and_ready()
        following = current if current is not None else ready
        if following is None or self._graph is None or self.facts is None:
            return
        if following >= len(self._graph.nodes):
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
        edited = np.zeros(len(self._graph.nodes), bool)
        for edit in self._backward.edits:
            if edit.node < len(edited):
                edited[edit.node] = True
        self._item.edited = self.facts.holds(edited) & ~self._item.geometry.open
        self.facts.show_states(self._graph.plan[: self._backward.position], current, ready)
        self._item.update()
        self.map.refresh()

    def state_of(self, node: int) -> int:
        """WAITING, READY, EXECUTED or CURRENT of `graph_facts`."""
        assert self.facts is not None
        return int(self.facts.states[node])

    def look_again(self) -> None:
        super().look_again()
        if self._backward is not None:
            self.show_backward(self._backward)
        self._reveal_selected()

    def _on_selected(self) -> None:
        if self._paths or self._item.lit is not None:
            self._show_marks()

    # -- opening and closing ---------------------------------------------------------------------

    def activate(self, box: int, at: QPointF | None = None) -> None:
        """Ask to run to a node; open or close any other box."""
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

    def open_to(self, node: int) -> None:
        """Select a node and open the boxes around it."""
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

    # -- search, filter, paths, breakpoints --------------------------------------------------------

    def search(self, query: str, filter_key: str = "all") -> None:
        """Mark the nodes that have every word of `query` and pass a filter (see `finder`), and dim
        the rest. An empty query and the filter `all` mark nothing."""
        if self._marks is not None:
            self._marks.finder.search(query, filter_key)
            self._show_marks()
            self._tell_hits()

    def next_hit(self, step: int = 1) -> None:
        """Select the next hit (-1: the one before), and open the boxes around it."""
        node = self._marks.finder.step(step) if self._marks is not None else None
        if node is not None:
            self.open_to(node)
            self._tell_hits()

    def _tell_hits(self) -> None:
        assert self._marks is not None
        finder = self._marks.finder
        self.hits_changed.emit(finder.place, -1 if finder.hits is None else finder.count)

    def show_paths(self, on: bool) -> None:
        """Highlight the paths from the selection to the loss and to the leaves; dim the rest."""
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
        self._pan_from = event.position().toPoint()  # a drag pans, also from a box

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        box = self.box_at(event.position())
        if box is not None and event.button() == Qt.MouseButton.LeftButton:
            if not self._on_chevron:  # the first click of the two has opened or closed the box
                self.activate(box, event.position())
        else:
            super().mouseDoubleClickEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        facts, box = self.facts, self.selected_box
        if facts is None or not facts.atom.size:
            super().keyPressEvent(event)
            return
        command = commands.of_key(event, None if box is None else facts.visible.boxes[box])
        if command:
            self._run_command(command, box)
        else:
            super().keyPressEvent(event)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        menu = make.context_menu(self)
        at = QPointF(event.pos())
        box = self.box_at(at, body=True)
        if box is not None:
            self.select_box(box)
        self.fill_menu(menu, box, at)
        make.pop_up(menu, event.globalPos())

    def fill_menu(self, menu: QMenu, box: int | None, at: QPointF | None = None) -> None:
        """The menu for a box (None: outside all boxes) and for the picture; `at` is the cursor in
        the viewport."""
        if self.facts is not None:
            for title, command in commands.of_menu(self.facts, box, self.steps):
                if title:
                    menu.addAction(
                        title, lambda command=command: self._run_command(command, box, at)
                    )
                else:
                    menu.addSeparator()
        menu.addAction("Fit\tF", self.fit)
        self.add_picture_actions(menu)

    def _run_command(self, command: str, box: int | None, at: QPointF | None = None) -> None:
        """Run a command of `commands`."""
        match command:
            case "zoom_in":
                self.zoom_by(WHEEL_STEP)
            case "zoom_out":
                self.zoom_by(1 / WHEEL_STEP)
            case "up" | "down" | "left" | "right":
                self.walk(command)
            case "open_all":
                self.open_all()
            case "close_all":
                self.close_all()
            case "select_none":
                self.select_none()
            case _:
                assert box is not None
                self._do_with_box(command, box, at)

    def _do_with_box(self, command: str, place: int, at: QPointF | None) -> None:
        assert self.facts is not None
        box = self.facts.visible.boxes[place]
        match command:
            case "activate":
                self.activate(place)
            case "toggle":
                self.toggle(place, at)
            case "close_around":
                self.close_around(place)
            case "open_inside":
                self.open_inside(place, at)
            case "run_to":
                self.run_to_requested.emit(box.node)
            case "breakpoint":
                self.breakpoint_toggled.emit(box.key)
            case "copy_name":
                QGuiApplication.clipboard().setText(commands.name_of(self.facts, place))
