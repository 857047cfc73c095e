"""A graph's picture that asks for the numbers of the nodes in view, and shows them."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from engine.protocol import BackwardSnapshot, GraphNumbersSnapshot
from widgets.boxes.facts import GraphFacts
from widgets.boxes.numbers import GraphNumbers
from widgets.graph.canvas import EMPTY_TEXT
from widgets.graph.painting.geometry import TEXT_MIN_ZOOM
from widgets.graph.picture import GraphPicture

MOST_NUMBERED = 400
"""Nodes whose numbers are asked for at once."""


class NumberedPicture(GraphPicture):
    """Asks once a pass has started, and as nodes come into view."""

    numbers_wanted = Signal(object)
    """Asks for the numbers of these nodes (a tuple of ids); `show_numbers` answers."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._numbers = GraphNumbers()
        self._asked: frozenset[int] | None = None
        self.changed.connect(self._ask_for_more)

    def clear(self, text: str = EMPTY_TEXT) -> None:
        self._numbers, self._asked = GraphNumbers(), None
        super().clear(text)

    def show_numbers(self, snapshot: GraphNumbersSnapshot | BackwardSnapshot) -> None:
        """Show the numbers of nodes; those of all others are taken away."""
        self._numbers = GraphNumbers(snapshot.numbers)
        if self.facts is not None:
            self.facts.numbers = self._numbers
            self._item.update()

    def _follow_pass(self, snapshot: BackwardSnapshot) -> None:
        """Show the numbers that came with a step; ask if it has none, or not those in view."""
        if self._asked is None or not snapshot.numbers:
            self._asked = frozenset()
        else:
            self.show_numbers(snapshot)
        self._ask_for_more()

    def _ask_for_more(self) -> None:
        """Ask if there are nodes in view whose numbers do not come with each step."""
        if self._asked is None or self.facts is None or self.zoom < TEXT_MIN_ZOOM:
            return
        seen, geometry = self.visible_rect(), self._item.geometry
        boxes, links = geometry.boxes_in(seen).tolist(), geometry.links_in(seen).tolist()
        wanted = self.facts.numbered(boxes, links)
        if not wanted <= self._asked:
            self._asked = wanted
            self.numbers_wanted.emit(tuple(sorted(wanted)[:MOST_NUMBERED]))

    def _draw_over(self, before: GraphFacts | None, selected: int | None) -> None:
        if self.facts is not None:
            self.facts.numbers = self._numbers

    def _on_view_changed(self) -> None:
        super()._on_view_changed()
        self._ask_for_more()
