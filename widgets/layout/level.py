"""Places one level of boxes in layers, from top to bottom, and finds the ways of its edges.

This is Sugiyama's method: longest-path layers with dummy items where edges pass them (layer_graph),
barycentre sweeps for the order within layers (order), then an x for each item (coordinates). Lines
move sideways only in the gaps between layers, so no line runs through a box.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from operator import add

from .coordinates import LINE_GAP, left_sides
from .layer_graph import LayerGraph, Level, LevelEdge, Point, Size
from .order import ordered_rows

__all__ = ["Level", "LevelEdge", "PlacedLevel", "Point", "Size", "place_level"]

PORT_GAP = 24.0
"""The gap between a border with ports and the layer next to it."""
STEEPNESS = 0.06
"""A gap grows by this much for each pixel that a line moves sideways in it: no line lies flat."""
WIDEST_GAP = 96.0


@dataclass(frozen=True)
class PlacedLevel:
    """A level with the top left corner of each item (`places`) and the `size` of the whole.

    Each edge has its stations (x, y) from top to bottom in `ways`: between two stations with the
    same x it runs straight down, else it moves sideways. `rows` holds the (top, bottom) of each
    layer; a line moves sideways from the bottom of one to the top of the next.
    """

    level: Level
    places: tuple[Point, ...]
    size: Size
    ways: tuple[tuple[Point, ...], ...]
    rows: tuple[tuple[float, float], ...] = ()
    spine: frozenset[int] = frozenset()
    """The items on the longest main way."""
    turned: bool = False
    """Whether it is upside down; joined lines then share their upper end, not their lower one."""

    @property
    def has_tops(self) -> bool:
        """Whether the first row consists of ports in the upper border."""
        return bool(self.level.bottoms if self.turned else self.level.tops)

    @property
    def has_bottoms(self) -> bool:
        """Whether the last row consists of ports in the lower border."""
        return bool(self.level.tops if self.turned else self.level.bottoms)

    def is_top_port(self, point: Point) -> bool:
        """Whether this point of `places` or `ways` is that of a port in the upper border."""
        return self.has_tops and point[1] == self.rows[0][0]

    def is_bottom_port(self, point: Point) -> bool:
        """Whether this point of `places` or `ways` is that of a port in the lower border."""
        return self.has_bottoms and point[1] == self.rows[-1][0]

    def turned_over(self) -> PlacedLevel:
        """The level upside down, the last row at the top. Ways then run from `lower` to `upper`."""
        height = self.size[1]
        return replace(
            self,
            places=tuple(
                (x, height - y - own)
                for (x, y), (_, own) in zip(self.places, self.level.sizes, strict=True)
            ),
            ways=tuple(tuple((x, height - y) for x, y in reversed(way)) for way in self.ways),
            rows=tuple((height - bottom, height - top) for top, bottom in reversed(self.rows)),
            turned=not self.turned,
        )


def place_level(level: Level) -> PlacedLevel:
    """Place a level; its top left corner is (0, 0)."""
    if not level.sizes:
        return PlacedLevel(level, (), (0.0, 0.0), ())
    graph = LayerGraph(level)
    ordered = ordered_rows(graph)
    left = left_sides(graph, ordered)
    right = max(map(add, left, graph.widths))
    lanes = _lanes(graph, right)
    tops, bottoms = _heights(graph, ordered, left)
    find = _Ways(graph, left, tops, bottoms)
    ways = tuple(find.of(number, lanes.get(number)) for number in range(len(level.edges)))
    width = max(right, max(lanes.values(), default=0.0) + LINE_GAP)
    places = tuple((left[item], tops[graph.layer[item]]) for item in range(graph.boxes))
    rows = tuple(zip(tops, bottoms, strict=True))
    return PlacedLevel(level, places, (width, bottoms[-1]), ways, rows, graph.spine)


def _heights(
    graph: LayerGraph, rows: list[list[int]], left: list[float]
) -> tuple[list[float], list[float]]:
    """Top and bottom of each layer. A gap is higher where lines move further sideways in it."""
    shift = [0.0] * len(rows)
    for row, x_of_item, near in zip(graph.layer, left, graph.below, strict=True):
        for lower, x, own, _ in near:
            aside = abs(left[lower] + x - x_of_item - own)
            if aside > shift[row]:
                shift[row] = aside
    tops, bottoms, y = [], [], 0.0
    for index, row in enumerate(rows):
        tops.append(y)
        bottoms.append(y + max(map(graph.heights.__getitem__, row)))
        at_top = index == 0 and graph.level.tops
        at_bottom = index + 2 == len(rows) and graph.level.bottoms
        gap = PORT_GAP if at_top or at_bottom else graph.level.layer_gap
        y = bottoms[-1] + max(gap, min(gap + round(STEEPNESS * shift[index]), WIDEST_GAP))
    return tops, bottoms


class _Ways:
    """Finds the stations of edges: two at each layer that an edge passes, one above the other."""

    def __init__(
        self, graph: LayerGraph, left: list[float], tops: list[float], bottoms: list[float]
    ) -> None:
        self.graph, self.left, self.tops, self.bottoms = graph, left, tops, bottoms
        self._stations_from: dict[int, tuple[Point, ...]] = {}

    def of(self, number: int, lane: float | None) -> tuple[Point, ...]:
        graph, edge, chain = self.graph, self.graph.level.edges[number], self.graph.chains[number]
        start_x, end_x = self.left[edge.upper] + edge.upper_x, self.left[edge.lower] + edge.lower_x
        first, last = graph.layer[edge.upper], graph.layer[edge.lower]
        way = [(start_x, self.tops[first] + graph.heights[edge.upper])]
        if start_x == end_x and chain is not None and not chain:
            return way[0], (end_x, self.tops[last])
        way.append((start_x, self.bottoms[first]))
        if lane is not None:
            way += [(lane, self.tops[first + 1]), (lane, self.bottoms[last - 1])]
        if chain and len(graph.below[chain[-1]]) == 1:
            for dummy in chain[:-1]:
                way += self._along_layer(dummy)
            return without_repeats([*way, *self._from(chain[-1])])
        for dummy in chain or ():
            way += self._along_layer(dummy)
        return without_repeats([*way, (end_x, self.tops[last])])

    def _along_layer(self, dummy: int) -> tuple[Point, Point]:
        x, row = self.left[dummy], self.graph.layer[dummy]
        return (x, self.tops[row]), (x, self.bottoms[row])

    def _from(self, dummy: int) -> tuple[Point, ...]:
        """The stations from a dummy on, computed once for all edges that join there."""
        graph, passed, way = self.graph, [], self._stations_from.get(dummy)
        while way is None:
            passed.append(dummy)
            dummy, x, *_ = graph.below[dummy][0]
            way = self._stations_from.get(dummy)
            if not graph.is_dummy(dummy):
                way = ((self.left[dummy] + x, self.tops[graph.layer[dummy]]),)
        for each in reversed(passed):
            way = self._stations_from[each] = without_repeats([*self._along_layer(each), *way])
        return way


def _lanes(graph: LayerGraph, right: float) -> dict[int, float]:
    """The x of the lane of each edge that takes one, right of all items. Edges to the same item
    share a lane."""
    lane_of: dict[int, float] = {}
    found = {}
    for number, chain in enumerate(graph.chains):
        if chain is None:
            lower = graph.level.edges[number].lower
            found[number] = lane_of.setdefault(lower, right + LINE_GAP * (len(lane_of) + 1))
    return found


def without_repeats(way: list[Point]) -> tuple[Point, ...]:
    """The stations without repeated ones and those in the middle of a straight line."""
    kept: list[Point] = []
    for point in way:
        if kept and kept[-1] == point:
            continue
        if len(kept) > 1 and kept[-2][0] == kept[-1][0] == point[0]:
            kept[-1] = point
            continue
        kept.append(point)
    return tuple(kept)
