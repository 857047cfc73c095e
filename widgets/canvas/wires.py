"""Wires: smooth curves with the shape of the tensor that flows through them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QPainter, QPainterPath, QPen
from PySide6.QtWidgets import QGraphicsItem, QStyleOptionGraphicsItem

from engine.project.document import Wire
from engine.protocol import TensorSpec
from widgets import theme

from . import describe, style
from .items import NEAR_ZOOM

LABEL_HEIGHT = 16.0
LABEL_PLACES = (0.5, 0.4, 0.6, 0.3, 0.7, 0.2, 0.8)
"""Where along the wire a label may sit, best first."""
SAMPLES = 33
LEAD = 28.0
"""How far a wire that runs backward goes on before it turns."""
CLEARANCE = 56.0
"""How far below (or above) a port such a wire passes: outside the block's body."""


def wire_path(start: QPointF, end: QPointF) -> QPainterPath:
    """A wire leaves to the right and arrives from the left.

    Forward it is one cubic curve. Backward it goes round the blocks at both ends, as text goes
    on in the next line.
    """
    path = QPainterPath(start)
    ahead = end.x() - start.x()
    if ahead >= LEAD:
        reach = QPointF(max(LEAD, ahead / 2), 0)
        path.cubicTo(start + reach, end - reach, end)
        return path
    down = end.y() - start.y()
    between = abs(down) >= 2 * CLEARANCE
    y = start.y() + down / 2 if between else max(start.y(), end.y()) + CLEARANCE
    right, left = start.x() + LEAD, end.x() - LEAD
    corners = [(right, start.y()), (right, y), (left, y), (left, end.y())]
    points = [start, *(QPointF(*corner) for corner in corners), end]
    for before, corner, after in zip(points, points[1:], points[2:], strict=False):
        path.lineTo(_towards(corner, before))
        path.quadTo(corner, _towards(corner, after))
    path.lineTo(end)
    return path


def _towards(corner: QPointF, other: QPointF) -> QPointF:
    """Where a rounded corner begins on its way from `other`."""
    off = other - corner
    length = (off.x() ** 2 + off.y() ** 2) ** 0.5
    return corner + off * (min(16.0, length / 2) / length) if length else corner


def sample_path(path: QPainterPath) -> np.ndarray:
    """Points along a path at equal distances, shape (SAMPLES, 2)."""
    points = [path.pointAtPercent(index / (SAMPLES - 1)) for index in range(SAMPLES)]
    return np.array([[point.x(), point.y()] for point in points])


class WireItem(QGraphicsItem):
    """A wire between two port centres. `spec` labels it; `role` is the colour's name."""

    def __init__(self, wire: Wire) -> None:
        super().__init__()
        self.setFlag(QGraphicsItem.GraphicsItemFlag.ItemIsSelectable)
        self.setZValue(1)
        self.wire = wire
        self.spec: TensorSpec | None = None
        self.role = "intermediate"
        self.hovered = False
        self.label_center: QPointF | None = None
        self.points = np.zeros((SAMPLES, 2))
        self._path = QPainterPath()
        self._ends = (QPointF(), QPointF())

    def set_ends(self, start: QPointF, end: QPointF) -> bool:
        """Run from `start` to `end` (scene); true when that moved the wire."""
        if (start, end) == self._ends and not self._path.isEmpty():
            return False
        self.prepareGeometryChange()
        self._ends = (start, end)
        self._path = wire_path(start, end)
        self.points = sample_path(self._path)
        self.label_center = None
        return True

    @property
    def label(self) -> str:
        return describe.shape_text(self.spec) if self.spec is not None else ""

    def label_rect(self) -> QRectF:
        """The label's box in scene coordinates; empty when it is not shown."""
        if self.label_center is None or not self.label:
            return QRectF()
        width = style.text_width(self.label, style.font(11, mono=True)) + 8
        rect = QRectF(0, 0, width, LABEL_HEIGHT)
        rect.moveCenter(self.label_center)
        return rect

    def place_label(self, obstacles: np.ndarray) -> None:
        """Put the label where it covers no obstacle (rows of left, top, right, bottom), or hide
        it when there is no such place."""
        self.prepareGeometryChange()
        self.label_center = None
        if not self.label:
            return
        for place in LABEL_PLACES:
            x, y = self.points[round(place * (SAMPLES - 1))]
            for lift in (0.0, -LABEL_HEIGHT, LABEL_HEIGHT):
                self.label_center = QPointF(float(x), float(y) + lift)
                rect = self.label_rect()
                apart = (
                    (obstacles[:, 2] <= rect.left() - 6)
                    | (obstacles[:, 0] >= rect.right() + 6)
                    | (obstacles[:, 3] <= rect.top())
                    | (obstacles[:, 1] >= rect.bottom())
                )
                if apart.all():
                    return
        self.label_center = None

    def distance(self, point: QPointF) -> float:
        """How far a scene point is from the wire (from its samples' segments), in scene pixels."""
        here = np.array([point.x(), point.y()])
        start, step = self.points[:-1], np.diff(self.points, axis=0)
        length = np.maximum((step**2).sum(1), 1e-9)
        along = np.clip(((here - start) * step).sum(1) / length, 0, 1)[:, None]
        return float(np.sqrt(((start + along * step - here) ** 2).sum(1)).min())

    def boundingRect(self) -> QRectF:
        return self._path.boundingRect().adjusted(-6, -6, 6, 6).united(self.label_rect())

    def paint(self, painter: QPainter, option: QStyleOptionGraphicsItem, widget=None) -> None:
        colors = theme.current()
        zoom = QStyleOptionGraphicsItem.levelOfDetailFromTransform(painter.worldTransform())
        role, width = self.role, 2.0
        if self.isSelected():
            role, width = "accent", 3.0
        elif self.hovered:
            width = 3.0
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QPen(colors.color(role), max(width, 1 / zoom)))
        painter.drawPath(self._path)
        box = self.label_rect()
        if zoom < NEAR_ZOOM or box.isEmpty():
            return
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(colors.color("canvas", 235))
        painter.drawRoundedRect(box, 4, 4)
        painter.setPen(colors.color("text" if role == "intermediate" else role))
        painter.setFont(style.font(11, mono=True))
        painter.drawText(box, Qt.AlignmentFlag.AlignCenter, self.label)


def boxes(rects: Sequence[QRectF]) -> np.ndarray:
    """Rects as rows of left, top, right, bottom."""
    return np.array([[r.left(), r.top(), r.right(), r.bottom()] for r in rects]).reshape(-1, 4)
