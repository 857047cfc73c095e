"""The words of a picture: of autograd's graph, or of a program's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from engine.protocol import GraphSnapshot
from engine.protocol.autograd_snapshots import GraphOf


class GraphWords(NamedTuple):
    """`leaf` and `leaves` are the nodes that nothing in the graph computes. `gives` stands before
    the shapes of a node's outputs, `inside` is the tooltip of a module's box. `filters` are those
    that can find a node, by their keys (see `finder`); None: all, with their own names."""

    leaf: str
    leaves: str
    gives: str
    inside: str
    direction: str
    paths: str
    legend: tuple[tuple[str, str], ...]
    filters: Mapping[str, str] | None = None


WORDS: dict[GraphOf, GraphWords] = {
    "autograd": GraphWords(
        leaf="leaf",
        leaves="leaves",
        gives="Takes a gradient of",
        inside="The nodes that this module's forward recorded",
        direction="Direction: off, the loss is at the top and arrows go the gradient's way; on, the"
        " leaves are and arrows go the way of the data",
        paths="Paths: highlight the ways from the selected box to the loss and to the leaves",
        legend=(("intermediate", "operation"), ("leaf", "leaf: parameter"), ("text", "cut")),
    ),
    "program": GraphWords(
        leaf="weight or input",
        leaves="weights and inputs",
        gives="Gives",
        inside="The operations that the program runs in this module",
        direction="Direction: on, the inputs are at the top and arrows go the way of the data; off,"
        " the outputs are at the top and arrows go from each operation to what it takes",
        paths="Paths: highlight the ways from the selected box to the inputs and to the outputs",
        legend=(("intermediate", "operation"), ("leaf", "weight or input")),
        filters={"all": "Everything", "leaves": "Weights and inputs only"},
    ),
}


def words_of(graph: GraphSnapshot | None) -> GraphWords:
    """The words for a graph; without one, those for autograd's."""
    return WORDS["autograd" if graph is None else graph.of]


def leaves_of(leaves: int, words: GraphWords = WORDS["autograd"]) -> str:
    """`12 leaves`"""
    return f"{leaves:,} {words.leaf if leaves == 1 else words.leaves}"
