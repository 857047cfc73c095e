"""Boxes within boxes: what of a graph is seen while some are open, and what is folded."""

from __future__ import annotations

import gc
from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given
from msgspec import structs

from engine.protocol import GraphEdge, GraphNode, GraphSnapshot, TensorSpec
from tests.engine.autograd.recorded_graphs import recorded, snapshot
from tests.engine.autograd.shaped_models import chain, gpt2, mlp, resnet50, unrolled
from tests.widgets.graph.nested_graph import NESTED
from tests.widgets.graph.random_hierarchies import graphs, opened
from widgets.boxes.boxes import Box, VisibleGraph
from widgets.boxes.hierarchy import LEAST_ZOOM, WINDOW, Hierarchy, shape_text
from widgets.layout.nested_layout import layout_nested


@pytest.fixture(scope="module")
def gpt2_graph() -> GraphSnapshot:
    return recorded(*gpt2())


@pytest.fixture(scope="module")
def resnet_graph() -> GraphSnapshot:
    return recorded(*resnet50())


def keys(visible: VisibleGraph) -> list[str]:
    return [box.key for box in visible.boxes]


def box(visible: VisibleGraph, key: str) -> Box:
    return next(each for each in visible.boxes if each.key == key)


def told(visible: VisibleGraph) -> set[tuple[str, str, int]]:
    """Links as (source, target, number of edges)."""
    name = keys(visible)
    return {(name[link.source], name[link.target], len(link.edges)) for link in visible.links}


# -- properties of any graph, whatever is open -----------------------------------------------------


@given(opened())
def test_each_node_has_one_box(drawn: tuple[Hierarchy, frozenset[str]]) -> None:
    hierarchy, open_keys = drawn
    visible = hierarchy.visible(open_keys)
    shown = [box for box in visible.boxes if not box.open and box.kind != "cut"]
    together = np.concatenate([hierarchy.nodes_in(box.key) for box in shown])
    assert sorted(together) == list(range(len(hierarchy.graph.nodes)))
    for index, box in enumerate(visible.boxes):
        if box.kind != "cut":
            inside = hierarchy.nodes_in(box.key)
            assert box.nodes == len(inside)
            assert box.open or (visible.box_of[inside] == index).all()


@given(opened())
def test_links_partition_the_edges_between_boxes(
    drawn: tuple[Hierarchy, frozenset[str]],
) -> None:
    hierarchy, open_keys = drawn
    visible, edges = hierarchy.visible(open_keys), hierarchy.graph.edges
    of = visible.box_of
    bundled = Counter(place for link in visible.links for place in link.edges)
    crossing = [i for i, edge in enumerate(edges) if of[edge.source] != of[edge.target]]
    assert bundled == Counter(crossing)
    ends = [(link.source, link.target) for link in visible.links]
    assert len(ends) == len(set(ends))
    for link in visible.links:
        for place in link.edges:
            ends = of[edges[place].source], of[edges[place].target]
            assert ends == (link.source, link.target)


@given(opened())
def test_boxes_stand_after_their_parent_in_the_gradients_order(
    drawn: tuple[Hierarchy, frozenset[str]],
) -> None:
    hierarchy, open_keys = drawn
    visible = hierarchy.visible(open_keys)
    boxes = visible.boxes
    assert len(set(keys(visible))) == len(boxes)
    for index, box in enumerate(boxes):
        assert box.parent is None or (box.parent < index and boxes[box.parent].open)
        assert box.open == (box.key in open_keys)
    nodes, edges = hierarchy.graph.nodes, hierarchy.graph.edges
    for link in visible.links:
        if not all(nodes[edges[i].target].kind == "leaf" for i in link.edges):
            assert link.source < link.target


@given(graphs())
def test_all_open_is_the_graph_itself(graph: GraphSnapshot) -> None:
    hierarchy = Hierarchy(graph)
    visible = hierarchy.visible(hierarchy.open_all())
    assert {b.node for b in visible.boxes if b.kind == "node"} == set(range(len(graph.nodes)))
    assert sum(b.kind == "node" for b in visible.boxes) == len(graph.nodes)
    assert sum(b.kind == "cut" for b in visible.boxes) == len(graph.cuts)
    assert all(b.open for b in visible.boxes if b.kind not in ("node", "cut"))
    drawn = Counter(
        (visible.boxes[link.source].node, visible.boxes[link.target].node)
        for link in visible.links
        for _ in link.edges
    )
    assert drawn == Counter((edge.source, edge.target) for edge in graph.edges)


@given(graphs())
def test_keys_to_a_node_show_it_and_none_is_needless(graph: GraphSnapshot) -> None:
    hierarchy = Hierarchy(graph)
    for node in range(len(graph.nodes)):
        path = hierarchy.keys_to(node)
        assert f"#{node}" in keys(hierarchy.visible(path))
        for key in path:
            assert f"#{node}" not in keys(hierarchy.visible(path - {key}))


@given(opened())
def test_links_tell_the_shape_only_where_all_agree(
    drawn: tuple[Hierarchy, frozenset[str]],
) -> None:
    hierarchy, open_keys = drawn
    graph = hierarchy.graph
    for link in hierarchy.visible(open_keys).links:
        edges = [graph.edges[i] for i in link.edges]
        shapes = {shape_text(graph.nodes[e.target].outputs[e.output]) for e in edges}
        assert link.text == (shapes.pop() if len(shapes) == 1 else "")


# -- calls and leaves ------------------------------------------------------------------------------


def test_closed_modules_keep_their_parameters_and_show_cuts_once_open() -> None:
    hierarchy = Hierarchy(NESTED)
    closed = hierarchy.visible(frozenset())
    assert keys(closed) == ["#0", "head", "body"]
    assert [b.nodes for b in closed.boxes] == [1, 2, 4]
    assert told(closed) == {("#0", "head", 1), ("head", "body", 1)}
    body = hierarchy.visible(frozenset({"body", "body.fc"}))
    assert keys(body) == ["#0", "head", "body", "#3", "body.fc", "#4", "!4.0", "#5", "#6"]
    assert told(body) == {
        ("#0", "head", 1),
        ("head", "#3", 1),
        ("#3", "#4", 1),
        ("#4", "!4.0", 0),
        ("#4", "#5", 1),
        ("#5", "#6", 1),
    }
    assert (box(body, "!4.0").title, box(body, "!4.0").subtitle) == ("body.fc.bias", "frozen")
    assert (box(body, "#6").title, box(body, "#6").subtitle) == ("weight", "(8, 8)")
    assert (box(body, "body.fc").title, box(body, "body.fc").subtitle) == ("fc", "Linear")


def test_each_call_of_a_module_is_a_box_of_its_own() -> None:
    class Twice(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = torch.nn.Linear(4, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.fc(self.fc(x).exp())

    model = Twice()
    hierarchy = Hierarchy(recorded(model, lambda: model(torch.ones(2, 4)).sum()))
    visible = hierarchy.visible(frozenset({"net"}))
    assert keys(visible) == ["#0", "net", "net.fc@2", "#3", "net.fc"]
    assert box(visible, "net.fc@2").title == "fc (call 2)"
    # The weights are the first call's: the second uses them from there.
    assert told(visible) == {
        ("#0", "net.fc@2", 1),
        ("net.fc@2", "#3", 1),
        ("net.fc@2", "net.fc", 2),
        ("#3", "net.fc", 1),
    }


def test_block_stands_in_for_a_module() -> None:
    spec = (TensorSpec((2,), "float32"),)
    nodes = [
        GraphNode(i, "MulBackward0", "", "operation", "b1" if i else None, 9 - i, spec)
        for i in range(3)
    ]
    graph = GraphSnapshot(
        nodes=tuple(nodes), edges=(GraphEdge(0, 1, 0, 0), GraphEdge(1, 2, 0, 0)), plan=()
    )
    assert keys(Hierarchy(graph).visible(frozenset())) == ["#0", "b1"]


def test_a_leaf_alone_and_no_graph_at_all() -> None:
    x = torch.ones(3, requires_grad=True)
    assert keys(Hierarchy(snapshot(x.view(3))).visible(frozenset())) == ["#0", "#1"]
    empty = Hierarchy(GraphSnapshot(nodes=(), edges=(), plan=()))
    assert empty.visible(frozenset()).boxes == ()
    assert empty.initial() == frozenset()


# -- repeats ---------------------------------------------------------------------------------------


def test_layers_of_gpt2_fold_into_one_box(gpt2_graph: GraphSnapshot) -> None:
    hierarchy = Hierarchy(gpt2_graph)
    layers = box(hierarchy.visible(frozenset({"net"})), "net.transformer.h.[0-11]")
    assert (layers.kind, layers.title, layers.repeat) == ("repeat", "transformer.h 0–11", 12)
    assert layers.subtitle.startswith("Block · ")
    assert layers.nodes == 12 * len(hierarchy.nodes_in("net.transformer.h.3"))
    opened = hierarchy.visible(frozenset({"net", layers.key}))
    assert [b.key for b in opened.boxes if b.key.startswith("net.transformer.h.")] == [
        layers.key,
        *(f"net.transformer.h.{i}" for i in range(11, -1, -1)),
    ]


def test_stages_of_resnet50_fold_where_bottlenecks_are_alike(resnet_graph: GraphSnapshot) -> None:
    hierarchy = Hierarchy(resnet_graph)
    stages = frozenset({"net"} | {f"net.layer{i}" for i in range(1, 5)})
    boxes = hierarchy.visible(stages).boxes
    inside = [
        b.key.removeprefix("net.")
        for b in boxes
        if b.parent is not None and boxes[b.parent].key in stages - {"net"}
    ]
    assert inside == [
        *("layer4.2", "layer4.1", "layer4.0"),  # two alike are too few to fold
        *("layer3.[1-5]", "layer3.0"),
        *("layer2.[1-3]", "layer2.0"),
        *("layer1.2", "layer1.1", "layer1.0"),
    ]


def test_a_frozen_layer_is_not_folded_with_the_others() -> None:
    model, run = gpt2(layers=8)
    for parameter in model.get_submodule("transformer.h.4").parameters():
        parameter.requires_grad_(False)
    found = keys(Hierarchy(recorded(model, run)).visible(frozenset({"net", "net.transformer.h"})))
    folds = [key for key in found if key.startswith("net.transformer.h.")]
    assert folds == [
        "net.transformer.h.[5-7]",
        "net.transformer.h.4",
        "net.transformer.h.[0-3]",
    ]


def test_a_fold_is_not_called_by_the_variable_of_one_round() -> None:
    graph = snapshot(chain(20))
    nodes = tuple(
        structs.replace(node, label=f"y = {node.op}") if node.kind == "operation" else node
        for node in graph.nodes
    )
    hierarchy = Hierarchy(structs.replace(graph, nodes=nodes))
    total, fold, _ = hierarchy.visible(frozenset()).boxes
    assert (total.title, fold.title, fold.repeat) == ("y = sum", "mul, tanh", 20)
    inside = hierarchy.visible(hierarchy.open_all()).boxes
    assert "y = tanh" in [box.title for box in inside if box.kind == "node"]


def test_a_chain_without_modules_folds_into_rounds() -> None:
    hierarchy = Hierarchy(snapshot(chain(1_000)))
    total, fold, leaf = hierarchy.visible(frozenset()).boxes
    assert (fold.kind, fold.title, fold.repeat, fold.nodes) == ("repeat", "mul, tanh", 1000, 2000)
    assert (total.title, leaf.kind) == ("sum", "node")
    opened = hierarchy.visible(frozenset({fold.key}))
    rounds = [b for b in opened.boxes if b.kind == "round"]
    assert [b.title for b in rounds] == [f"round {i}" for i in range(1000, 0, -1)]
    last = hierarchy.visible(frozenset({fold.key, rounds[0].key}))
    assert [b.title for b in last.boxes if b.kind == "node"] == ["sum", "tanh", "mul", leaf.title]


def test_steps_of_an_unrolled_cell_fold_and_share_its_weights() -> None:
    hierarchy = Hierarchy(recorded(*unrolled(steps=40)))
    visible = hierarchy.visible(frozenset({"net", "net.cell"}))
    (fold,) = [b for b in visible.boxes if b.kind == "repeat"]
    assert fold.repeat == 40
    weights = [b.key for b in visible.boxes if b.title.startswith(("weight_", "bias_"))]
    assert len(weights) == 4
    assert {(fold.key, key, 40) for key in weights} <= told(visible)


def test_layers_that_run_twice_fold_in_each_call() -> None:
    model = torch.nn.Sequential(*(torch.nn.Linear(4, 4) for _ in range(5)))
    outer = torch.nn.ModuleDict({"layers": model})
    x = torch.ones(2, 4)
    graph = recorded(outer, lambda: model(model(x).exp()).sum())
    hierarchy = Hierarchy(graph)
    visible = hierarchy.visible(frozenset())
    # The parameters are the first call's, so its layers are not like those of the second.
    assert [(b.key, b.title) for b in visible.boxes] == [
        ("#0", "sum"),
        ("net.layers.[0-4]@2", "net.layers 0–4 (call 2)"),
        ("#18", "exp"),
        ("net.layers.[0-4]", "net.layers 0–4"),
    ]


def test_layers_of_two_lists_that_take_turns_fold_together() -> None:
    class Turns(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norms = torch.nn.ModuleList(torch.nn.LayerNorm(4) for _ in range(6))
            self.maps = torch.nn.ModuleList(torch.nn.Linear(4, 4) for _ in range(6))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for norm, linear in zip(self.norms, self.maps, strict=True):
                x = x + linear(norm(x))
            return x

    model = Turns()
    hierarchy = Hierarchy(recorded(model, lambda: model(torch.ones(2, 4)).sum()))
    boxes = hierarchy.visible(frozenset({"net"})).boxes
    fold = next(b for b in boxes if b.kind == "repeat")
    assert (fold.title, fold.repeat) == ("LayerNorm, Linear, add", 6)


def test_loops_within_loops_fold_within_each_other() -> None:
    x = torch.ones(3, requires_grad=True)
    y = x
    for _ in range(20):
        for _ in range(15):
            y = y.sin()
        y = y * 2
    hierarchy = Hierarchy(snapshot(y))
    outer = next(b for b in hierarchy.visible(frozenset()).boxes if b.kind == "repeat")
    assert (outer.title, outer.repeat, outer.nodes) == ("sin ×15, mul", 20, 20 * 16)
    a_round = hierarchy.visible(frozenset({outer.key})).boxes[1]
    inner = hierarchy.visible(frozenset({outer.key, a_round.key})).boxes
    assert ("sin", 15) in [(b.title, b.repeat) for b in inner if b.kind == "repeat"]


def test_the_same_operations_wired_otherwise_do_not_fold() -> None:
    x = torch.ones(3, requires_grad=True)
    sums = [x + i for i in range(16)]
    while len(sums) > 1:  # a tree: 16 additions, then 8, 4, 2 and 1 in a row, all called "add"
        sums = [a + b for a, b in zip(sums[::2], sums[1::2], strict=True)]
    visible = Hierarchy(snapshot(sums[0])).visible(frozenset())
    folded = [b.nodes for b in visible.boxes if b.kind == "repeat"]
    assert folded == [16]  # those of x alone are alike


# -- what is opened at first -----------------------------------------------------------------------


@pytest.mark.parametrize("model", [gpt2, resnet50, mlp, unrolled])
def test_the_first_picture_can_be_read_in_a_window(model) -> None:
    hierarchy = Hierarchy(recorded(*model()))
    visible = hierarchy.visible(hierarchy.initial())
    width, height = layout_nested(visible.outline).size
    assert min(WINDOW[0] / width, WINDOW[1] / height) >= LEAST_ZOOM
    assert len(visible.boxes) >= 8


def test_a_small_graph_is_open_at_first_and_so_is_a_model_around_all() -> None:
    hierarchy = Hierarchy(NESTED)
    assert hierarchy.initial() == hierarchy.open_all()
    hierarchy = Hierarchy(recorded(*mlp(layers=12)))
    assert hierarchy.initial() == {"net"}


def test_boxes_and_nodes_are_none_of_the_cycle_collectors_business() -> None:
    """It would hold the window for half a second while it goes through 50,000 of them."""
    graph = recorded(*mlp(layers=2))
    hierarchy = Hierarchy(graph)
    visible = hierarchy.visible(hierarchy.open_all())
    for each in (*graph.nodes, *graph.edges, *visible.boxes, *visible.links):
        assert not gc.is_tracked(each)
    assert not any(gc.is_tracked(spec) for node in graph.nodes for spec in node.outputs)
