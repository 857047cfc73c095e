"""Where the nodes of an autograd graph go. Pure: it runs in the layout worker, without Qt."""

from __future__ import annotations

from dataclasses import dataclass

from engine.protocol import GraphSnapshot
from widgets.canvas.layout import LayoutNode, Point, layered, simple_layered

NODE_WIDTH = 184.0
NODE_HEIGHT = 44.0
LAYER_GAP = 40.0
NODE_GAP = 24.0
SPLINES_MAX_NODES = 500
"""Beyond this many nodes dot takes seconds: plain layers and straight lines instead."""


@dataclass(frozen=True)
class GraphLayout:
    """Top left corners by node id, in scene pixels, y down; for each edge, in the snapshot's
    order, the control points of its cubic Bézier spline (3n + 1; empty: a straight line)."""

    positions: dict[int, Point]
    splines: tuple[tuple[Point, ...], ...]


def layout_graph(graph: GraphSnapshot) -> GraphLayout:
    """Layers from the root at the top to the leaves at the bottom."""
    nodes = [LayoutNode(str(node.id), NODE_WIDTH, NODE_HEIGHT) for node in graph.nodes]
    edges = [(str(edge.source), str(edge.target)) for edge in graph.edges]
    if len(nodes) <= SPLINES_MAX_NODES:
        placed = layered(
            nodes, edges, direction="TB", layer_gap=LAYER_GAP, node_gap=NODE_GAP, splines=True
        )
    else:
        placed = simple_layered(nodes, edges, "TB", LAYER_GAP, NODE_GAP)
    positions = {int(key): point for key, point in placed.positions.items()}
    return GraphLayout(positions, placed.splines)
