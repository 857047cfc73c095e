"""How well boxes within boxes are laid out, beside Graphviz dot with clusters on the same picture:
how often lines cross, how long all of them are together, and width over height.

Wholly open, backward, curves. `whole` is ours without columns, as dot has none; dot leaves no room
for the titles of open boxes, so that its lines are shorter. Lines that have joined, or that share
an end, do not cross each other.
"""

from __future__ import annotations

import json
from math import inf
from time import perf_counter
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from engine.protocol import GraphSnapshot
from tests.engine.autograd.recorded_graphs import recorded
from tests.engine.autograd.shaped_models import gpt2, resnet50, unet, unrolled
from widgets.boxes.boxes import VisibleGraph
from widgets.boxes.hierarchy import Hierarchy
from widgets.layout import columns
from widgets.layout.nested_layout import PADDING, layout_nested
from widgets.layout.outline import NestedLayout

Floats = NDArray[np.float64]
SAME_PX = 2.0
POINTS_PER_INCH = 72.0
STEPS = np.linspace(0, 1, 13)[:, None]


def polyline(points: Floats) -> Floats:
    """The points along a cubic Bézier spline of 3n + 1 control points."""
    a, b, c, d = (points[i::3][: (len(points) - 1) // 3] for i in range(4))
    t = STEPS[1:, None, 0, None]
    along = a * (1 - t) ** 3 + 3 * b * (1 - t) ** 2 * t + 3 * c * (1 - t) * t**2 + d * t**3
    return np.concatenate([points[:1], along.transpose(1, 0, 2).reshape(-1, 2)])


def crossings(lines: list[Floats], ends: list[tuple[int, int]]) -> int:
    """At how many points lines cross that share no end; several that have joined are one there."""
    low = np.array([line.min(axis=0) for line in lines])
    high = np.array([line.max(axis=0) for line in lines])
    found: list[Floats] = [np.zeros((0, 2))]
    for i, line in enumerate(lines):
        near = (low[i + 1 :] < high[i]).all(axis=1) & (high[i + 1 :] > low[i]).all(axis=1)
        for j in (np.flatnonzero(near) + i + 1).tolist():
            if not set(ends[i]) & set(ends[j]):
                found.append(_cross(line, lines[j]))
    return len(np.unique(np.round(np.concatenate(found) / SAME_PX), axis=0))


def _cross(one: Floats, other: Floats) -> Floats:
    """The points where two polylines cross strictly."""

    def area(a: Floats, b: Floats, c: Floats) -> Floats:
        u, v = b - a, c - a
        return np.round(u[..., 0] * v[..., 1] - u[..., 1] * v[..., 0], 3)

    a, b = one[:-1, None], one[1:, None]
    c, d = other[None, :-1], other[None, 1:]
    from_one, to_one = area(c, d, a), area(c, d, b)
    crossed = (from_one * to_one < 0) & (area(a, b, c) * area(a, b, d) < 0)
    i, j = np.nonzero(crossed)
    part = (from_one[i, j] / (from_one[i, j] - to_one[i, j]))[:, None]
    return one[i] + (one[i + 1] - one[i]) * part


def figures(name: str, lines: list[Floats], ends: list[tuple[int, int]], size) -> dict[str, float]:
    length = sum(float(np.hypot(*np.diff(line, axis=0).T).sum()) for line in lines)
    width, height = size
    return {
        f"{name}_crossings": crossings(lines, ends),
        f"{name}_length_kpx": round(length / 1e3),
        f"{name}_shape": round(width / height, 3),
    }


def ours(visible: VisibleGraph) -> tuple[NestedLayout, list[Floats]]:
    layout = layout_nested(visible.outline)
    return layout, [polyline(layout.route(i)) for i in range(len(visible.links))]


def dot(visible: VisibleGraph) -> tuple[list[Floats], tuple[float, float]]:
    """The same boxes, open ones as clusters, by dot with splines."""
    import pygraphviz  # pyright: ignore[reportMissingImports]

    graph = pygraphviz.AGraph(strict=False, directed=True)
    graph.graph_attr.update(rankdir="TB", ranksep="0.45", nodesep="0.33", splines="spline")
    graph.node_attr.update(shape="box", fixedsize="true", label="")
    graph.edge_attr.update(arrowhead="none")
    around: dict[int | None, Any] = {None: graph}
    for index, box in enumerate(visible.boxes):
        parent = around[box.parent]
        if box.open:
            around[index] = parent.add_subgraph(name=f"cluster{index}", margin=str(PADDING))
        else:
            width, height = (side / POINTS_PER_INCH for side in box.size)
            parent.add_node(str(index), width=f"{width:.4f}", height=f"{height:.4f}")
    for number, link in enumerate(visible.links):
        graph.add_edge(str(link.source), str(link.target), key=str(number))
    graph.layout(prog="dot")
    lines = []
    for number, link in enumerate(visible.links):
        text = graph.get_edge(str(link.source), str(link.target), key=str(number)).attr["pos"]
        pairs = [part.split(",") for part in text.split() if part[0] not in "se"]
        lines.append(polyline(np.array([(float(x), -float(y)) for x, y in pairs])))
    every = np.concatenate(lines)
    return lines, tuple(np.ptp(every, axis=0).tolist())


def measure(title: str, graph: GraphSnapshot) -> dict[str, float | int | str]:
    hierarchy = Hierarchy(graph)
    visible = hierarchy.visible(hierarchy.open_all())
    ends = [(link.source, link.target) for link in visible.links]
    row: dict[str, float | int | str] = {
        "bench": "graph_quality",
        "graph": title,
        "boxes": len(visible.boxes),
        "links": len(ends),
    }
    layout, lines = ours(visible)
    row |= figures("columns", lines, ends, layout.size)
    with patch.object(columns, "COLUMN_HEIGHT", inf):
        layout, lines = ours(visible)
    row |= figures("whole", lines, ends, layout.size)
    started = perf_counter()
    try:
        lines, size = dot(visible)
    except ImportError:
        return row
    row["dot_ms"] = (perf_counter() - started) * 1e3
    return row | figures("dot", lines, ends, size)


def main() -> None:
    for title, make in {
        "ResNet-50": resnet50,
        "GPT-2, 12 layers": gpt2,
        "U-Net": unet,
        "RNN, 30 steps": lambda: unrolled(30),
    }.items():
        print(json.dumps(measure(title, recorded(*make()))), flush=True)


if __name__ == "__main__":
    main()
