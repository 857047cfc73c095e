"""Reading a graph against a bare walk of `next_functions` that keeps nodes and edges."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable
from time import perf_counter
from typing import Any

import torch

from engine.autograd import read_graph

from .bench_backward import make_loss

ROUNDS = 15


def bare_walk(loss: torch.Tensor) -> tuple[list[Any], list[tuple[Any, Any]]]:
    nodes, edges, seen = [loss.grad_fn], [], {loss.grad_fn}
    for fn in nodes:
        for below, _ in fn.next_functions:  # type: ignore[union-attr]
            if below is None:
                continue
            edges.append((fn, below))
            if below not in seen:
                seen.add(below)
                nodes.append(below)
    return nodes, edges


def chain(length: int) -> torch.Tensor:
    y = torch.ones((), requires_grad=True)
    for _ in range(length):
        y = y * 1.0
    return y


def measure(title: str, make: Callable[[], torch.Tensor]) -> dict[str, float | int | str]:
    ours_ms: list[float] = []
    walk_ms: list[float] = []
    nodes = 0
    for turn in range(ROUNDS + 1):  # the first round warms up
        for ours in (True, False) if turn % 2 else (False, True):
            loss = make()  # anew: a graph that was walked once is walked faster
            started = perf_counter()
            found = read_graph(loss) if ours else bare_walk(loss)
            took_ms = (perf_counter() - started) * 1e3
            (ours_ms if ours else walk_ms).append(took_ms)
            nodes = len(found.nodes) if ours else nodes  # type: ignore[union-attr]
            del found
    ratios = [a / b for a, b in zip(ours_ms[1:], walk_ms[1:], strict=True)]
    return {
        "bench": "graph",
        "graph": title,
        "nodes": nodes,
        "read_ms": statistics.median(ours_ms[1:]),
        "walk_ms": statistics.median(walk_ms[1:]),
        "read_over_walk": statistics.median(ratios),
    }


def main() -> None:
    torch.set_num_threads(1)
    for title, make in {
        "MLP of 3 layers": lambda: make_loss(3),
        "MLP of 300 layers": lambda: make_loss(300),
        "chain of 1,000": lambda: chain(1_000),
        "chain of 10,000": lambda: chain(10_000),
    }.items():
        print(json.dumps(measure(title, make)), flush=True)


if __name__ == "__main__":
    main()
