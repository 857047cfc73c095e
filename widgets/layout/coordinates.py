"""The x of every item: lines straight, items apart and in order."""

from __future__ import annotations

import math
from itertools import pairwise

from .layer_graph import LayerGraph

LINE_GAP = 14.0
"""Between two lines that pass a layer, and between a line and a box."""
SWEEPS = 13
LAST_SWEEPS = 5
Pull = tuple[int, float, float, float]
"""What pulls an item: a neighbour, the x where their line meets it, the x where the line meets the
item, and the weight with which the line is made straight."""
"""The last sweeps pull items towards the neighbours above and below at once."""


def left_sides(graph: LayerGraph, rows: list[list[int]]) -> list[float]:
    """The left side of each item, in whole pixels from 0, so that no line is almost straight.

    In each sweep, down or up, the items of a layer move as near to their neighbours as their order
    and distances allow. The main way weighs most, then lines that pass layers. At the end the
    lines that pass layers are straightened where there is room.
    """
    return _Coordinates(graph, rows).run()


class _Coordinates:
    def __init__(self, graph: LayerGraph, rows: list[list[int]]) -> None:
        self.graph, self.rows = graph, rows
        self.left = [0.0] * len(graph.widths)
        self.offsets = [self._offsets(row) for row in rows]
        self.weights = [
            1e6 if item in graph.spine else 10.0 if graph.is_dummy(item) else 1.0
            for item in range(len(graph.widths))
        ]
        self.down: list[list[Pull]] = [
            [(o, x, own, self._pull_of(o, item, main)) for o, x, own, main in near]
            for item, near in enumerate(graph.above)
        ]
        self.up: list[list[Pull]] = [
            [(o, x, own, self._pull_of(item, o, main)) for o, x, own, main in near]
            for item, near in enumerate(graph.below)
        ]

    def run(self) -> list[float]:
        for row, offsets in zip(self.rows, self.offsets, strict=True):
            for item, offset in zip(row, offsets, strict=True):
                self.left[item] = offset - offsets[-1] / 2
        self._sweep(SWEEPS - LAST_SWEEPS, both=False)
        self._sweep(LAST_SWEEPS, both=True)
        self._straighten()
        least = min(self.left)
        return [float(round(x - least)) for x in self.left]

    def _sweep(self, most: int, both: bool) -> None:
        """Sweep down and up in turn, until nothing moves."""
        rows = list(zip(self.rows, self.offsets, strict=True))
        pulls = [above + below for above, below in zip(self.down, self.up, strict=True)]
        still = 0
        for sweep in range(most):
            down = sweep % 2 == 0
            moved = False
            for row, offsets in rows if down else reversed(rows):
                moved |= self._pull(row, offsets, pulls if both else self.down if down else self.up)
            still = 0 if moved else still + 1
            if still == 2:  # neither sweep moved an item
                return

    def _offsets(self, row: list[int]) -> list[float]:
        """The least distance of each item from the first."""
        found = [0.0]
        for before, item in pairwise(row):
            found.append(found[-1] + self._step(before, item))
        return found

    def _step(self, before: int, item: int) -> float:
        widths = self.graph.widths
        lines = widths[before] == 0 or widths[item] == 0
        return widths[before] + (LINE_GAP if lines else self.graph.level.item_gap)

    def _pull(self, row: list[int], offsets: list[float], pulls: list[list[Pull]]) -> bool:
        """Move a row's items towards their neighbours. Returns whether any has moved. Pooling
        adjacent violators gives the least sum of weighted squares for a fixed order."""
        left = self.left
        blocks: list[tuple[float, float, int]] = []  # mean, weight, count
        for item, offset in zip(row, offsets, strict=True):
            mean = self._wish(item, pulls[item]) - offset
            weight, count = self.weights[item], 1
            while blocks and blocks[-1][0] > mean:
                before, before_weight, before_count = blocks.pop()
                mean = (mean * weight + before * before_weight) / (weight + before_weight)
                weight, count = weight + before_weight, count + before_count
            blocks.append((mean, weight, count))
        place, moved = 0, False
        for mean, _, count in blocks:
            for _ in range(count):
                x = mean + offsets[place]
                moved |= x != left[row[place]]
                left[row[place]] = x
                place += 1
        return moved

    def _wish(self, item: int, pulls: list[Pull]) -> float:
        """The left side that makes most of the lines to an item's neighbours straight."""
        left = self.left
        if not pulls:
            return left[item]
        other, x, own, weight = pulls[0]
        first = left[other] + x - own
        if len(pulls) == 1:
            return first
        if len(pulls) > 2:
            return _median([(left[other] + x - own, weight) for other, x, own, weight in pulls])
        other, x, own, last_weight = pulls[1]
        last = left[other] + x - own
        if weight == last_weight:
            return (first + last) / 2
        return first if weight > last_weight else last

    def _pull_of(self, upper: int, lower: int, main: bool) -> float:
        """The weight with which a piece of an edge is made straight."""
        graph = self.graph
        if graph.is_dummy(upper) and graph.is_dummy(lower):
            return 8.0
        if graph.is_in_rows(upper) or graph.is_in_rows(lower):
            return 0.01  # together they must not bend the trunk
        is_way = not graph.is_dummy(upper) and graph.main[upper] == lower
        return (4.0 if is_way else 1.0) * (4.0 if main else 1.0)

    # -- lines that pass layers ------------------------------------------------------------------

    def _straighten(self) -> None:
        """Move each chain of dummies to one x, or to as few as there is room for."""
        self.place = {item: place for row in self.rows for place, item in enumerate(row)}
        done: set[int] = set()
        for edge, chain in zip(self.graph.level.edges, self.graph.chains, strict=True):
            if not chain or chain[0] in done or chain[-1] in done:
                continue
            done.update(chain)
            upper_x = self.left[edge.upper] + edge.upper_x
            lower_x = self.left[edge.lower] + edge.lower_x
            pieces = self._pieces(chain)
            for number, (piece, low, high) in enumerate(pieces):
                now = sorted(self.left[item] for item in piece)[len(piece) // 2]
                wishes = [now]
                if number == 0 and low <= upper_x <= high:
                    wishes.append(upper_x)
                if number + 1 == len(pieces) and low <= lower_x <= high:
                    wishes.append(lower_x)
                wish = min(wishes[1:] or wishes, key=lambda x: abs(x - now))
                for item in piece:
                    self.left[item] = min(max(wish, low), high)

    def _pieces(self, chain: list[int]) -> list[tuple[list[int], float, float]]:
        """A chain cut into stretches whose dummies can share an x, each with that x's range."""
        pieces: list[tuple[list[int], float, float]] = []
        for item in chain:
            low, high = self._room(item)
            if pieces and max(low, pieces[-1][1]) <= min(high, pieces[-1][2]):
                stretch, before_low, before_high = pieces[-1]
                stretch.append(item)
                pieces[-1] = stretch, max(low, before_low), min(high, before_high)
            else:
                pieces.append(([item], low, high))
        return pieces

    def _room(self, item: int) -> tuple[float, float]:
        """The range of x that an item can take while its neighbours stay."""
        row, place = self.rows[self.graph.layer[item]], self.place[item]
        low, high = -math.inf, math.inf
        if place:
            before = row[place - 1]
            low = self.left[before] + self._step(before, item)
        if place + 1 < len(row):
            high = self.left[row[place + 1]] - self._step(item, row[place + 1])
        return min(low, self.left[item]), max(high, self.left[item])


def _median(wishes: list[tuple[float, float]]) -> float:
    """The weighted median of (x, weight), or the middle between two medians. Where a mean bends
    every line a little, a median makes one line straight."""
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
