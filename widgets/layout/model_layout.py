"""Layered layout, left to right, by Graphviz dot. Pure and without Qt: runs in a worker process.

`layout_model` is what the model canvas asks for; `layered` serves any graph.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import mean

from engine.project.document import Model

from .blocks import GRID, PORT_LINE, block_size, snap

log = logging.getLogger(__name__)

LAYER_GAP = 96.0
"""Between the columns: room for a shape such as `B×64×28×28` on the wire."""
NODE_GAP = 40.0
MAX_ROWS = 8
POINTS_PER_INCH = 72.0

Point = tuple[float, float]


@dataclass(frozen=True)
class LayoutNode:
    """A node to place: its size in pixels."""

    id: str
    width: float
    height: float


@dataclass(frozen=True)
class Layout:
    """Top left corners in pixels (y down), and for each edge the control points of its cubic
    Bézier spline (3n + 1 points, from the source's edge to the target's; empty where splines were
    not asked for or are not known)."""

    positions: dict[str, Point]
    splines: tuple[tuple[Point, ...], ...]


def layout_model(model: Model, room: Point | None = None) -> dict[str, Point]:
    """Positions for a model's blocks, on the 8-px grid, with the lone ports of a chain in line.

    Given the `room` to be seen in (width, height in pixels), a long model is broken into as many
    rows as show it largest. Raises KeyError for a block of unknown kind.
    """
    sizes = {block.id: block_size(block) for block in model.blocks}
    # Dot lines centres up; blocks line up at the port line. So dot gets boxes centred on it.
    nodes = [
        LayoutNode(key, width, 2 * max(PORT_LINE, height - PORT_LINE))
        for key, (width, height) in sizes.items()
    ]
    half_height = {node.id: node.height / 2 for node in nodes}
    edges = [(wire.source, wire.target) for wire in model.wires]
    placed = layered(nodes, edges).positions
    tops = {
        key: (snap(x), snap(y + half_height[key] - PORT_LINE)) for key, (x, y) in placed.items()
    }
    return _best_rows(tops, sizes, edges, room) if room and tops else tops


def _best_rows(
    positions: dict[str, Point],
    sizes: dict[str, Point],
    edges: Sequence[tuple[str, str]],
    room: Point,
) -> dict[str, Point]:
    """The number of rows at which all is seen largest; more rows only for a sixth more."""

    def extent(placed: dict[str, Point]) -> Point:
        across = max(x + sizes[key][0] for key, (x, _) in placed.items())
        down = max(y + sizes[key][1] for key, (_, y) in placed.items())
        return across, down

    def zoom(placed: dict[str, Point]) -> float:
        across, down = extent(placed)
        return min(room[0] / across, room[1] / down, 1.0)

    best = positions
    for rows in range(2, MAX_ROWS + 1):
        wrapped = wrap(positions, sizes, edges, extent(positions)[0] / rows + LAYER_GAP)
        if zoom(wrapped) > zoom(best) * 7 / 6:
            best = wrapped
    return best


def layered(
    nodes: Sequence[LayoutNode],
    edges: Sequence[tuple[str, str]],
    *,
    direction: str = "LR",
    layer_gap: float = LAYER_GAP,
    node_gap: float = NODE_GAP,
    splines: bool = False,
) -> Layout:
    """Place nodes in layers so that edges run forward (`direction` as in dot: LR or TB).

    Parallel edges and cycles are allowed; an edge to an unknown node raises KeyError.
    """
    known = {node.id for node in nodes}
    for edge in edges:
        for end in edge:
            if end not in known:
                raise KeyError(end)
    if not nodes:
        return Layout({}, ())
    try:
        import pygraphviz
    except ImportError as error:
        log.warning("laying out without Graphviz, which is plainer: %s", error)
        return simple_layered(nodes, edges, direction, layer_gap, node_gap)
    return _dot(pygraphviz, nodes, edges, direction, layer_gap, node_gap, splines)


def _dot(pygraphviz, nodes, edges, direction, layer_gap, node_gap, splines) -> Layout:
    graph = pygraphviz.AGraph(strict=False, directed=True)
    graph.graph_attr.update(
        rankdir=direction,
        ranksep=str(layer_gap / POINTS_PER_INCH),
        nodesep=str(node_gap / POINTS_PER_INCH),
        splines="spline" if splines else "line",
    )
    graph.node_attr.update(shape="box", fixedsize="true", label="")
    graph.edge_attr.update(arrowhead="none")
    # Our own numbers as names: ids are the caller's, and dot reads some strings as syntax.
    number = {node.id: str(index) for index, node in enumerate(nodes)}
    for node in nodes:
        width, height = node.width / POINTS_PER_INCH, node.height / POINTS_PER_INCH
        graph.add_node(number[node.id], width=f"{width:.4f}", height=f"{height:.4f}")
    for index, (source, target) in enumerate(edges):
        graph.add_edge(number[source], number[target], key=str(index))
    graph.layout(prog="dot")

    positions: dict[str, Point] = {}
    for node in nodes:
        x, y = _pair(graph.get_node(number[node.id]).attr["pos"])
        positions[node.id] = (x - node.width / 2, -y - node.height / 2)
    left = min(x for x, _ in positions.values())
    top = min(y for _, y in positions.values())
    positions = {key: (x - left, y - top) for key, (x, y) in positions.items()}
    if not splines:
        return Layout(positions, ((),) * len(edges))
    curves = []
    for index, (source, target) in enumerate(edges):
        text = graph.get_edge(number[source], number[target], key=str(index)).attr["pos"] or ""
        points = [_pair(part) for part in text.split() if part[0] not in "se"]
        curves.append(tuple((x - left, -y - top) for x, y in points))
    return Layout(positions, tuple(curves))


def _pair(text: str) -> Point:
    x, y = text.split(",")
    return float(x), float(y)


def simple_layered(
    nodes: Sequence[LayoutNode],
    edges: Sequence[tuple[str, str]],
    direction: str = "LR",
    layer_gap: float = LAYER_GAP,
    node_gap: float = NODE_GAP,
) -> Layout:
    """Longest-path layers, each sorted by the mean place of its predecessors. No splines."""
    targets: dict[str, list[str]] = defaultdict(list)
    for source, target in edges:
        targets[source].append(target)
    order = _forward_order([node.id for node in nodes], targets)
    rank = {key: index for index, key in enumerate(order)}
    forward = [(s, t) for s, t in edges if rank[s] < rank[t]]  # a cycle's way back has no say
    sources: dict[str, list[str]] = defaultdict(list)
    for source, target in forward:
        sources[target].append(source)
    layer: dict[str, int] = {}
    for key in order:
        layer[key] = 1 + max((layer[source] for source in sources[key]), default=-1)
    layers: dict[int, list[str]] = defaultdict(list)
    for key in order:
        layers[layer[key]].append(key)

    across = direction == "LR"
    size = {n.id: ((n.width, n.height) if across else (n.height, n.width)) for n in nodes}
    middle: dict[str, float] = {}
    placed: dict[str, Point] = {}
    along = 0.0
    for index in sorted(layers):
        keys = layers[index]
        keys.sort(key=lambda key: mean([middle[source] for source in sources[key]] or [0.0]))
        total = sum(size[key][1] for key in keys) + node_gap * (len(keys) - 1)
        center = mean([middle[s] for key in keys for s in sources[key]] or [0.0])
        side = center - total / 2
        for key in keys:
            placed[key] = (along, side)
            middle[key] = side + size[key][1] / 2
            side += size[key][1] + node_gap
        along += max(size[key][0] for key in keys) + layer_gap
    least = min(side for _, side in placed.values())
    positions = {
        key: (along, side - least) if across else (side - least, along)
        for key, (along, side) in placed.items()
    }
    return Layout(positions, ((),) * len(edges))


def _forward_order(keys: Sequence[str], targets: dict[str, list[str]]) -> list[str]:
    """Reverse postorder of a depth-first walk: topological where there is no cycle."""
    seen: set[str] = set()
    postorder: list[str] = []
    for root in reversed(keys):
        if root in seen:
            continue
        seen.add(root)
        stack = [(root, iter(targets[root]))]
        while stack:
            key, rest = stack[-1]
            following = next((each for each in rest if each not in seen), None)
            if following is None:
                postorder.append(key)
                stack.pop()
            else:
                seen.add(following)
                stack.append((following, iter(targets[following])))
    return postorder[::-1]


def wrap(
    positions: dict[str, Point],
    sizes: dict[str, Point],
    edges: Sequence[tuple[str, str]],
    row_width: float,
) -> dict[str, Point]:
    """Break a wide left-to-right layout into rows, as text is broken into lines.

    Cuts between columns, where the fewest edges cross; rows are filled at least by half.
    """
    columns = sorted({x for x, _ in positions.values()})
    crossing = {x: sum(positions[s][0] < x <= positions[t][0] for s, t in edges) for x in columns}
    right = {x: max(x + sizes[k][0] for k, p in positions.items() if p[0] == x) for x in columns}
    starts = [columns[0]] if columns else []
    while starts and right[columns[-1]] - starts[-1] > row_width:
        start = starts[-1]
        cuts = [
            x for before, x in pairwise(columns) if x > start and right[before] - start <= row_width
        ]
        full = [x for x in cuts if x - start >= row_width / 2] or cuts[-1:]
        if not full:
            break
        starts.append(min(full, key=lambda x: (crossing[x], -x)))

    wrapped: dict[str, Point] = {}
    top = 0.0
    for index, start in enumerate(starts):
        end = starts[index + 1] if index + 1 < len(starts) else float("inf")
        row = {key: p for key, p in positions.items() if start <= p[0] < end}
        shift = top - min(y for _, y in row.values())
        for key, (x, y) in row.items():
            wrapped[key] = (x - start, y + shift)
        top = max(wrapped[key][1] + sizes[key][1] for key in row) + 2 * NODE_GAP
        top = snap(top + GRID / 2)
    return wrapped
