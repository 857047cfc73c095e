"""Paints the links of a graph's picture."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import QColor, QPainter, QPen, QPolygonF

from widgets import theme
from widgets.boxes.facts import GraphFacts
from widgets.boxes.numbers import Shown
from widgets.diagram.style import font, text_width
from widgets.graph.painting.geometry import GraphGeometry, Ints
from widgets.graph.painting.number_painter import draw_number, number_width
from widgets.graph.painting.paint import draw_lines, draw_rects, mixed, pen

CURVE_MIN_ZOOM = 0.15
"""Below this zoom the pieces of a link's way are straight."""
FINE_MIN_ZOOM = 0.7
"""Below this zoom curves have fewer pieces, no arrow heads and no texts."""
FINE, NEAR, FAR, FARTHEST = 0.9, 0.6, 0.35, 0.0
"""The `fineness` with which curves are cut into straight pieces (see `GraphGeometry.pieces`). All
pieces are drawn in one call; curves would be drawn one by one, in seven times the time."""
WAITING_STRENGTH = 0.45
"""The share of the text's colour in a link that no gradient has passed."""


class LinkPainter:
    """Draws links given by their indices: curves with arrows and texts, or bare lines."""

    def __init__(self, facts: GraphFacts, geometry: GraphGeometry) -> None:
        self._facts, self._geometry = facts, geometry

    def paint_near(self, painter: QPainter, links: Ints, zoom: float, exact: bool) -> None:
        """`exact` draws true curves, for saved pictures."""
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        to_cut = self._facts.to_cut[links]
        to_data = self._facts.to_data[links]
        self._paint_cut_links(painter, links[to_cut & ~to_data], "text", Qt.PenStyle.DashLine)
        self._paint_cut_links(painter, links[to_data], "border", Qt.PenStyle.SolidLine)
        links = links[~to_cut]
        fine = exact or zoom >= FINE_MIN_ZOOM
        for color, some in self._by_passed(links):
            for width, bundle in self._by_width(some):
                outline = QPen(color, width if fine else width - 0.25)
                outline.setCosmetic(True)
                painter.setPen(outline)
                if exact:
                    self._paint_curves(painter, bundle)
                else:
                    draw_lines(painter, self._geometry.pieces(bundle, FINE if fine else NEAR))
            if not fine:
                continue
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(color)
            for head in self._geometry.heads[some].tolist():
                painter.drawConvexPolygon(QPolygonF([QPointF(*point) for point in head]))
        if fine:
            self._paint_texts(painter, links)

    def paint_far(self, painter: QPainter, links: Ints, zoom: float) -> None:
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
        for color, some in self._by_passed(links):
            outline = QPen(color)
            outline.setCosmetic(True)
            painter.setPen(outline)
            fineness = FAR if zoom >= CURVE_MIN_ZOOM else FARTHEST
            draw_lines(painter, self._geometry.pieces(some, fineness))

    def _paint_curves(self, painter: QPainter, links: Ints) -> None:
        painter.setBrush(Qt.BrushStyle.NoBrush)
        for link in links.tolist():
            painter.drawPath(self._geometry.path(link))

    def _paint_cut_links(
        self, painter: QPainter, links: Ints, role: str, line: Qt.PenStyle
    ) -> None:
        painter.setPen(pen(role, 1.25, line))
        self._paint_curves(painter, links)

    def _paint_texts(self, painter: QPainter, links: Ints) -> None:
        """Paint a plate over each link: with the gradient that has gone along it, or else its
        shape, and with the number of bundled edges."""
        facts, words, digits = self._facts, font(9), font(12, bold=True)
        texts: list[tuple[int, str, Shown | None]] = []
        for link in links.tolist():
            text, gradient = facts.link_text(link), facts.link_gradient(link)
            if gradient is not None and gradient.norm is None:
                text = facts.link_output(link)  # its numbers tell the shape
            if text or gradient is not None:
                texts.append((link, text, gradient))
        plates = []
        for link, text, gradient in texts:
            at, width = self._geometry.middle(link), text_width(text, words) + 6
            if gradient is not None:
                width += number_width(gradient, digits) + (4 if text else 0)
            high = 8 if gradient is not None else 7
            plates.append((at.x() - width / 2, at.y() - high, width, 2 * high - 1))
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.current().color("canvas", 215))
        draw_rects(painter, np.array(plates, float).reshape(-1, 4))
        for (_, text, gradient), (x, y, width, height) in zip(texts, plates, strict=True):
            painter.setFont(words)
            painter.setPen(theme.current().color("muted"))
            painter.drawText(QPointF(x + 3, y + height / 2 + 3.5), text)
            if gradient is not None:
                wide = number_width(gradient, digits)
                at = QPointF(x + width - 3 - wide, y + height / 2 + 4.5)
                draw_number(painter, at, gradient, digits, "gradient", wide + 1)

    def _by_passed(self, links: Ints) -> list[tuple[QColor, Ints]]:
        """(colour, links): links that no gradient has passed yet, then the others. The colours are
        opaque, so that the joints of a curve's pieces do not show."""
        passed = self._facts.passed[links]
        waiting = mixed("muted", "canvas", WAITING_STRENGTH)
        return [(waiting, links[~passed]), (theme.current().color("gradient"), links[passed])]

    def _by_width(self, links: Ints) -> list[tuple[float, Ints]]:
        """(pen width, links): a link is thicker the more edges it bundles."""
        steps = np.minimum(np.log2(np.maximum(self._facts.widths[links], 1)).astype(int), 4)
        return [(1.25 + 0.75 * step, links[steps == step]) for step in np.unique(steps).tolist()]
