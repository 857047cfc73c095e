"""One level of boxes laid out, beside fast-sugiyama on the same edges: CPU time, in turns.

python -m tests.bench.bench_level
"""

from __future__ import annotations

import importlib.util
import json
import statistics
from collections.abc import Callable
from time import process_time
from typing import Any

from engine.protocol import GraphSnapshot
from tests.engine.autograd.recorded_graphs import snapshot
from tests.engine.autograd.shaped_models import gpt2
from widgets.layout import without_collection
from widgets.layout.level import Level, LevelEdge, place_level

ROUNDS = 5
SIZE = (120.0, 32.0)


def edges_of(graph: GraphSnapshot) -> list[tuple[int, int]]:
    """The edges without parallels, of nodes numbered so that each runs from an earlier one to a
    later one."""
    order = sorted(graph.nodes, key=lambda node: (node.kind == "leaf", -node.sequence))
    place = {node.id: at for at, node in enumerate(order)}
    return sorted({(place[edge.source], place[edge.target]) for edge in graph.edges})


def fast_sugiyama(edges: list[tuple[int, int]]) -> object:
    from fast_sugiyama import from_edges  # pyright: ignore[reportMissingImports]

    return list(from_edges(edges))


def seconds(act: Callable[[Any], object], argument: object) -> float:
    with without_collection():  # as in the process that lays out
        started = process_time()
        kept = act(argument)
        took_s = process_time() - started
        del kept
    return took_s


def main() -> None:
    with_peer = importlib.util.find_spec("fast_sugiyama") is not None
    for layers in (8, 32, 160):
        graph = snapshot(gpt2(layers)[1]())
        edges = edges_of(graph)
        middle = SIZE[0] / 2
        ends = tuple(LevelEdge(upper, lower, middle, middle) for upper, lower in edges)
        level = Level((SIZE,) * len(graph.nodes), ends)
        ours, theirs = [], []
        for _ in range(ROUNDS + 1):  # the first warms up
            ours.append(seconds(place_level, level))
            if with_peer:
                theirs.append(seconds(fast_sugiyama, edges))
        row: dict[str, float | int | str] = {"bench": "level", "nodes": len(graph.nodes)}
        row["level_ms"] = statistics.median(ours[1:]) * 1e3
        if with_peer:
            pairs = zip(ours[1:], theirs[1:], strict=True)
            row["fast_sugiyama_ms"] = statistics.median(theirs[1:]) * 1e3
            row["level_over_fast_sugiyama"] = statistics.median(a / b for a, b in pairs)
        else:
            row["fast_sugiyama"] = "not installed: make bench, or pip install -e '.[bench]'"
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
