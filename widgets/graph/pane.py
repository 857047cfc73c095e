"""The picture of a graph with its bar."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget

from widgets import make
from widgets.graph.bar import GraphBar
from widgets.graph.view import GraphView


class GraphPane(QWidget):
    """`view` shows the graph, `bar` controls it."""

    def __init__(self, view: GraphView | None = None, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.view = view or GraphView()
        self.bar = GraphBar(self.view, self)
        make.column(self.bar, (self.view, 1), on=self, gap=0)
