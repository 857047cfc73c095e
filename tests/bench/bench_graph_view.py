"""Frames of the autograd graph's picture while one pans and zooms, with all of its boxes open.

Two pictures: a GPT-2-shaped model of as many layers as it takes, laid out as the program does, and
a square of as many nodes with two curved links each, where the most is in view at once. Zooms:
near (100 %), legible (50 %: the most boxes that have words), middle (25 %: plain boxes and curves)
and whole (all in view). A frame is a pan by a
few pixels, or a zoom by 2 %, until everything dirty is painted into the window of 1440 by 900 by
Qt's raster engine.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable
from time import perf_counter, process_time

import numpy as np
from PySide6.QtCore import QPoint
from PySide6.QtWidgets import QApplication

from engine.protocol import GraphEdge, GraphNode, GraphSnapshot, TensorSpec
from tests.engine.autograd.recorded_graphs import recorded
from tests.engine.autograd.shaped_models import gpt2
from widgets.boxes.boxes import NODE_HEIGHT, NODE_WIDTH, VisibleGraph
from widgets.graph import picture as graph_picture
from widgets.graph.view import GraphView
from widgets.layout.nested_layout import layout_nested
from widgets.layout.outline import NestedLayout

FRAMES = 60
ZOOMS = {"near": 1.0, "legible": 0.5, "middle": 0.25, "whole": None}
NODES_PER_LAYER = 62
GAP_X, GAP_Y = 208.0, 84.0
SPEC = (TensorSpec((64, 128), "float32"),)


def gpt2_view(count: int) -> GraphView:
    model, run = gpt2(max(count // NODES_PER_LAYER, 1))
    graph = recorded(model, run)
    view = GraphView()
    view.layout_requested.connect(
        lambda v, d, s: view.show_layout(v, layout_nested(v.outline, d, s))
    )
    view.show_graph(graph)
    view.open_all()
    return view


def square_view(count: int) -> GraphView:
    """As many rows as columns; each node leads to the one below it and to a neighbour of that."""
    side = round(count**0.5)
    nodes = tuple(
        GraphNode(i, f"Mul{i}Backward0", "", "operation", None, count - i, SPEC, op=f"mul{i}")
        for i in range(side * side)
    )
    edges = tuple(
        GraphEdge(i, below, place, 0)
        for i in range(side * side - side)
        for place, below in enumerate((i + side, i // side * side + (i + 1) % side + side))
    )
    graph = GraphSnapshot(nodes=nodes, edges=edges, plan=tuple(range(side * side)))
    view = GraphView()
    view.layout_requested.connect(lambda v, d: view.show_layout(v, square_layout(v, side)))
    view.show_graph(graph)
    return view


def square_layout(visible: VisibleGraph, side: int) -> NestedLayout:
    ids = np.array([box.node for box in visible.boxes])
    corners = np.stack([ids % side * GAP_X, ids // side * GAP_Y], axis=1)
    sizes = np.broadcast_to([NODE_WIDTH, NODE_HEIGHT], corners.shape)
    pairs = np.array([(link.source, link.target) for link in visible.links])
    start = corners[pairs[:, 0]] + (NODE_WIDTH / 2, NODE_HEIGHT)
    end = corners[pairs[:, 1]] + (NODE_WIDTH / 2, 0.0)
    bend = (0.0, (GAP_Y - NODE_HEIGHT) / 2)
    points = np.stack([start, start + bend, end - bend, end], axis=1).reshape(-1, 2)
    return NestedLayout(
        np.concatenate([corners, sizes], axis=1),
        points,
        np.arange(len(pairs) + 1) * 4,
        True,
        (side * GAP_X, side * GAP_Y),
    )


def frame_ms(change: Callable[[], None]) -> tuple[float, float]:
    """(time by the clock, time of the processor: what a busy machine does not add to)"""
    started, worked = perf_counter(), process_time()
    change()
    QApplication.processEvents()
    return (perf_counter() - started) * 1e3, (process_time() - worked) * 1e3


def figures(name: str, frames: list[tuple[float, float]]) -> dict[str, float]:
    times_ms, work_ms = zip(*frames, strict=True)
    return {
        f"{name}_median_ms": statistics.median(times_ms),
        f"{name}_p95_ms": statistics.quantiles(times_ms, n=20)[-1],
        f"{name}_cpu_median_ms": statistics.median(work_ms),
        f"{name}_cpu_p95_ms": statistics.quantiles(work_ms, n=20)[-1],
    }


def measure(picture: str, count: int, view: GraphView) -> list[dict]:
    view.resize(1440, 900)
    view.show()
    QApplication.processEvents()
    rows = []
    for name, zoom in ZOOMS.items():
        if zoom is None:
            view.fit()
        else:
            center = view.content_rect().center()
            view.set_view(zoom, center.x(), center.y())
        QApplication.processEvents()
        pans = [
            frame_ms(lambda i=i: view.pan_by(QPoint(7, -11) if i % 20 < 10 else QPoint(-7, 11)))
            for i in range(FRAMES)
        ]
        zooms = [
            frame_ms(lambda i=i: view.zoom_by(1.02 if i % 20 < 10 else 1 / 1.02))
            for i in range(FRAMES)
        ]
        row = {"bench": "graph_view", "picture": picture, "nodes": count, "zoom": name}
        rows.append(row | figures("pan", pans) | figures("zoom", zooms))
    return rows


def main() -> None:
    application = QApplication([])
    graph_picture.AT_ONCE_NODES = 100_000  # how long that takes is told by bench_graph_opening
    for picture, make in (("gpt2", gpt2_view), ("square", square_view)):
        for count in (500, 2_000, 10_000, 50_000):
            for row in measure(picture, count, make(count)):
                print(json.dumps(row), flush=True)
    application.quit()


if __name__ == "__main__":
    main()
