"""The bar over the graph with the roots of the graph."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QComboBox, QToolButton, QWidget

from engine.project.examples import graph_examples
from engine.protocol import GraphSnapshot, Variable
from widgets import make
from widgets.boxes.graph_words import leaves_of
from widgets.text import format_bytes, format_shape
from widgets.theme import GRID

MODEL = "loss of the model"
OWN_BACKWARD_TIP = (
    "While this is on, each loss.backward() in your own code, a cell or a file, opens here at its"
    " root and waits: step it, then let it go on. The gradients are those that it would have made."
)
_WIDTH = 32 * GRID


class RootBar(QWidget):
    """`root_chosen(expression)` asks for the graph of a tensor of the console (`loss`, `y.grad`;
    several separated by commas), or with "" for that of the loss of the subject. `again_wanted()`:
    read the graph of the same root again."""

    root_chosen = Signal(str)
    again_wanted = Signal()
    example_chosen = Signal(object)
    """A GraphExample whose graph the reader wants to see."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("root_bar")
        self._root, self._is_example = "", False
        self._box = make.combo("graph_root", "Tensor whose graph is read")
        self._box.setEditable(True)
        self._box.setInsertPolicy(QComboBox.InsertPolicy.NoInsert)
        # A completer would turn a typed `loss` into the loss of the model.
        self._box.setCompleter(None)  # type: ignore[arg-type]
        self._box.setMinimumWidth(_WIDTH)
        self._box.setToolTip(
            "Whose graph is read: the loss of the subject, or any tensor of the console that has a"
            " grad_fn. Type an expression such as loss, x.grad or a, b and press Enter;"
            " Enter also reads the graph again."
        )
        self._box.addItem(MODEL, "")
        self._box.activated.connect(self._choose)
        edit = self._box.lineEdit()
        assert edit is not None
        edit.returnPressed.connect(self._enter)
        label = make.label("Graph of", of=self._box)
        self._facts = make.text("graph_facts", "muted", width="any")
        self.own_backward = make.check("own_backward", "Step my backward", OWN_BACKWARD_TIP)
        parts = (label, self._box, self._examples_button(), (self._facts, 1), self.own_backward)
        make.row(*parts, on=self, margins=(2 * GRID, GRID // 2, 2 * GRID, GRID // 2))

    def _examples_button(self) -> QToolButton:
        button = make.tool_button(
            "graph_examples",
            "mdi6.school-outline",
            text="Examples",
            accessible="Examples of graphs",
            framed=True,
        )
        button.setToolTip(
            "Small graphs to step through by hand. Their code runs in the console, so that its"
            " variables stay."
        )
        menu = make.menu(button, accessible="Examples", tips=True)
        for example in graph_examples().values():
            make.action(
                menu,
                example.title.replace("&", "&&"),
                lambda each=example: self.example_chosen.emit(each),
                tip=f"{example.tip}\n\n{example.code}".rstrip(),
            )
        return button

    @property
    def root(self) -> str:
        """The expression chosen, empty for the model's loss."""
        return self._root

    @property
    def newest(self) -> str:
        """The newest tensor of the console that has a graph, empty if none has."""
        return self._box.itemData(1) if self._box.count() > 1 else ""

    def show_root(self, root: str, is_example: bool = False) -> None:
        """Show `root` as chosen; with `is_example`, the console's tensor of this name is another
        one."""
        self._root, self._is_example = root, is_example
        self._show_root()

    def choose(self, root: str) -> None:
        """Show `root` as chosen, and emit it."""
        self.show_root(root)
        self.root_chosen.emit(root)

    def show_variables(self, variables: Sequence[Variable]) -> None:
        """Offer the tensors that have a graph, newest first."""
        offered = [v for v in reversed(variables) if v.kind == "tensor" and v.grad_fn]
        self._box.blockSignals(True)
        self._box.clear()
        self._box.addItem(MODEL, "")
        for variable in offered:
            title = f"{variable.name}  {format_shape(variable.shape or ())} · {variable.grad_fn}"
            self._box.addItem(title, variable.name)
        self._box.blockSignals(False)
        self._show_root()

    def show_graph(self, graph: GraphSnapshot | None) -> None:
        """Show the size of the graph."""
        if graph is None:
            self._facts.clear()
            return
        count, shown = len(graph.nodes) + graph.truncated, ""
        if graph.truncated:
            shown = f"; the {len(graph.nodes):,} nearest to the root are shown"
        leaves = leaves_of(sum(node.kind == "leaf" for node in graph.nodes))
        saved = format_bytes(graph.saved_bytes)
        text = f"{count:,} nodes ({leaves}{shown}) · {saved} saved for backward"
        if cuts := sum(cut.reason not in ("input", "integer") for cut in graph.cuts):
            text += f" · {cuts:,} {'cut' if cuts == 1 else 'cuts'}"
        if stale := len(graph.stale):
            text += f" · {stale:,} overwritten since: backward will fail"
        if freed := sum(node.freed for node in graph.nodes):
            text += f" · {freed:,} freed by a backward pass: another cannot run them"
        self._facts.setText(text)
        self._facts.setToolTip(
            f"{text}. What backward needs from forward; a storage that nodes share counts once."
        )

    def _show_root(self) -> None:
        place = -1 if self._is_example else self._box.findData(self._root)
        self._box.setCurrentIndex(place)
        if place < 0:
            self._box.setEditText(self._root)

    def _choose(self, place: int) -> None:
        self.choose(self._box.itemData(place))

    def _enter(self) -> None:
        text = self._box.currentText().strip()
        place = self._box.findText(text)
        root = self._box.itemData(place) if place >= 0 else text
        if root == self._root:
            self.again_wanted.emit()
        else:
            self.choose(root)
