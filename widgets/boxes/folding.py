"""Folding what repeats: siblings in a row with the same structure become one box "×N"."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from numpy.typing import NDArray

from engine.protocol import GraphSnapshot

from .tree import Branch, Tree, walk

MIN_ROUNDS = 3
MIN_FOLDED_ITEMS = 12
"""The fewest siblings, other than modules, that a fold hides: fewer are read faster unfolded."""
DATA = ("input", "integer")
"""The reasons of cuts at data inputs. They do not make layers differ."""
MAX_PERIOD = 2_000
"""The most siblings in one round."""


def fold(
    graph: GraphSnapshot, tree: Tree, sources: NDArray[np.int64], targets: NDArray[np.int64]
) -> None:
    """Fold the tree's repeats in place, innermost first; `order` stays as it is.

    Two rounds are alike if their nodes have the same names in the same order, and the same edges
    within the fold. Edges that leave the fold do not matter, nor do shapes.
    """
    _Folder(graph, tree, sources, targets).run()


class _Row:
    """The children of one branch: their kinds, and the places where they begin, then the place
    where the last one ends."""

    def __init__(self, folder: _Folder, children: list[Branch | int], kinds: list[int]) -> None:
        self.kinds = np.array(kinds)
        self.is_branch = [isinstance(child, Branch) for child in children]
        bounds = [folder.first(child) for child in children]
        self.bounds = np.array([*bounds, folder.end(children[-1])])


class _Folder:
    def __init__(
        self,
        graph: GraphSnapshot,
        tree: Tree,
        sources: NDArray[np.int64],
        targets: NDArray[np.int64],
    ) -> None:
        self.modules = graph.modules
        self.tree = tree
        self._numbers: dict[object, int] = {}
        cuts: dict[int, list[tuple[int, str]]] = defaultdict(list)
        for cut in graph.cuts:
            if cut.reason not in DATA:  # only the first of many layers has one
                cuts[cut.node].append((cut.input, cut.reason))
        self.node_kind = [
            self._number((n.name, len(n.outputs), *sorted(cuts.get(n.id, ())))) for n in graph.nodes
        ]
        self.branch_kind: dict[int, int] = {}
        """Kinds by the branch's `id`: branches live as long as the tree."""
        start, end = tree.place[sources], tree.place[targets]
        inputs = np.array([edge.input for edge in graph.edges], np.int64)
        outputs = np.array([edge.output for edge in graph.edges], np.int64)
        by_start = np.lexsort((outputs, inputs, start))
        self.edge_start, self.edge_end = start[by_start], end[by_start]
        self.edge_slots = np.stack([inputs, outputs])[:, by_start]

    def run(self) -> None:
        for branch in reversed(list(walk(self.tree.root))):
            kinds = [self._kind(child) for child in branch.children]
            self.branch_kind[id(branch)] = self._number(
                (self.modules.get(branch.path), tuple(kinds), self._wiring(branch))
            )
            self._fold_children(branch, kinds)

    def _number(self, what: object) -> int:
        return self._numbers.setdefault(what, len(self._numbers))

    def _kind(self, item: Branch | int) -> int:
        return self.branch_kind[id(item)] if isinstance(item, Branch) else self.node_kind[item]

    def _wiring(self, branch: Branch) -> bytes:
        """The edges within a branch, relative to its first node."""
        low, high = np.searchsorted(self.edge_start, (branch.first, branch.end))
        start, end = self.edge_start[low:high], self.edge_end[low:high]
        inside = (branch.first <= end) & (end < branch.end)
        ends = np.stack([start, end])[:, inside] - branch.first
        return np.concatenate([ends, self.edge_slots[:, low:high][:, inside]]).tobytes()

    # -- repeats among the children of one branch ------------------------------------------------

    def _fold_children(self, branch: Branch, kinds: list[int]) -> None:
        if not branch.children:
            return
        period, row = 1, _Row(self, branch.children, kinds)
        while period <= min(len(kinds) // MIN_ROUNDS, MAX_PERIOD):
            found = self._repeats(row, period)
            for start, rounds in reversed(found):
                stop = start + rounds * period
                folded = self._folded(branch.children[start:stop], kinds[start:stop], period)
                branch.children[start:stop] = [folded]
                kinds[start:stop] = [self._kind(folded)]
            if found:
                row = _Row(self, branch.children, kinds)
            period = 1 if found else period + 1

    def _repeats(self, row: _Row, period: int) -> list[tuple[int, int]]:
        """(start, rounds) of the repeats of this period, in order and without overlap."""
        same = np.zeros(len(row.kinds) - period + 2, np.int8)
        same[1:-1] = row.kinds[period:] == row.kinds[:-period]
        turns = np.flatnonzero(np.diff(same))
        starts, ends = turns[::2], turns[1::2]
        long = ends - starts >= period * (MIN_ROUNDS - 1)
        found = []
        for low, high in zip(starts[long].tolist(), ends[long].tolist(), strict=True):
            rounds = (high - low) // period + 1
            begin, rounds = self._alike(row.bounds[low : low + rounds * period + 1 : period])
            modules = period == 1 and row.is_branch[low]
            if rounds >= MIN_ROUNDS and (modules or rounds * period >= MIN_FOLDED_ITEMS):
                found.append((low + begin * period, rounds))
        return found

    def _alike(self, bounds: NDArray[np.int64]) -> tuple[int, int]:
        """The longest run of rounds whose edges within the run are alike, as (first, count); the
        run's first round may differ, for what it uses lies outside."""
        borders = np.searchsorted(self.edge_start, bounds)
        low, high = borders[0], borders[-1]
        start, end = self.edge_start[low:high], self.edge_end[low:high]
        in_round = start - np.repeat(bounds[:-1], np.diff(borders))
        offset = np.where(end >= bounds[0], start - end, 0)
        codes = np.concatenate([[0], _mixed(in_round, offset, *self.edge_slots[:, low:high])])
        totals = np.cumsum(codes, dtype=np.uint64)[borders - low]
        ways = np.diff(totals)
        turns = np.flatnonzero(ways[2:] != ways[1:-1]) + 2  # where a round differs from the last
        begins = np.concatenate([[1], turns])
        counts = np.diff(np.concatenate([begins, [len(ways)]]))
        longest = int(np.argmax(counts))
        return int(begins[longest]) - 1, int(counts[longest]) + 1

    def first(self, item: Branch | int) -> int:
        return item.first if isinstance(item, Branch) else int(self.tree.place[item])

    def end(self, item: Branch | int) -> int:
        return item.end if isinstance(item, Branch) else int(self.tree.place[item]) + 1

    def _folded(self, items: list[Branch | int], kinds: list[int], period: int) -> Branch:
        rounds = len(items) // period
        key = repeat_key(items, rounds, period)
        repeat = Branch("repeat", key, first=self.first(items[0]), end=self.end(items[-1]))
        if period == 1:
            repeat.children = items
        else:
            for index in range(rounds):
                content = items[index * period : (index + 1) * period]
                repeat.children.append(
                    Branch(
                        "round",
                        f"{key}/{index}",
                        call=index + 1,
                        children=content,
                        first=self.first(content[0]),
                        end=self.end(content[-1]),
                    )
                )
        kind = ("repeat", rounds, tuple(kinds[:period]))
        self.branch_kind[id(repeat)] = self._number(kind)
        return repeat


def _mixed(*columns: NDArray[np.int64]) -> NDArray[np.uint64]:
    """A hash of each row (splitmix64). Multisets of rows are compared by the sums of hashes."""
    code = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        code = (code ^ column.astype(np.uint64)) + np.uint64(0x9E3779B97F4A7C15)
        code = (code ^ (code >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        code = (code ^ (code >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        code ^= code >> np.uint64(31)
    return code


def repeat_key(items: list[Branch | int], rounds: int, period: int) -> str:
    """`"layers.[0-11]"` for consecutive numbered modules, else the first item and the count."""
    numbered = numbers_of(items) if period == 1 else None
    if numbered:
        prefix, low, high, call = numbered
        return f"{prefix}{'.' * bool(prefix)}[{low}-{high}]" + (f"@{call}" if call > 1 else "")
    first = items[0]
    return f"[{first.key if isinstance(first, Branch) else f'#{first}'}×{rounds}]"


def numbers_of(items: list[Branch | int]) -> tuple[str, int, int, int] | None:
    """(prefix, first, last, call) if the items are call number `call` of each of the modules
    prefix.first .. prefix.last."""
    found = []
    for item in items:
        if not isinstance(item, Branch) or item.kind != "module":
            return None
        prefix, _, last = item.path.rpartition(".")
        if not last.isdecimal():
            return None
        found.append((prefix, int(last), item.call))
    (prefix, low, call), high = found[0], found[-1][1]
    wanted = [(prefix, number, call) for number in range(low, high + 1)]
    return (prefix, low, high, call) if found == wanted else None
