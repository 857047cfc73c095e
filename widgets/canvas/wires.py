"""Wires: smooth curves with the shape of the tensor that flows through them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from math import hypot
from typing import TYPE_CHECKING

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QFont, QPainter, QPainterPath, QPen
from PySide6.QtWidgets import QGraphicsItem, QStyleOptionGraphicsItem

from engine.project.document import Wire
from widgets import theme
from widgets.diagram import style
from widgets.layout import PORT_LINE
from widgets.text import format_shape

from .items import NEAR_ZOOM
from .obstacles import Box, Obstacles, box_of

if TYPE_CHECKING:  # the window shows before messages are needed
    from engine.protocol import TensorSpec

Point = tuple[float, float]

LABEL_ZOOM = 0.45
"""Below this zoom, labels cannot be read."""
LABEL_PLACES = (0.5, 0.4, 0.6, 0.3, 0.7, 0.2, 0.8)
"""Where along the wire a label may sit, best first."""
SAMPLES = 33
LEAD = 28.0
"""The distance in scene pixels that a backward wire runs before it turns."""
PORT_ROOM = 9.0
"""The gap in scene pixels between a label and a block beside it, whose port needs room."""
DETOUR = 16.0
"""The distance in scene pixels at which a wire passes a block in its way."""
CLEARANCE = 56.0
"""The distance in scene pixels from a port at which a backward wire passes above or below the
block."""


def wire_path(start: QPointF, end: QPointF) -> QPainterPath:
    """The path of a wire. It leaves `start` to the right and arrives at `end` from the left.

    A forward wire is one cubic curve. A backward wire goes around the blocks at both ends.
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
    return _back(start, end, y)


def _back(start: QPointF, end: QPointF, y: float) -> QPainterPath:
    """The path of a backward wire that runs back at `y`."""
    path = QPainterPath(start)
    right, left = start.x() + LEAD, end.x() - LEAD
    corners = [(right, start.y()), (right, y), (left, y), (left, end.y())]
    points = [start, *(QPointF(*corner) for corner in corners), end]
    for before, corner, after in zip(points, points[1:], points[2:], strict=False):
        path.lineTo(_towards(corner, before))
        path.quadTo(corner, _towards(corner, after))
    path.lineTo(end)
    return path


def route(
    start: QPointF, end: QPointF, obstacles: Obstacles, without: Collection[int] = ()
) -> QPainterPath:
    """The path of a wire that goes over or under the blocks in its way: `obstacles` but for those
    of the numbers `without`.

    If the path still hits a block after three tries, it runs behind that block.
    """
    path = wire_path(start, end)
    if end.x() - start.x() < LEAD:
        return _route_back(path, start, end, obstacles, without)
    in_the_way: list[Box] = []
    for _ in range(3):
        hit = _hit_by(path, obstacles, without)
        if not hit:
            break
        in_the_way += hit
        lefts, tops, rights, bottoms = zip(*in_the_way, strict=True)
        left, right = max(min(lefts) - DETOUR, start.x() + LEAD), max(rights) + DETOUR
        right = min(right, end.x() - LEAD)
        middle = (start.y() + end.y()) / 2
        beside = sorted((min(tops) - DETOUR, max(bottoms) + DETOUR), key=lambda y: abs(y - middle))
        ways = [_detour(start, end, left, right, y) for y in beside]
        path = next((way for way in ways if not _hit_by(way, obstacles, without)), ways[0])
    return path


def _route_back(
    path: QPainterPath,
    start: QPointF,
    end: QPointF,
    obstacles: Obstacles,
    without: Collection[int],
) -> QPainterPath:
    """The path of a backward wire that runs back between, above or below the blocks in its way."""
    hit = _hit_by(path, obstacles, without)
    middle = (start.y() + end.y()) / 2
    beside = [box[1] - DETOUR for box in hit] + [box[3] + DETOUR for box in hit]
    for y in sorted(beside, key=lambda y: abs(y - middle)):
        if min(abs(y - start.y()), abs(y - end.y())) < CLEARANCE - DETOUR:
            continue  # it would run behind the block at one of its ends
        way = _back(start, end, y)
        if not _hit_by(way, obstacles, without):
            return way
    return path


def _detour(start: QPointF, end: QPointF, left: float, right: float, y: float) -> QPainterPath:
    path = QPainterPath(start)
    for here, there in ((start, QPointF(left, y)), (QPointF(right, y), end)):
        path.lineTo(here)
        reach = QPointF((there.x() - here.x()) / 2, 0)
        path.cubicTo(here + reach, there - reach, there)
    return path


def _hit_by(path: QPainterPath, obstacles: Obstacles, without: Collection[int]) -> list[Box]:
    """The obstacles that a path hits or nearly touches."""
    near = obstacles.near(path.controlPointRect().adjusted(-6, -6, 6, 6), without)
    if not near:
        return near
    points = sample_path(path)
    return [
        (left, top, right, bottom)
        for left, top, right, bottom in near
        if any(left - 6 < x < right + 6 and top - 6 < y < bottom + 6 for x, y in points)
    ]


def _towards(corner: QPointF, other: QPointF) -> QPointF:
    """The point at which the rounding of a corner begins, on the side of `other`."""
    off = other - corner
    length = (off.x() ** 2 + off.y() ** 2) ** 0.5
    return corner + off * (min(16.0, length / 2) / length) if length else corner


def sample_path(path: QPainterPath) -> list[Point]:
    """SAMPLES points along a path at equal distances."""
    points = (path.pointAtPercent(index / (SAMPLES - 1)) for index in range(SAMPLES))
    return [(point.x(), point.y()) for point in points]


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
        self.label = ""
        self.label_rects = {False: QRectF(), True: QRectF()}
        """The label's box in scene coordinates, with and without the larger text for small zooms;
        empty where the label is not shown."""
        self._points: list[Point] = []
        self._path = QPainterPath()
        self._bounds = QRectF()

    @property
    def points(self) -> list[Point]:
        """SAMPLES points along the wire; measured when they are first needed."""
        if not self._points:
            self._points = sample_path(self._path)
        return self._points

    @property
    def ends(self) -> tuple[QPointF, QPointF]:
        """Where the wire starts and ends, in scene pixels. No points along it are measured."""
        first = self._path.elementAt(0)
        return QPointF(first.x, first.y), self._path.currentPosition()

    def run(
        self, start: QPointF, end: QPointF, obstacles: Obstacles, without: Collection[int]
    ) -> None:
        """Draw the wire from `start` to `end` (scene pixels) as `route` leads it."""
        path = route(start, end, obstacles, without)
        if path != self._path:
            self.prepareGeometryChange()
            self._path = path
            self._points = []
            self._hide_label()

    def show_spec(self, spec: TensorSpec | None, role: str) -> None:
        """Show the shape of the tensor, in the colour of a role of the theme."""
        if spec != self.spec:
            self._hide_label()
        self.spec, self.role = spec, role
        self.label = format_shape(spec.shape) if spec is not None else ""
        self.update()

    def place_label(self, obstacles: Obstacles) -> None:
        """Put the label where it covers no obstacle: on the wire, else beside it. Hide it if
        there is none."""
        self._hide_label()
        if not self.label:
            return
        reach = style.text_width(self.label, _label_font(True)) + 2 * PORT_LINE
        near = obstacles.near(self._path_bounds().adjusted(-reach, -reach, reach, reach))
        for large in (False, True):
            face = _label_font(large)
            rect = QRectF(0, 0, style.text_width(self.label, face) + 6, face.pixelSize() + 5)
            for x, y in self._label_places(rect.height()):
                rect.moveCenter(QPointF(x, y))
                if _touches_none(rect, near):
                    self.label_rects[large] = rect
                    break
        self._bounds = self._path_bounds() | self.label_rects[False] | self.label_rects[True]

    def _hide_label(self) -> None:
        self.prepareGeometryChange()
        self.label_rects = {False: QRectF(), True: QRectF()}
        self._bounds = self._path_bounds()

    def _path_bounds(self) -> QRectF:
        return self._path.boundingRect().adjusted(-6, -6, 6, 6)

    def _label_places(self, height: float) -> Iterator[tuple[float, float]]:
        for place in LABEL_PLACES:
            x, y = self.points[round(place * (SAMPLES - 1))]
            yield from ((x, y), (x, y - height), (x, y + height))
        # Two blocks are close together: the label goes above or below the gap between them.
        x, y = self.points[SAMPLES // 2]
        beside = PORT_LINE + height / 2 + 3
        yield from ((x, y - beside), (x, y + beside))

    def distance(self, point: QPointF) -> float:
        """The distance of a scene point from the wire (from its samples' segments), in scene
        pixels."""
        here = point.x(), point.y()
        return min(
            _distance(here, before, after)
            for before, after in zip(self.points, self.points[1:], strict=False)
        )

    def boundingRect(self) -> QRectF:
        return self._bounds

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
        large = zoom < NEAR_ZOOM
        box = self.label_rects[large]
        if box.isEmpty() or zoom < LABEL_ZOOM:
            return
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(colors.color("canvas", 235))
        painter.drawRoundedRect(box, 4, 4)
        painter.setPen(colors.color("text" if role == "intermediate" else role))
        painter.setFont(_label_font(large))
        painter.drawText(box, Qt.AlignmentFlag.AlignCenter, self.label)


def _label_font(large: bool) -> QFont:
    return style.font(14 if large else 11, mono=True)


def _distance(here: Point, start: Point, end: Point) -> float:
    """The distance of a point from a segment."""
    across, down = end[0] - start[0], end[1] - start[1]
    off_x, off_y = here[0] - start[0], here[1] - start[1]
    length = max(across**2 + down**2, 1e-9)
    along = min(max((off_x * across + off_y * down) / length, 0.0), 1.0)
    return hypot(off_x - along * across, off_y - along * down)


def _touches_none(rect: QRectF, boxes: Collection[Box]) -> bool:
    left, top, right, bottom = box_of(rect.adjusted(-PORT_ROOM, 0, PORT_ROOM, 0))
    return all(
        box[2] <= left or box[0] >= right or box[3] <= top or box[1] >= bottom for box in boxes
    )
