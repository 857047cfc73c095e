"""Boxes and curves of a laid-out graph as arrays, ready to paint and to cull."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QPainterPath, QPolygonF

from engine.protocol import GraphSnapshot
from widgets.autograd.graph_layout import NODE_HEIGHT, NODE_WIDTH, GraphLayout
from widgets.canvas.layout import Point

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
NODE_SIZE = (NODE_WIDTH, NODE_HEIGHT)
MARGIN = 8.0
HEAD_LENGTH = 7.0


class GraphGeometry:
    """All in scene pixels. Nodes by id, edges by their place in the snapshot.

    `boxes` (N, 4) are x, y, width, height; `ends` (E, 2) source and target ids; `lines` (E, 4)
    x1, y1, x2, y2 from the source's lower to the target's upper side; `curved` (E,) says where
    `paths` are splines instead; `heads` are the arrows at their ends, `text_points` where an
    edge's shape is written. Raises KeyError when a node has no position.
    """

    def __init__(self, graph: GraphSnapshot, layout: GraphLayout) -> None:
        corners = np.array([layout.positions[node.id] for node in graph.nodes], float)
        self.corners: Floats = corners.reshape(-1, 2)
        sizes = np.broadcast_to(NODE_SIZE, self.corners.shape)
        self.boxes: Floats = np.concatenate([self.corners, sizes], axis=1)
        ends = np.array([(edge.source, edge.target) for edge in graph.edges], np.intp)
        self.ends: Ints = ends.reshape(-1, 2)
        sources, targets = self.ends.T
        below = self.corners[sources] + (NODE_WIDTH / 2, NODE_HEIGHT)
        above = self.corners[targets] + (NODE_WIDTH / 2, 0.0)
        self.lines: Floats = np.concatenate([below, above], axis=1)
        splines = layout.splines or ((),) * len(graph.edges)
        self.curved = np.array([len(spline) >= 4 for spline in splines], bool)
        self.paths = [
            _curve(spline) if len(spline) >= 4 else _line(*line)
            for spline, line in zip(splines, self.lines.tolist(), strict=True)
        ]
        self.heads = [_arrow_head(path) for path in self.paths]
        self.text_points = [path.pointAtPercent(0.5) + QPointF(5, 3) for path in self.paths]
        self._edge_boxes: Floats = np.array(
            [path.boundingRect().getCoords() for path in self.paths], float
        ).reshape(-1, 4)
        self.bounds = self._bounds()

    def _bounds(self) -> QRectF:
        if not len(self.corners):
            return QRectF()
        corners = [self.corners, self.corners + NODE_SIZE]
        points = np.concatenate([*corners, self._edge_boxes[:, :2], self._edge_boxes[:, 2:]])
        (left, top), (right, bottom) = points.min(axis=0).tolist(), points.max(axis=0).tolist()
        whole = QRectF(left, top, right - left, bottom - top)
        return whole.adjusted(-MARGIN, -MARGIN, MARGIN, MARGIN)

    def nodes_in(self, rect: QRectF) -> Ints:
        """Ids of the nodes that meet `rect`."""
        (x, y), (w, h) = self.corners.T, NODE_SIZE
        inside = (x < rect.right()) & (x + w > rect.left())
        return np.flatnonzero(inside & (y < rect.bottom()) & (y + h > rect.top()))

    def edges_in(self, rect: QRectF) -> Ints:
        """Edges whose bounding boxes meet `rect`."""
        left, top, right, bottom = self._edge_boxes.T
        inside = (left <= rect.right()) & (right >= rect.left())
        return np.flatnonzero(inside & (top <= rect.bottom()) & (bottom >= rect.top()))

    def node_at(self, point: QPointF) -> int | None:
        """The node at a point."""
        hits = self.nodes_in(QRectF(point.x() - 1e-6, point.y() - 1e-6, 2e-6, 2e-6))
        return int(hits[-1]) if hits.size else None


def _curve(points: tuple[Point, ...]) -> QPainterPath:
    """A cubic Bézier spline of 3n + 1 control points."""
    first, *rest = (QPointF(*point) for point in points)
    path = QPainterPath(first)
    for i in range(0, len(rest) - 2, 3):
        path.cubicTo(*rest[i : i + 3])
    return path


def _line(x1: float, y1: float, x2: float, y2: float) -> QPainterPath:
    path = QPainterPath(QPointF(x1, y1))
    path.lineTo(x2, y2)
    return path


def _arrow_head(path: QPainterPath) -> QPolygonF:
    """A triangle at the path's end, pointing along it."""
    end = path.pointAtPercent(1.0)
    before = path.pointAtPercent(max(0.0, 1.0 - HEAD_LENGTH / max(path.length(), HEAD_LENGTH)))
    along = end - before
    along /= max((along.x() ** 2 + along.y() ** 2) ** 0.5, 1e-6)
    across = QPointF(-along.y(), along.x()) * (HEAD_LENGTH / 2)
    base = end - along * HEAD_LENGTH
    return QPolygonF([end, base + across, base - across])
