"""The picture of a graph with its selection: the box that the user has selected, and those that
another view has chosen."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from widgets.boxes.facts import GraphFacts
from widgets.graph.canvas import EMPTY_TEXT, LEGIBLE_ZOOM
from widgets.graph.numbered_picture import NumberedPicture


class SelectedPicture(NumberedPicture):
    """A node that is selected stays so, whichever boxes are open; while it is in a closed box, that
    box is marked."""

    node_selected = Signal(int)
    module_selected = Signal(str)
    """The path of a module: its box was selected."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._selected_node: int | None = None
        self._chosen: tuple[int, ...] = ()  # nodes that another view has chosen
        self._chosen_module = ""

    def clear(self, text: str = EMPTY_TEXT) -> None:
        self._selected_node = None
        self._chosen, self._chosen_module = (), ""
        super().clear(text)

    def _draw_over(self, before: GraphFacts | None, selected: int | None) -> None:
        self._item.selected = self._box_after(before, selected)
        self._light_chosen()
        super()._draw_over(before, selected)

    @property
    def selected(self) -> int | None:
        """The selected node; None without a selection, or if a module's box is selected."""
        return self._selected_node

    @property
    def selected_box(self) -> int | None:
        """The index of the selected box."""
        return self._item.selected

    def select(self, node: int) -> None:
        """Select a node, bring it or the closed box around it into view, and emit the selection."""
        self.show_selected(node)
        self.node_selected.emit(node)

    def show_selected(self, node: int) -> None:
        """As `select`, without emitting."""
        self._selected_node = node
        self._forget_chosen()
        if self.facts is not None:
            self._mark(self.box_of(node))
            self._reveal_selected()

    def show_chosen(self, nodes: Sequence[int], module: str = "") -> None:
        """Light the nodes that another view has chosen, or the box of `module` if it is in the
        picture; one of them is selected. Emits nothing, opens nothing, and scrolls only while the
        view does not have the focus."""
        if not nodes:
            if self._item.selected is not None or self._selected_node is not None:
                self.select_none()
            return
        self._chosen, self._chosen_module = tuple(nodes), module
        if self._selected_node not in self._chosen:
            self._selected_node = nodes[0]
        if self.facts is None:
            return
        box = self._box_after(self.facts, self._item.selected)
        self._light_chosen()
        if box is not None:
            self._mark(box)
        if not self.hasFocus():
            self._reveal_selected()

    def bring_up_chosen(self) -> None:
        """Open the boxes around what was chosen, and bring it into view."""
        if not self._chosen:
            return
        if self._hierarchy is None:
            self._arrive = self.bring_up_chosen
            return
        found = self._hierarchy.box_of_module(self._chosen_module) if self._chosen_module else None
        around = self._hierarchy.keys_to(self._chosen[0]) if found is None else found[1]
        if not around <= self._open:
            self._open |= around
            self._ask_for_layout(self.bring_up_chosen)
        elif not self.laid_out:
            self._arrive = self.bring_up_chosen
        elif self._item.selected is not None:
            if self.zoom < LEGIBLE_ZOOM:
                at = self._item.geometry.head_rect(self._item.selected).center()
                self.set_view(LEGIBLE_ZOOM, at.x(), at.y())
            self._reveal_selected()

    def _forget_chosen(self) -> None:
        self._chosen, self._chosen_module = (), ""
        self._light_chosen()

    def _light_chosen(self) -> None:
        """Light the boxes of what was chosen: all calls of a module, or nodes."""
        self._item.chosen = None
        if self.facts is None or not self._chosen:
            return
        boxes = self._module_boxes()
        if not boxes:
            nodes = np.zeros(len(self.facts.graph.nodes), bool)
            nodes[list(self._chosen)] = True
            closed = ~self._item.geometry.open & ~self.facts.cut
            boxes = np.flatnonzero(self.facts.holds(nodes) & closed).tolist()
        chosen = np.zeros(len(self.facts.visible.boxes), bool)
        chosen[boxes] = True
        self._item.chosen = chosen
        self._item.update()

    def _module_boxes(self) -> list[int]:
        """The boxes of the chosen module: one for each of its calls."""
        assert self.facts is not None
        boxes = enumerate(self.facts.visible.boxes)
        return [
            index
            for index, box in boxes
            if box.kind == "module" and box.key.partition("@")[0] == self._chosen_module
        ]

    def select_box(self, box: int) -> None:
        """Select a box by its index, without scrolling; a node's own box selects the node."""
        assert self.facts is not None
        shown = self.facts.visible.boxes[box]
        self._selected_node = shown.node if shown.kind == "node" else None
        self._forget_chosen()
        self._mark(box)
        if self._selected_node is not None:
            self.node_selected.emit(self._selected_node)
        elif shown.kind == "module":
            self.module_selected.emit(shown.key.partition("@")[0])

    def select_none(self) -> None:
        self._selected_node = self._item.selected = None
        self._forget_chosen()
        self.setAccessibleDescription("")
        self._on_selected()
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
        self._on_selected()
        self.changed.emit()

    def _on_selected(self) -> None:
        """Called when another box, or none, is selected."""

    def _reveal_selected(self) -> None:
        if self._item.selected is not None:
            self.reveal(self._item.geometry.head_rect(self._item.selected))

    def look_again(self) -> None:
        super().look_again()
        self._reveal_selected()

    def _box_after(self, before: GraphFacts | None, selected: int | None) -> int | None:
        """The selection in a new picture: the same box, or the closed box around it."""
        assert self.facts is not None
        calls = self._module_boxes() if self._chosen else []
        if calls:
            self._selected_node = None
            key = "" if before is None or selected is None else before.visible.boxes[selected].key
            same = self.facts.index_of.get(key)
            return same if same in calls else calls[0]
        if self._selected_node is not None:
            return self.box_of(self._selected_node)
        while before is not None and selected is not None:
            box = before.visible.boxes[selected]
            if box.key in self.facts.index_of:
                return self.facts.index_of[box.key]
            selected = box.parent
        return None
