"""A small map of the whole canvas: it shows which part is visible, and a click moves there."""

from __future__ import annotations

from PySide6.QtCore import QPoint, QPointF, QRectF, QSize, QSizeF, Qt
from PySide6.QtGui import QMouseEvent, QPainter, QPaintEvent, QPen, QTransform
from PySide6.QtWidgets import QWidget

from widgets import make, theme

from . import style
from .scene import ModelScene
from .view import CanvasView


class CanvasMap(QWidget):
    """A map of a canvas, with a frame around the visible part. A click or drag moves the visible
    part. Subclasses paint the content.
    """

    SIZE = QSize(176, 112)
    MARGIN_PX = 8.0

    def __init__(self, view: CanvasView, words: str) -> None:
        """`words` is the tooltip."""
        super().__init__(view)
        make.named(self, "minimap", "Map of the canvas", words)
        self.setFixedSize(self.SIZE)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self._view = view
        self._drag_transform: QTransform | None = None
        view.view_changed.connect(lambda *_: self.update())
        theme.notifier.changed.connect(self.update)

    def world(self) -> QRectF:
        """What the map shows, in scene coordinates: the content and the visible part."""
        return self._view.content_rect() | self._view.visible_rect()

    def paint_content(self, painter: QPainter, to_map: QTransform) -> None:
        """Paint the canvas's content; `to_map` transforms scene to map coordinates."""
        raise NotImplementedError

    def _to_map(self) -> QTransform:
        """The transform from scene to map coordinates. It does not change during a drag."""
        if self._drag_transform is not None:
            return self._drag_transform
        world = self.world()
        room = QRectF(self.rect()).adjusted(*(self.MARGIN_PX * s for s in (1, 1, -1, -1)))
        scale = min(room.width() / world.width(), room.height() / world.height())
        transform = QTransform.fromTranslate(room.center().x(), room.center().y())
        transform.scale(scale, scale)
        return transform.translate(-world.center().x(), -world.center().y())

    def paintEvent(self, event: QPaintEvent) -> None:
        colors = theme.current()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(colors.color("border"), 1))
        painter.setBrush(colors.color("surface", 225))
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5), 6, 6)
        if not self.world().isEmpty():
            to_map = self._to_map()
            self.paint_content(painter, to_map)
            painter.setPen(QPen(colors.color("accent"), 1.5))
            painter.setBrush(colors.color("accent", 22))
            painter.drawRect(to_map.mapRect(self._view.visible_rect()))
        painter.end()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self._drag_transform = self._to_map()
        self._go(event)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if event.buttons() & Qt.MouseButton.LeftButton:
            self._go(event)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        self._drag_transform = None
        self.update()

    def _go(self, event: QMouseEvent) -> None:
        inverse, _ = self._to_map().inverted()
        there = inverse.map(event.position())
        self._view.set_view(self._view.zoom, there.x(), there.y())


class Minimap(CanvasMap):
    """The blocks of a model as coloured boxes.

    It is hidden while all blocks are in sight, and goes from the lower right corner to the upper
    one if it would cover a block there, or a problem's words.
    """

    EDGE_PX = 16

    def __init__(self, view: CanvasView, scene: ModelScene) -> None:
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
