"""Step through and the selection: what is chosen in its lists and on its graph, and what is lit
there because it was chosen elsewhere."""

from __future__ import annotations

from PySide6.QtCore import QObject, QSignalBlocker

from app.selection.finding import leaf_named, lines_of, module_box, nodes_of
from app.selection.known import leaf_reference, within
from app.selection.references import Blocks, Line, Module, Node, Reference
from app.workbench import Workbench
from engine.protocol import BackwardSnapshot, ForwardSnapshot, GraphSnapshot
from widgets.autograd.autograd_view import AutogradView

GRAPH, GRADIENTS, CODE = "graph", "gradients", "code"


class ChosenPresenter(QObject):
    """Is made after the presenter that draws the graph, which then is there first."""

    def __init__(self, bench: Workbench, view: AutogradView, parent: QObject) -> None:
        super().__init__(parent)
        self._bench, self._view = bench, view
        self._brings_up = False
        view.forward.blocks.chosen.connect(self._choose_block)
        view.node_selected.connect(self._choose_node)
        view.graph.module_selected.connect(self._choose_module)
        view.backward.table.inspect_requested.connect(self._choose_gradient)
        view.code.line_chosen.connect(self._choose_line)
        bench.selection.views[view.graph] = GRAPH
        bench.selection.views[view.backward.table] = GRADIENTS
        bench.selection.views[view.code] = CODE
        bench.selection.changed.connect(self._follow)
        bench.store.on(GraphSnapshot, self._on_graph)
        bench.store.on(BackwardSnapshot, lambda _: self._light_gradient(bench.selection.current))

    # -- what is chosen here ---------------------------------------------------------------------

    def _choose_block(self, block: str) -> None:
        if any(block == known.id for known in self._bench.project.model.blocks):
            self._choose(Blocks((block,)))

    def _choose_node(self, node: int) -> None:
        graph = self._bench.newest(GraphSnapshot)
        if graph is not None:
            self._choose(Node(node, graph.reply_to))

    def _choose_module(self, path: str) -> None:
        inner = within(path, self._bench.known.graph_path())
        if inner is not None:
            self._choose(Module(inner))

    def _choose_gradient(self, _of: str, name: str) -> None:
        if not name.isdecimal():  # else it is a node
            self._bench.selection.choose(leaf_reference(name, self._bench.known), GRADIENTS)

    def _choose_line(self, file: str, line: int) -> None:
        self._bench.selection.choose(Line(file, line), CODE)

    def _choose(self, reference: Reference) -> None:
        self._bench.selection.choose(reference, GRAPH)

    # -- what is brought into view ---------------------------------------------------------------

    def show_nodes(self) -> None:
        """Bring the nodes of what is chosen into view, also if the graph has the focus."""
        self._light_nodes(self._bench.selection.current)
        self._view.graph.bring_up_chosen()

    def show_nodes_when_drawn(self) -> None:
        """As `show_nodes`, on the next graph."""
        self._brings_up = True

    def show_gradient(self, reference: Reference) -> None:
        """Select a parameter's row, which shows its gradient, or else its values."""
        name = self._gradient_name(reference)
        if name is not None:
            self._view.backward.table.choose(name)

    def show_lines(self) -> None:
        """Bring the lines of what is chosen into view, also if the code has the focus."""
        self._view.code.reveal_chosen()

    # -- what is lit -----------------------------------------------------------------------------

    def _on_graph(self, _: GraphSnapshot) -> None:
        self._light_nodes(self._bench.selection.current)
        if self._brings_up:
            self._brings_up = False
            self._view.graph.bring_up_chosen()

    def _follow(self, reference: Reference | None) -> None:
        self._light_block()
        self._light_nodes(reference)
        self._light_gradient(reference)

    def _light_block(self) -> None:
        forward, blocks = self._bench.newest(ForwardSnapshot), self._bench.selected_blocks
        if forward is not None and len(blocks) == 1 and blocks[0] in forward.order:
            rows = self._view.forward.blocks
            with QSignalBlocker(rows):
                rows.setCurrentRow(forward.order.index(blocks[0]))

    def _light_nodes(self, reference: Reference | None) -> None:
        known = self._bench.known
        self._view.graph.show_chosen(nodes_of(reference, known), module_box(reference, known))
        lines = lines_of(reference, known)
        self._view.code.show_chosen([(line.file, line.line) for line in lines])

    def _light_gradient(self, reference: Reference | None) -> None:
        self._view.backward.table.show_chosen(self._gradient_name(reference))

    def _gradient_name(self, reference: Reference | None) -> str | None:
        backward = self._bench.newest(BackwardSnapshot)
        names = [gradient.name for gradient in backward.gradients] if backward is not None else []
        return leaf_named(reference, names, self._bench.known)
