"""The x of every item: lines straight, items apart and in order."""

from __future__ import annotations

import math
from itertools import pairwise
from math import ceil, floor
from operator import sub

from .layer_graph import LayerGraph, Near

LINE_GAP = 14.0
"""The gap between two lines that pass a layer, and between a line and a box."""
SWEEPS = 6
SPINE, LINE, BOX = 1e9, 100.0, 1.0
"""The weight of an item's own wish against the wishes of the items beside it. A push of less than
half a pixel moves nothing, so no box moves the spine."""


def left_sides(graph: LayerGraph, rows: list[list[int]]) -> list[float]:
    """The left side of each item, from 0. Boxes stand at whole pixels: no line is almost straight.

    Layer by layer, the items move as near to their neighbours as their order and distances allow:
    first down, towards the layer above, then up and down, towards both. The main way weighs most,
    then lines that pass layers. At the end these lines are straightened where there is room.
    """
    return _Coordinates(graph, rows).run()


class _Coordinates:
    def __init__(self, graph: LayerGraph, rows: list[list[int]]) -> None:
        self.graph, self.rows = graph, rows
        self.left = [0.0] * len(graph.widths)
        self.offsets = [self._offsets(row) for row in rows]
        self.weights = [BOX] * graph.boxes + [LINE] * (len(graph.widths) - graph.boxes)
        for item in graph.spine:
            self.weights[item] = SPINE

    def run(self) -> list[float]:
        left, above = self.left, self.graph.above
        for number, (row, offsets) in enumerate(zip(self.rows, self.offsets, strict=True)):
            for item, offset in zip(row, offsets, strict=True):
                left[item] = offset - offsets[-1] // 2
            self._move(number, [self._wish(item, above[item]) for item in row])
        self._sweep()
        self._straighten()
        least = floor(min(left))
        return [x - least for x in left]

    def _sweep(self) -> None:
        """Sweep up and down, until nothing moves. A row waits for a sweep if the one above or below
        it has moved."""
        count = len(self.rows)
        waits = [True] * count + [False]  # the last is beyond the first row and the last one
        for sweep in range(SWEEPS):
            for number in range(count) if sweep % 2 else range(count - 1, -1, -1):
                if waits[number]:
                    waits[number] = False
                    if self._move(number, self._wishes(self.rows[number])):
                        waits[number - 1] = waits[number + 1] = True
            waits[count] = False
            if True not in waits:
                return

    def _offsets(self, row: list[int]) -> list[float]:
        """The least distance of each item from the first."""
        widths, item_gap = self.graph.widths, self.graph.level.item_gap
        found = [0.0]
        for before, item in pairwise(row):
            is_line = widths[before] == 0 or widths[item] == 0
            found.append(found[-1] + ceil(widths[before] + (LINE_GAP if is_line else item_gap)))
        return found

    def _move(self, number: int, wishes: list[float]) -> bool:
        """Move a row's items as near to where they wish to be as their distances allow. Returns
        whether any has moved."""
        left, row, offsets = self.left, self.rows[number], self.offsets[number]
        means = list(map(sub, wishes, offsets))
        if means != sorted(means):
            means = self._pooled(row, means)
        moved = False
        for item, offset, mean in zip(row, offsets, means, strict=True):
            x = floor(mean + 0.5) + offset
            if x != left[item]:
                left[item] = x
                moved = True
        return moved

    def _pooled(self, row: list[int], means: list[float]) -> list[float]:
        """The numbers nearest to `means` that do not decrease: pooling adjacent violators gives the
        least sum of weighted squares."""
        blocks: list[tuple[float, float, int]] = []  # mean, weight, count
        for item, mean in zip(row, means, strict=True):
            weight, count = self.weights[item], 1
            while blocks and blocks[-1][0] > mean:
                before, before_weight, before_count = blocks.pop()
                mean = (mean * weight + before * before_weight) / (weight + before_weight)
                weight, count = weight + before_weight, count + before_count
            blocks.append((mean, weight, count))
        return [mean for mean, _, count in blocks for _ in range(count)]

    def _wishes(self, row: list[int]) -> list[float]:
        """Where the items of a row wish to be, between their neighbours above and below."""
        left, nears_above, nears_below = self.left, self.graph.above, self.graph.below
        wishes = []
        for item in row:
            above, below = nears_above[item], nears_below[item]
            if len(above) != 1 or len(below) != 1:
                wishes.append(self._wish(item, above + below))
                continue
            upper, x, own, main = above[0]
            from_above = left[upper] + x - own
            lower, x, own, lower_main = below[0]
            from_below = left[lower] + x - own
            if from_above != from_below:
                difference = self._pull(upper, item, main) - self._pull(item, lower, lower_main)
                if difference == 0:  # anywhere between the two will do
                    least, most = sorted((from_above, from_below))
                    from_above = min(max(left[item], least), most)
                elif difference < 0:
                    from_above = from_below
            wishes.append(from_above)
        return wishes

    def _wish(self, item: int, near: list[Near]) -> float:
        """The left side that makes most of the lines to these neighbours straight."""
        left = self.left
        if not near:
            return left[item]
        if len(near) == 1:
            other, x, own, _ = near[0]
            return left[other] + x - own
        layer, own_layer = self.graph.layer, self.graph.layer[item]
        return _median(
            [
                (
                    left[other] + x - own,
                    self._pull(other, item, main)
                    if layer[other] < own_layer
                    else self._pull(item, other, main),
                )
                for other, x, own, main in near
            ]
        )

    def _pull(self, upper: int, lower: int, main: bool) -> float:
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
        left = self.left
        place_of = {item: place for row in self.rows for place, item in enumerate(row)}
        done: set[int] = set()
        for edge, chain in zip(self.graph.level.edges, self.graph.chains, strict=True):
            if not chain or chain[0] in done or chain[-1] in done:
                continue
            done.update(chain)
            upper_x = left[edge.upper] + edge.upper_x
            lower_x = left[edge.lower] + edge.lower_x
            if left[chain[0]] in (upper_x, lower_x) and len({left[item] for item in chain}) == 1:
                continue
            pieces = self._pieces(chain, place_of)
            for number, (piece, low, high) in enumerate(pieces):
                now = sorted(left[item] for item in piece)[len(piece) // 2]
                wishes = [now]
                if number == 0 and low <= upper_x <= high:
                    wishes.append(upper_x)
                if number + 1 == len(pieces) and low <= lower_x <= high:
                    wishes.append(lower_x)
                wish = min(wishes[1:] or wishes, key=lambda x: abs(x - now))
                for item in piece:
                    left[item] = min(max(wish, low), high)

    def _pieces(
        self, chain: list[int], place_of: dict[int, int]
    ) -> list[tuple[list[int], float, float]]:
        """A chain cut into stretches whose dummies can share an x, each with that x's range."""
        left, layer = self.left, self.graph.layer
        pieces: list[tuple[list[int], float, float]] = []
        piece: list[int] = []
        least, most = -math.inf, math.inf
        for item in chain:
            row, offsets, place = self.rows[layer[item]], self.offsets[layer[item]], place_of[item]
            low, high = -math.inf, math.inf  # the room of the item while those beside it stay
            if place:
                low = left[row[place - 1]] + offsets[place] - offsets[place - 1]
            if place + 1 < len(row):
                high = left[row[place + 1]] - offsets[place + 1] + offsets[place]
            if low <= most and high >= least:
                least, most = max(least, low), min(most, high)
            else:
                pieces.append((piece, least, most))
                piece, least, most = [], low, high
            piece.append(item)
        return [*pieces, (piece, least, most)]


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
