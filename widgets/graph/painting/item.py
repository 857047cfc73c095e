"""One graphics item that paints a whole autograd graph, boxes within boxes, from arrays."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPen
from PySide6.QtWidgets import QGraphicsItem, QStyleOptionGraphicsItem, QWidget

from widgets import theme
from widgets.boxes.facts import GraphFacts
from widgets.boxes.sums import Bools
from widgets.diagram.style import font, icon, text_width
from widgets.graph.painting.box_painter import BoxPainter
from widgets.graph.painting.frame_painter import FramePainter
from widgets.graph.painting.geometry import TEXT_MIN_ZOOM, Floats, GraphGeometry, Ints
from widgets.graph.painting.link_painter import LinkPainter
from widgets.graph.painting.paint import draw_rects, pen

Counts = NDArray[np.int64]

SHORT_PX = 3.0
"""Links shorter than this on screen are not drawn: they lie within the gap between two boxes."""
EXACT_MIN_ZOOM = 0.1
"""A saved picture has its words down to this scale: the reader can enlarge it."""
HIT_SERIES = 3
"""The index of the colour of hits among the theme's series. It has no other meaning here."""
DIM = 0.3
"""The opacity of boxes and links that a search, a filter or the paths leave out."""


class GraphItem(QGraphicsItem):
    """Paints `facts` at the places of `geometry`, culled and in levels of detail.

    The marks are arrays by box, or None: `lit` boxes stand out and all others are dimmed, `hits`
    counts the nodes in each box that match a search, `chosen` boxes hold what another view has
    chosen, `breakpoints` and `edited` say whether there is one, or an edited gradient, inside.
    """

    def __init__(self) -> None:
        super().__init__()
        self.setFlag(QGraphicsItem.GraphicsItemFlag.ItemUsesExtendedStyleOption)
        self.facts: GraphFacts | None = None
        self._geometry: GraphGeometry | None = None
        self._frames: FramePainter | None = None
        self._boxes: BoxPainter | None = None
        self._links: LinkPainter | None = None
        self.selected: int | None = None
        self.lit: Bools | None = None
        self.hits: Counts | None = None
        self.chosen: Bools | None = None
        self.breakpoints: Bools | None = None
        self.edited: Bools | None = None

    # -- the picture -----------------------------------------------------------------------------

    def show_picture(self, facts: GraphFacts, geometry: GraphGeometry) -> None:
        """Show another picture, without marks."""
        self.clear()
        self.facts, self._geometry = facts, geometry
        self._frames = FramePainter(facts, geometry)
        self._boxes, self._links = BoxPainter(facts, geometry), LinkPainter(facts, geometry)

    def clear(self) -> None:
        self.prepareGeometryChange()
        self.facts = self._geometry = self._frames = self._boxes = self._links = None
        self.selected = self.lit = self.hits = self.chosen = None
        self.breakpoints = self.edited = None
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
        """Paint the visible part over its frames (see `paint_frames`); without a widget (to save
        it) the whole picture as shapes."""
        if self._frames is None or self._boxes is None or self._links is None:
            return
        exact = widget is None
        zoom = painter.worldTransform().m11()
        near = zoom >= (EXACT_MIN_ZOOM if exact else TEXT_MIN_ZOOM)
        geometry, seen = self.geometry, option.exposedRect
        boxes, links = geometry.boxes_in(seen), geometry.links_in(seen)
        links = links[geometry.lengths[links] * zoom >= SHORT_PX]
        frames, atoms = boxes[geometry.open[boxes]], boxes[~geometry.open[boxes]]
        if exact:
            self._frames.paint(painter, seen, zoom)
        for some, through, opacity in self._by_light(atoms, links):
            painter.setOpacity(opacity)
            if near:
                self._links.paint_near(painter, through, zoom, exact)
                self._boxes.paint_near(painter, some, zoom, exact)
            else:
                self._links.paint_far(painter, through, zoom)
                self._boxes.paint_far(painter, some)
        painter.setOpacity(1.0)
        self._frames.paint_titles(painter, frames, seen, zoom)
        self._paint_rings(painter, boxes, zoom)

    def paint_frames(self, painter: QPainter, seen: QRectF, zoom: float) -> None:
        """Paint the open boxes' frames in `seen` (scene pixels). Only another picture or zoom
        changes them, so a view paints them into its background, which it keeps while it pans."""
        if self._frames is not None:
            self._frames.paint(painter, seen, zoom)

    def paint_map(self, painter: QPainter) -> None:
        """All boxes that are not open, at least a pixel large, for a map."""
        if self._boxes is None:
            return
        atoms = np.flatnonzero(~self.geometry.open)
        for some, _, opacity in self._by_light(atoms, np.zeros(0, np.intp)):
            painter.setOpacity(opacity)
            self._boxes.paint_far(painter, some, least=1 / painter.worldTransform().m11())

    def _by_light(self, boxes: Ints, links: Ints) -> list[tuple[Ints, Ints, float]]:
        """Groups (boxes, links, opacity) to paint in this order: dimmed ones first, so that the
        others lie over them."""
        if self.lit is None:
            return [(boxes, links, 1.0)]
        lit, lit_links = self.lit[boxes], self.lit[self.geometry.ends[links]].all(axis=1)
        return [(boxes[~lit], links[~lit_links], DIM), (boxes[lit], links[lit_links], 1.0)]

    def _paint_rings(self, painter: QPainter, boxes: Ints, zoom: float) -> None:
        """Paint the marks of hits, selection and breakpoints. Their size is that on the screen."""
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        near, rects = zoom >= TEXT_MIN_ZOOM, self.geometry.rects
        if self.hits is not None:
            self._paint_hits(painter, boxes[self.hits[boxes] > 0], zoom)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        off = 5.0 if near else 2 / zoom
        rings = [] if self.chosen is None else boxes[self.chosen[boxes]].tolist()
        for box in rings if self.selected is None else {*rings, self.selected}:
            painter.setPen(pen("text", 2 if box == self.selected else 1))  # accent is the next node
            rect = self.geometry.rect(box).adjusted(-off, -off, off, off)
            painter.drawRoundedRect(rect, 8, 8)
        if self.breakpoints is not None:
            radius = 5.0 if near else 3 / zoom
            painter.setPen(pen("surface", 1.5))
            painter.setBrush(theme.current().color("error"))
            for x, y, _, _ in rects[boxes[self.breakpoints[boxes]]].tolist():
                painter.drawEllipse(QPointF(x, y), radius, radius)

        if self.edited is not None:
            self._paint_edited(painter, rects[boxes[self.edited[boxes]]], near, zoom)

    def _paint_edited(self, painter: QPainter, rects: Floats, near: bool, zoom: float) -> None:
        """A pencil at the upper right corner of a node whose gradient is edited."""
        radius = 9.0 if near else 3 / zoom
        pencil = icon("mdi6.pencil", theme.current().color("on_accent").name())
        for x, y, width, _ in rects.tolist():
            painter.setPen(pen("surface", 1.5))
            painter.setBrush(theme.current().color("accent"))
            painter.drawEllipse(QPointF(x + width, y), radius, radius)
            if near:
                place = QRectF(x + width - 6, y - 6, 12, 12)
                painter.drawPixmap(place, pencil, QRectF(pencil.rect()))

    def _paint_hits(self, painter: QPainter, boxes: Ints, zoom: float) -> None:
        """A ring around each hit, with the number of hits inside if there are several; from far the
        boxes themselves have the colour."""
        color, rects = QColor(theme.current().series[HIT_SERIES]), self.geometry.rects[boxes]
        if zoom < TEXT_MIN_ZOOM:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(color)
            draw_rects(painter, rects)
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            return
        ring = QPen(color, 2)
        ring.setCosmetic(True)
        painter.setPen(ring)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        for x, y, w, h in rects.tolist():
            painter.drawRoundedRect(QRectF(x - 2, y - 2, w + 4, h + 4), 6, 6)
        self._paint_hit_counts(painter, boxes, color)

    def _paint_hit_counts(self, painter: QPainter, boxes: Ints, color: QColor) -> None:
        assert self.hits is not None
        face = font(10, bold=True)
        painter.setFont(face)
        for box in boxes[self.hits[boxes] > 1].tolist():
            text = f"{self.hits[box]:,} hits"
            x, y, width, _ = self.geometry.rects[box].tolist()
            wide = text_width(text, face) + 10
            plate = QRectF(x + width - wide - 8, y - 9, wide, 15)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(color)
            painter.drawRoundedRect(plate, 7, 7)
            painter.setPen(theme.current().color("canvas"))
            painter.drawText(plate, Qt.AlignmentFlag.AlignCenter, text)
