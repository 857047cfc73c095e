"""The slow parts of showing a graph, as functions of plain data: a view runs them by `Later`."""

from __future__ import annotations

from collections.abc import Mapping

from engine.protocol import GraphSnapshot
from widgets.boxes.boxes import VisibleGraph
from widgets.boxes.facts import GraphFacts
from widgets.boxes.hierarchy import Hierarchy
from widgets.graph.painting.geometry import GraphGeometry
from widgets.graph.painting.link_painter import FAR, FARTHEST
from widgets.layout.outline import Direction, NestedLayout

SMALL_GRAPH_NODES = 60
"""All boxes of a graph with at most this many nodes are open at first."""


def opened(graph: GraphSnapshot) -> tuple[Hierarchy, frozenset[str]]:
    """A graph's boxes, and which of them to open at first."""
    hierarchy = Hierarchy(graph)
    small = len(graph.nodes) <= SMALL_GRAPH_NODES
    return hierarchy, hierarchy.open_all() if small else hierarchy.initial()


def outlined(hierarchy: Hierarchy, open_keys: frozenset[str]) -> VisibleGraph:
    """The visible boxes and links, with the outline for the layout computed."""
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
    """The data to paint, with all links cut into pieces for far zooms. `names` maps ids of blocks
    to names."""
    geometry = GraphGeometry(visible, layout, direction)
    for fineness in (FAR, FARTHEST):
        geometry.prepare(fineness)
    return GraphFacts(graph, visible, names), geometry
