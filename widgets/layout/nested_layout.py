"""Lays out boxes within boxes, one level after the other.

Each open box is a level, laid out on its own, innermost first, so that the sizes of its children
are known. A link is cut at a port wherever it crosses a border; each of its pieces is an edge of
one level. Equal levels are laid out once.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from .columns import in_columns
from .level import Level, LevelEdge, PlacedLevel, Point, Size, place_level
from .outline import Direction, EdgeStyle, NestedLayout, Outline
from .routes import corners, curve
from .without_collection import without_collection

TITLE_HEIGHT = 28.0
"""The bar at the top of an open box, above its children."""
PADDING = 16.0
"""The gap between an open box's border and its children."""
LEAST_WIDTH = 184.0
"""The least width of an open box: its title needs as much room as a node."""

ROOT = -1
Border = tuple[int, bool, bool]
"""A box's index, whether this is its upper border, and whether links leave the box through it."""
PortKey = tuple[int, bool, bool, int]
"""A border, and the box that is the source of all links through the port, or the target of all."""


@without_collection()
def layout_nested(
    outline: Outline, direction: Direction = "backward", style: EdgeStyle = "smooth"
) -> NestedLayout:
    """Place all boxes and route all links. `"backward"` has the root at the top and the leaves at
    the bottom; `"forward"` has the leaves at the top."""
    return _Nesting(outline, direction == "forward", style == "smooth").run()


_End = tuple[int | PortKey, PortKey | None]
"""An end of a piece: a child, with the port in its border if it is open, or a port in the border of
the level itself."""


@dataclass(frozen=True, slots=True)
class _Crossing:
    """The boxes that a link leaves and those that it enters, each list from the link's end
    outwards. `around` is the innermost box around both ends, or ROOT; `down` says whether the link
    runs down in it."""

    sources: list[int]
    targets: list[int]
    around: int
    down: bool

    @property
    def length(self) -> tuple[int, int]:
        return -self.around, abs(self.targets[-1] - self.sources[-1])

    def borders(self) -> list[Border]:
        """All borders that the link crosses, from source to target."""
        leaving = [(box, not self.down, True) for box in self.sources[1:]]
        return leaving + [(box, self.down, False) for box in self.targets[:0:-1]]


@dataclass(eq=False, slots=True)
class _Inside:
    """The content of one open box: its children's indices, the ports in its borders, and the pieces
    of links as (upper end, lower end). Each port has the length of its shortest link, counted in
    the levels that it climbs and the siblings that it passes."""

    children: list[int] = field(default_factory=list)
    ports: dict[PortKey, tuple[int, int]] = field(default_factory=dict)
    pieces: dict[tuple[_End, _End], int] = field(default_factory=dict)


@dataclass(eq=False, slots=True)
class _Shape:
    """A placed level with its border: the children's corners, the ports' x, the pieces' points."""

    corners: NDArray[np.float64]
    port_x: list[float]
    main_ports: list[bool]
    points: NDArray[np.float64]
    starts: list[int]
    size: Size


class _Nesting:
    def __init__(self, outline: Outline, flipped: bool, smooth: bool) -> None:
        self.flipped, self.smooth = flipped, smooth
        self.parent: list[int] = outline.parents.tolist()
        self.ends: list[list[int]] = outline.ends.tolist()
        self.inside: dict[int, _Inside] = defaultdict(_Inside)
        self.inside[ROOT] = _Inside()
        for index, (parent, is_open) in enumerate(
            zip(self.parent, outline.open.tolist(), strict=True)
        ):
            self.inside[parent].children.append(index)
            if is_open:
                self.inside[index] = _Inside()
        self.port_x: dict[PortKey, float] = {}
        self.is_main: dict[PortKey, bool] = {}
        self.shared_by_source: dict[Border, bool] = {}
        self.sizes: list[Size] = [(width, height) for width, height in outline.sizes.tolist()]
        self._around: dict[int, list[int]] = {}
        self._shapes: dict[Level, _Shape] = {}

    def run(self) -> NestedLayout:
        crossings = [self._crossing(*ends) for ends in self.ends]
        self._share_ports(crossings)
        ways = [self._pieces(crossing) for crossing in crossings]
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
        points = np.concatenate(pool)[places]
        return NestedLayout(rects, points, np.array(starts), self.smooth, shapes[ROOT].size)

    # -- cutting links at borders ----------------------------------------------------------------

    def _crossing(self, source: int, target: int) -> _Crossing:
        sources, targets = self._chain(source), self._chain(target)
        while len(sources) > 1 and len(targets) > 1 and sources[-2] == targets[-2]:
            sources.pop()
            targets.pop()
        around = sources.pop()
        targets.pop()
        # Siblings stand in the order of the gradient.
        return _Crossing(sources, targets, around, sources[-1] < targets[-1])

    def _chain(self, box: int) -> list[int]:
        """A box and all boxes around it, innermost first, with ROOT at the end."""
        parent = self.parent[box]
        around = self._around.get(parent)
        if around is None:
            around = self._around[parent] = [ROOT] if parent == ROOT else self._chain(parent)
        return [box, *around]

    def _share_ports(self, crossings: list[_Crossing]) -> None:
        """Decide for each border whether links with the same source or with the same target share a
        port, whichever makes fewer ports. A node's many links then leave by one port, and all links
        to a weight enter by one."""
        ends: dict[Border, tuple[set[int], set[int]]] = defaultdict(lambda: (set(), set()))
        for crossing in crossings:
            for border in crossing.borders():
                sources, targets = ends[border]
                sources.add(crossing.sources[0])
                targets.add(crossing.targets[0])
        for border, (sources, targets) in ends.items():
            leaves = border[2]
            fewer_sources = len(sources) < len(targets)
            self.shared_by_source[border] = fewer_sources or (
                leaves and len(sources) == len(targets)
            )

    def _port(self, border: Border, crossing: _Crossing) -> PortKey:
        by_source = self.shared_by_source[border]
        return (*border, crossing.sources[0] if by_source else crossing.targets[0])

    def _pieces(self, crossing: _Crossing) -> list[tuple[int, int, bool]]:
        """Add a link's pieces to their levels. Returns, from source to target, each piece's level,
        its number there, and whether the link runs upwards in it."""
        ports = [self._port(border, crossing) for border in crossing.borders()]
        for port in ports:
            known = self.inside[port[0]].ports
            known[port] = min(known.get(port, crossing.length), crossing.length)
        way, down = [], crossing.down
        inner, inner_port = crossing.sources[0], None
        while ports and ports[0][2]:
            port = ports.pop(0)
            way.append(self._piece(port[0], (inner, inner_port), (port, None), down))
            inner, inner_port = port[0], port
        entry = ports[0] if ports else None
        target = crossing.targets[-1]
        way.append(self._piece(crossing.around, (inner, inner_port), (target, entry), down))
        for place, port in enumerate(ports):
            entry = ports[place + 1] if place + 1 < len(ports) else None
            target = crossing.targets[-2 - place]
            way.append(self._piece(port[0], (port, None), (target, entry), down))
        return way

    def _piece(self, level: int, start: _End, end: _End, down: bool) -> tuple[int, int, bool]:
        pieces = self.inside[level].pieces
        piece = (start, end) if down else (end, start)
        return level, pieces.setdefault(piece, len(pieces)), not down

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
            LevelEdge(
                number[a],
                number[b],
                x_of(a, a_port),
                x_of(b, b_port),
                all(port is None or self.is_main[port] for port in (a_port, b_port)),
            )
            for (a, a_port), (b, b_port) in inside.pieces
        )
        lengths = sorted({inside.ports[port] for port in bottoms})
        nearness = tuple(lengths.index(inside.ports[port]) for port in bottoms)
        level = Level(sizes, edges, len(tops), nearness)
        shape = self._shapes.get(level)
        if shape is None:
            shape = self._shapes[level] = self._framed(place_level(level), index == ROOT)
        for place, port in enumerate((*tops, *bottoms)):
            self.port_x[port] = shape.port_x[place]
            self.is_main[port] = shape.main_ports[place]
        return shape

    def _framed(self, placed: PlacedLevel, is_root: bool) -> _Shape:
        """Turn a flipped level upside down, break it into columns, and add title and padding."""
        placed = in_columns(placed.turned_over() if self.flipped else placed)
        upper, lower = placed.has_tops, placed.has_bottoms
        width, height = placed.size
        above = 0.0 if is_root or upper else PADDING
        below = 0.0 if is_root or lower else PADDING
        title = 0.0 if is_root else TITLE_HEIGHT
        side = 0.0 if is_root else max(PADDING, (LEAST_WIDTH - width) / 2)

        def moved(point: Point) -> Point:
            return point[0] + side, point[1] + title + above

        level = placed.level
        first, end = level.tops, len(level.sizes) - len(level.bottoms)
        ports = (*range(first), *range(end, len(level.sizes)))
        draw = curve if self.smooth else corners
        points: list[Point] = []
        starts = [0]
        for way in placed.ways:
            stations = [moved(point) for point in way]
            if upper and way[0][1] == 0:  # from the border through the title
                stations.insert(0, (stations[0][0], 0.0))
            drawn = draw(stations)
            points += reversed(drawn) if self.flipped else drawn
            starts.append(len(points))
        return _Shape(
            np.array([moved(place) for place in placed.places[first:end]]).reshape(-1, 2),
            [placed.places[item][0] + side for item in ports],
            [item in placed.spine for item in ports],
            np.array(points).reshape(-1, 2),
            starts,
            (width + 2 * side, title + above + height + below),
        )
