"""A tall level broken into columns that are read one after the other, as a newspaper's text is.

A line that goes on in the next column leaves at the foot of its own, rises in the channel between
the two and comes in at the head; such lines keep their order, so that none crosses another. One
that comes into the level or leaves it takes the shortest way: above all columns to its own, or from
there below all columns. The ports stay where they would be without columns, so that boxes in
columns stand straight below each other as others do.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import replace
from itertools import accumulate, pairwise

from .coordinates import LINE_GAP
from .layer_graph import Point
from .level import PlacedLevel, without_repeats

COLUMN_HEIGHT = 2_400.0
"""What is no higher stays whole."""
SLENDER = 3.0
"""What is no more than so many times as high as wide stays whole."""
WIDEST = 2.4
"""Columns are made higher until all together are no more than so many times as wide as high. They
grow by doubling: opening one box hardly ever moves others to another column."""
MAX_LINES = 40
"""Where more lines than that would go on from column to column, the level stays whole."""


def in_columns(placed: PlacedLevel) -> PlacedLevel:
    """The level in columns where it is too slender. Ports stay in the borders."""
    width, height = placed.size
    if height <= max(COLUMN_HEIGHT, SLENDER * width):
        return placed
    column = COLUMN_HEIGHT
    while height / column * width > WIDEST * column:
        column *= 2
    return broken(placed, column)


def broken(placed: PlacedLevel, height: float) -> PlacedLevel:
    """The level in columns of about this height; whole where there is no good place to break it."""
    ports = _Ports(placed)
    cuts = _cuts(placed, height, ports)
    return _Columns(placed, cuts, ports).run() if cuts else placed


class _Ports:
    """Whether a station is a port: the first row and the last may be ports."""

    def __init__(self, placed: PlacedLevel) -> None:
        self.upper, self.lower = placed.has_tops, placed.has_bottoms
        self.first, self.last = placed.rows[0][0], placed.rows[-1][0]

    def has_above(self, point: Point) -> bool:
        return self.upper and point[1] == self.first

    def has_below(self, point: Point) -> bool:
        return self.lower and point[1] == self.last


def _cuts(placed: PlacedLevel, height: float, ports: _Ports) -> list[int]:
    """The last row of each column but the last. A column is filled at least by half and ends where
    the fewest lines go on; no cuts where too many would."""
    rows, lines = placed.rows, _lines_below(placed, ports)
    cuts: list[int] = []
    start, last = int(ports.upper), len(rows) - 1 - int(ports.lower)
    while start < last and rows[last][1] - rows[start][0] > height:
        best, row = start, start + 1
        while rows[row][1] - rows[start][0] <= height:
            if rows[best][1] - rows[start][0] < height / 2 or lines[row] <= lines[best]:
                best = row
            row += 1
        if lines[best] > MAX_LINES:
            return []
        cuts.append(best)
        start = best + 1
    return cuts


def _lines_below(placed: PlacedLevel, ports: _Ports) -> list[int]:
    """How many lines within the level pass the gap below each row; those that have joined count as
    one."""
    tops = [top for top, _ in placed.rows]
    reach: dict[tuple[float, int], int] = {}
    for way in placed.ways:
        if ports.has_above(way[0]) or ports.has_below(way[-1]):
            continue
        for (x0, y0), (x1, y1) in pairwise(way):
            start, end = bisect_right(tops, y0) - 1, bisect_right(tops, y1) - 1
            if start < end:
                key, other = ((x0, start), end) if placed.turned else ((x1, end), start)
                choose = max if placed.turned else min
                reach[key] = choose(reach.get(key, other), other)
    change = [0] * len(tops)
    for (_, one), other in reach.items():
        change[min(one, other)] += 1
        change[max(one, other)] -= 1
    return list(accumulate(change))


_Part = tuple[int, list[Point]]
"""Of a line: the column, and its stations there."""


class _Columns:
    def __init__(self, placed: PlacedLevel, cuts: list[int], ports: _Ports) -> None:
        self.placed, self.cuts, self.ports = placed, cuts, ports
        self.tops = [top for top, _ in placed.rows]
        """Of the rows: every station and every item lies in one, for lines bend in the gaps."""

    def run(self) -> PlacedLevel:
        rows, items, ports = self.placed.rows, self.placed.places, self.ports
        ways = [self._parts(way) for way in self.placed.ways]
        self.lanes = self._lanes(ways)
        self.entries = _numbered(x for x, y in items if ports.has_above((x, y)))
        self.exits = _numbered(x for x, y in items if ports.has_below((x, y)))
        self.across, width = self._across(ways)
        self.head = LINE_GAP * (1 + len(self.entries) + max(map(len, self.lanes)))
        firsts = [int(ports.upper), *(cut + 1 for cut in self.cuts)]
        lasts = [*self.cuts, len(rows) - 1]
        self.down = [self.head - rows[row][0] for row in firsts]
        self.foot = max(
            rows[last][1] + down + LINE_GAP * (lines + 1)
            for last, down, lines in zip(lasts, self.down, [*map(len, self.lanes), 0], strict=True)
        )
        self.height = self.foot + LINE_GAP * (len(self.exits) + 1) * ports.lower
        return replace(
            self.placed,
            places=tuple(self._moved(self._column(y), (x, y)) for x, y in items),
            size=(width, self.height),
            ways=tuple(map(self._joined, self.placed.ways, ways)),
            rows=(),
        )

    def _row(self, y: float) -> int:
        return bisect_right(self.tops, y) - 1

    def _column(self, y: float) -> int:
        return bisect_left(self.cuts, self._row(y))

    def _parts(self, way: tuple[Point, ...]) -> list[_Part]:
        """A line cut where it goes on in another column: of one from or to a port no more than
        what lies in the column at its other end."""
        rows, cuts = self.placed.rows, self.cuts
        parts: list[_Part] = [(self._column(way[0][1]), [way[0]])]
        for (x0, _), (x1, y1) in pairwise(way):
            for column in range(parts[-1][0], self._column(y1)):
                parts[-1][1].append((x0, rows[cuts[column]][1]))
                parts.append((column + 1, [(x1, rows[cuts[column] + 1][0])]))
            parts[-1][1].append((x1, y1))
        if self.ports.has_below(way[-1]):
            return parts[:1]
        return parts[-1:] if self.ports.has_above(way[0]) else parts

    def _lanes(self, ways: list[list[_Part]]) -> list[dict[float, int]]:
        """For each channel the lines in it, by their x, numbered from the left: what comes in
        leftmost has the lane next to it, and the lowest foot."""
        lanes: list[set[float]] = [set() for _ in self.cuts]
        for way in ways:
            for (column, before), (_, after) in pairwise(way):
                lanes[column].add(self._line(before, after))
        return [{x: lane for lane, x in enumerate(sorted(each, reverse=True))} for each in lanes]

    def _line(self, before: list[Point], after: list[Point]) -> float:
        """What lines that have joined share: where they come in, or upside down where they
        leave."""
        return before[-1][0] if self.placed.turned else after[0][0]

    def _across(self, ways: list[list[_Part]]) -> tuple[list[float], float]:
        """How far each column moves to the right, and the width of all."""
        low, high = [float("inf")] * (len(self.cuts) + 1), [0.0] * (len(self.cuts) + 1)
        spans = [(column, x, x) for way in ways for column, part in way for x, _ in part]
        spans += [(0, x, x) for x in self.exits]
        for (x, y), (width, _) in zip(self.placed.places, self.placed.level.sizes, strict=True):
            spans.append((self._column(y), x, x + width))
        for column, left, right in spans:
            low[column], high[column] = min(low[column], left), max(high[column], right)
        self.right = high
        across, x = [], 0.0
        for column, (left, right) in enumerate(zip(low, high, strict=True)):
            across.append(x - left)
            x += right - left
            if column < len(self.lanes):
                x += 2 * self.placed.level.item_gap + LINE_GAP * max(0, len(self.lanes[column]) - 1)
        return across, x

    def _moved(self, column: int, point: Point) -> Point:
        x, y = point
        if self.ports.has_above(point):
            return x + self.across[0], 0.0
        if self.ports.has_below(point):
            return x + self.across[0], self.height
        return x + self.across[column], y + self.down[column]

    def _joined(self, way: tuple[Point, ...], parts: list[_Part]) -> tuple[Point, ...]:
        first, stations = parts[0][0], [self._moved(parts[0][0], point) for point in parts[0][1]]
        for (column, before), (_, after) in pairwise(parts):
            stations += self._between(column, before, after, stations[-1])
            stations += [self._moved(column + 1, point) for point in after]
        if self.ports.has_above(way[0]) and first:
            port = self._moved(0, way[0])
            bus = LINE_GAP * (len(self.entries) - self.entries[way[0][0]])
            stations[:0] = [port, (port[0], bus), (stations[0][0], bus)]
        if self.ports.has_below(way[-1]):
            port = self._moved(0, way[-1])
            bus = self.foot + LINE_GAP * self.exits[way[-1][0]]
            last, (x, y) = parts[0][0], parts[0][1][-1]
            foot = (x + self.across[last], y + self.down[last])
            if self.ports.has_below((x, y)):  # sideways only in the gap above
                stations.pop()
            stations += [foot, (foot[0], bus), (port[0], bus), port]
        return without_repeats(stations)

    def _between(
        self, column: int, before: list[Point], after: list[Point], foot: Point
    ) -> list[Point]:
        """The corners of a line from the `foot` of a column to the head of the next."""
        lanes = self.lanes[column]
        lane = lanes[self._line(before, after)]
        lane_x = (
            self.right[column] + self.across[column] + self.placed.level.item_gap + LINE_GAP * lane
        )
        foot_y = foot[1] + LINE_GAP * (lane + 1)
        head_y = self.head - LINE_GAP * (len(lanes) - lane)
        return [
            (foot[0], foot_y),
            (lane_x, foot_y),
            (lane_x, head_y),
            (after[0][0] + self.across[column + 1], head_y),
        ]


def _numbered(places: Iterable[float]) -> dict[float, int]:
    """Ports by their x, numbered from the left."""
    return {x: number for number, x in enumerate(sorted(set(places)))}
