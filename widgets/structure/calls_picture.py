"""The calls of modules in one recorded forward, as boxes within boxes."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from widgets import make
from widgets.graph.pane import GraphPane
from widgets.graph.view import GraphView


class CallsGraph(GraphView):
    """A graph to look at: no backward pass is stepped in it. `module_chosen(path)`: the reader has
    selected a box or node of this module; "" outside all modules. Paths are those of the graph."""

    module_chosen = Signal(str)
    steps = False

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        make.named(self, "structure_graph", "Calls of modules in one forward")

    def select_box(self, box: int) -> None:
        super().select_box(box)
        assert self.facts is not None and self._hierarchy is not None
        shown = self.facts.visible.boxes[box]
        if shown.kind != "cut":
            self.module_chosen.emit(self._hierarchy.module_of(shown.key))

    def show_module(self, path: str) -> None:
        """Select the box of a module's first call, open what is around it, and bring it into view;
        emits nothing. A module that is not in the picture leaves nothing selected."""
        if self._hierarchy is None:
            self._arrive = self._then_show(path)
            return
        found = self._hierarchy.box_of_module(path)
        if found is None:
            self.select_none()
        elif not found[1] <= self._open:
            self._open |= found[1]
            self._ask_for_layout(self._then_show(path))
        elif not self.laid_out:
            self._arrive = self._then_show(path)
        elif self.facts is not None:
            key = found[0]
            self._selected_node = int(key[1:]) if key.startswith("#") else None
            self._mark(self.facts.index_of[key])
            self._reveal_selected()

    def _then_show(self, path: str) -> Callable[[], None]:
        """Shows the module; called once the picture is laid out."""
        return lambda: self.show_module(path)


class CallsPane(GraphPane):
    """`view` shows the calls, in the way of the data; `bar` searches, opens and saves."""

    def __init__(self, parent: QWidget | None = None) -> None:
        self.view: CallsGraph
        super().__init__(CallsGraph(), parent)
        self.bar.turn_forward()
