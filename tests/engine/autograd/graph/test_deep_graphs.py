"""Guards on deep graphs: which nodes have one, what each holds, in which order it lets go."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from engine.autograd import read_graph
from engine.autograd.graph.deep_graphs import GUARDED_NODES, Guard

GUARD = "tensorlab_guard"


def guarded(nodes: list[Any]) -> list[int]:
    return [place for place, node in enumerate(nodes) if GUARD in node.fn.metadata]


def chain(length: int) -> torch.Tensor:
    y = torch.ones((), requires_grad=True)
    for _ in range(length):
        y = y * 1.0
    return y


@pytest.mark.parametrize(("operations", "guards"), [
    (GUARDED_NODES - 1, []),  # with the leaf just as many nodes as a small graph has
    (GUARDED_NODES, [0]),
    (GUARDED_NODES + 1, [0, GUARDED_NODES]),
    (2 * GUARDED_NODES + 1, [0, GUARDED_NODES, 2 * GUARDED_NODES]),
])  # fmt: skip
def test_every_thousandth_node_of_a_deep_graph_has_a_guard(
    operations: int, guards: list[int]
) -> None:
    y = chain(operations)
    graph = read_graph(y)
    assert len(graph.nodes) == operations + 1
    assert guarded(graph.nodes) == guards
    first = [graph.nodes[place].fn.metadata[GUARD] for place in guards]
    assert guarded(read_graph(y).nodes) == guards  # reading again changes none
    assert [graph.nodes[place].fn.metadata[GUARD] for place in guards] == first


def test_guards_follow_the_order_in_which_nodes_were_made() -> None:
    """Two chains are read in turns; their nodes were made one chain after the other."""
    half = GUARDED_NODES // 2 + 10
    first, second = chain(half), chain(half)
    graph = read_graph([first, second])
    newest = max((n for n in graph.nodes if not n.is_leaf), key=lambda n: n.sequence)
    by_age = sorted((n for n in graph.nodes if not n.is_leaf), key=lambda n: -n.sequence)
    with_guards = [by_age.index(graph.nodes[place]) for place in guarded(graph.nodes)]
    assert newest is by_age[0] and sorted(with_guards) == [0, GUARDED_NODES]


def test_a_guard_frees_the_newest_first() -> None:
    freed: list[int] = []

    class Held:
        def __init__(self, number: int) -> None:
            self.number = number

        def __del__(self) -> None:
            freed.append(self.number)

    guard = Guard([Held(number) for number in range(4)])
    assert freed == []
    del guard
    assert freed == [0, 1, 2, 3]
