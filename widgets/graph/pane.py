"""The picture of a graph with its bar."""

from __future__ import annotations

from PySide6.QtWidgets import QVBoxLayout, QWidget

from widgets.graph.bar import GraphBar
from widgets.graph.view import GraphView


class GraphPane(QWidget):
    """`view` shows the graph, `bar` drives it."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.view = GraphView()
        self.bar = GraphBar(self.view, self)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(self.bar)
        layout.addWidget(self.view, 1)
