"""The layout: nothing overlaps, edges run forward, the fallback does as well."""

from __future__ import annotations

import logging
import random
import sys
from itertools import combinations

import pytest

from engine.project.document import Model
from tests.widgets.small_model import SMALL_MODEL
from widgets.layout import GRID, block_size, model_layout
from widgets.layout.model_layout import LayoutNode, layered, layout_model, simple_layered, wrap


def random_graph(seed: int, acyclic: bool = True):
    rng = random.Random(seed)
    count = rng.randint(2, 30)
    nodes = [
        LayoutNode(f"n {index}", rng.choice([80, 192, 240]), rng.choice([40, 72, 136]))
        for index in range(count)
    ]
    edges = []
    for _ in range(rng.randint(0, 2 * count)):
        first, second = sorted(rng.sample(range(count), 2))
        if not acyclic and rng.random() < 0.3:
            first, second = second, first
        edges.append((nodes[first].id, nodes[second].id))
    rng.shuffle(nodes)
    return nodes, edges


def overlapping(positions, sizes):
    boxes = {key: (x, y, x + sizes[key][0], y + sizes[key][1]) for key, (x, y) in positions.items()}
    return [
        (one, other)
        for (one, a), (other, b) in combinations(boxes.items(), 2)
        if a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]
    ]


@pytest.mark.parametrize("place", [layered, simple_layered])
@pytest.mark.parametrize("seed", range(12))
def test_no_overlap_and_edges_forward(place, seed):
    nodes, edges = random_graph(seed)
    result = place(nodes, edges)
    sizes = {node.id: (node.width, node.height) for node in nodes}
    assert result.positions.keys() == sizes.keys()
    assert not overlapping(result.positions, sizes)
    for source, target in edges:
        right = result.positions[source][0] + sizes[source][0]
        assert right < result.positions[target][0]
    assert min(x for x, _ in result.positions.values()) == pytest.approx(0, abs=0.01)
    assert min(y for _, y in result.positions.values()) == pytest.approx(0, abs=0.01)


@pytest.mark.parametrize("place", [layered, simple_layered])
def test_cycles_and_parallel_edges_do_no_harm(place):
    nodes, edges = random_graph(3, acyclic=False)
    edges += [edges[0], edges[0], (edges[0][1], edges[0][0]), (nodes[0].id, nodes[0].id)]
    result = place(nodes, edges)
    assert not overlapping(result.positions, {n.id: (n.width, n.height) for n in nodes})
    assert len(result.splines) == len(edges)


def test_splines_join_their_nodes():
    nodes, edges = random_graph(5)
    result = layered(nodes, edges, splines=True)
    sizes = {node.id: (node.width, node.height) for node in nodes}
    for (source, target), curve in zip(edges, result.splines, strict=True):
        assert len(curve) % 3 == 1
        for key, (px, py) in ((source, curve[0]), (target, curve[-1])):
            (x, y), (width, height) = result.positions[key], sizes[key]
            assert x - 2 <= px <= x + width + 2 and y - 2 <= py <= y + height + 2


def test_top_down():
    nodes = [LayoutNode(key, 100, 40) for key in "ab"]
    for place in (layered, simple_layered):
        positions = place(nodes, [("a", "b")], direction="TB").positions
        assert positions["a"][1] + 40 < positions["b"][1]


def test_unknown_ends_are_an_error():
    with pytest.raises(KeyError, match="ghost"):
        layered([LayoutNode("a", 10, 10)], [("a", "ghost")])


def test_without_graphviz_the_reason_is_logged(monkeypatch, caplog):
    monkeypatch.setitem(sys.modules, "pygraphviz", None)
    nodes, edges = random_graph(1)
    with caplog.at_level(logging.WARNING, model_layout.__name__):
        assert layered(nodes, edges) == simple_layered(nodes, edges)
    assert "without Graphviz" in caplog.text


def test_model_lies_on_the_grid_with_straight_chains() -> None:
    model = SMALL_MODEL
    positions = layout_model(model)
    sizes = {block.id: block_size(block) for block in model.blocks}
    assert not overlapping(positions, sizes)
    assert all(x % GRID == 0 and y % GRID == 0 for x, y in positions.values())
    assert len({positions[key][1] for key in ("x", "a", "b", "out")}) == 1
    assert positions["x"][0] < positions["a"][0] < positions["b"][0] < positions["out"][0]


def test_empty_model():
    assert layout_model(Model()) == {}
    assert layout_model(Model(), room=(800, 600)) == {}


def test_room_breaks_a_long_model_into_rows() -> None:
    model = SMALL_MODEL
    sizes = {block.id: block_size(block) for block in model.blocks}
    one_row = layout_model(model, room=(4000, 700))
    assert one_row == layout_model(model)
    rows = layout_model(model, room=(600, 600))
    assert not overlapping(rows, sizes)
    assert max(x for x, _ in rows.values()) < max(x for x, _ in one_row.values())
    assert all(x % GRID == 0 and y % GRID == 0 for x, y in rows.values())


def test_wrap_cuts_where_fewest_wires_cross():
    positions = {str(i): (i * 200.0, 0.0) for i in range(6)}
    sizes = dict.fromkeys(positions, (100.0, 72.0))
    chain = [(str(i), str(i + 1)) for i in range(5)]
    wrapped = wrap(positions, sizes, [*chain, ("2", "4")], row_width=750)
    first_row = {key for key, (_, y) in wrapped.items() if y == 0}
    assert first_row == {"0", "1"}, "a cut after 2 or 3 would cross the skip connection"
