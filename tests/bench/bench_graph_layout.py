"""Boxes within boxes laid out: the time of each stage, closed (as it opens) and wholly open."""

from __future__ import annotations

import json
import pickle
import statistics
from collections.abc import Callable
from time import perf_counter

from engine.protocol import GraphSnapshot
from tests.engine.autograd.recorded_graphs import recorded, snapshot
from tests.engine.autograd.shaped_models import chain, gpt2, resnet50
from widgets.boxes.boxes import VisibleGraph
from widgets.boxes.hierarchy import Hierarchy
from widgets.layout.nested_layout import layout_nested

ROUNDS = 5


def median_ms(run: Callable[[], object]) -> float:
    times = []
    for _ in range(ROUNDS + 1):  # the first warms up
        started = perf_counter()
        kept = run()
        times.append((perf_counter() - started) * 1e3)
        del kept
    return statistics.median(times[1:])


def measure(title: str, graph: GraphSnapshot) -> dict[str, float | int | str]:
    hierarchy = Hierarchy(graph)
    first, every = hierarchy.initial(), hierarchy.open_all()
    closed, opened = hierarchy.visible(first), hierarchy.visible(every)
    sent: VisibleGraph = pickle.loads(pickle.dumps(opened))
    row: dict[str, float | int | str] = {
        "bench": "graph_layout",
        "graph": title,
        "nodes": len(graph.nodes),
        "boxes_at_first": len(closed.boxes),
        "boxes_open": len(opened.boxes),
        "build_ms": median_ms(lambda: Hierarchy(graph)),
        "initial_ms": median_ms(hierarchy.initial),
        "layout_at_first_ms": median_ms(lambda: layout_nested(closed.outline)),
        "visible_open_ms": median_ms(lambda: hierarchy.visible(every)),
        "send_open_ms": median_ms(lambda: pickle.loads(pickle.dumps(opened))),
        "layout_open_ms": median_ms(lambda: layout_nested(sent.outline)),
    }
    return row


def main() -> None:
    for title, make in {
        "ResNet-50": lambda: recorded(*resnet50()),
        "GPT-2, 12 layers": lambda: recorded(*gpt2()),
        "GPT-2, 200 layers": lambda: recorded(*gpt2(200)),
        "GPT-2, 800 layers": lambda: recorded(*gpt2(800)),
        "chain of 1,000 layers": lambda: snapshot(chain(1_000)),
        "chain of 12,500 layers": lambda: snapshot(chain(12_500)),
    }.items():
        print(json.dumps(measure(title, make())), flush=True)


if __name__ == "__main__":
    main()
