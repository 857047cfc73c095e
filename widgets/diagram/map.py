"""A small map of a whole diagram: it shows which part is visible, and a click moves there."""

from __future__ import annotations

from PySide6.QtCore import QPoint, QPointF, QRectF, QSize, QSizeF, Qt
from PySide6.QtGui import QMouseEvent, QPainter, QPaintEvent, QPen, QTransform
from PySide6.QtWidgets import QWidget

from widgets import make, theme

from .view import DiagramView


class DiagramMap(QWidget):
    """A map of a diagram, with a frame around the visible part. A click or drag moves the visible
    part. Subclasses paint the content, and say what it is not to cover.
    """

    SIZE = QSize(176, 112)
    EDGE_PX = 16
    MARGIN_PX = 8.0

    def __init__(self, view: DiagramView, words: str) -> None:
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
        """The rectangle that the map shows, in scene coordinates: the content and the visible
        part."""
        return self._view.content_rect() | self._view.visible_rect()

    def paint_content(self, painter: QPainter, to_map: QTransform) -> None:
        """Paint the content; `to_map` transforms scene to map coordinates."""
        raise NotImplementedError

    def is_drawn_on(self, rect: QRectF) -> bool:
        """Whether something that must be seen lies in a rect of the scene."""
        raise NotImplementedError

    @property
    def at_top(self) -> bool:
        """Whether it is in the upper corner, not in the lower one."""
        return self.y() == self.EDGE_PX

    def take_corner(self) -> None:
        """Stay in the corner on the right where it is; if it covers something there, go to the
        other one, upper or lower, unless it would there, too. It stays during a drag."""
        if self._drag_transform is not None:
            return
        room = self._view.viewport().rect()
        x = room.width() - self.width() - self.EDGE_PX
        bottom = QPoint(x, room.height() - self.height() - self.EDGE_PX)
        top = QPoint(x, self.EDGE_PX)
        here, there = (top, bottom) if self.at_top else (bottom, top)
        self.move(there if self._covers(here) and not self._covers(there) else here)

    def _covers(self, corner: QPoint) -> bool:
        inverse, _ = self._view.viewportTransform().inverted()
        return self.is_drawn_on(inverse.mapRect(QRectF(QPointF(corner), QSizeF(self.size()))))

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
