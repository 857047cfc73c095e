"""The canvas of the autograd graph: its boxes, anchors that keep a box in place, and overlays."""

from __future__ import annotations

from math import inf
from typing import NamedTuple

import numpy as np
from PySide6.QtCore import QEvent, QPointF, QRectF, Qt
from PySide6.QtGui import QHelpEvent, QPainter, QResizeEvent
from PySide6.QtWidgets import QGraphicsScene, QToolTip, QWidget

from widgets import theme
from widgets.boxes.boxes import NODE_HEIGHT
from widgets.boxes.facts import GraphFacts
from widgets.diagram.view import DiagramView
from widgets.diagram.zoom_bar import ZoomBar
from widgets.graph.map import GraphMap
from widgets.graph.painting.item import GraphItem
from widgets.graph.painting.paint import paint_chip, paint_legend
from widgets.theme import GRID

EMPTY_TEXT = (
    "No graph yet.\n\nRun the forward pass to the loss, then start the backward pass: the graph"
    " that autograd recorded appears here, from the loss at the top to the parameters. Or take one"
    " of the Examples above."
)
BUSY_TEXT = "Laying out the graph…"
LEGIBLE_ZOOM = 0.8
"""A new graph is shown at least at this zoom."""
OPENED_WIDER = 3.0
"""A box that became at least this many times as wide was opened, perhaps into columns."""


class Anchor(NamedTuple):
    """A box, a point in it (fraction of its width, pixels below its top), the place on screen where
    that point is to stay, and the box's width."""

    key: str
    across: float
    below: float
    viewport_point: QPointF
    width: float = inf


class GraphCanvas(DiagramView):
    """Shows a picture of boxes, finds boxes by place, and can keep one in its place while the
    picture changes. A legend, the zoom bar and a map lie over it."""

    steps = True
    """Whether a pass steps through the graph, so that nodes can be run to and hold breakpoints."""
    MIN_ZOOM = 0.0001
    FIT_MARGIN_PX = 16
    FIT_BOTTOM_PX = 40

    def __init__(self, parent: QWidget | None = None) -> None:
        scene = QGraphicsScene()
        super().__init__(scene, parent)
        scene.setParent(self)
        self._empty_text = EMPTY_TEXT
        self._busy = False
        self._at_start = False
        self._item = GraphItem()
        self.scene().addItem(self._item)
        self._zoom_bar = ZoomBar(self)
        self.map = GraphMap(self, self._item)
        self.view_changed.connect(self._on_view_changed)

    @property
    def facts(self) -> GraphFacts | None:
        """The graph that is drawn, None before the first graph."""
        return self._item.facts

    def show_busy(self, busy: bool) -> None:
        """Show or hide that another picture is being computed."""
        self._busy = busy
        self.viewport().update()

    # -- boxes by place --------------------------------------------------------------------------

    def box_of(self, node: int) -> int:
        """The index of a node's own box, or of the closed box that it is in."""
        assert self._item.facts is not None
        return int(self._item.facts.visible.box_of[node])

    def node_rect(self, node: int) -> QRectF:
        """The rect of a node, or of the closed box that it is in, in scene pixels."""
        return self._item.geometry.rect(self.box_of(node))

    def box_rect(self, key: str) -> QRectF:
        """The rect of a box in scene pixels. Raises KeyError for one that is not visible."""
        assert self._item.facts is not None
        return self._item.geometry.rect(self._item.facts.index_of[key])

    def point_of(self, node: int) -> QPointF:
        """The middle of a node in viewport pixels (for tests)."""
        return QPointF(self.mapFromScene(self.node_rect(node).center()))

    def box_at(self, viewport_point: QPointF, body: bool = False) -> int | None:
        """The innermost box at a point of the viewport. An open box counts by its title only, and
        with `body` by its inside, too: otherwise that is canvas to pan on."""
        if self._item.facts is None:
            return None
        point, geometry = self.scene_point(viewport_point), self._item.geometry
        box = geometry.box_at(point)
        if box is None or body or geometry.head_rect(box, self.zoom).contains(point):
            return box
        return None

    def is_on_chevron(self, box: int, viewport_point: QPointF) -> bool:
        """Whether a point of the viewport is on the chevron of a box that can open."""
        facts = self._item.facts
        if facts is None or facts.visible.boxes[box].kind in ("node", "cut"):
            return False
        at = self._item.geometry.chevron_rect(box, self.zoom)
        return at.contains(self.scene_point(viewport_point))

    def crumbs(self) -> list[str]:
        """The titles of the open boxes around the middle of the view that lie above the view,
        outermost first."""
        facts, seen = self._item.facts, self.visible_rect()
        middle = self.box_at(QRectF(self.viewport().rect()).center(), body=True)
        if facts is None or middle is None:
            return []
        geometry = self._item.geometry
        around = [*reversed(geometry.around(middle)), *([middle] if geometry.open[middle] else [])]
        return [
            facts.title(box)
            for box in around
            if geometry.head_rect(box, self.zoom).center().y() < seen.top()
        ]

    # -- anchors ---------------------------------------------------------------------------------

    def look_at_start(self) -> None:
        """Show all of the graph; if that is too small to read, its first box at the top."""
        self.fit()
        facts = self._item.facts
        if self.zoom < LEGIBLE_ZOOM and facts is not None and facts.atom.size:
            geometry = self._item.geometry
            first = int(np.argmin(np.where(geometry.open, np.inf, geometry.rects[:, 1])))
            start = geometry.rect(first).center()
            half_height = self.viewport().height() / LEGIBLE_ZOOM / 2
            self.set_view(LEGIBLE_ZOOM, start.x(), start.y() - 2 * NODE_HEIGHT + half_height)
        self._at_start = True

    def anchor(self, box: int | None, at: QPointF | None = None) -> Anchor | None:
        """An anchor at the point `at` of the viewport if that is in the box, else at the middle of
        its title."""
        if box is None or self._item.facts is None:
            return None
        head = self._item.geometry.head_rect(box)
        if at is None:
            point = head.center()
            at = self.viewportTransform().map(point)
        else:
            point = self.scene_point(at)
        across = (point.x() - head.left()) / head.width()
        key = self._item.facts.visible.boxes[box].key
        across = min(max(across, 0.0), 1.0)
        return Anchor(key, across, point.y() - head.top(), at, head.width())

    def anchor_in_middle(self) -> Anchor | None:
        """The box in the middle of the viewport, None where there is none."""
        middle = QRectF(self.viewport().rect()).center()
        return self.anchor(self.box_at(middle, body=True), middle)

    def settle(self, anchor: Anchor | None) -> None:
        """Scroll so that an anchor's point is where it was; without an anchor show the start."""
        facts = self._item.facts
        if facts is None or anchor is None or anchor.key not in facts.index_of:
            self.look_at_start()
            return
        head = self._item.geometry.head_rect(facts.index_of[anchor.key])
        below = min(max(anchor.below, 4.0), head.height() - 4.0)
        # A box that has become much wider keeps its left part in place: one reads it from the left.
        width = anchor.width if head.width() > OPENED_WIDER * anchor.width else head.width()
        there = QPointF(head.left() + anchor.across * width, head.top() + below)
        self._place(self.zoom, there, anchor.viewport_point)
        self._look_at_something()

    def _look_at_something(self) -> None:
        """Scroll to the nearest child of a box if none is visible: the box, which the user has
        opened, may be far larger than the window."""
        geometry, seen = self._item.geometry, self.visible_rect()
        corners = geometry.rects[~geometry.open]
        if not len(corners):
            return
        left, top, width, height = corners.T
        across = np.maximum(left - seen.right(), seen.left() - left - width).clip(0)
        down = np.maximum(top - seen.bottom(), seen.top() - top - height).clip(0)
        far = np.hypot(across, down)
        if far.min() > 0:
            x, y, w, h = corners[int(far.argmin())].tolist()
            self.set_view(self.zoom, x + w / 2, y + h / 2)

    # -- painting --------------------------------------------------------------------------------

    def content_rect(self) -> QRectF:
        return self._item.boundingRect()

    def paint_background(self, painter: QPainter, rect: QRectF) -> None:
        super().paint_background(painter, rect)
        self._item.paint_frames(painter, rect, self.zoom)

    def drawForeground(self, painter: QPainter, rect: QRectF | object) -> None:
        painter.save()
        painter.resetTransform()
        room = QRectF(self.viewport().rect())
        if self._item.facts is not None:
            beside = self.map.isVisible() and not self.map.at_top
            right = self.map.width() + GRID if beside else 0
            free = room.adjusted(self._zoom_bar.geometry().right(), 0, -right, 0)
            paint_legend(painter, free, self._item.facts.words.legend, self.steps)
            around = " / ".join(self.crumbs())
            if around:
                paint_chip(painter, room, around, at_left=True)
            if self._busy:
                paint_chip(painter, room, BUSY_TEXT)
        else:
            painter.setPen(theme.current().color("muted"))
            flags = int(Qt.AlignmentFlag.AlignCenter) | int(Qt.TextFlag.TextWordWrap)
            painter.drawText(room.adjusted(32, 32, -32, -32), flags, self._empty_text)
        painter.restore()

    def viewportEvent(self, event: QEvent) -> bool:
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            facts, box = self._item.facts, self.box_at(QPointF(event.pos()))
            if facts is None or box is None:
                QToolTip.hideText()
            else:
                QToolTip.showText(event.globalPos(), facts.tooltip(box), self)
            return True
        return super().viewportEvent(event)

    def tooltip(self, node: int) -> str:
        """The tooltip of a node, or of the closed box it is in."""
        assert self._item.facts is not None
        return self._item.facts.tooltip(self.box_of(node))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        bar = self._zoom_bar
        bar.adjustSize()
        bar.move(GRID, self.height() - bar.height() - GRID)
        if self._at_start:  # the user has not scrolled yet: use the first view for the new size
            self.look_again()
        self.place_map()

    def look_again(self) -> None:
        """Show the start of the picture, as for a new graph."""
        self.look_at_start()

    def _on_view_changed(self) -> None:
        if self.isVisible():
            self._at_start = False
        self.place_map()

    def place_map(self) -> None:
        """Show the map while the window shows only a part of the picture; `reveal` then shows items
        above it."""
        whole = self.content_rect()
        needed = not whole.isEmpty() and not self.visible_rect().contains(whole)
        self.map.setVisible(needed)
        if needed:
            self.map.fit_graph()
            self.map.take_corner()
        self.COVERED_BOTTOM_PX = self.map.height() if needed and not self.map.at_top else 0
