"""Saves the graph to a file for other programs."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import msgspec
from PySide6.QtCore import QObject

from app.workbench import Workbench
from engine.project.atomic import write_atomically
from widgets.graph.files import file_of_message, save_graph, suffix_of
from widgets.graph.pane import GraphPane
from widgets.graph.picture import AT_ONCE_NODES
from widgets.later import Later

SLOT = "graph file"
"""The slot of its requests to the layout worker."""

_FILTERS = {
    "dot": "Graphviz DOT (*.dot)",
    "json": "Tensor Lab graph (*.json)",
    "graphml": "GraphML (*.graphml)",
}


class GraphPicturePresenter(QObject):
    """`name` gives what a saved graph is called after; without it, the project."""

    def __init__(
        self,
        bench: Workbench,
        pane: GraphPane,
        parent: QObject,
        name: Callable[[], str] | None = None,
    ) -> None:
        super().__init__(parent)
        self._name = name or (lambda: bench.project.name)
        self._bench, self._view, self._bar = bench, pane.view, pane.bar
        self._writing = Later(self)
        pane.bar.export_requested.connect(self.export)
        pane.bar.stop_requested.connect(self.stop)

    def export(self, form: str) -> None:
        """Ask for a file and write the graph to it, as `dot`, `json` or `graphml`."""
        hierarchy = self._view.hierarchy
        if hierarchy is None:
            return
        name = f"{self._name()} graph.{form}"
        path = self._bench.files.ask_save_path("Save graph", name, _FILTERS[form])
        if not path:
            return
        keys, graph = self._view.open_keys, hierarchy.graph
        try:
            suffix = suffix_of(path)
            if len(graph.nodes) <= AT_ONCE_NODES:
                save_graph(path, hierarchy, keys)
                self._tell(path)
                return
        except (OSError, ValueError) as error:
            self._tell(path, error)
            return
        self._bar.show_saving(True)
        self._bench.say(f"Saving the graph of {len(graph.nodes):,} nodes to {path}…")
        self._bench.layout.submit(
            SLOT,
            file_of_message,
            suffix,
            msgspec.msgpack.encode(graph),
            keys,
            then=lambda data: self._write(path, cast(bytes, data)),
            otherwise=lambda error: self._tell(path, error),
        )

    def _write(self, path: str, data: bytes) -> None:
        def write() -> OSError | None:
            try:
                write_atomically(path, data)
            except OSError as error:
                return error
            return None

        self._bar.show_saving(False)  # writing cannot be stopped, and takes little time
        self._writing.run(write, lambda error: self._tell(path, error))

    def stop(self) -> None:
        """Stop saving the graph; a file of that name stays as it was."""
        self._bench.layout.cancel(SLOT)
        self._bar.show_saving(False)
        self._bench.say("The graph was not saved")

    def _tell(self, path: str, error: BaseException | None = None) -> None:
        self._bar.show_saving(False)
        if error is None:
            self._bench.say(f"The graph was saved to {path}")
        else:
            self._bench.say(f"The graph was not saved: {error}")
