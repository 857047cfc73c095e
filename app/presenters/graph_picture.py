"""The graph's picture: the graph as a file for other programs, and the code that made a node."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QObject

from app.workbench import Workbench
from widgets.autograd.graph_files import save_graph
from widgets.autograd.graph_pane import GraphPane

_FILTERS = {
    "dot": "Graphviz DOT (*.dot)",
    "json": "Tensor Lab graph (*.json)",
    "graphml": "GraphML (*.graphml)",
}


class GraphPicturePresenter(QObject):
    def __init__(self, bench: Workbench, pane: GraphPane, parent: QObject) -> None:
        super().__init__(parent)
        self._bench, self._view = bench, pane.view
        pane.bar.export_requested.connect(self.export)
        pane.view.code_requested.connect(self._show_code)

    def export(self, form: str) -> None:
        """Ask for a file and write the graph to it: `dot`, `json` or `graphml`."""
        hierarchy = self._view.hierarchy
        if hierarchy is None:
            return
        start = Path(self._bench.files.path).parent if self._bench.files.path else Path.home()
        suggested = str(start / f"{self._bench.store.project.name} graph.{form}")
        path = self._bench.dialogs.save_path(
            self._bench.window, "Save graph", suggested, _FILTERS[form]
        )
        if not path:
            return
        path = path if Path(path).suffix else f"{path}.{form}"
        try:
            save_graph(path, hierarchy, self._view.open_keys)
        except (OSError, ValueError) as error:
            self._bench.window.say(f"The graph was not saved: {error}")
        else:
            self._bench.window.say(f"The graph was saved to {path}")

    def _show_code(self, node: int) -> None:
        """A block's code lies on the Model page; of any other line its text is told."""
        facts = self._view.facts
        if facts is None:
            return
        made = facts.graph.nodes[node]
        if made.block is not None and any(
            block.id == made.block for block in self._bench.store.project.model.blocks
        ):
            self._bench.window.show_workspace("model")
            self._bench.selection.set((made.block,))
        elif made.source is not None:
            line = made.source
            self._bench.window.say(f"{line.file}, line {line.line}: {line.text}")
