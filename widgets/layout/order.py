"""The order of items within layers: few crossings, the main way in the middle."""

from __future__ import annotations

from bisect import bisect_left, insort

from .layer_graph import LayerGraph, Near

SWEEPS = 6
THOROUGH_ITEMS = 600
"""Up to this many items, dummies included, crossings are counted and the best order is kept."""


def ordered_rows(graph: LayerGraph) -> list[list[int]]:
    """The items of each layer from left to right, ordered by barycentre sweeps down and up."""
    return _Ordering(graph).run()


class _Ordering:
    def __init__(self, graph: LayerGraph) -> None:
        self.graph = graph
        self.widths, self.above, self.below = graph.widths, graph.above, graph.below
        self.has_rows = any(graph.in_rows)
        self.rows = self._first_order()
        self.free = [row for row in self.rows if not self._is_broken(row)]
        """The rows to sort. The rows of a broken layer stay on both sides of their trunks."""
        self.place = [0.0] * len(graph.widths)

    def run(self) -> list[list[int]]:
        for row in self.rows:
            self._note(row)
        if len(self.widths) > THOROUGH_ITEMS:
            still = 0
            for sweep in range(SWEEPS):  # up first: the first order follows what is above
                still = 0 if self._sweep(down=sweep % 2 == 1) else still + 1
                if still == 2:
                    break
            return self.rows
        best, fewest = [list(row) for row in self.rows], self._crossings()
        for sweep in range(SWEEPS + 1):
            if not fewest:
                break
            if sweep < SWEEPS:
                self._sweep(down=sweep % 2 == 0)
                self._swap()
            else:
                self._take_given_order()
            crossings = self._crossings()
            if crossings < fewest:
                best, fewest = [list(row) for row in self.rows], crossings
        return best

    def _sweep(self, down: bool) -> bool:
        """Sort each row by where its neighbours stand in the row before it. Returns whether that
        changed a row."""
        place, widths, barycentre = self.place, self.widths, self._barycentre
        neighbours = self.above if down else self.below
        changed = False
        for row in self.free if down else reversed(self.free):
            if len(row) == 1:
                continue
            keys = []
            for item in row:
                near = neighbours[item]
                if len(near) == 1:
                    other, x, _, _ = near[0]
                    keys.append(place[other] + (x / widths[other] if widths[other] else 0.5))
                else:
                    keys.append(barycentre(item, near))
            if keys != sorted(keys):
                key_of = dict(zip(row, keys, strict=True))
                row.sort(key=key_of.__getitem__)
                self._note(row)
                changed = True
        return changed

    def _take_given_order(self) -> None:
        for row in self.free:
            row.sort()
            self._note(row)

    def _first_order(self) -> list[list[int]]:
        """Rows by a depth-first walk from the top, so that connected items stand together. Of the
        items below another, the one on the main way stands in the middle."""
        main, layer, below = self.graph.main, self.graph.layer, self.below
        rows: list[list[int]] = [[] for _ in range(max(layer) + 1)]
        seen = [False] * len(self.widths)
        for root in range(len(self.widths)):
            stack = [root]
            while stack:
                item = stack.pop()
                if seen[item]:
                    continue
                seen[item] = True
                rows[layer[item]].append(item)
                near = below[item]
                if len(near) < 2:
                    stack += [other for other, *_ in near]
                    continue
                others = [other for other, *_ in near if other != main[item]]
                half = (len(others) + 1) // 2
                stack += others[half:][::-1]
                if main[item] >= 0:
                    stack.append(main[item])
                stack += others[:half][::-1]
        for row in filter(self._is_broken, rows):
            trunks = [item for item in row if self.graph.is_dummy(item)]
            items = sorted(item for item in row if not self.graph.is_dummy(item))
            half = (len(items) + 1) // 2
            row[:] = [*items[:half], *trunks, *items[half:]]
        return rows

    def _is_broken(self, row: list[int]) -> bool:
        """Whether a row is one of a broken layer."""
        return self.has_rows and any(map(self.graph.is_in_rows, row))

    def _note(self, row: list[int]) -> None:
        for place, item in enumerate(row):
            self.place[item] = float(place)

    def _crossing(self, item: int, x: float) -> float:
        """Where in its row a line meets an item."""
        return self.place[item] + (x / self.widths[item] if self.widths[item] else 0.5)

    def _barycentre(self, item: int, near: list[Near]) -> float:
        if not near:
            return self.place[item] + 0.5
        return sum([self._crossing(other, x) for other, x, _, _ in near]) / len(near)

    def _crossings(self) -> int:
        total = 0
        for row in self.rows[1:]:
            ends = sorted(
                (self._crossing(upper, x), self._crossing(item, own))
                for item in row
                for upper, x, own, _ in self.above[item]
            )
            seen: list[float] = []
            for _, at in ends:
                total += len(seen) - bisect_left(seen, at + 1e-9)
                insort(seen, at)
        return total

    def _swap(self) -> None:
        """Exchange neighbours wherever that removes crossings, in four passes at most."""
        for _ in range(4):
            improved = False
            for row in self.free:
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
            ends = [self._crossing(other, x) for other, x, *_ in near[left]]
            for other, x, *_ in near[right]:
                at = self._crossing(other, x)
                total += sum(end > at + 1e-9 for end in ends)
        return total
