"""One level of boxes in layers, from top to bottom: places and ways of the edges.

Sugiyama's method: longest-path layers and dummy items where an edge passes a layer (layer_graph),
barycentre sweeps for the order within the layers (order), then places as straight above each
other as the order leaves room for (coordinates). Between two layers lies a gap without boxes:
only there do lines move sideways, so no line runs through a box.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from .coordinates import LINE_GAP, columns
from .layer_graph import LayerGraph, Level, LevelEdge, Point, Size
from .order import ordered_rows

__all__ = ["Level", "LevelEdge", "PlacedLevel", "Point", "Size", "place_level"]

PORT_GAP = 24.0
"""Between a border that lines come in through and the first layer."""
STEEPNESS = 0.06
"""Pixels of gap for each pixel that a line moves sideways in it, so that lines do not lie flat."""
WIDEST_GAP = 96.0


@dataclass(frozen=True)
class PlacedLevel:
    """The items' top left corners, the size of all, and per edge its (x, y) stations from top to
    bottom: between two stations at the same x it runs straight down, else it moves sideways.
    `rows` are the layers' (top, bottom): lines move sideways between them, over all of one gap."""

    level: Level
    places: tuple[Point, ...]
    size: Size
    ways: tuple[tuple[Point, ...], ...]
    rows: tuple[tuple[float, float], ...] = ()
    spine: frozenset[int] = frozenset()
    """The items on the main way from top to bottom."""
    turned: bool = False
    """Whether it is upside down: lines that have joined then share their upper end."""

    @property
    def has_tops(self) -> bool:
        """Whether the first row is ports in the upper border."""
        return bool(self.level.bottoms if self.turned else self.level.tops)

    @property
    def has_bottoms(self) -> bool:
        """Whether the last row is ports in the lower border."""
        return bool(self.level.tops if self.turned else self.level.bottoms)

    def turned_over(self) -> PlacedLevel:
        """Upside down, with the last row at the top: ways then run from `lower` to `upper`."""
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
    """Places and ways of one level, the corner of all at (0, 0)."""
    if not level.sizes:
        return PlacedLevel(level, (), (0.0, 0.0), ())
    graph = LayerGraph(level)
    ordered = ordered_rows(graph)
    left = columns(graph, ordered)
    lanes = _lanes(graph, left)
    tops, bottoms = _heights(graph, ordered, left)
    find = _Ways(graph, left, tops, bottoms)
    ways = tuple(find.of(number, lanes.get(number)) for number in range(len(level.edges)))
    right = max(x + width for x, width in zip(left, graph.widths, strict=True))
    width = max(right, max(lanes.values(), default=0.0) + LINE_GAP)
    places = tuple((left[item], tops[graph.layer[item]]) for item in range(graph.boxes))
    rows = tuple(zip(tops, bottoms, strict=True))
    return PlacedLevel(level, places, (width, bottoms[-1]), ways, rows, graph.spine)


def _heights(
    graph: LayerGraph, rows: list[list[int]], left: list[float]
) -> tuple[list[float], list[float]]:
    """Top and bottom of each layer; the gap below is the wider the further a line moves in it."""
    shift = [0.0] * len(rows)
    for item, near in enumerate(graph.below):
        row = graph.layer[item]
        for lower, x, own, _ in near:
            shift[row] = max(shift[row], abs(left[lower] + x - left[item] - own))
    tops, bottoms, y = [], [], 0.0
    for index, row in enumerate(rows):
        tops.append(y)
        bottoms.append(y + max(graph.heights[item] for item in row))
        at_top = index == 0 and graph.level.tops
        at_bottom = index + 2 == len(rows) and graph.level.bottoms
        gap = PORT_GAP if at_top or at_bottom else graph.level.layer_gap
        y = bottoms[-1] + min(gap + round(STEEPNESS * shift[index]), WIDEST_GAP)
    return tops, bottoms


class _Ways:
    """The stations of edges: they pass each layer upright, and move sideways between them."""

    def __init__(
        self, graph: LayerGraph, left: list[float], tops: list[float], bottoms: list[float]
    ) -> None:
        self.graph, self.left, self.tops, self.bottoms = graph, left, tops, bottoms
        self._rest: dict[int, tuple[Point, ...]] = {}

    def of(self, number: int, lane: float | None) -> tuple[Point, ...]:
        graph, edge, chain = self.graph, self.graph.level.edges[number], self.graph.chains[number]
        start_x, end_x = self.left[edge.upper] + edge.upper_x, self.left[edge.lower] + edge.lower_x
        first, last = graph.layer[edge.upper], graph.layer[edge.lower]
        way = [(start_x, self.tops[first] + graph.heights[edge.upper])]
        way.append((start_x, self.bottoms[first]))
        if lane is not None:
            way += [(lane, self.tops[first + 1]), (lane, self.bottoms[last - 1])]
        if chain and len(graph.below[chain[-1]]) == 1:
            for dummy in chain[:-1]:
                way += self._beside(dummy)
            return without_repeats([*way, *self._from(chain[-1])])
        for dummy in chain or ():
            way += self._beside(dummy)
        return without_repeats([*way, (end_x, self.tops[last])])

    def _beside(self, dummy: int) -> tuple[Point, Point]:
        x, row = self.left[dummy], self.graph.layer[dummy]
        return (x, self.tops[row]), (x, self.bottoms[row])

    def _from(self, dummy: int) -> tuple[Point, ...]:
        """The stations from a dummy on, found once for all edges that join there."""
        graph, passed, way = self.graph, [], self._rest.get(dummy)
        while way is None:
            passed.append(dummy)
            dummy, x, *_ = graph.below[dummy][0]
            way = self._rest.get(dummy)
            if not graph.is_dummy(dummy):
                way = ((self.left[dummy] + x, self.tops[graph.layer[dummy]]),)
        for each in reversed(passed):
            way = self._rest[each] = without_repeats([*self._beside(each), *way])
        return way


def _lanes(graph: LayerGraph, left: list[float]) -> dict[int, float]:
    """Edges that take a lane -> its x, right of all items; one lane for each lower end."""
    right = max(x + width for x, width in zip(left, graph.widths, strict=True))
    lane_of: dict[int, float] = {}
    found = {}
    for number, chain in enumerate(graph.chains):
        if chain is None:
            lower = graph.level.edges[number].lower
            found[number] = lane_of.setdefault(lower, right + LINE_GAP * (len(lane_of) + 1))
    return found


def without_repeats(way: list[Point]) -> tuple[Point, ...]:
    """Drop stations that stand where the one before stands, and those amid a straight line."""
    kept: list[Point] = []
    for point in way:
        if kept and kept[-1] == point:
            continue
        if len(kept) > 1 and kept[-2][0] == kept[-1][0] == point[0]:
            kept[-1] = point
            continue
        kept.append(point)
    return tuple(kept)
