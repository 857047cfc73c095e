"""Texts on the nodes of a pass's graph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from engine.protocol import GraphNode, GraphSnapshot, NodeStep
from widgets.boxes.facts import FREED, node_title, stale_words
from widgets.boxes.operation_words import rule
from widgets.text import format_bytes


@dataclass(frozen=True)
class NodeWords:
    """The texts for one graph; `names` are the blocks' names by id."""

    graph: GraphSnapshot
    names: Mapping[str, str]

    def node(self, node: int) -> GraphNode | None:
        """The node, or None if the snapshot leaves it out: a very large graph is truncated."""
        return self.graph.nodes[node] if node < len(self.graph.nodes) else None

    def title(self, node: int) -> str:
        """The node's name, and the block that it belongs to."""
        info = self.node(node)
        if info is None:
            return f"Node {node}"
        text = node_title(info)
        return f"{text} · {self.names.get(info.block, info.block)}" if info.block else text

    def about(self, node: int) -> str:
        """The node's rule, its saved tensors, and which of these are stale."""
        info = self.node(node)
        if info is None:
            return "This node lies beyond the part of the graph that is shown."
        words = rule(info, self.graph)
        if info.saved_bytes:
            words += f" Keeps {format_bytes(info.saved_bytes)} from forward."
        faults = [stale_words(save) for save in self.graph.stale if save.node == node]
        for fault in (*faults, *([FREED] if info.freed else ())):
            words += f" {fault}."
        return words

    def about_step(self, step: NodeStep) -> str:
        """`about` a node that has run in this step, with the hooks and edits of its gradients."""
        words = [self.about(step.node)]
        if step.edited:
            words.append("The incoming gradient is your edit.")
        if step.hooks:
            words.append(f"Hooks: {step.hooks}.")
        return " ".join(words)
