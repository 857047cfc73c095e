"""Paints the open boxes of a graph's picture: frames around what is inside, and their titles."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QPainter, QPen, QPolygonF

from widgets import theme
from widgets.boxes.facts import GraphFacts
from widgets.diagram.style import elided, font, text_width
from widgets.graph.painting.geometry import TEXT_MIN_ZOOM, GraphGeometry, Ints, title_height
from widgets.graph.painting.paint import PAD, cut_rects, draw_rects, pen, shortened
from widgets.layout.nested_layout import TITLE_HEIGHT

_OUTLINE_PX, _RADIUS = 1.25, 8.0
ROUND_MIN_ZOOM = 0.15
"""Below this zoom open boxes have sharp corners."""
FRAME_MIN_PX = 6.0
"""An open box narrower or lower than this on screen is not drawn, only its content."""
FRAME_TITLE_MIN_PX, FAR_FRAME_TITLE_MIN_PX = (56.0, 18.0), (56.0, 48.0)
"""An open box at least this large on screen shows its title."""
FAR_FRAME_TITLES = 60
"""The most titles drawn from far."""
_CHEVRON_DOWN = QPolygonF(
    [QPointF(8, TITLE_HEIGHT / 2 - 2), QPointF(12, TITLE_HEIGHT / 2 + 2),
     QPointF(16, TITLE_HEIGHT / 2 - 2)]
)  # fmt: skip


class FramePainter:
    """Draws open boxes, outer ones first."""

    def __init__(self, facts: GraphFacts, geometry: GraphGeometry) -> None:
        self._facts, self._geometry = facts, geometry

    def paint(self, painter: QPainter, seen: QRectF, zoom: float) -> None:
        """Paint the part of the open boxes that lies in `seen` (scene pixels): a tint that is
        stronger at greater depth, and an outline."""
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, zoom >= TEXT_MIN_ZOOM)
        painter.setPen(pen("border", _OUTLINE_PX))
        tint = theme.current().color("intermediate", 16)
        painter.setBrush(tint)
        line = _OUTLINE_PX / zoom
        boxes = self._geometry.boxes_in(seen.adjusted(-line, -line, line, line))
        rects = self._geometry.rects[boxes[self._geometry.open[boxes]]]
        rects = rects[(rects[:, 2:] * zoom >= FRAME_MIN_PX).all(axis=1)]
        # Cut so far out of sight that the new edges are, and that room for both corners is left:
        # in a lower or narrower rect than that Qt makes their radius smaller.
        beyond = 2 * (_RADIUS + line)
        room = seen.adjusted(-beyond, -beyond, beyond, beyond)
        before = rects[:, :2] <= (room.left(), room.top())
        behind = rects[:, :2] + rects[:, 2:] >= (room.right(), room.bottom())
        around = (before & behind).all(axis=1)
        # Boxes whose edges all lie beyond are tints alone. They come first: all others are inside.
        for _ in range(np.count_nonzero(around)):
            painter.fillRect(room, tint)
        rects = cut_rects(rects[~around], room)
        if zoom < ROUND_MIN_ZOOM:
            draw_rects(painter, rects)
            return
        for x, y, w, h in rects.tolist():
            painter.drawRoundedRect(QRectF(x, y, w, h), _RADIUS, _RADIUS)

    def paint_titles(self, painter: QPainter, frames: Ints, seen: QRectF, zoom: float) -> None:
        """Paint the titles of open boxes that lie in `seen` (scene pixels). From far they keep a
        size that can be read, on a plate, and only where no title of an outer box is in the way."""
        sizes = self._geometry.rects[frames, 2:] * zoom
        near = zoom >= TEXT_MIN_ZOOM
        smallest = FRAME_TITLE_MIN_PX if near else FAR_FRAME_TITLE_MIN_PX
        frames = frames[(sizes >= smallest).all(axis=1)]
        scale = title_height(zoom) / TITLE_HEIGHT
        taken: list[QRectF] = []
        for frame in frames.tolist():
            x, y, width, _ = self._geometry.rects[frame].tolist()
            place = QRectF(x, y, width, TITLE_HEIGHT * scale)
            if not near:
                if any(place.intersects(other) for other in taken):
                    continue
                taken.append(place)
                if len(taken) > FAR_FRAME_TITLES:
                    return
            if not place.intersects(seen):
                continue
            painter.save()
            painter.translate(x, y)
            painter.scale(scale, scale)
            self._paint_title(painter, frame, width / scale - 2 * PAD, plate=not near)
            painter.restore()

    def _paint_title(self, painter: QPainter, frame: int, room: float, plate: bool) -> None:
        """A chevron, the title and words on the content, from (0, 0) on and `room` wide."""
        colors, middle = theme.current(), TITLE_HEIGHT / 2
        bold, plain = font(12, bold=True), font(11)
        title = shortened(self._facts.title(frame), bold, room - 20)
        used = 22 + text_width(title, bold) + PAD
        words = self._facts.frame_words(frame) if room - used > 48 else ""
        words = elided(words, plain, room - used)
        if plate:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(colors.color("surface", 200))
            wide = used + (text_width(words, plain) + PAD if words else 0.0)
            painter.drawRoundedRect(QRectF(2, 3, wide, TITLE_HEIGHT - 6), 4, 4)
        painter.setPen(QPen(colors.color("muted"), 1.5))
        painter.drawPolyline(_CHEVRON_DOWN)
        painter.setPen(colors.color("text"))
        painter.setFont(bold)
        painter.drawText(QPointF(22, middle + 4), title)
        if words:
            painter.setPen(colors.color("muted"))
            painter.setFont(plain)
            painter.drawText(QPointF(used, middle + 4), words)
