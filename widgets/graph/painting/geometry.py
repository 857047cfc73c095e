"""Boxes and links of a laid-out picture as arrays, for painting, culling and hit tests."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QPainterPath

from widgets.boxes.boxes import VisibleGraph
from widgets.layout.nested_layout import TITLE_HEIGHT
from widgets.layout.outline import Direction, NestedLayout

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
MARGIN = 8.0
HEAD_LENGTH = 7.0
TEXT_MIN_ZOOM = 0.45
"""Below this zoom boxes are plain, and only titles of open boxes are written."""
CHEVRON_WIDTH = 24.0
"""The width of the chevron: at the right end of a closed box, left of an open box's title."""
MAX_PIECES = 24
FEW_LINKS, MANY_LINKS = 500, 5_000
"""In a picture of MANY_LINKS, up to FEW_LINKS are cut into pieces alone: all would take a while."""
STRAIGHT_PX = 0.02
"""A point at most this far from the line between its neighbours counts as on it."""


def title_height(zoom: float) -> float:
    """The height of an open box's title in scene pixels; from far it keeps its size on screen."""
    return TITLE_HEIGHT if zoom >= TEXT_MIN_ZOOM else TITLE_HEIGHT * 0.9 / zoom


class GraphGeometry:
    """All in scene pixels; boxes and links by their indices in the `VisibleGraph`.

    `rects` (N, 4) are x, y, width, height; `ends` (L, 2) the boxes of each link, source first.
    With `flows_up` arrows point at the source: the picture shows the flow of the data, not of the
    gradient.
    """

    def __init__(
        self, visible: VisibleGraph, layout: NestedLayout, direction: Direction = "backward"
    ) -> None:
        boxes, links = visible.boxes, visible.links
        self.rects: Floats = np.asarray(layout.rects, float).reshape(-1, 4)
        self.parents: Ints = np.array(
            [-1 if box.parent is None else box.parent for box in boxes], np.intp
        )
        self.open = np.array([box.open for box in boxes], bool)
        ends = np.array([(link.source, link.target) for link in links], np.intp)
        self.ends: Ints = ends.reshape(-1, 2)
        self.flows_up = direction == "forward"
        self.curved = layout.curved
        self._points: Floats = np.asarray(layout.points, float).reshape(-1, 2)
        self._starts: Ints = np.asarray(layout.starts, np.intp)
        corners = np.concatenate(
            [
                np.minimum.reduceat(self._points, self._starts[:-1]),
                np.maximum.reduceat(self._points, self._starts[:-1]),
            ],
            axis=1,
        ) if len(links) else np.zeros((0, 4))  # fmt: skip
        self._link_corners: Floats = corners
        self.lengths: Floats = np.hypot(*(corners[:, 2:] - corners[:, :2]).T)
        self._corners: Floats = np.concatenate(
            [self.rects[:, :2], self.rects[:, :2] + self.rects[:, 2:]], axis=1
        )
        self.bounds = self._bounds()
        self._paths: dict[int, QPainterPath] = {}
        self._pieces: dict[float, tuple[Floats, Ints]] = {}
        self._middles: dict[int, QPointF] = {}

    def _bounds(self) -> QRectF:
        if not len(self.rects):
            return QRectF()
        corners = np.concatenate([self._corners, self._link_corners])
        left, top = corners[:, :2].min(axis=0).tolist()
        right, bottom = corners[:, 2:].max(axis=0).tolist()
        whole = QRectF(left, top, right - left, bottom - top)
        return whole.adjusted(-MARGIN, -MARGIN, MARGIN, MARGIN)

    # -- boxes by place --------------------------------------------------------------------------

    def boxes_in(self, rect: QRectF) -> Ints:
        """The boxes that meet `rect`, parents first."""
        return np.flatnonzero(_meet(self._corners, rect))

    def links_in(self, rect: QRectF) -> Ints:
        """The links whose bounding boxes meet `rect`."""
        return np.flatnonzero(_meet(self._link_corners, rect))

    def box_at(self, point: QPointF) -> int | None:
        """The innermost box at a point."""
        hits = self.boxes_in(QRectF(point.x() - 1e-6, point.y() - 1e-6, 2e-6, 2e-6))
        return int(hits[-1]) if hits.size else None

    def rect(self, box: int) -> QRectF:
        """Raises IndexError for an unknown box."""
        return QRectF(*self.rects[box].tolist())

    def head_rect(self, box: int, zoom: float = 1.0) -> QRectF:
        """The rect of an open box's title as shown at a zoom; for other boxes the whole rect."""
        rect = self.rect(box)
        if self.open[box]:
            rect.setHeight(min(title_height(zoom), rect.height()))
        return rect

    def chevron_rect(self, box: int, zoom: float = 1.0) -> QRectF:
        """The rect in which a click opens or closes a box; empty where no chevron is drawn."""
        head = self.head_rect(box, zoom)
        if self.open[box]:
            head.setWidth(min(CHEVRON_WIDTH * head.height() / TITLE_HEIGHT, head.width()))
            return head
        if zoom < TEXT_MIN_ZOOM:
            return QRectF()
        return QRectF(head.right() - CHEVRON_WIDTH, head.top(), CHEVRON_WIDTH, TITLE_HEIGHT)

    def around(self, box: int) -> list[int]:
        """The open boxes around a box, innermost first."""
        out = []
        while (box := int(self.parents[box])) >= 0:
            out.append(box)
        return out

    def neighbour(self, box: int, direction: str) -> int:
        """The closed box or node next to a box: `up` and `down` along a link (from an open box to
        the nearest box), `left` and `right` beside it; the box itself if there is none."""
        linked = self._linked(box, direction)
        if direction in ("up", "down") and not linked.size and not self.open[box]:
            return box
        centers = self._corners[:, :2] + self.rects[:, 2:] / 2
        if linked.size:
            return int(linked[np.abs(centers[linked, 0] - centers[box, 0]).argmin()])
        off = centers - centers[box]
        axis, sign = (0, 1) if direction in ("left", "right") else (1, 0)
        ahead = off[:, axis] if direction in ("right", "down") else -off[:, axis]
        some = np.flatnonzero((ahead > 1) & ~self.open)
        if axis == 0:
            overlaps = np.abs(off[some, 1]) < (self.rects[some, 3] + self.rects[box, 3]) / 2
            some = some[overlaps]
        if not some.size:
            return box
        return int(some[(ahead[some] + 2 * np.abs(off[some, sign])).argmin()])

    def _linked(self, box: int, direction: str) -> Ints:
        if direction not in ("up", "down"):
            return np.zeros(0, np.intp)
        near, far = (0, 1) if (direction == "down") != self.flows_up else (1, 0)
        return self.ends[self.ends[:, near] == box, far]

    # -- the paths of links ----------------------------------------------------------------------

    def path(self, link: int) -> QPainterPath:
        """A link's way in the direction of its arrow."""
        path = self._paths.get(link)
        if path is None:
            points = self._points[self._starts[link] : self._starts[link + 1]]
            path = _path(points[::-1] if self.flows_up else points, self.curved)
            self._paths[link] = path
        return path

    def middle(self, link: int) -> QPointF:
        """The middle of a link's way."""
        point = self._middles.get(link)
        if point is None:
            point = self._middles[link] = self.path(link).pointAtPercent(0.5)
        return point

    @cached_property
    def heads(self) -> Floats:
        """The arrow heads (L, 3, 2): tip, then the two corners of the base."""
        starts, ends = self._starts[:-1], self._starts[1:]
        tips, before = (
            (self._points[starts], self._points[starts + 1])
            if self.flows_up
            else (self._points[ends - 1], self._points[ends - 2])
        )
        along = tips - before
        along /= np.maximum(np.hypot(*along.T), 1e-6)[:, None]
        across = along[:, ::-1] * (-1, 1) * (HEAD_LENGTH / 2)
        base = tips - along * HEAD_LENGTH
        return np.stack([tips, base + across, base - across], axis=1)

    def pieces(self, links: Ints, fineness: float) -> Floats:
        """The paths of some links as straight pieces (P, 4). A cubic has about `fineness` times the
        square root of its length in pixels of them, a straight line has one."""
        if not len(links):
            return np.zeros((0, 4))
        count = len(self.ends)
        if fineness not in self._pieces and count > MANY_LINKS and len(links) <= FEW_LINKS:
            counts = self._starts[links + 1] - self._starts[links]
            points = self._points[np.repeat(self._starts[links], counts) + _ramp(counts)]
            return self._straightened(points, _starts_of(counts), fineness)[0]
        self.prepare(fineness)
        pieces, starts = self._pieces[fineness]
        if len(links) == count:
            return pieces
        counts = starts[links + 1] - starts[links]
        return pieces[np.repeat(starts[links], counts) + _ramp(counts)]

    def prepare(self, fineness: float) -> None:
        """Cut all links into pieces, once: for 50,000 links this takes a tenth of a second."""
        if fineness not in self._pieces and len(self.ends):
            self._pieces[fineness] = self._straightened(self._points, self._starts, fineness)

    def _straightened(self, points: Floats, starts: Ints, fineness: float) -> tuple[Floats, Ints]:
        """Paths as straight pieces (P, 4), and the index of each link's first piece (L + 1)."""
        if self.curved:
            points, starts = _flattened(points, starts, fineness)
        points, starts = _without_midpoints(points, starts)
        joined = np.concatenate([points[:-1], points[1:]], axis=1)
        # No piece leads from the last point of one path to the first of the next.
        inner = np.ones(len(joined), bool)
        inner[starts[1:-1] - 1] = False
        return joined[inner], starts - np.arange(len(starts))


def _meet(corners: Floats, rect: QRectF) -> NDArray[np.bool_]:
    left, top, right, bottom = corners.T
    inside = (left <= rect.right()) & (right >= rect.left())
    return inside & (top <= rect.bottom()) & (bottom >= rect.top())


def _path(points: Floats, curved: bool) -> QPainterPath:
    first, *rest = (QPointF(x, y) for x, y in points.tolist())
    path = QPainterPath(first)
    if curved:
        for i in range(0, len(rest) - 2, 3):
            path.cubicTo(*rest[i : i + 3])
    else:
        for point in rest:
            path.lineTo(point)
    return path


def _flattened(points: Floats, starts: Ints, fineness: float) -> tuple[Floats, Ints]:
    """Splines of 3n + 1 control points as polylines."""
    cubics = (np.diff(starts) - 1) // 3
    firsts = np.repeat(starts[:-1], cubics) + 3 * _ramp(cubics)
    lengths = np.hypot(*(points[firsts + 3] - points[firsts]).T)
    parts = np.clip(np.ceil(fineness * np.sqrt(lengths)), 1, MAX_PIECES).astype(np.intp)
    of_cubic = np.repeat(firsts, parts)
    t = (_ramp(parts) / np.repeat(parts, parts))[:, None]
    a, b, c, d = (points[of_cubic + i] for i in range(4))
    curve = a * (1 - t) ** 3 + 3 * b * t * (1 - t) ** 2 + 3 * c * t**2 * (1 - t) + d * t**3
    links = np.repeat(np.arange(len(cubics)), cubics)
    counts = np.bincount(links, parts, len(cubics)).astype(np.intp) + 1
    new_starts = _starts_of(counts)
    out = np.empty((new_starts[-1], 2))
    lasts = np.zeros(len(out), bool)
    lasts[new_starts[1:] - 1] = True
    out[~lasts] = curve
    out[lasts] = points[starts[1:] - 1]
    return out, new_starts


def _without_midpoints(points: Floats, starts: Ints) -> tuple[Floats, Ints]:
    """Polylines without the points on a straight line between their neighbours: a line drawn in
    several pieces looks dotted."""
    keep = np.ones(len(points), bool)
    along, whole = points[1:-1] - points[:-2], points[2:] - points[:-2]
    off = np.abs(along[:, 0] * whole[:, 1] - along[:, 1] * whole[:, 0])
    keep[1:-1] = off > STRAIGHT_PX * np.maximum(np.hypot(*whole.T), 1e-6)
    keep[starts[:-1]] = keep[starts[1:] - 1] = True
    new_starts = np.concatenate([[0], np.cumsum(np.add.reduceat(keep, starts[:-1], dtype=int))])
    return points[keep], new_starts


def _starts_of(counts: Ints) -> Ints:
    """Where each piece begins, given their lengths, and where the last one ends."""
    return np.concatenate([[0], np.cumsum(counts)])


def _ramp(counts: Ints) -> Ints:
    """0, 1, ..., counts[0] - 1, 0, 1, ..., counts[1] - 1, ..."""
    total = int(counts.sum())
    return np.arange(total) - np.repeat(np.cumsum(counts) - counts, counts)
