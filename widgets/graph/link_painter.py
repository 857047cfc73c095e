"""Paints the links of a graph's picture."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import QColor, QPainter, QPen, QPolygonF

from widgets import theme
from widgets.canvas.style import font, text_width
from widgets.graph.facts import GraphFacts
from widgets.graph.geometry import GraphGeometry, Ints
from widgets.graph.paint import draw_lines, draw_rects, mixed, pen

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
        self._paint_cut_links(painter, links[to_cut])
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

    def _paint_cut_links(self, painter: QPainter, links: Ints) -> None:
        painter.setPen(pen("warning", 1.25, Qt.PenStyle.DashLine))
        self._paint_curves(painter, links)

    def _paint_texts(self, painter: QPainter, links: Ints) -> None:
        """The shape of the gradient and the number of bundled edges, on a plate over each link."""
        face = font(9)
        texts = [(link, text) for link in links.tolist() if (text := self._facts.link_text(link))]
        middles = [self._geometry.middle(link) for link, _ in texts]
        widths = [text_width(text, face) + 6 for _, text in texts]
        plates = [
            (at.x() - width / 2, at.y() - 7, width, 13)
            for at, width in zip(middles, widths, strict=True)
        ]
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.current().color("canvas", 215))
        draw_rects(painter, np.array(plates, float).reshape(-1, 4))
        painter.setFont(face)
        painter.setPen(theme.current().color("muted"))
        for (_, text), (x, y, _, _) in zip(texts, plates, strict=True):
            painter.drawText(QPointF(x + 3, y + 10), text)

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
