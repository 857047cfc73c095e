"""Paints the boxes of a graph's picture that are not open: nodes, closed boxes, cuts."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QBrush, QFont, QPainter, QPixmap, QPolygonF

from widgets import theme
from widgets.boxes.facts import GraphFacts
from widgets.boxes.sums import CURRENT, EXECUTED, READY, WAITING
from widgets.diagram.style import font, icon, text_width
from widgets.graph.painting.geometry import GraphGeometry, Ints
from widgets.graph.painting.number_painter import draw_number, number_width
from widgets.graph.painting.paint import PAD, draw_rects, pen, shortened

SECOND_LINE_MIN_ZOOM = 0.55
STAMP_MARGIN = 6.0
"""The margin of a stamp around its box in scene pixels, for the outline and the sheet behind."""

_MOST_OF_WIDTH = 0.5
"""The share of a box's width that its gradient may take."""

_FLAG_WIDTH = 18.0
"""The room of the sign of a stale or freed node, in the lower right corner."""

_CUT = "text"
"""The role of a cut: no colour that says how far backward has come."""

MEANINGS = ("intermediate", "leaf", "muted")
"""Roles of the bar at a box's left: an operation, a leaf, a box that can open."""


class BoxPainter:
    """Draws boxes given by their indices: with texts from near, as plain rectangles from far."""

    def __init__(self, facts: GraphFacts, geometry: GraphGeometry) -> None:
        self._facts, self._geometry = facts, geometry
        meanings = np.where(facts.leaf, 1, np.where(facts.atom, 0, 2))
        self._meanings = meanings.astype(np.int8)
        self._stamps: dict[tuple, QPixmap] = {}
        self._stamped_at: tuple = ()

    # -- near ------------------------------------------------------------------------------------

    def paint_near(self, painter: QPainter, boxes: Ints, zoom: float, exact: bool) -> None:
        """`exact` draws every box itself, instead of copies of one picture (stamps)."""
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        cut = self._facts.cut[boxes]
        solid, cuts = boxes[~cut], boxes[cut]
        self._paint_bodies(painter, solid, zoom, exact)
        closed = solid[~self._facts.atom[solid]]
        self._paint_progress(painter, closed)
        data = self._facts.data[cuts]
        self._paint_cuts(painter, cuts[~data], _CUT, "mdi6.content-cut")
        self._paint_cuts(painter, cuts[data], "muted", "mdi6.table-large")
        self._paint_texts(painter, solid, zoom)
        self._paint_badges(painter, closed)
        stale, freed = self._facts.stale[solid], self._facts.freed[solid]
        self._paint_flags(painter, solid[stale], "error")
        self._paint_flags(painter, solid[freed & ~stale], "warning")

    def _paint_bodies(self, painter: QPainter, boxes: Ints, zoom: float, exact: bool) -> None:
        sorts = np.stack(
            [self._facts.box_states[boxes], self._meanings[boxes], *self._sizes(boxes)], axis=1
        )
        kinds, which = np.unique(sorts, axis=0, return_inverse=True)
        for number, (state, meaning, width, height) in enumerate(kinds.tolist()):
            some = boxes[which.ravel() == number]
            body = QRectF(0, 0, width, height)
            if exact:
                for x, y in self._geometry.rects[some, :2].tolist():
                    _paint_body(painter, body.translated(x, y), int(state), int(meaning))
            else:
                self._stamp(painter, some, body, int(state), int(meaning), zoom)

    def _sizes(self, boxes: Ints) -> tuple[np.ndarray, np.ndarray]:
        return self._geometry.rects[boxes, 2], self._geometry.rects[boxes, 3]

    def _stamp(
        self, painter: QPainter, boxes: Ints, body: QRectF, state: int, meaning: int, zoom: float
    ) -> None:
        """Draw boxes that look alike from one picture at this zoom, on whole pixels."""
        ratio = painter.device().devicePixelRatio()
        now = (zoom, ratio, theme.current().name)
        if self._stamped_at != now:
            self._stamps.clear()
            self._stamped_at = now
        key = (state, meaning, body.width(), body.height())
        stamp = self._stamps.get(key)
        around = body.adjusted(-STAMP_MARGIN, -STAMP_MARGIN, STAMP_MARGIN, STAMP_MARGIN)
        if stamp is None:
            size = (around.size() * zoom * ratio).toSize()
            stamp = QPixmap(size.width() + 1, size.height() + 1)
            stamp.setDevicePixelRatio(ratio)
            stamp.fill(Qt.GlobalColor.transparent)
            inside = QPainter(stamp)
            inside.setRenderHint(QPainter.RenderHint.Antialiasing)
            inside.scale(zoom, zoom)
            inside.translate(-around.topLeft())
            _paint_body(inside, body, state, meaning)
            inside.end()
            self._stamps[key] = stamp
        to_screen = painter.worldTransform()
        corners = self._geometry.rects[boxes, :2] - STAMP_MARGIN
        corners = corners * zoom + (to_screen.dx(), to_screen.dy())
        painter.save()
        painter.resetTransform()
        for x, y in (np.round(corners * ratio) / ratio).tolist():
            painter.drawPixmap(QPointF(x, y), stamp)
        painter.restore()

    def _paint_progress(self, painter: QPainter, closed: Ints) -> None:
        """A bar along the lower edge of a closed box: the share of its nodes that have run."""
        part = self._facts.executed[closed] / np.maximum(self._facts.nodes[closed], 1)
        begun = (part > 0) & (part < 1)
        bars = self._geometry.rects[closed[begun]]
        bars[:, 1] += bars[:, 3] - 4
        bars[:, 2] *= part[begun]
        bars[:, 3] = 3
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.current().color("gradient"))
        draw_rects(painter, bars)

    def _paint_cuts(self, painter: QPainter, cuts: Ints, role: str, sign: str) -> None:
        """A box with scissors and the reason why the gradient goes no further, dashed; an ordinary
        input has a plain box."""
        colors = theme.current()
        is_cut = role == _CUT
        scissors = icon(sign, colors.color(role).name())
        face = font(11, bold=is_cut)
        line = Qt.PenStyle.DashLine if is_cut else Qt.PenStyle.SolidLine
        painter.setFont(face)
        for cut in cuts.tolist():
            x, y, w, h = self._geometry.rects[cut].tolist()
            painter.setBrush(QBrush(colors.color(role, 16)))
            painter.setPen(pen(role if is_cut else "border", 1.5 if is_cut else 1.0, line))
            painter.drawRoundedRect(QRectF(x, y, w, h), 5, 5)
            side = min(14.0, h - 6)
            place = QRectF(x + 7, y + (h - side) / 2, side, side)
            painter.drawPixmap(place, scissors, QRectF(scissors.rect()))
            painter.setPen(colors.color(role))
            room = w - side - 2.5 * PAD
            text = shortened(self._facts.title(cut), face, room)
            painter.drawText(QPointF(x + side + 12, y + h / 2 + 4), text)

    def _paint_texts(self, painter: QPainter, boxes: Ints, zoom: float) -> None:
        facts = self._facts
        closed = boxes[~facts.atom[boxes]]
        bold, plain = font(12, bold=True), font(11)
        self._paint_line(painter, boxes, bold, "text", 18, facts.title, self._badge_room)
        if zoom >= SECOND_LINE_MIN_ZOOM:
            told = np.array([facts.tells_value(box) for box in boxes.tolist()], bool)
            for role, some in (("text", boxes[told]), ("muted", boxes[~told])):
                line = facts.second_line
                self._paint_line(painter, some, plain, role, 35, line, self._norm_room)
            self._paint_line(painter, closed, plain, "muted", 51, facts.third_line)
            self._paint_numbers(painter, boxes)

    def _paint_line(
        self,
        painter: QPainter,
        boxes: Ints,
        face: QFont,
        role: str,
        below: float,
        text_of: Callable[[int], str],
        taken: Callable[[int], float] = lambda box: 0.0,
    ) -> None:
        """A line of text in each box, `below` its upper edge, in the width that is not `taken`."""
        painter.setFont(face)
        painter.setPen(theme.current().color(role))
        rects = self._geometry.rects[boxes].tolist()
        for box, (x, y, width, _) in zip(boxes.tolist(), rects, strict=True):
            text = shortened(text_of(box), face, width - 3 * PAD - taken(box))
            painter.drawText(QPointF(x + 2 * PAD, y + below), text)

    def _paint_numbers(self, painter: QPainter, boxes: Ints) -> None:
        """Paint the numbers at the right of nodes: above the gradient, below the norm of what
        forward computed. A tiny tensor of forward stands in the second line, in the colour of
        text."""
        facts, face, word_face = self._facts, font(12, bold=True), font(10)
        for box in boxes.tolist():
            x, y, width, _ = self._geometry.rects[box].tolist()
            right = x + width - PAD
            gradient = facts.gradient(box)
            if gradient is not None:
                wide = min(number_width(gradient, face), width * _MOST_OF_WIDTH)
                at = QPointF(right - wide, y + 18)
                draw_number(painter, at, gradient, face, "gradient", wide)
                word = facts.gradient_word(box)
                painter.setFont(word_face)
                left = QPointF(at.x() - text_width(word, word_face) - 4, at.y())
                painter.drawText(left, word)
            value = facts.value(box)
            if value is not None:
                wide = number_width(value, font(11))
                flag = _FLAG_WIDTH if facts.stale[box] or facts.freed[box] else 0.0
                at = QPointF(right - wide - flag, y + 35)
                draw_number(painter, at, value, font(11), "text", wide)

    def _norm_room(self, box: int) -> float:
        value = self._facts.value(box)
        return 0.0 if value is None else number_width(value, font(11)) + _FLAG_WIDTH

    def _badge_room(self, box: int) -> float:
        if self._facts.atom[box]:
            gradient = self._facts.gradient(box)
            if gradient is None:
                return 0.0
            most = self._geometry.rects[box, 2] * _MOST_OF_WIDTH
            word = text_width(self._facts.gradient_word(box), font(10)) + 4
            return min(number_width(gradient, font(12, bold=True)), most) + word + 2
        badge = self._facts.badge(box)
        return 16.0 + (text_width(badge, font(11, bold=True)) + 12 if badge else 0.0)

    def _paint_badges(self, painter: QPainter, closed: Ints) -> None:
        """×N at the upper right of a repeat."""
        colors, face = theme.current(), font(11, bold=True)
        painter.setFont(face)
        for box in closed.tolist():
            badge = self._facts.badge(box)
            if not badge:
                continue
            x, y, width, _ = self._geometry.rects[box].tolist()
            wide = text_width(badge, face) + 8
            place = QRectF(x + width - 20 - wide, y + 6, wide, 16)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(colors.color("accent", 38))
            painter.drawRoundedRect(place, 8, 8)
            painter.setPen(colors.color("accent"))
            painter.drawText(place, Qt.AlignmentFlag.AlignCenter, badge)

    def _paint_flags(self, painter: QPainter, boxes: Ints, role: str) -> None:
        flag = icon("mdi6.alert", theme.current().color(role).name())
        for x, y, width, height in self._geometry.rects[boxes].tolist():
            place = QRectF(x + width - 22, y + height - 20, 16, 16)
            painter.drawPixmap(place, flag, QRectF(flag.rect()))

    # -- far -------------------------------------------------------------------------------------

    def paint_far(self, painter: QPainter, boxes: Ints, least: float = 0.0) -> None:
        """Plain rectangles of at least some width and height, in the colours of their states or
        meanings."""
        colors = theme.current()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
        painter.setPen(Qt.PenStyle.NoPen)
        cut = self._facts.cut[boxes]
        rects = self._geometry.rects
        if least:
            rects = np.hstack([rects[:, :2], np.maximum(rects[:, 2:], least)])
        data = self._facts.data[boxes]
        for role, some in ((_CUT, boxes[cut & ~data]), ("muted", boxes[data])):
            painter.setBrush(colors.color(role, 150))
            draw_rects(painter, rects[some])
        boxes = boxes[~cut]
        states, meanings = self._facts.box_states[boxes], self._meanings[boxes]
        for state in (WAITING, EXECUTED, READY, CURRENT):
            for number, meaning in enumerate(MEANINGS):
                role, alpha = _far_fill(state, meaning)
                painter.setBrush(colors.color(role, alpha))
                some = boxes[(states == state) & (meanings == number)]
                draw_rects(painter, rects[some])
        self._paint_progress(painter, boxes[~self._facts.atom[boxes]])


def _paint_body(painter: QPainter, body: QRectF, state: int, meaning: int) -> None:
    """A box without its words; one that can open has a sheet behind it and a chevron."""
    colors = theme.current()
    opens = MEANINGS[meaning] == "muted"
    if opens:
        painter.setPen(pen("border"))
        painter.setBrush(colors.color("surface"))
        painter.drawRoundedRect(body.translated(4, 4), 5, 5)
    role, width = _OUTLINES[state]
    painter.setPen(pen(role, width))
    painter.setBrush(colors.color("raised"))
    painter.drawRoundedRect(body, 5, 5)
    painter.setPen(Qt.PenStyle.NoPen)
    if state in (EXECUTED, CURRENT):
        painter.setBrush(colors.color("gradient", 70 if state == CURRENT else 28))
        painter.drawRoundedRect(body, 5, 5)
    painter.setBrush(colors.color(MEANINGS[meaning]))
    painter.drawRect(QRectF(body.left() + 4, body.top() + 6, 4, body.height() - 12))
    if opens:
        x, y = body.right() - 12, body.top() + 10
        painter.setPen(pen("muted", 1.5))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawPolyline(QPolygonF([QPointF(x, y), QPointF(x + 4, y + 4), QPointF(x, y + 8)]))


_OUTLINES = {
    WAITING: ("border", 1.0),
    READY: ("accent", 1.75),
    EXECUTED: ("gradient", 1.0),
    CURRENT: ("gradient", 2.5),
}
"""State -> (role, width)."""


def _far_fill(state: int, meaning: str) -> tuple[str, int]:
    """(role, alpha) of a box drawn from far."""
    if state == WAITING:
        return meaning, 150
    return {READY: ("accent", 255), EXECUTED: ("gradient", 150), CURRENT: ("gradient", 255)}[state]
