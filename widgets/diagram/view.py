"""The base of every diagram: pan, zoom, fit, the grid, and pictures of the content."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QEvent, QMarginsF, QPoint, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QCursor,
    QKeyEvent,
    QMouseEvent,
    QNativeGestureEvent,
    QPainter,
    QPen,
    QPointingDevice,
    QPolygonF,
    QTransform,
    QWheelEvent,
)
from PySide6.QtWidgets import QFrame, QGraphicsScene, QGraphicsView, QMenu, QWidget

from widgets import theme
from widgets.diagram.scene_picture import scene_picture
from widgets.theme import GRID

if TYPE_CHECKING:  # the window shows before pictures are saved
    from widgets.save_picture import Paint

# The scene is so large that panning never reaches its end.
ENDLESS = QRectF(-200_000, -200_000, 400_000, 400_000)
WHEEL_STEP = 1.2
"""Zoom factor of one notch of a mouse wheel (120 eighths of a degree)."""
MIN_DOT_SPACING_PX = 12


_BAND_ROWS = 16
"""Rows of dots that are drawn together: a point for each dot of a window takes 7 ms to make."""


@lru_cache(maxsize=16)
def _band(step: int, columns: int) -> QPolygonF:
    rows = range(_BAND_ROWS)
    return QPolygonF([QPointF(x * step, y * step) for y in rows for x in range(columns)])


class DiagramView(QGraphicsView):
    """Pan, zoom and fit over a scene.

    Wheel: zoom at the cursor. Touch pad: pan (pinch or Ctrl zooms). Middle button, or Space and
    left button: pan. Keys: F fit, + and - zoom, 0 actual size. Subclasses that override mouse or
    key events call `super()` for whatever they do not use themselves, after asking `pan_event`.
    """

    view_changed = Signal(float, float, float)
    """(zoom, x, y) after a change: the zoom factor and the scene point in the middle."""

    MIN_ZOOM = 0.1
    MAX_ZOOM = 4.0
    FIT_MAX_ZOOM = 1.25
    FIT_MARGIN_PX = 32
    FIT_BOTTOM_PX = 0
    """The height that `fit` keeps free at the lower edge, for widgets over it."""
    COVERED_BOTTOM_PX = 0
    """The height of the widgets over the lower corners; `reveal` shows items above them."""

    def __init__(self, scene: QGraphicsScene, parent: QWidget | None = None) -> None:
        super().__init__(scene, parent)
        # To wrap one that Qt has made, PySide loads every kind of widget that it could be.
        self.setViewport(QWidget())
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setSceneRect(ENDLESS)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        # `_place` keeps the point under the cursor: Qt's anchors round to pixels of the transform
        # before the zoom.
        self.setTransformationAnchor(QGraphicsView.ViewportAnchor.NoAnchor)
        self.setResizeAnchor(QGraphicsView.ViewportAnchor.AnchorViewCenter)
        self.setRenderHint(QPainter.RenderHint.Antialiasing)
        self.setCacheMode(QGraphicsView.CacheModeFlag.CacheBackground)
        self.setViewportUpdateMode(QGraphicsView.ViewportUpdateMode.SmartViewportUpdate)
        self.setOptimizationFlag(QGraphicsView.OptimizationFlag.DontSavePainterState)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMouseTracking(True)
        self._space_held = False
        self._pan_from: QPoint | None = None
        theme.notifier.changed.connect(self._repaint)
        self.centerOn(0, 0)

    # -- the visible part ------------------------------------------------------------------------

    @property
    def zoom(self) -> float:
        """Viewport pixels per scene pixel."""
        return self.transform().m11()

    def center(self) -> QPointF:
        """The scene point in the middle of the viewport."""
        return self.scene_point(QRectF(self.viewport().rect()).center())

    def visible_rect(self) -> QRectF:
        """The visible part of the scene, in scene coordinates."""
        size = self.viewport().size()
        corner = self.scene_point(QPointF(size.width(), size.height()))
        return QRectF(self.scene_point(QPointF(0, 0)), corner)

    def set_view(self, zoom: float, x: float, y: float) -> None:
        """Show the scene point (x, y) in the middle at a zoom factor, within the bounds."""
        self._place(zoom, QPointF(x, y), QRectF(self.viewport().rect()).center())

    def zoom_by(self, factor: float, at: QPointF | None = None) -> None:
        """Multiply the zoom; the scene point at viewport point `at` (middle: None) stays there."""
        at = QRectF(self.viewport().rect()).center() if at is None else at
        self._place(self.zoom * factor, self.scene_point(at), at)

    def actual_size(self) -> None:
        """Zoom to 100 %, keeping the middle."""
        self.zoom_by(1 / self.zoom)

    def fit(self, rect: QRectF | None = None) -> None:
        """Show all of `rect` (scene; None: the whole content), never larger than FIT_MAX_ZOOM."""
        rect = self.content_rect() if rect is None else rect
        if rect.isEmpty():
            self.set_view(1.0, 0.0, 0.0)
            return
        margin = 2 * self.FIT_MARGIN_PX
        zoom = min(
            max(self.viewport().width() - margin, 1) / rect.width(),
            max(self.viewport().height() - self.FIT_BOTTOM_PX - margin, 1) / rect.height(),
            self.FIT_MAX_ZOOM,
        )
        lift = self.FIT_BOTTOM_PX / 2 / zoom
        self.set_view(zoom, rect.center().x(), rect.center().y() + lift)

    def reveal(self, rect: QRectF) -> None:
        """Pan as little as needed to bring a scene rect into the viewport."""
        margin = self.FIT_MARGIN_PX / self.zoom
        rect = rect.marginsAdded(QMarginsF(margin, margin, margin, margin))
        seen = self.visible_rect()
        dx = min(0.0, rect.left() - seen.left()) or max(0.0, rect.right() - seen.right())
        bottom = seen.bottom() - self.COVERED_BOTTOM_PX / self.zoom
        dy = min(0.0, rect.top() - seen.top()) or max(0.0, rect.bottom() - bottom)
        if dx or dy:
            middle = seen.center() + QPointF(dx, dy)
            self.set_view(self.zoom, middle.x(), middle.y())

    def content_rect(self) -> QRectF:
        """The scene rect that `fit` and pictures show; subclasses may leave items out."""
        return self.scene().itemsBoundingRect()

    def scene_point(self, viewport_point: QPointF) -> QPointF:
        """As `mapToScene`, for points between pixels."""
        inverse, _ = self.viewportTransform().inverted()
        return inverse.map(viewport_point)

    def _place(self, zoom: float, there: QPointF, viewport_point: QPointF) -> None:
        zoom = min(max(zoom, self.MIN_ZOOM), self.MAX_ZOOM)
        if not math.isclose(zoom, self.zoom):
            self.setTransform(QTransform.fromScale(zoom, zoom))
        off = self.viewportTransform().map(there) - viewport_point
        across, down = self.horizontalScrollBar(), self.verticalScrollBar()
        across.setValue(across.value() + round(off.x()))
        down.setValue(down.value() + round(off.y()))
        self._emit_view()

    def _emit_view(self) -> None:
        center = self.center()
        self.view_changed.emit(self.zoom, center.x(), center.y())

    # -- gestures --------------------------------------------------------------------------------

    def wheelEvent(self, event: QWheelEvent) -> None:
        control = bool(event.modifiers() & Qt.KeyboardModifier.ControlModifier)
        # X11 mice report pixel deltas too, so a pixel delta alone does not tell a touch pad.
        touch_pad = (
            event.phase() != Qt.ScrollPhase.NoScrollPhase
            or event.pointingDevice().type() == QPointingDevice.DeviceType.TouchPad
        )
        if touch_pad and not control and not event.pixelDelta().isNull():
            self.pan_by(event.pixelDelta())
        else:
            notches = event.angleDelta().y() / 120
            self.zoom_by(WHEEL_STEP**notches, event.position())
        event.accept()

    def viewportEvent(self, event: QEvent) -> bool:
        if (
            isinstance(event, QNativeGestureEvent)
            and event.gestureType() == Qt.NativeGestureType.ZoomNativeGesture
        ):
            self.zoom_by(1 + event.value(), event.position())
            return True
        return super().viewportEvent(event)

    @property
    def panning(self) -> bool:
        return self._pan_from is not None

    def pan_event(self, event: QMouseEvent) -> bool:
        """Pan with this mouse event if it belongs to a pan. Returns whether it does."""
        if event.type() in (QEvent.Type.MouseButtonPress, QEvent.Type.MouseButtonDblClick):
            left = event.button() == Qt.MouseButton.LeftButton
            if event.button() == Qt.MouseButton.MiddleButton or (left and self._space_held):
                self._pan_from = event.position().toPoint()
                self.viewport().setCursor(Qt.CursorShape.ClosedHandCursor)
                return True
            return False
        if self._pan_from is None:
            return False
        point = event.position().toPoint()
        self.pan_by(point - self._pan_from)
        self._pan_from = point
        if event.type() == QEvent.Type.MouseButtonRelease:
            self._pan_from = None
            self.rest_cursor()
        return True

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if not self.pan_event(event):
            super().mousePressEvent(event)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if not self.pan_event(event):
            super().mouseMoveEvent(event)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if not self.pan_event(event):
            super().mouseReleaseEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        plain = not event.modifiers() & (
            Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.AltModifier
        )
        actions = {
            Qt.Key.Key_F: self.fit,
            Qt.Key.Key_Plus: lambda: self.zoom_by(WHEEL_STEP),
            Qt.Key.Key_Equal: lambda: self.zoom_by(WHEEL_STEP),
            Qt.Key.Key_Minus: lambda: self.zoom_by(1 / WHEEL_STEP),
            Qt.Key.Key_0: self.actual_size,
        }
        if plain and event.key() == Qt.Key.Key_Space:
            if not event.isAutoRepeat():
                self._space_held = True
                self.rest_cursor()
        elif plain and (action := actions.get(Qt.Key(event.key()))):
            action()
        else:
            super().keyPressEvent(event)

    def keyReleaseEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Space:
            if not event.isAutoRepeat():
                self._space_held = False
                self.rest_cursor()
        else:
            super().keyReleaseEvent(event)

    def focusOutEvent(self, event) -> None:
        # Without the focus, the canvas would not get the release of Space.
        self._space_held = False
        self.rest_cursor()
        super().focusOutEvent(event)

    def pan_by(self, delta_px: QPoint) -> None:
        """Pan by viewport pixels."""
        across, down = self.horizontalScrollBar(), self.verticalScrollBar()
        across.setValue(across.value() - delta_px.x())
        down.setValue(down.value() - delta_px.y())
        self._emit_view()

    def rest_cursor(self) -> None:
        """Show the cursor for panning, or the ordinary one."""
        if self._pan_from is not None:
            return
        if self._space_held:
            self.viewport().setCursor(QCursor(Qt.CursorShape.OpenHandCursor))
        else:
            self.viewport().unsetCursor()

    # -- painting --------------------------------------------------------------------------------

    def drawBackground(self, painter: QPainter, rect: QRectF | object) -> None:
        """Paint the parts that are not in Qt's cache, one by one: a pan uncovers two strips, and
        the rect around both is the whole window."""
        painter.save()
        to_viewport = painter.worldTransform()
        to_scene, _ = to_viewport.inverted()
        painter.resetTransform()
        parts: Any = painter.clipRegion()  # PySide's stub lacks that it can be iterated
        for part in parts:
            painter.resetTransform()
            painter.setClipRect(part)
            painter.setWorldTransform(to_viewport)
            self.paint_background(painter, to_scene.mapRect(QRectF(part)))
        painter.restore()

    def paint_background(self, painter: QPainter, rect: QRectF) -> None:
        """Paint what lies below all items in `rect` (scene pixels). It is kept while one pans.
        Here, a dot on every 8-px grid point; at smaller zooms on every 2nd, 4th, ..."""
        colors = theme.current()
        painter.fillRect(rect, colors.color("canvas"))
        step = GRID
        while step * self.zoom < MIN_DOT_SPACING_PX:
            step *= 2
        column, row = math.floor(rect.left() / step), math.floor(rect.top() / step)
        columns, rows = math.ceil(rect.width() / step) + 2, math.ceil(rect.height() / step) + 2
        dots = _band(step, columns)
        # No antialiasing: it would make dots between two pixels fainter, and the grid striped.
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
        pen = QPen(colors.color("grid"), 2)
        pen.setCosmetic(True)
        painter.setPen(pen)
        for first in range(row, row + rows, _BAND_ROWS):
            painter.drawPoints(dots.translated(column * step, first * step))
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)

    def _repaint(self) -> None:
        self.resetCachedContent()
        for item in self.scene().items():
            item.update()  # scene().update() does not clear the items' caches

    # -- pictures --------------------------------------------------------------------------------

    def picture(self, bounded: bool = True) -> tuple[QSize, Paint]:
        """The whole content: its size in pixels, and a function that paints it. With `bounded`, it
        is made smaller until a PNG can hold it."""
        return scene_picture(self.scene(), self.content_rect(), bounded)

    def copy_picture(self) -> None:
        """Put the whole content on the clipboard as a picture."""
        from widgets.save_picture import copy_picture  # the window shows before it is needed

        copy_picture(*self.picture())

    def add_picture_actions(self, menu: QMenu) -> None:
        """Add Copy picture, Save as PNG and Save as SVG."""
        from widgets.save_picture import ask_and_save  # as above

        menu.addAction("Copy picture", self.copy_picture)
        for suffix, bounded in (("png", True), ("svg", False)):
            menu.addAction(
                f"Save as {suffix.upper()}…",
                lambda suffix=suffix, bounded=bounded: ask_and_save(
                    self, suffix, *self.picture(bounded)
                ),
            )
