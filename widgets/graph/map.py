"""The whole autograd graph in a corner of its picture."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QMargins, QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPixmap, QTransform

from widgets import make, theme
from widgets.diagram.map import DiagramMap
from widgets.theme import GRID

if TYPE_CHECKING:
    from widgets.diagram.view import DiagramView
    from widgets.graph.painting.item import GraphItem


class GraphMap(DiagramMap):
    """Boxes in the colours of their states. They are painted once until `refresh`: a pan only moves
    the frame over them. Its form is that of the graph: a chain has a narrow map."""

    EDGE_PX = GRID
    MIN_SIZE = QSize(6 * GRID, 6 * GRID)

    def __init__(self, view: DiagramView, item: GraphItem) -> None:
        super().__init__(
            view, "The whole graph. The frame is what you see: drag it to look elsewhere."
        )
        make.named(self, "graph_map", "Map of the graph")
        self._item = item
        self._picture: QPixmap | None = None
        theme.notifier.changed.connect(self.refresh)

    def fit_graph(self) -> None:
        """Take the form of the graph that is shown."""
        margin = round(self.MARGIN_PX)
        room = self.SIZE.shrunkBy(QMargins(margin, margin, margin, margin))
        size = self.world().size().scaled(room, Qt.AspectRatioMode.KeepAspectRatio).toSize()
        fitting = size.grownBy(QMargins(margin, margin, margin, margin)).expandedTo(self.MIN_SIZE)
        if fitting != self.size():
            self.setFixedSize(fitting)
            self.refresh()

    def is_drawn_on(self, rect: QRectF) -> bool:
        """Whether a node, or a closed box, lies there."""
        geometry = self._item.geometry
        return not geometry.open[geometry.boxes_in(rect)].all()

    def refresh(self) -> None:
        """Paint the boxes again: they have changed."""
        self._picture = None
        self.update()

    def world(self) -> QRectF:
        return self._view.content_rect()

    def paint_content(self, painter: QPainter, to_map: QTransform) -> None:
        if self._picture is None:
            scale = self.devicePixelRatioF()
            self._picture = QPixmap(self.size() * scale)
            self._picture.setDevicePixelRatio(scale)
            self._picture.fill(Qt.GlobalColor.transparent)
            content = QPainter(self._picture)
            content.setTransform(to_map)
            self._item.paint_map(content)
            content.end()
        painter.drawPixmap(0, 0, self._picture)
