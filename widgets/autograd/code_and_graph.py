"""A graph's picture with the code that made it: at its left, or above it in a narrow window."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QSplitter

from widgets.autograd.graph_code import GraphCode
from widgets.graph.pane import GraphPane
from widgets.theme import GRID

_CODE_PX = 46 * GRID
"""The width of the code at the graph's left: a line of an example fits."""
_BESIDE_MIN_PX = 96 * GRID
"""The least width in which the code stands at the left."""


class CodeAndGraph(QSplitter):
    """`code` and `pane` share the room; without code the picture has all of it."""

    def __init__(self, code: GraphCode, pane: GraphPane) -> None:
        super().__init__(Qt.Orientation.Vertical)
        self.setObjectName("code_and_graph")
        self.code, self.pane = code, pane
        self.addWidget(code)
        self.addWidget(pane)
        self.setChildrenCollapsible(False)
        self.setStretchFactor(1, 1)

    def arrange(self) -> None:
        """Place the code for the width, and give it the room that it asks for."""
        beside = self.width() >= _BESIDE_MIN_PX
        self.setOrientation(Qt.Orientation.Horizontal if beside else Qt.Orientation.Vertical)
        if beside:
            self.setSizes([_CODE_PX, max(self.width() - _CODE_PX, 1)])
        else:
            high = min(self.code.sizeHint().height(), self.height() // 3)
            self.setSizes([high, max(self.height() - high, 1)])

    def minimumSizeHint(self) -> QSize:
        """As wide as the picture: the code goes above it."""
        hint = super().minimumSizeHint()
        hint.setWidth(self.pane.minimumSizeHint().width())
        return hint

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        beside = self.width() >= _BESIDE_MIN_PX
        if beside != (self.orientation() == Qt.Orientation.Horizontal):
            self.arrange()
