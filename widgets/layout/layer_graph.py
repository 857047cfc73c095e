"""One level of boxes as a layered graph: each box has a layer, and an edge has a dummy item in each
layer that it passes."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

Point = tuple[float, float]
Size = tuple[float, float]
Near = tuple[int, float, float, bool]
"""A neighbour in the next layer: its number, the x where the line meets the neighbour, the x where
the line meets this item, and whether the edge is `main`."""

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
        for edge in sorted(level.edges, key=lambda each: each.upper):
            has_upper[edge.lower] = True
            if edge.lower < count - len(level.bottoms):
                layer[edge.lower] = max(layer[edge.lower], layer[edge.upper] + 1)
        last = max(layer) + 1
        for item in range(count - len(level.bottoms), count):
            layer[item] = last
        for edge in level.edges:
            least_lower[edge.upper] = min(least_lower[edge.upper], layer[edge.lower])
        for item in range(level.tops, count - len(level.bottoms)):  # near the item below it
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
        level, layer = self.level, self.layer
        spans = [layer[edge.lower] - layer[edge.upper] - 1 for edge in level.edges]
        ends = [(edge.lower, edge.lower_x) for edge in level.edges]
        joined = {end for end, count in Counter(ends).items() if count >= MIN_JOINED}
        reach: dict[object, int] = {}
        keys: list[object] = []
        for place, (edge, end) in enumerate(zip(level.edges, ends, strict=True)):
            start = ("from", edge.upper, edge.upper_x)
            keys.append(end if end in joined else start if self.in_rows[edge.lower] else place)
        for key, span in zip(keys, spans, strict=True):
            reach[key] = max(reach.get(key, 0), span)
        budget = max(MANY_DUMMIES, MAX_DUMMIES_PER_ITEM * self.boxes)
        longest = _longest_within(list(reach.values()), budget)
        trunks: dict[object, dict[int, int]] = defaultdict(dict)
        known: set[tuple[int, float, int, float]] = set()
        chains: list[list[int] | None] = []
        for edge, key in zip(level.edges, keys, strict=True):
            if reach[key] > longest:
                chains.append(None)
                continue
            trunk = trunks[key]
            dummies, end = [], [ends[len(chains)]]
            for number in range(layer[edge.upper] + 1, layer[edge.lower]):
                if number in trunk and key in joined:
                    dummies.append(trunk[number])  # from here on, the edge is part of the trunk
                    end = []
                    break
                if number not in trunk:
                    trunk[number] = self._add_dummy(number)
                dummies.append(trunk[number])
            way = [(edge.upper, edge.upper_x), *((d, 0.0) for d in dummies), *end]
            for (a, x_a), (b, x_b) in pairwise(way):
                if max(a, b) < self.boxes or (a, x_a, b, x_b) not in known:
                    known.add((a, x_a, b, x_b))
                    self.below[a].append((b, x_b, x_a, edge.main))
                    self.above[b].append((a, x_a, x_b, edge.main))
            chains.append(dummies)
        return chains

    def _add_dummy(self, layer: int) -> int:
        self.widths.append(0.0)
        self.heights.append(0.0)
        self.layer.append(layer)
        self.above.append([])
        self.below.append([])
        return len(self.widths) - 1

    def _main_ways(self) -> tuple[list[int], frozenset[int]]:
        """`main` and `spine`. An item's main way is its longest way down; among equals, the one to
        the preferred port, then the one with the most boxes."""
        reach = [(layer, 0, 0) for layer in self.layer]
        ports = len(self.level.sizes) - len(self.level.bottoms)
        for place, preference in enumerate(self.level.bottoms):
            reach[ports + place] = (self.layer[ports + place], -preference, 0)
        main = [-1] * len(self.layer)
        for item in sorted(range(len(self.layer)), key=self.layer.__getitem__, reverse=True):
            is_box = int(item < len(self.level.sizes))
            for lower, *_ in self.below[item]:
                if self.is_in_rows(item) or self.is_in_rows(lower):
                    continue  # the main way takes the trunk
                down, preference, boxes = reach[lower]
                way = (down, preference, boxes + is_box)
                if main[item] < 0 or way > reach[item]:
                    main[item], reach[item] = lower, way
        spine = [max(range(len(reach)), key=lambda item: (*reach[item][::-1], -item))]
        while main[spine[-1]] >= 0:
            spine.append(main[spine[-1]])
        return main, frozenset(spine)


def _longest_within(spans: Sequence[int], budget: int) -> int:
    """The longest span for which all edges up to it need at most `budget` dummies together."""
    counts = sorted(Counter(spans).items())
    totals = accumulate(span * count for span, count in counts)
    fitting = (span for (span, _), total in zip(counts, totals, strict=True) if total <= budget)
    return max(fitting, default=0)
