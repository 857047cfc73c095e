"""What takes long in showing a graph, as functions of plain data: a view has it done `Later`."""

from __future__ import annotations

from collections.abc import Mapping

from engine.protocol import GraphSnapshot
from widgets.boxes.boxes import VisibleGraph
from widgets.boxes.hierarchy import Hierarchy
from widgets.graph.facts import GraphFacts
from widgets.graph.geometry import GraphGeometry
from widgets.graph.link_painter import FAR, FARTHEST
from widgets.layout import Direction, NestedLayout

SMALL_GRAPH_NODES = 60
"""A graph of no more nodes opens wholly."""


def opened(graph: GraphSnapshot) -> tuple[Hierarchy, frozenset[str]]:
    """A graph's boxes, and which of them to open at first."""
    hierarchy = Hierarchy(graph)
    small = len(graph.nodes) <= SMALL_GRAPH_NODES
    return hierarchy, hierarchy.open_all() if small else hierarchy.initial()


def outlined(hierarchy: Hierarchy, open_keys: frozenset[str]) -> VisibleGraph:
    """What is seen, with the outline ready that the layout asks for."""
    visible = hierarchy.visible(open_keys)
    _ = visible.outline
    return visible


def picture(
    graph: GraphSnapshot,
    names: Mapping[str, str],
    visible: VisibleGraph,
    layout: NestedLayout,
    direction: Direction,
) -> tuple[GraphFacts, GraphGeometry]:
    """What is painted, with all links ready to be seen from afar. `names` are the blocks' by id."""
    geometry = GraphGeometry(visible, layout, direction)
    for fineness in (FAR, FARTHEST):
        geometry.prepare(fineness)
    return GraphFacts(graph, visible, names), geometry
