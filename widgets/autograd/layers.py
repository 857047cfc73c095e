"""One level of boxes in layers, from top to bottom: layers, order, places, ways of the edges.

Sugiyama's method: longest-path layers, dummy items where an edge passes a layer, barycentre sweeps
for the order within the layers, then places that pull every item under its neighbours as far as
the order leaves room (weighted isotonic regression, layer by layer). Between two layers lies a gap
without boxes: only there do lines move sideways, so no line runs through a box.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

Point = tuple[float, float]
Size = tuple[float, float]

Near = tuple[int, float, float, bool]
"""A neighbour in the next layer: the item, where the line meets it, where it meets oneself, and
whether it is an edge of the main way."""

LAYER_GAP = 40.0
ITEM_GAP = 24.0
LINE_GAP = 14.0
"""Between two lines that pass a layer, and between a line and an item."""
PORT_GAP = 24.0
"""Between a border that lines come in through and the first layer."""
STEEPNESS = 0.06
"""Pixels of gap for each pixel that a line moves sideways in it, so that lines do not lie flat."""
WIDEST_GAP = 96.0
SWEEPS = 6
THOROUGH_ITEMS = 600
"""Up to this many items and dummies the crossings are counted, and the best order is kept."""
MIN_JOINED = 3
"""So many long edges to one end join into a trunk on their way."""
MAX_DUMMIES_PER_ITEM = 4
"""Beyond, the longest edges go round by a lane at the side: an unrolled loop's shared weight would
otherwise need as many dummies as the square of its rounds."""


@dataclass(frozen=True)
class LevelEdge:
    """From the bottom of item `upper` to the top of item `lower`, each left or met `*_x` pixels
    from its left side. `main` edges are made straight before the others."""

    upper: int
    lower: int
    upper_x: float
    lower_x: float
    main: bool = True


@dataclass(frozen=True)
class Level:
    """Items in an order in which every edge runs from an earlier to a later one: first `tops`
    ports in the upper border, then the boxes, then a port in the lower border for each of
    `bottoms`: the least of these numbers is where the main way goes on."""

    sizes: tuple[Size, ...]
    edges: tuple[LevelEdge, ...]
    tops: int = 0
    bottoms: tuple[int, ...] = ()


@dataclass(frozen=True)
class PlacedLevel:
    """Top left corners, the size of all, and per edge its (x, y) stations from top to bottom:
    between two stations at the same x it runs straight down, else it moves sideways."""

    places: tuple[Point, ...]
    size: Size
    ways: tuple[tuple[Point, ...], ...]
    spine: frozenset[int] = frozenset()
    """The items on the main way from top to bottom."""


def place_level(level: Level) -> PlacedLevel:
    """Places and ways of one level, the corner of all at (0, 0)."""
    return _Placing(level).run()


class _Placing:
    """Items are numbered as in the level, dummies follow."""

    def __init__(self, level: Level) -> None:
        self.level = level
        self.widths = [width for width, _ in level.sizes]
        self.heights = [height for _, height in level.sizes]
        self.above: list[list[Near]] = []
        self.below: list[list[Near]] = []

    def run(self) -> PlacedLevel:
        count = len(self.level.sizes)
        if not count:
            return PlacedLevel((), (0.0, 0.0), ())
        self.layer = self._layers()
        self.above = [[] for _ in range(count)]
        self.below = [[] for _ in range(count)]
        self.chains = self._chains()
        self.main, self.spine = self._main_ways()
        self.rows = self._first_order()
        self._order()
        self.left = self._lefts()
        return self._placed()

    # -- layers and dummies ----------------------------------------------------------------------

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
        for item in range(level.tops, count - len(level.bottoms)):  # close to what it leads to
            if not has_upper[item] and least_lower[item] < count:
                layer[item] = max(layer[item], least_lower[item] - 1)
        return layer

    def _chains(self) -> list[list[int] | None]:
        """The dummies of each edge from top to bottom; None for an edge that takes a lane. Many
        edges to one end share their dummies there: they join into one trunk."""
        level, layer = self.level, self.layer
        spans = [layer[edge.lower] - layer[edge.upper] - 1 for edge in level.edges]
        ends = [(edge.lower, edge.lower_x) for edge in level.edges]
        joined = {end for end, count in Counter(ends).items() if count >= MIN_JOINED}
        reach: dict[object, int] = {}
        keys = [end if end in joined else place for place, end in enumerate(ends)]
        for key, span in zip(keys, spans, strict=True):
            reach[key] = max(reach.get(key, 0), span)
        budget = max(400, MAX_DUMMIES_PER_ITEM * len(level.sizes))
        longest = _longest_within(list(reach.values()), budget)
        trunks: dict[object, dict[int, int]] = defaultdict(dict)
        known: set[tuple[int, int]] = set()
        chains: list[list[int] | None] = []
        for edge, key in zip(level.edges, keys, strict=True):
            if reach[key] > longest:
                chains.append(None)
                continue
            trunk = trunks[key]
            dummies = []
            for number in range(layer[edge.upper] + 1, layer[edge.lower]):
                if number not in trunk:
                    trunk[number] = self._add_dummy(number)
                dummies.append(trunk[number])
            way = [(edge.upper, edge.upper_x), *((d, 0.0) for d in dummies), ends[len(chains)]]
            for (a, x_a), (b, x_b) in pairwise(way):
                if a < len(level.sizes) or (a, b) not in known:
                    known.add((a, b))
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

    # -- order within the layers -----------------------------------------------------------------

    def _main_ways(self) -> tuple[list[int], frozenset[int]]:
        """For each item the one below that the main way goes on to, -1 at the end: the way that
        leads down furthest, of several to the preferred port, of several still the one that
        passes the most boxes. Then the items on the longest of them all, the spine."""
        reach = [(layer, 0, 0) for layer in self.layer]
        ports = len(self.level.sizes) - len(self.level.bottoms)
        for place, preference in enumerate(self.level.bottoms):
            reach[ports + place] = (self.layer[ports + place], -preference, 0)
        main = [-1] * len(self.layer)
        for item in sorted(range(len(self.layer)), key=self.layer.__getitem__, reverse=True):
            is_box = int(item < len(self.level.sizes))
            for lower, *_ in self.below[item]:
                down, preference, boxes = reach[lower]
                way = (down, preference, boxes + is_box)
                if main[item] < 0 or way > reach[item]:
                    main[item], reach[item] = lower, way
        spine = [max(range(len(reach)), key=lambda item: (*reach[item][::-1], -item))]
        while main[spine[-1]] >= 0:
            spine.append(main[spine[-1]])
        return main, frozenset(spine)

    def _first_order(self) -> list[list[int]]:
        """Depth first from the top, so that what hangs together comes to stand together; of the
        items below one, that on the main way comes in the middle."""
        rows: list[list[int]] = [[] for _ in range(max(self.layer) + 1)]
        seen = [False] * len(self.widths)
        for root in range(len(self.widths)):
            stack = [root]
            while stack:
                item = stack.pop()
                if seen[item]:
                    continue
                seen[item] = True
                rows[self.layer[item]].append(item)
                others = [each for each, *_ in self.below[item] if each != self.main[item]]
                half = (len(others) + 1) // 2
                stack += others[half:][::-1]
                if self.main[item] >= 0:
                    stack.append(self.main[item])
                stack += others[:half][::-1]
        return rows

    def _order(self) -> None:
        thorough = len(self.widths) <= THOROUGH_ITEMS
        self.place = [0.0] * len(self.widths)
        for row in self.rows:
            self._note(row)
        best, fewest = [list(row) for row in self.rows], self._crossings() if thorough else 0
        for sweep in range(SWEEPS if not thorough or fewest else 0):
            down = sweep % 2 == 0
            neighbours = self.above if down else self.below
            for row in self.rows if down else reversed(self.rows):
                if len(row) > 1:
                    row.sort(key=lambda item: self._barycentre(item, neighbours))
                    self._note(row)
            if thorough:
                self._swap()
                crossings = self._crossings()
                if crossings < fewest:
                    best, fewest = [list(row) for row in self.rows], crossings
                if not fewest:
                    break
        if thorough:
            self.rows = best

    def _note(self, row: list[int]) -> None:
        for place, item in enumerate(row):
            self.place[item] = float(place)

    def _at(self, item: int, x: float) -> float:
        """Where along its row an item is left or met."""
        return self.place[item] + (x / self.widths[item] if self.widths[item] else 0.5)

    def _barycentre(self, item: int, neighbours: list[list[Near]]) -> float:
        near = neighbours[item]
        if not near:
            return self.place[item] + 0.5
        return sum(self._at(other, x) for other, x, *_ in near) / len(near)

    def _crossings(self) -> int:
        total = 0
        for row in self.rows[1:]:
            ends = sorted(
                (self._at(upper, x), self._at(item, own))
                for item in row
                for upper, x, own, _ in self.above[item]
            )
            seen: list[float] = []
            for _, at in ends:
                total += len(seen) - bisect_left(seen, at + 1e-9)
                insort(seen, at)
        return total

    def _swap(self) -> None:
        """Exchange neighbours as long as that removes crossings."""
        for _ in range(4):
            improved = False
            for row in self.rows:
                for place in range(len(row) - 1):
                    a, b = row[place], row[place + 1]
                    if self._pair(a, b) > self._pair(b, a):
                        row[place], row[place + 1] = b, a
                        self.place[b], self.place[a] = float(place), float(place + 1)
                        improved = True
            if not improved:
                return

    def _pair(self, left: int, right: int) -> int:
        """Crossings between the edges of two neighbours when they stand in this order."""
        total = 0
        for near in (self.above, self.below):
            ends = [self._at(other, x) for other, x, *_ in near[left]]
            for other, x, *_ in near[right]:
                at = self._at(other, x)
                total += sum(end > at + 1e-9 for end in ends)
        return total

    # -- places ----------------------------------------------------------------------------------

    def _lefts(self) -> list[float]:
        left = [0.0] * len(self.widths)
        offsets: list[list[float]] = []
        for row in self.rows:
            x, before, row_offsets = 0.0, None, []
            for item in row:
                if before is not None:
                    lines = self.widths[before] == 0 or self.widths[item] == 0
                    x += self.widths[before] + (LINE_GAP if lines else ITEM_GAP)
                row_offsets.append(x)
                before = item
            offsets.append(row_offsets)
            for item, offset in zip(row, row_offsets, strict=True):
                left[item] = offset - x / 2
        rows = list(zip(self.rows, offsets, strict=True))
        for sweep in range(2 * SWEEPS + 1):  # the last runs down
            down = sweep % 2 == 0
            for row, row_offsets in rows if down else reversed(rows):
                self._pull(left, row, row_offsets, down, both=sweep >= 2 * SWEEPS - 4)
        least = min(left)
        return [float(round(x - least)) for x in left]  # whole pixels: no lines almost straight

    def _pull(
        self, left: list[float], row: list[int], offsets: list[float], down: bool, both: bool
    ) -> None:
        """Move a row's items towards their neighbours, keeping their order and distances: the
        least sum of weighted squares, by pooling adjacent violators."""
        boxes = len(self.level.sizes)
        blocks: list[tuple[float, float, int]] = []  # mean, weight, count
        for item, offset in zip(row, offsets, strict=True):
            wishes: list[tuple[float, float]] = []
            if down or both:
                for other, x, own, main in self.above[item]:
                    wishes.append((left[other] + x - own, self._pull_of(other, item, main)))
            if both or not down:
                for other, x, own, main in self.below[item]:
                    wishes.append((left[other] + x - own, self._pull_of(item, other, main)))
            mean = _median(wishes) if wishes else left[item]
            weight = 1e6 if item in self.spine else 10.0 if item >= boxes else 1.0
            mean, count = mean - offset, 1
            while blocks and blocks[-1][0] > mean:
                before, before_weight, before_count = blocks.pop()
                mean = (mean * weight + before * before_weight) / (weight + before_weight)
                weight, count = weight + before_weight, count + before_count
            blocks.append((mean, weight, count))
        place = 0
        for mean, _, count in blocks:
            for _ in range(count):
                left[row[place]] = mean + offsets[place]
                place += 1

    def _pull_of(self, upper: int, lower: int, main: bool) -> float:
        """How much a piece of an edge strives to be straight."""
        boxes = len(self.level.sizes)
        if upper >= boxes and lower >= boxes:
            return 8.0
        return (4.0 if upper < boxes and self.main[upper] == lower else 1.0) * (
            4.0 if main else 1.0
        )

    # -- what comes out --------------------------------------------------------------------------

    def _placed(self) -> PlacedLevel:
        level, left, rows = self.level, self.left, self.rows
        count = len(level.sizes)
        edges, lanes = level.edges, self._lanes()
        shift = [0.0] * len(rows)
        for item, near in enumerate(self.below):
            row = self.layer[item]
            for lower, x, own, _ in near:
                shift[row] = max(shift[row], abs(left[lower] + x - left[item] - own))
        tops, bottoms, y = [], [], 0.0
        for index, row in enumerate(rows):
            tops.append(y)
            bottoms.append(y + max(self.heights[item] for item in row))
            port = (index == 0 and level.tops) or (index + 2 == len(rows) and level.bottoms)
            gap = PORT_GAP if port else LAYER_GAP
            y = bottoms[-1] + min(gap + round(STEEPNESS * shift[index]), WIDEST_GAP)
        ways = []
        for place, (edge, chain) in enumerate(zip(edges, self.chains, strict=True)):
            upper, lower = edge.upper, edge.lower
            start_x, end_x = left[upper] + edge.upper_x, left[lower] + edge.lower_x
            first, last = self.layer[upper], self.layer[lower]
            way = [(start_x, tops[first] + self.heights[upper]), (start_x, bottoms[first])]
            if chain is None:
                way += [(lanes[place], tops[first + 1]), (lanes[place], bottoms[last - 1])]
            else:
                for dummy in chain:
                    row = self.layer[dummy]
                    way += [(left[dummy], tops[row]), (left[dummy], bottoms[row])]
            way.append((end_x, tops[last]))
            ways.append(_without_repeats(way))
        width = max(
            max(left[item] + self.widths[item] for item in range(len(left))),
            max(lanes.values(), default=0.0) + LINE_GAP,
        )
        places = tuple((left[item], tops[self.layer[item]]) for item in range(count))
        return PlacedLevel(places, (width, bottoms[-1]), tuple(ways), self.spine)

    def _lanes(self) -> dict[int, float]:
        """Edges that take a lane -> its x, right of all items; one lane for each lower end."""
        right = max(x + width for x, width in zip(self.left, self.widths, strict=True))
        lane_of: dict[int, float] = {}
        found = {}
        for place, chain in enumerate(self.chains):
            if chain is None:
                lower = self.level.edges[place].lower
                lane = lane_of.setdefault(lower, right + LINE_GAP * (len(lane_of) + 1))
                found[place] = lane
        return found


def _longest_within(spans: Sequence[int], budget: int) -> int:
    """The longest span such that all edges up to it need at most `budget` dummies together."""
    count_of: dict[int, int] = defaultdict(int)
    for span in spans:
        count_of[span] += 1
    total, longest = 0, 0
    for span in sorted(count_of):
        total += span * count_of[span]
        if total > budget:
            return longest
        longest = span
    return longest


def _median(wishes: list[tuple[float, float]]) -> float:
    """The weighted median of (place, weight), midway where it lies between two. Unlike the mean
    it makes one line straight rather than all a little bent."""
    if len(wishes) == 1:
        return wishes[0][0]
    wishes.sort()
    half = sum(weight for _, weight in wishes) / 2
    below = 0.0
    for number, (place, weight) in enumerate(wishes):
        below += weight
        if below > half:
            return place
        if below == half:
            return (place + wishes[number + 1][0]) / 2
    raise AssertionError("weights are positive")


def _without_repeats(way: list[Point]) -> tuple[Point, ...]:
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
