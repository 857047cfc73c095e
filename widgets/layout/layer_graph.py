"""One level of boxes as a layered graph: each box has a layer, and an edge has a dummy item in each
layer that it passes."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from operator import itemgetter

Point = tuple[float, float]
Size = tuple[float, float]
Near = tuple[int, float, float, bool]
"""A neighbour in the next layer: its number, the x where the line meets the neighbour, the x where
the line meets this item, and whether the edge is `main`."""
TrunkKey = tuple[str, int, float]
"""The end that the edges of a trunk share: "to" or "from", the item, and the x on it."""

MIN_JOINED = 3
"""At least this many edges to one end join into a trunk."""
MAX_DUMMIES_PER_ITEM = 4
"""If a level needed more dummies for each item, its longest edges take a lane at the side instead:
dummies could otherwise be as many as the square of the items."""
MANY_DUMMIES = 400
"""Every level may have this many dummies."""
WIDE_ROW = 6_000.0
"""A layer of many items that is wider than this is broken into rows, if few trunks pass it."""
MANY_IN_ROW = 12
MAX_TRUNKS = 8
ROW_GAP = 32.0
ROWS_SHAPE = 1.6
"""The ratio of width to height of a layer that is broken into rows."""

LAYER_GAP = 32.0
ITEM_GAP = 24.0


@dataclass(frozen=True)
class LevelEdge:
    """An edge from the bottom of item `upper` to the top of item `lower`; `upper_x` and `lower_x`
    are its ends' distances from the items' left sides. `main` edges are made straight first."""

    upper: int
    lower: int
    upper_x: float
    lower_x: float
    main: bool = True


@dataclass(frozen=True)
class Level:
    """Items to place. Every edge runs from an earlier item to a later one.

    The first `tops` items are ports in the upper border, then come the boxes, then a port in the
    lower border for each of `bottoms`: the main way leaves by the port with the least number there.
    `layer_gap` is the least distance between two layers, `item_gap` that between two boxes of one.
    """

    sizes: tuple[Size, ...]
    edges: tuple[LevelEdge, ...]
    tops: int = 0
    bottoms: tuple[int, ...] = ()
    layer_gap: float = LAYER_GAP
    item_gap: float = ITEM_GAP


@dataclass(slots=True)
class _Trunk:
    """The part of a route that several edges share: a dummy for each layer, and the pieces of lines
    between these."""

    dummies: dict[int, int] = field(default_factory=dict)
    pieces: set[tuple[int, float, int, float]] = field(default_factory=set)


class LayerGraph:
    """A level with layers and dummies. Items are numbered as in the level; dummies follow.

    Each item has a `layer`, counted from the top, and its neighbours `above` and `below`; `in_rows`
    says whether its layer was broken into rows. Each edge has its dummies from top to bottom in
    `chains`, up to the one where it joins a trunk; None if it takes a lane. `main` holds for each
    item the next one on the main way (-1 at the end), `spine` the items on the longest such way.
    """

    def __init__(self, level: Level) -> None:
        self.level = level
        self.boxes = len(level.sizes)
        self.widths = [width for width, _ in level.sizes]
        self.heights = [height for _, height in level.sizes]
        self._edges = [(e.upper, e.lower, e.upper_x, e.lower_x, e.main) for e in level.edges]
        self.layer, self.in_rows = self._in_rows(self._layers())
        self.above: list[list[Near]] = [[] for _ in level.sizes]
        self.below: list[list[Near]] = [[] for _ in level.sizes]
        self.chains = self._chains()
        self.main, self.spine = self._main_ways()

    def is_dummy(self, item: int) -> bool:
        return item >= self.boxes

    def is_in_rows(self, item: int) -> bool:
        """Whether it is a box of a layer that was broken into rows."""
        return item < self.boxes and self.in_rows[item]

    def _layers(self) -> list[int]:
        level, count = self.level, len(self.level.sizes)
        first = 1 if level.tops else 0
        layer = [0] * level.tops + [first] * (count - level.tops)
        has_upper, least_lower = [False] * count, [count] * count
        end = count - len(level.bottoms)
        for upper, lower, *_ in sorted(self._edges, key=itemgetter(0)):
            has_upper[lower] = True
            if layer[lower] <= layer[upper] and lower < end:
                layer[lower] = layer[upper] + 1
        last = max(layer) + 1
        for item in range(end, count):
            layer[item] = last
        for upper, lower, *_ in self._edges:
            if layer[lower] < least_lower[upper]:
                least_lower[upper] = layer[lower]
        for item in range(level.tops, end):  # near the item below it
            if not has_upper[item] and least_lower[item] < count:
                layer[item] = max(layer[item], least_lower[item] - 1)
        return layer

    def _in_rows(self, layer: list[int]) -> tuple[list[int], list[bool]]:
        """Each item's layer after wide layers are broken into rows, and whether the item is in such
        a row. Only a layer whose lines have few ends is broken: they pass its rows as trunks."""
        level = self.level
        items: dict[int, list[int]] = defaultdict(list)
        for item, number in enumerate(layer):
            items[number].append(item)
        wide = {
            number: row
            for number, row in items.items()
            if len(row) >= MANY_IN_ROW and sum(self.widths[item] for item in row) > WIDE_ROW
        }
        broken = [False] * len(layer)
        if not wide:
            return layer, broken
        ends: dict[int, set[tuple[int, float]]] = defaultdict(set)
        for edge in level.edges:
            ends[layer[edge.lower]].add((edge.upper, edge.upper_x))
            ends[layer[edge.upper]].add((edge.lower, edge.lower_x))
        more = [0] * (max(layer) + 1)
        place_in_row: dict[int, int] = {}
        for number, row in wide.items():
            if len(ends[number]) > MAX_TRUNKS:
                continue
            width = sum(self.widths[item] + ROW_GAP for item in row)
            height = max(self.heights[item] for item in row) + ROW_GAP
            rows = max(1, round((width / height / ROWS_SHAPE) ** 0.5))
            if rows == 1:
                continue
            in_each = -(-len(row) // rows)
            more[number] = -(-len(row) // in_each) - 1
            for place, item in enumerate(row):
                place_in_row[item] = place // in_each
                broken[item] = True
        before = [0, *accumulate(more)]
        found = [
            number + before[number] + place_in_row.get(item, 0) for item, number in enumerate(layer)
        ]
        return found, broken

    def _chains(self) -> list[list[int] | None]:
        """The dummies of each edge from top to bottom; None for an edge that takes a lane.

        Many edges to one end share their dummies: they join into a trunk, and the chain of each
        ends with the first shared one. So do edges from one end to a layer in rows."""
        layer, in_rows = self.layer, self.in_rows
        ends = [(lower, lower_x) for _, lower, _, lower_x, _ in self._edges]
        joined = {end for end, count in Counter(ends).items() if count >= MIN_JOINED}
        spans: list[int] = []  # of the edges that have dummies of their own
        reach: dict[TrunkKey, int] = {}
        keys: list[TrunkKey | None] = []
        for (upper, lower, upper_x, *_), end in zip(self._edges, ends, strict=True):
            span = layer[lower] - layer[upper] - 1
            if end in joined:
                key = ("to", *end)
            elif in_rows[lower]:
                key = ("from", upper, upper_x)
            else:
                key = None
                spans.append(span)
            if key is not None:
                reach[key] = max(reach.get(key, 0), span)
            keys.append(key)
        budget = max(MANY_DUMMIES, MAX_DUMMIES_PER_ITEM * self.boxes)
        longest = _longest_within([*spans, *reach.values()], budget)
        trunks: dict[TrunkKey, _Trunk] = defaultdict(_Trunk)
        chains: list[list[int] | None] = []
        for edge, key in zip(self._edges, keys, strict=True):
            length = layer[edge[1]] - layer[edge[0]] - 1 if key is None else reach[key]
            if length > longest:
                chains.append(None)
            elif key is None:
                chains.append(self._chain(*edge))
            else:
                chains.append(self._way_by_trunk(*edge, trunks[key], joins=key[0] == "to"))
        return chains

    def _chain(
        self, upper: int, lower: int, upper_x: float, lower_x: float, main: bool
    ) -> list[int]:
        """Add the dummies of an edge that shares none, and return them."""
        above, below = self.above, self.below
        layers = range(self.layer[upper] + 1, self.layer[lower])
        if not layers:
            below[upper].append((lower, lower_x, upper_x, main))
            above[lower].append((upper, upper_x, lower_x, main))
            return []
        dummies = list(range(len(self.layer), len(self.layer) + len(layers)))
        self._add_dummies(layers)
        below[upper].append((dummies[0], 0.0, upper_x, main))
        above[dummies[0]].append((upper, upper_x, 0.0, main))
        for a, b in pairwise(dummies):
            below[a].append((b, 0.0, 0.0, main))
            above[b].append((a, 0.0, 0.0, main))
        below[dummies[-1]].append((lower, lower_x, 0.0, main))
        above[lower].append((dummies[-1], 0.0, lower_x, main))
        return dummies

    def _way_by_trunk(
        self,
        upper: int,
        lower: int,
        upper_x: float,
        lower_x: float,
        main: bool,
        trunk: _Trunk,
        joins: bool,
    ) -> list[int]:
        """The dummies of an edge that shares a trunk. One that `joins` it is part of it from the
        first dummy on that another edge has."""
        way: list[tuple[int, float]] = [(upper, upper_x)]
        for number in range(self.layer[upper] + 1, self.layer[lower]):
            known = number in trunk.dummies
            if not known:
                trunk.dummies[number] = len(self.layer)
                self._add_dummies((number,))
            way.append((trunk.dummies[number], 0.0))
            if known and joins:
                break
        else:
            way.append((lower, lower_x))
        for (a, x_a), (b, x_b) in pairwise(way):
            if max(a, b) < self.boxes or (a, x_a, b, x_b) not in trunk.pieces:
                trunk.pieces.add((a, x_a, b, x_b))
                self.below[a].append((b, x_b, x_a, main))
                self.above[b].append((a, x_a, x_b, main))
        return [item for item, _ in way if item >= self.boxes]

    def _add_dummies(self, layers: Sequence[int]) -> None:
        self.widths += [0.0] * len(layers)
        self.heights += [0.0] * len(layers)
        self.layer += layers
        self.above += [[] for _ in layers]
        self.below += [[] for _ in layers]

    def _main_ways(self) -> tuple[list[int], frozenset[int]]:
        """`main` and `spine`. An item's main way is its longest way down; among equals, the one to
        the preferred port, then the one with the most boxes."""
        reach = [(layer, 0, 0) for layer in self.layer]
        ports = len(self.level.sizes) - len(self.level.bottoms)
        for place, preference in enumerate(self.level.bottoms):
            reach[ports + place] = (self.layer[ports + place], -preference, 0)
        main = [-1] * len(self.layer)
        has_rows = any(self.in_rows)
        for item in sorted(range(len(self.layer)), key=self.layer.__getitem__, reverse=True):
            is_box = item < self.boxes
            for lower, _, _, _ in self.below[item]:
                if has_rows and (self.is_in_rows(item) or self.is_in_rows(lower)):
                    continue  # the main way takes the trunk
                way = reach[lower]
                if is_box:
                    way = (way[0], way[1], way[2] + 1)
                if main[item] < 0 or way > reach[item]:
                    main[item], reach[item] = lower, way
        most = max(boxes for _, _, boxes in reach)
        starts = [item for item, way in enumerate(reach) if way[2] == most]
        spine = [max(starts, key=lambda item: (*reach[item][1::-1], -item))]
        while main[spine[-1]] >= 0:
            spine.append(main[spine[-1]])
        return main, frozenset(spine)


def _longest_within(spans: Sequence[int], budget: int) -> int:
    """The longest span for which all edges up to it need at most `budget` dummies together."""
    counts = sorted(Counter(spans).items())
    totals = accumulate(span * count for span, count in counts)
    fitting = (span for (span, _), total in zip(counts, totals, strict=True) if total <= budget)
    return max(fitting, default=0)
