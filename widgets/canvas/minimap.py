"""The map of a model: its blocks as coloured boxes."""

from __future__ import annotations

from PySide6.QtCore import QRectF, Qt
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

    def __init__(self, view: DiagramView, scene: ModelScene) -> None:
        super().__init__(
            view, "The whole model. The frame is what you see: drag it to look elsewhere."
        )
        self._scene = scene
        scene.changed.connect(lambda *_: self.follow())
        view.view_changed.connect(lambda *_: self.follow())

    def follow(self) -> None:
        """Take the place that suits what is in sight."""
        self.take_corner()
        if self._drag_transform is None:
            in_sight = self._view.visible_rect().contains(self._scene.content_rect())
            self.setVisible(bool(self._scene.blocks) and not in_sight)
        self.update()

    def is_drawn_on(self, rect: QRectF) -> bool:
        """Whether a block or its problem lies there."""
        return bool(self._scene.things().near(rect))

    def world(self) -> QRectF:
        return self._scene.content_rect() | self._view.visible_rect()

    def paint_content(self, painter: QPainter, to_map: QTransform) -> None:
        colors = theme.current()
        painter.setPen(QPen(colors.color("intermediate", 130), 1))
        for wire in self._scene.wires.values():
            start, end = wire.ends
            painter.drawLine(to_map.map(start), to_map.map(end))
        for item in self._scene.blocks.values():
            problem = item.problem_role() == "error"
            color = colors.color("error") if problem else style.group_color(item.kind.group)
            painter.fillRect(to_map.mapRect(item.rect()), color)
            if item.isSelected():
                painter.setPen(QPen(colors.color("accent"), 1.5))
                painter.setBrush(Qt.BrushStyle.NoBrush)
                painter.drawRect(to_map.mapRect(item.rect()).adjusted(-1.5, -1.5, 1.5, 1.5))
