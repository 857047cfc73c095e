"""Breaks a tall level into columns, which are read one after the other like a newspaper's.

A line to the next column leaves at the foot of its own, rises in the channel between the two and
enters at the head. The lines in a channel keep their order, so none crosses another. A line from a
port in the upper border runs above all columns to its own; one to a port in the lower border runs
below them. The ports keep the places that they have without columns.
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
"""A level stays whole if its height is at most this."""
SLENDER = 3.0
"""A level stays whole if its height is at most this many times its width."""
WIDEST = 2.4
"""Columns are made higher until all together are at most this many times as wide as high. Their
height doubles each time, so that opening one box rarely moves others to another column."""
MAX_LINES = 40
"""A level stays whole if more lines than this would run from one column to the next."""


def in_columns(placed: PlacedLevel) -> PlacedLevel:
    """The level, broken into columns if it is too slender."""
    width, height = placed.size
    if height <= max(COLUMN_HEIGHT, SLENDER * width):
        return placed
    column = COLUMN_HEIGHT
    while height / column * width > WIDEST * column:
        column *= 2
    return broken(placed, column)


def broken(placed: PlacedLevel, height: float) -> PlacedLevel:
    """The level in columns of about this height, or whole if it has no good place to break."""
    cuts = _cuts(placed, height)
    return _Columns(placed, cuts).run() if cuts else placed


def _cuts(placed: PlacedLevel, height: float) -> list[int]:
    """The last row of each column but the last; empty if too many lines would run from one column
    to the next. A column is at least half full and ends where the fewest lines leave it."""
    rows, lines = placed.rows, _lines_below(placed)
    cuts: list[int] = []
    start, last = int(placed.has_tops), len(rows) - 1 - int(placed.has_bottoms)
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


def _lines_below(placed: PlacedLevel) -> list[int]:
    """How many lines that start and end in the level pass the gap below each row. Joined lines
    count as one."""
    tops = [top for top, _ in placed.rows]
    reach: dict[tuple[float, int], int] = {}
    for way in placed.ways:
        if placed.is_top_port(way[0]) or placed.is_bottom_port(way[-1]):
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
"""A column, and a line's stations in it."""


class _Columns:
    def __init__(self, placed: PlacedLevel, cuts: list[int]) -> None:
        self.placed, self.cuts = placed, cuts
        self.tops = [top for top, _ in placed.rows]
        """The rows' tops. Each item and each station lies in a row: lines bend only in the gaps."""

    def run(self) -> PlacedLevel:
        placed, rows, items = self.placed, self.placed.rows, self.placed.places
        ways = [self._parts(way) for way in placed.ways]
        self.lanes = self._lanes(ways)
        self.entries = _numbered(point[0] for point in items if placed.is_top_port(point))
        self.exits = _numbered(point[0] for point in items if placed.is_bottom_port(point))
        self.across, width = self._across(ways)
        self.head = LINE_GAP * (1 + len(self.entries) + max(map(len, self.lanes)))
        firsts = [int(placed.has_tops), *(cut + 1 for cut in self.cuts)]
        lasts = [*self.cuts, len(rows) - 1]
        self.down = [self.head - rows[row][0] for row in firsts]
        self.foot = max(
            rows[last][1] + down + LINE_GAP * (lines + 1)
            for last, down, lines in zip(lasts, self.down, [*map(len, self.lanes), 0], strict=True)
        )
        self.height = self.foot + LINE_GAP * (len(self.exits) + 1) * placed.has_bottoms
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
        """The parts of a line, one for each column that it is in. For a line with a port at one
        end, only the part in the column of its other end."""
        rows, cuts = self.placed.rows, self.cuts
        parts: list[_Part] = [(self._column(way[0][1]), [way[0]])]
        for (x0, _), (x1, y1) in pairwise(way):
            for column in range(parts[-1][0], self._column(y1)):
                parts[-1][1].append((x0, rows[cuts[column]][1]))
                parts.append((column + 1, [(x1, rows[cuts[column] + 1][0])]))
            parts[-1][1].append((x1, y1))
        if self.placed.is_bottom_port(way[-1]):
            return parts[:1]
        return parts[-1:] if self.placed.is_top_port(way[0]) else parts

    def _lanes(self, ways: list[list[_Part]]) -> list[dict[float, int]]:
        """The lines in each channel by their x, with the number of their lane. The line that enters
        leftmost has the lane nearest to the next column, and the lowest foot."""
        lanes: list[set[float]] = [set() for _ in self.cuts]
        for way in ways:
            for (column, before), (_, after) in pairwise(way):
                lanes[column].add(self._line(before, after))
        return [{x: lane for lane, x in enumerate(sorted(each, reverse=True))} for each in lanes]

    def _line(self, before: list[Point], after: list[Point]) -> float:
        """The x that joined lines share: where they enter the next column, or, upside down, where
        they leave their own."""
        return before[-1][0] if self.placed.turned else after[0][0]

    def _across(self, ways: list[list[_Part]]) -> tuple[list[float], float]:
        """How far each column moves to the right, and the width of all together."""
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
        if self.placed.is_top_port(point):
            return x + self.across[0], 0.0
        if self.placed.is_bottom_port(point):
            return x + self.across[0], self.height
        return x + self.across[column], y + self.down[column]

    def _joined(self, way: tuple[Point, ...], parts: list[_Part]) -> tuple[Point, ...]:
        first, stations = parts[0][0], [self._moved(parts[0][0], point) for point in parts[0][1]]
        for (column, before), (_, after) in pairwise(parts):
            stations += self._between(column, before, after, stations[-1])
            stations += [self._moved(column + 1, point) for point in after]
        if self.placed.is_top_port(way[0]) and first:
            port = self._moved(0, way[0])
            bus = LINE_GAP * (len(self.entries) - self.entries[way[0][0]])
            stations[:0] = [port, (port[0], bus), (stations[0][0], bus)]
        if self.placed.is_bottom_port(way[-1]):
            port = self._moved(0, way[-1])
            bus = self.foot + LINE_GAP * self.exits[way[-1][0]]
            last, (x, y) = parts[0][0], parts[0][1][-1]
            foot = (x + self.across[last], y + self.down[last])
            if self.placed.is_bottom_port((x, y)):  # sideways only in the gap above
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
