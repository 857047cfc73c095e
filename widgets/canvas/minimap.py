"""The map of a model: its blocks as coloured boxes."""

from __future__ import annotations

from PySide6.QtCore import QPoint, QPointF, QRectF, QSizeF, Qt
from PySide6.QtGui import QPainter, QPen, QTransform

from widgets import theme
from widgets.diagram import style
from widgets.diagram.map import DiagramMap
from widgets.diagram.view import DiagramView

from .scene import ModelScene


class Minimap(DiagramMap):
    """The blocks of a model as coloured boxes.

    It is hidden while all blocks are in sight, and goes from the lower right corner to the upper
    one if it would cover a block there, or a problem's words.
    """

    EDGE_PX = 16

    def __init__(self, view: DiagramView, scene: ModelScene) -> None:
        super().__init__(
            view, "The whole model. The frame is what you see: drag it to look elsewhere."
        )
        self._scene = scene
        scene.changed.connect(lambda *_: self.follow())
        view.view_changed.connect(lambda *_: self.follow())

    def follow(self) -> None:
        """Take the place that suits what is in sight."""
        if self._drag_transform is None:
            view = self._view
            room, content = view.viewport().rect(), self._scene.content_rect()
            x = room.width() - self.width() - self.EDGE_PX
            bottom = QPoint(x, room.height() - self.height() - self.EDGE_PX)
            top = QPoint(x, self.EDGE_PX)
            here, there = (top, bottom) if self.pos() == top else (bottom, top)
            self.move(there if self._covers(here) and not self._covers(there) else here)
            in_sight = view.visible_rect().contains(content)
            self.setVisible(bool(self._scene.blocks) and not in_sight)
        self.update()

    def _covers(self, corner: QPoint) -> bool:
        """Whether the map would cover a block or its problem, with its top left corner there."""
        inverse, _ = self._view.viewportTransform().inverted()
        box = inverse.mapRect(QRectF(QPointF(corner), QSizeF(self.SIZE)))
        left, top, right, bottom = self._scene.things().T
        across = (left < box.right()) & (right > box.left())
        return bool((across & (top < box.bottom()) & (bottom > box.top())).any())

    def world(self) -> QRectF:
        return self._scene.content_rect() | self._view.visible_rect()

    def paint_content(self, painter: QPainter, to_map: QTransform) -> None:
        colors = theme.current()
        painter.setPen(QPen(colors.color("intermediate", 130), 1))
        for wire in self._scene.wires.values():
            start, end = wire.points[0], wire.points[-1]
            painter.drawLine(to_map.map(QPointF(*start)), to_map.map(QPointF(*end)))
        for item in self._scene.blocks.values():
            problem = item.problem_role() == "error"
            color = colors.color("error") if problem else style.group_color(item.kind.group)
            painter.fillRect(to_map.mapRect(item.rect()), color)
            if item.isSelected():
                painter.setPen(QPen(colors.color("accent"), 1.5))
                painter.setBrush(Qt.BrushStyle.NoBrush)
                painter.drawRect(to_map.mapRect(item.rect()).adjusted(-1.5, -1.5, 1.5, 1.5))
