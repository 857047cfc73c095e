"""One graphics item that paints a whole autograd graph, boxes within boxes, from arrays."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QBrush, QPainter, QPen, QPolygonF
from PySide6.QtWidgets import QGraphicsItem, QStyleOptionGraphicsItem, QWidget

from widgets import theme
from widgets.autograd.graph_facts import (
    CURRENT,
    EXECUTED,
    READY,
    WAITING,
    Bools,
    GraphFacts,
)
from widgets.autograd.graph_geometry import GraphGeometry, Ints
from widgets.autograd.graph_paint import draw_lines, draw_rects, pen
from widgets.autograd.nested_layout import TITLE_HEIGHT
from widgets.canvas.style import elided, font, icon, text_width

TEXT_MIN_ZOOM = 0.45
"""Below this zoom nodes are plain boxes."""
SECOND_LINE_MIN_ZOOM = 0.55
EDGE_TEXT_MIN_ZOOM = 0.7
ROUND_MIN_ZOOM = 0.6
CURVE_MIN_ZOOM = 0.15
"""Below this zoom every link is the straight line between its ends."""
SHORT_PX = 3.0
"""Links shorter than this on screen lie within the gap between two boxes: they are not drawn."""
FRAME_TITLE_MIN_PX = (56.0, 18.0)
"""An open box at least this large on screen tells its title at every zoom."""
PAD = 8.0
DIM = 0.22
"""Opacity of what a search, a filter or the paths leave out."""


class GraphItem(QGraphicsItem):
    """Paints what `facts` and `geometry` say, culled and in three levels of detail.

    The marks are arrays by box, None where there are none: `lit` boxes stand out and all others
    are dimmed, `hits` answer to a search, `breakpoints` have one inside.
    """

    def __init__(self) -> None:
        super().__init__()
        self.setFlag(QGraphicsItem.GraphicsItemFlag.ItemUsesExtendedStyleOption)
        self.facts: GraphFacts | None = None
        self._geometry: GraphGeometry | None = None
        self.selected: int | None = None
        self.lit: Bools | None = None
        self.hits: Bools | None = None
        self.breakpoints: Bools | None = None

    # -- what it shows ---------------------------------------------------------------------------

    def show_picture(self, facts: GraphFacts | None, geometry: GraphGeometry | None) -> None:
        """Show another picture; all marks are taken off."""
        self.prepareGeometryChange()
        self.facts, self._geometry = facts, geometry
        self.selected = self.lit = self.hits = self.breakpoints = None
        self.update()

    @property
    def geometry(self) -> GraphGeometry:
        assert self._geometry is not None
        return self._geometry

    def boundingRect(self) -> QRectF:
        return QRectF() if self._geometry is None else self._geometry.bounds

    # -- painting --------------------------------------------------------------------------------

    def paint(
        self,
        painter: QPainter,
        option: QStyleOptionGraphicsItem,
        widget: QWidget | None = None,
    ) -> None:
        if self.facts is None:
            return
        seen = option.exposedRect
        zoom = painter.worldTransform().m11()
        boxes, links = self.geometry.boxes_in(seen), self.geometry.links_in(seen)
        near = zoom >= TEXT_MIN_ZOOM
        links = links[self.geometry.lengths[links] * zoom >= SHORT_PX]
        self._paint_frames(painter, boxes[self.geometry.open[boxes]], zoom)
        atoms = boxes[~self.geometry.open[boxes]]
        for some, through, opacity in self._by_light(atoms, links):
            painter.setOpacity(opacity)
            if near:
                self._paint_links_near(painter, through, zoom)
                self._paint_near(painter, some, zoom)
            else:
                self._paint_links_far(painter, through, zoom)
                self._paint_far(painter, some)
        painter.setOpacity(1.0)
        self._paint_frame_titles(painter, boxes[self.geometry.open[boxes]], zoom)
        self._paint_rings(painter, boxes)

    def _by_light(self, boxes: Ints, links: Ints) -> list[tuple[Ints, Ints, float]]:
        """(boxes, links, opacity): what is dimmed first, so that the rest lies over it."""
        if self.lit is None:
            return [(boxes, links, 1.0)]
        lit, lit_links = self.lit[boxes], self.lit[self.geometry.ends[links]].all(axis=1)
        return [(boxes[~lit], links[~lit_links], DIM), (boxes[lit], links[lit_links], 1.0)]

    # -- open boxes ------------------------------------------------------------------------------

    def _paint_frames(self, painter: QPainter, frames: Ints, zoom: float) -> None:
        """The open boxes: a tint that deepens with the depth, and an outline."""
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, zoom >= TEXT_MIN_ZOOM)
        radius = 8.0 if zoom >= CURVE_MIN_ZOOM else 0.0
        painter.setPen(pen("border", 1.25))
        painter.setBrush(theme.current().color("intermediate", 16))
        rects = self.geometry.rects[frames]
        if not radius:
            draw_rects(painter, rects)
            return
        for x, y, w, h in rects.tolist():
            painter.drawRoundedRect(QRectF(x, y, w, h), radius, radius)

    def _paint_frame_titles(self, painter: QPainter, frames: Ints, zoom: float) -> None:
        """Titles of open boxes as large as on screen they can be read, at every zoom."""
        assert self.facts is not None
        sizes = self.geometry.rects[frames, 2:] * zoom
        frames = frames[(sizes >= FRAME_TITLE_MIN_PX).all(axis=1)]
        scale = 1.0 if zoom >= TEXT_MIN_ZOOM else 0.9 / zoom
        bold, plain = font(12, bold=True), font(11)
        colors = theme.current()
        for frame in frames.tolist():
            x, y, width, _ = self.geometry.rects[frame].tolist()
            painter.save()
            painter.translate(x, y)
            painter.scale(scale, scale)
            room = width / scale - 3 * PAD
            title = elided(self.facts.title(frame), bold, room - 12)
            used = text_width(title, bold) + PAD
            painter.setPen(QPen(colors.color("muted"), 1.5))
            middle = TITLE_HEIGHT / 2
            chevron = [QPointF(8, middle - 2), QPointF(12, middle + 2), QPointF(16, middle - 2)]
            painter.drawPolyline(QPolygonF(chevron))
            painter.setPen(colors.color("text"))
            painter.setFont(bold)
            painter.drawText(QPointF(22, middle + 4), title)
            words = self.facts.frame_words(frame)
            if room - used - 14 > 48:
                painter.setPen(colors.color("muted"))
                painter.setFont(plain)
                painter.drawText(
                    QPointF(22 + used, middle + 4), elided(words, plain, room - used - 14)
                )
            painter.restore()

    # -- near ------------------------------------------------------------------------------------

    def _paint_links_near(self, painter: QPainter, links: Ints, zoom: float) -> None:
        assert self.facts is not None
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        for role, some in self._by_passed(links):
            for width, bundle in self._by_width(some):
                painter.setPen(pen(role, width, alpha=_link_alpha(role)))
                painter.setBrush(Qt.BrushStyle.NoBrush)
                for link in bundle[~self.facts.to_cut[bundle]].tolist():
                    painter.drawPath(self.geometry.path(link))
                painter.setPen(pen("warning", width, Qt.PenStyle.DashLine))
                for link in bundle[self.facts.to_cut[bundle]].tolist():
                    painter.drawPath(self.geometry.path(link))
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(theme.current().color(role, _link_alpha(role)))
            for head in self.geometry.heads[some[~self.facts.to_cut[some]]].tolist():
                painter.drawConvexPolygon(QPolygonF([QPointF(*point) for point in head]))
        if zoom >= EDGE_TEXT_MIN_ZOOM:
            self._paint_link_texts(painter, links)

    def _paint_link_texts(self, painter: QPainter, links: Ints) -> None:
        """The shape of what flows, on a plate over the line."""
        assert self.facts is not None
        face = font(9)
        painter.setFont(face)
        painter.setBrush(theme.current().color("canvas", 215))
        for link in links.tolist():
            text = self.facts.link_text(link)
            if not text:
                continue
            middle = self.geometry.middle(link)
            width = text_width(text, face) + 6
            plate = QRectF(middle.x() - width / 2, middle.y() - 7, width, 13)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.drawRoundedRect(plate, 3, 3)
            painter.setPen(theme.current().color("muted"))
            painter.drawText(QPointF(plate.left() + 3, middle.y() + 3), text)

    def _by_passed(self, links: Ints) -> list[tuple[str, Ints]]:
        """(role, links): where no gradient has passed yet, then where one has."""
        assert self.facts is not None
        passed = self.facts.passed[links]
        return [("muted", links[~passed]), ("gradient", links[passed])]

    def _by_width(self, links: Ints) -> list[tuple[float, Ints]]:
        """(pen width, links): bundles are thicker the more edges they hold."""
        assert self.facts is not None
        steps = np.minimum(np.log2(np.maximum(self.facts.widths[links], 1)).astype(int), 4)
        return [(1.5 + 0.75 * step, links[steps == step]) for step in np.unique(steps).tolist()]

    def _paint_near(self, painter: QPainter, boxes: Ints, zoom: float) -> None:
        assert self.facts is not None
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        cuts = boxes[self.facts.cut[boxes]]
        solid = boxes[~self.facts.cut[boxes]]
        self._paint_stacks(painter, solid[~self.facts.atom[solid]])
        for state in (WAITING, EXECUTED, READY, CURRENT):
            some = solid[self.facts.box_states[solid] == state]
            self._paint_boxes(painter, some, state, zoom)
        self._paint_meanings(painter, solid)
        self._paint_progress(painter, solid[~self.facts.atom[solid]])
        self._paint_cuts(painter, cuts)
        self._paint_texts(painter, solid, zoom)
        self._paint_flags(painter, solid)

    def _paint_stacks(self, painter: QPainter, closed: Ints) -> None:
        """A second outline behind a closed box: there is more inside."""
        painter.setPen(pen("border"))
        painter.setBrush(theme.current().color("surface"))
        for x, y, w, h in self.geometry.rects[closed].tolist():
            painter.drawRoundedRect(QRectF(x + 4, y + 4, w, h), 5, 5)

    def _paint_boxes(self, painter: QPainter, boxes: Ints, state: int, zoom: float) -> None:
        """The boxes of one state; their corners are rounded where that can be seen."""
        rects = self.geometry.rects[boxes]
        role, width = _outline(state)
        fills = [(pen(role, width), theme.current().color("raised"))]
        if state in (EXECUTED, CURRENT):
            tint = theme.current().color("gradient", 70 if state == CURRENT else 28)
            fills.append((QPen(Qt.PenStyle.NoPen), tint))
        for outline, color in fills:
            painter.setPen(outline)
            painter.setBrush(color)
            if zoom < ROUND_MIN_ZOOM:
                draw_rects(painter, rects)
                continue
            for x, y, w, h in rects.tolist():
                painter.drawRoundedRect(QRectF(x, y, w, h), 5, 5)

    def _paint_meanings(self, painter: QPainter, boxes: Ints) -> None:
        """The bar at a box's left: leaf, operation or module."""
        assert self.facts is not None
        painter.setPen(Qt.PenStyle.NoPen)
        for role, some in self._by_meaning(boxes):
            painter.setBrush(theme.current().color(role))
            bars = self.geometry.rects[some] * (1, 1, 0, 1) + (4, 6, 4, -12)
            draw_rects(painter, bars)

    def _by_meaning(self, boxes: Ints) -> list[tuple[str, Ints]]:
        """(role, boxes)"""
        assert self.facts is not None
        leaf, atom = self.facts.leaf[boxes], self.facts.atom[boxes]
        return [
            ("leaf", boxes[leaf]),
            ("intermediate", boxes[atom & ~leaf]),
            ("accent", boxes[~atom]),
        ]

    def _paint_progress(self, painter: QPainter, closed: Ints) -> None:
        """How much of a closed box has run, along its lower edge."""
        assert self.facts is not None
        part = self.facts.executed[closed] / np.maximum(self.facts.nodes[closed], 1)
        some = closed[(part > 0) & (part < 1)]
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.current().color("gradient"))
        rects = self.geometry.rects[some]
        bars = rects.copy()
        bars[:, 1] += rects[:, 3] - 4
        bars[:, 2] *= part[(part > 0) & (part < 1)]
        bars[:, 3] = 3
        draw_rects(painter, bars)

    def _paint_cuts(self, painter: QPainter, cuts: Ints) -> None:
        """Scissors and the reason, in a dashed box: the gradient goes no further."""
        assert self.facts is not None
        colors = theme.current()
        painter.setBrush(QBrush(colors.color("warning", 16)))
        painter.setPen(pen("warning", 1.0, Qt.PenStyle.DashLine))
        for x, y, w, h in self.geometry.rects[cuts].tolist():
            painter.drawRoundedRect(QRectF(x, y, w, h), 5, 5)
        scissors = icon("mdi6.content-cut", colors.warning)
        bold, plain = font(11, bold=True), font(10)
        for cut in cuts.tolist():
            x, y, w, h = self.geometry.rects[cut].tolist()
            side = min(16.0, h - 4)
            painter.drawPixmap(
                QRectF(x + 6, y + (h - side) / 2, side, side), scissors, QRectF(scissors.rect())
            )
            room = w - side - 3 * PAD
            painter.setFont(bold)
            painter.setPen(colors.color("warning"))
            title, line = self.facts.title(cut), self.facts.second_line(cut)
            two = h >= 36 and bool(line)
            painter.drawText(
                QPointF(x + side + 12, y + (h / 2 - 4 if two else h / 2 + 4)),
                elided(title, bold, room),
            )
            if two:
                painter.setFont(plain)
                painter.setPen(colors.color("muted"))
                painter.drawText(QPointF(x + side + 12, y + h / 2 + 11), elided(line, plain, room))

    def _paint_texts(self, painter: QPainter, boxes: Ints, zoom: float) -> None:
        assert self.facts is not None
        lines: list[tuple[bool, str, int, Callable[[int], str]]] = [
            (True, "text", 18, self.facts.title)
        ]
        if zoom >= SECOND_LINE_MIN_ZOOM:
            lines.append((False, "muted", 35, self.facts.second_line))
        for title, role, below, text_of in lines:
            face = font(12, bold=True) if title else font(11)
            painter.setFont(face)
            painter.setPen(theme.current().color(role))
            for box in boxes.tolist():
                x, y, width, _ = self.geometry.rects[box].tolist()
                room = width - 3 * PAD - (self._badge_room(box) if title else 0.0)
                painter.drawText(QPointF(x + 2 * PAD, y + below), elided(text_of(box), face, room))

    def _badge_room(self, box: int) -> float:
        assert self.facts is not None
        if self.facts.atom[box]:
            return 0.0
        badge = self.facts.badge(box)
        return 16.0 + (text_width(badge, font(11, bold=True)) + 12 if badge else 0.0)

    def _paint_flags(self, painter: QPainter, boxes: Ints) -> None:
        """What sits at a box's corners: a chevron and ×N, the stale flag, a breakpoint's dot."""
        assert self.facts is not None
        colors = theme.current()
        for box in boxes[~self.facts.atom[boxes]].tolist():
            x, y, width, _ = self.geometry.rects[box].tolist()
            right = x + width - 8
            painter.setPen(pen("muted", 1.5))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            chevron = [
                QPointF(right - 4, y + 10),
                QPointF(right, y + 14),
                QPointF(right - 4, y + 18),
            ]
            painter.drawPolyline(QPolygonF(chevron))
            badge = self.facts.badge(box)
            if badge:
                face = font(11, bold=True)
                wide = text_width(badge, face) + 8
                place = QRectF(right - 12 - wide, y + 6, wide, 16)
                painter.setPen(Qt.PenStyle.NoPen)
                painter.setBrush(colors.color("accent", 38))
                painter.drawRoundedRect(place, 8, 8)
                painter.setPen(colors.color("accent"))
                painter.setFont(face)
                painter.drawText(place, Qt.AlignmentFlag.AlignCenter, badge)
        painter.setPen(Qt.PenStyle.NoPen)
        flag = icon("mdi6.alert", colors.error)
        for x, y, width, height in self.geometry.rects[boxes[self.facts.stale[boxes]]].tolist():
            place = QRectF(x + width - 22, y + height - 20, 16, 16)
            painter.drawPixmap(place, flag, QRectF(flag.rect()))

    # -- far -------------------------------------------------------------------------------------

    def _paint_links_far(self, painter: QPainter, links: Ints, zoom: float) -> None:
        assert self.facts is not None
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
        for role, some in self._by_passed(links):
            painter.setPen(pen(role, alpha=_link_alpha(role)))
            draw_lines(
                painter,
                self.geometry.pieces_of(some)
                if zoom >= CURVE_MIN_ZOOM
                else self.geometry.chords[some],
            )

    def _paint_far(self, painter: QPainter, boxes: Ints) -> None:
        assert self.facts is not None
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
        painter.setPen(Qt.PenStyle.NoPen)
        cuts = self.facts.cut[boxes]
        painter.setBrush(theme.current().color("warning", 150))
        draw_rects(painter, self.geometry.rects[boxes[cuts]])
        boxes = boxes[~cuts]
        for state in (WAITING, EXECUTED, READY, CURRENT):
            some = boxes[self.facts.box_states[boxes] == state]
            for meaning, those in self._by_meaning(some):
                role, alpha = _far_fill(state, meaning)
                painter.setBrush(theme.current().color(role, alpha))
                draw_rects(painter, self.geometry.rects[those])
        self._paint_progress(painter, boxes[~self.facts.atom[boxes]])

    def paint_map(self, painter: QPainter) -> None:
        """All boxes that are not open, as small as they may be: for a map."""
        if self.facts is None:
            return
        boxes = np.flatnonzero(~self.geometry.open)
        if self.lit is not None:
            painter.setOpacity(DIM)
            self._paint_far(painter, boxes[~self.lit[boxes]])
            painter.setOpacity(1.0)
            boxes = boxes[self.lit[boxes]]
        self._paint_far(painter, boxes)

    # -- over everything ---------------------------------------------------------------------------

    def _paint_rings(self, painter: QPainter, boxes: Ints) -> None:
        """The selection, what a search has found, and breakpoints: as large at every zoom."""
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        zoom = painter.worldTransform().m11()
        painter.setBrush(Qt.BrushStyle.NoBrush)
        if self.hits is not None:
            painter.setPen(pen("warning", 2))
            for x, y, w, h in self.geometry.rects[boxes[self.hits[boxes]]].tolist():
                painter.drawRoundedRect(QRectF(x - 2, y - 2, w + 4, h + 4), 6, 6)
        if self.selected is not None:
            painter.setPen(pen("accent", 2))
            off = 4.0 if zoom >= TEXT_MIN_ZOOM else 2 / zoom
            rect = self.geometry.rect(self.selected).adjusted(-off, -off, off, off)
            painter.drawRoundedRect(rect, 8, 8)
        if self.breakpoints is not None:
            radius = 5.0 if zoom >= TEXT_MIN_ZOOM else 3 / zoom
            painter.setPen(pen("surface", 1.5))
            painter.setBrush(theme.current().color("error"))
            for x, y, _, _ in self.geometry.rects[boxes[self.breakpoints[boxes]]].tolist():
                painter.drawEllipse(QPointF(x, y), radius, radius)


def _outline(state: int) -> tuple[str, float]:
    """(role, width) of a box's outline."""
    return {
        WAITING: ("border", 1.0),
        READY: ("accent", 1.75),
        EXECUTED: ("gradient", 1.0),
        CURRENT: ("gradient", 2.5),
    }[state]


def _link_alpha(role: str) -> int:
    return 255 if role == "gradient" else 120


def _far_fill(state: int, meaning: str) -> tuple[str, int]:
    """(role, alpha) of a box where there is no room for more."""
    if state == WAITING:
        return meaning, 150
    return {READY: ("accent", 255), EXECUTED: ("gradient", 150), CURRENT: ("gradient", 255)}[state]
