"""Layout of boxes within boxes, level by level. Pure: it runs in the layout worker, without Qt.

From the innermost boxes outwards each open box is laid out on its own, its children being
rectangles of known size. A link between two boxes is cut where it crosses a border: there it has a
port, and each piece is an edge of one level. Levels that are alike are laid out once.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from .boxes import Box, Direction, EdgeStyle, NestedLayout, VisibleGraph
from .layers import Level, LevelEdge, PlacedLevel, Point, Size, place_level
from .routes import corners, curve

NODE_WIDTH = 184.0
NODE_HEIGHT = 44.0
CUT_WIDTH = 128.0
CUT_HEIGHT = 28.0
TITLE_HEIGHT = 28.0
"""The bar at the top of an open box; its children begin below."""
PADDING = 16.0
"""Between an open box's border and its children."""

ROOT = -1
PortKey = tuple[int, bool, bool, int]
"""A port: box, whether in the upper border, whether the link leaves, the link's inner end."""


def layout_nested(
    visible: VisibleGraph, direction: Direction = "backward", style: EdgeStyle = "smooth"
) -> NestedLayout:
    """Place all boxes and route all links. `"backward"` has the root at the top and the leaves at
    the bottom, `"forward"` the other way round."""
    return _Nesting(visible, direction == "forward", style == "smooth").run()


def box_size(box: Box) -> Size:
    """Width and height of a box that is not open."""
    return (CUT_WIDTH, CUT_HEIGHT) if box.kind == "cut" else (NODE_WIDTH, NODE_HEIGHT)


@dataclass(eq=False, slots=True)
class _Inside:
    """What stands in one open box: its children's indices, the ports in its borders, and the
    pieces of links as (upper, lower), an end being a child's index or a port."""

    children: list[int] = field(default_factory=list)
    ports: dict[PortKey, None] = field(default_factory=dict)
    pieces: dict[tuple[int | PortKey, PortKey | None, int | PortKey, PortKey | None], int] = field(
        default_factory=dict
    )


@dataclass(eq=False, slots=True)
class _Shape:
    """A level as placed, with its border: children's corners, ports' x, pieces' points."""

    corners: NDArray[np.float64]
    port_x: list[float]
    points: NDArray[np.float64]
    starts: list[int]
    size: Size


class _Nesting:
    def __init__(self, visible: VisibleGraph, flipped: bool, smooth: bool) -> None:
        self.visible, self.flipped, self.smooth = visible, flipped, smooth
        self.parent = [ROOT if b.parent is None else b.parent for b in visible.boxes]
        self.inside: dict[int, _Inside] = defaultdict(_Inside)
        self.inside[ROOT] = _Inside()
        for index, box in enumerate(visible.boxes):
            self.inside[self.parent[index]].children.append(index)
            if box.open:
                self.inside[index] = _Inside()
        self.port_x: dict[PortKey, float] = {}
        self.sizes: list[Size] = [box_size(box) for box in visible.boxes]
        self._known: dict[Level, _Shape] = {}

    def run(self) -> NestedLayout:
        ways = [self._pieces(link.source, link.target) for link in self.visible.links]
        shapes: dict[int, _Shape] = {}
        for index in sorted(self.inside, reverse=True):  # the innermost first, ROOT last
            shapes[index] = self._shape(index)
            if index != ROOT:
                self.sizes[index] = shapes[index].size
        rects = np.zeros((len(self.sizes), 4))
        rects[:, 2:] = np.array(self.sizes).reshape(-1, 2)
        pool: list[NDArray[np.float64]] = []
        pool_start: dict[int, int] = {}
        pooled = 0
        for index in sorted(self.inside):  # parents first
            shape, origin = shapes[index], rects[index, :2] if index != ROOT else np.zeros(2)
            children = self.inside[index].children
            rects[children, :2] = shape.corners + origin
            pool.append(shape.points + origin)
            pool_start[index] = pooled
            pooled += len(shape.points)
        places: list[int] = []
        starts = [0]
        for way in ways:
            for number, (level, piece, upwards) in enumerate(way):
                shape, base = shapes[level], pool_start[level]
                low, high = base + shape.starts[piece], base + shape.starts[piece + 1]
                order = range(high - 1, low - 1, -1) if upwards else range(low, high)
                places.extend(order[1:] if number else order)
            starts.append(len(places))
        points = np.concatenate([*pool, np.zeros((0, 2))])[places]
        return NestedLayout(rects, points, np.array(starts), self.smooth, shapes[ROOT].size)

    # -- cutting links at borders ----------------------------------------------------------------

    def _pieces(self, source: int, target: int) -> list[tuple[int, int, bool]]:
        """Enter a link's pieces into their levels: (level, number of the piece there, whether
        the link runs up it) from source to target."""
        sources, targets = self._chain(source), self._chain(target)
        while len(sources) > 1 and len(targets) > 1 and sources[-2] == targets[-2]:
            sources.pop()
            targets.pop()
        around = sources.pop()
        targets.pop()
        down = sources[-1] < targets[-1]  # siblings stand in the gradient's order
        way = []
        for inner, outer in pairwise(sources):
            way.append(self._border(outer, inner, source, True, not down))
        exit_port = (sources[-1], not down, True, source) if len(sources) > 1 else None
        entry_port = (targets[-1], down, False, target) if len(targets) > 1 else None
        ends = (sources[-1], exit_port), (targets[-1], entry_port)
        upper, lower = ends if down else ends[::-1]
        way.append((around, self._piece(around, *upper, *lower), not down))
        entering = []
        for inner, outer in pairwise(targets):
            entering.append(self._border(outer, inner, target, False, down))
        return way + entering[::-1]

    def _chain(self, box: int) -> list[int]:
        chain = [box]
        while chain[-1] != ROOT:
            chain.append(self.parent[chain[-1]])
        return chain

    def _border(
        self, box: int, inner: int, end: int, leaving: bool, at_top: bool
    ) -> tuple[int, int, bool]:
        """The piece between a child of `box` and the port through which the link that ends at
        `end` leaves or enters `box`."""
        port = (box, at_top, leaving, end)
        self.inside[box].ports[port] = None
        inner_port = (inner, at_top, leaving, end) if inner != end else None
        upper, lower = ((port, None), (inner, inner_port))
        if not at_top:
            upper, lower = lower, upper
        return box, self._piece(box, *upper, *lower), leaving == at_top

    def _piece(
        self,
        level: int,
        upper: int | PortKey,
        upper_port: PortKey | None,
        lower: int | PortKey,
        lower_port: PortKey | None,
    ) -> int:
        pieces = self.inside[level].pieces
        return pieces.setdefault((upper, upper_port, lower, lower_port), len(pieces))

    # -- one level -------------------------------------------------------------------------------

    def _shape(self, index: int) -> _Shape:
        inside = self.inside[index]
        tops = [port for port in inside.ports if port[1]]
        bottoms = [port for port in inside.ports if not port[1]]
        items: list[int | PortKey] = [*tops, *inside.children, *bottoms]
        number = {item: place for place, item in enumerate(items)}
        sizes = tuple((0.0, 0.0) if isinstance(i, tuple) else self.sizes[i] for i in items)

        def x_of(item: int | PortKey, port: PortKey | None) -> float:
            if isinstance(item, tuple):
                return 0.0
            return self.sizes[item][0] / 2 if port is None else self.port_x[port]

        edges = tuple(
            LevelEdge(number[a], number[b], x_of(a, a_port), x_of(b, b_port))
            for a, a_port, b, b_port in inside.pieces
        )
        level = Level(sizes, edges, len(tops), len(bottoms))
        shape = self._known.get(level)
        if shape is None:
            shape = self._known[level] = self._framed(place_level(level), level, index == ROOT)
        for port, x in zip((*tops, *bottoms), shape.port_x, strict=True):
            self.port_x[port] = x
        return shape

    def _framed(self, placed: PlacedLevel, level: Level, is_root: bool) -> _Shape:
        """Turn it over where asked for, and put title and padding around."""
        width, height = placed.size
        above = below = 0.0
        if not is_root:
            above = 0.0 if level.tops else PADDING
            below = 0.0 if level.bottoms else PADDING
        if self.flipped:
            above, below = below, above
        title = 0.0 if is_root else TITLE_HEIGHT
        side = 0.0 if is_root else max(PADDING, (NODE_WIDTH - width) / 2)

        def moved(point: Point) -> Point:
            x, y = point
            return x + side, title + above + (height - y if self.flipped else y)

        count = len(level.sizes)
        inner = range(level.tops, count - level.bottoms)
        boxes = []
        for item in inner:
            x, y = moved(placed.places[item])
            boxes.append((x, y - level.sizes[item][1] if self.flipped else y))
        ports = (*range(level.tops), *range(count - level.bottoms, count))
        at_title = range(count - level.bottoms, count) if self.flipped else range(level.tops)
        draw = curve if self.smooth else corners
        points: list[Point] = []
        starts = [0]
        for edge, way in zip(level.edges, placed.ways, strict=True):
            stations = [moved(point) for point in way]
            if edge.upper in at_title:
                stations.insert(0, (stations[0][0], 0.0))
            if edge.lower in at_title:
                stations.append((stations[-1][0], 0.0))
            points += draw(stations)
            starts.append(len(points))
        return _Shape(
            np.array(boxes).reshape(-1, 2),
            [placed.places[item][0] + side for item in ports],
            np.array(points).reshape(-1, 2),
            starts,
            (width + 2 * side, title + above + height + below),
        )
