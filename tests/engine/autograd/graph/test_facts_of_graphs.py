"""Small facts of graphs: what made a tensor, why a gradient is missing, what is left in parts."""

from __future__ import annotations

import gc

import pytest
import torch
from torch import Tensor, nn

from engine.autograd import read_graph
from engine.autograd.graph.forward_values import ForwardValues
from engine.autograd.graph.hooks import hooks_on
from engine.autograd.graph.inputs import above, wanted_from
from engine.autograd.graph.large_snapshots import in_parts
from engine.autograd.graph.missing import MissingGradients, why_of_itself
from engine.autograd.graph.provenance import Provenance
from engine.autograd.graph.snapshot import graph_snapshots, title
from engine.autograd.graph.without_collection import without_collection
from engine.protocol import GraphCut, SourceLine
from engine.tensors.made_by import made_by

# -- what made a tensor ----------------------------------------------------------------------------


def moved(t: Tensor, times: int) -> Tensor:
    for _ in range(times):
        t = t.t()
    return t


def test_what_made_the_numbers_is_found_behind_seven_moves() -> None:
    x = torch.ones(2, 2, requires_grad=True)
    assert made_by(x) == ""
    assert made_by(x.softmax(0)) == made_by(moved(x.softmax(0), 7)) == "SoftmaxBackward0"
    assert made_by(moved(x.softmax(0), 8)) == ""
    index = torch.tensor([0, 1])
    several = x.sigmoid()[index].view(4).unsqueeze(0).expand(2, 4).clone()[:, 1]
    assert made_by(several) == "SigmoidBackward0"
    assert made_by(torch.stack([x.exp(), x])) == "StackBackward0"


# -- Python's collector ----------------------------------------------------------------------------


def test_the_collector_is_paused_and_is_then_as_it_was() -> None:
    assert not gc.isenabled()  # as in all tests
    with without_collection():
        pass
    assert not gc.isenabled()
    gc.enable()
    try:
        with without_collection():
            assert not gc.isenabled()
        assert gc.isenabled()
        with pytest.raises(KeyError), without_collection():
            raise KeyError
        assert gc.isenabled()
    finally:
        gc.disable()


# -- hooks -----------------------------------------------------------------------------------------


def test_each_kind_of_hook_is_counted_on_its_own() -> None:
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    graph = read_graph(y)
    node, leaf = graph.nodes
    for number in (1, 2):
        torch.autograd.graph.register_multi_grad_hook([x, y], lambda grads: None)
        x.register_hook(lambda g: None)
        x.register_post_accumulate_grad_hook(lambda p: None)
        node.fn.register_prehook(lambda g: None)
        node.fn.register_hook(lambda g, h: None)
        s = "s" if number == 2 else ""
        alone = "(each step is a backward of its own to it: hold the real engine)"
        assert hooks_on(node, [y, y]) == (
            f"{number} node pre-hook{s}, {number} node hook{s}, {number} multi-grad hook{s} {alone}"
        )
        assert (
            hooks_on(leaf)
            == hooks_on(leaf, [x])
            == (
                f"{number} tensor hook{s}, {number} post-accumulate hook{s},"
                f" {number} multi-grad hook{s} {alone}"
            )
        )
    assert hooks_on(node, [y], own=1) == "1 node pre-hook, 1 node hook, 2 multi-grad hooks"
    assert hooks_on(node, own=2) == "" and hooks_on(node, own=3) == ""


# -- inputs ----------------------------------------------------------------------------------------


def test_inputs_are_found_at_their_nodes_and_nodes_above_them() -> None:
    x, w, other = (torch.ones(4, requires_grad=True) for _ in range(3))
    multiplied = x * w
    first, second = multiplied.split(2)
    root = first.sum() + second.exp().sum()
    graph = read_graph(root)
    split, product = graph.node_of(first.grad_fn), graph.node_of(multiplied.grad_fn)
    leaf = next(n for n in graph.nodes if n.variable is w)
    assert wanted_from(graph, [second, w, other, first, other * 2]) == {
        split.id: [(0, 1), (3, 0)],
        leaf.id: [(1, 0)],
    }
    assert wanted_from(graph, []) == {}
    with pytest.raises(ValueError, match="does not require grad"):
        wanted_from(graph, [w.detach() * 2])
    over = above(graph, [product.id])
    assert {graph.nodes[i].op for i in over} == {"split", "add", "sum", "exp"}
    assert product.id not in over and above(graph, [0]) == frozenset()
    assert above(graph, []) == frozenset()


# -- values of forward -----------------------------------------------------------------------------


def test_results_are_read_where_they_still_are() -> None:
    x = torch.ones(3, requires_grad=True)
    kept = x * 3
    low, high = (kept + 1).split((1, 2))
    y = (low.exp() + high.sum()).sum()
    graph = read_graph(y)
    values = ForwardValues(
        graph, {"kept": kept, "high": high, "x": x, "data": torch.ones(1)}, lambda node: []
    )
    by_op = {node.op: values.of(node) for node in graph.nodes}
    assert by_op["mul"][0] is not None and torch.equal(by_op["mul"][0], kept.detach())
    split_low, split_high = by_op["split_with_sizes"]
    assert split_low is None and split_high is not None and torch.equal(split_high, high.detach())
    (exp,) = by_op["exp"]  # its rule has saved it
    assert exp is not None and torch.equal(exp, low.exp().detach())
    assert all(t is None or not t.requires_grad for found in by_op.values() for t in found)
    leaf = next(node for node in graph.nodes if node.is_leaf)
    (own,) = values.of(leaf)
    assert own is not None and own.data_ptr() == x.data_ptr()


def test_a_value_that_was_written_over_is_not_known_any_more() -> None:
    x = torch.ones(3, requires_grad=True)
    kept = x * 3
    graph = read_graph(kept.sum())
    values = ForwardValues(graph, {"kept": kept}, lambda node: [])
    product, leaf = graph.nodes[1:]
    assert values.of(product)[0] is not None and values.of(leaf)[0] is not None
    with torch.no_grad():
        x.add_(1)
        kept.add_(1)
    assert values.of(product) == values.of(leaf) == (None,)


# -- why a gradient is missing ---------------------------------------------------------------------


def test_a_tensor_may_get_no_gradient_whatever_the_root_is() -> None:
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    for t, reason, word in (
        (torch.ones(2, dtype=torch.int64), "integer", "`t` is int64"),
        (torch.ones(2, dtype=torch.bool), "integer", "`t` is bool"),
        (torch.ones(2), "not_required", "`t` does not require grad"),
        (torch.ones(2, dtype=torch.complex64), "not_required", "`t` does not require grad"),
        (y, "not_leaf", "it was computed, by MulBackward0"),
    ):
        found = why_of_itself("t", t)
        assert found is not None and found.reason == reason and word in found.text
    y.retain_grad()
    assert why_of_itself("t", x) is None and why_of_itself("t", y) is None


class Cuts(Provenance):
    """Its first node has so many cuts."""

    def __init__(self, *cuts: GraphCut) -> None:
        super().__init__()
        self._cuts = cuts

    def cuts(self, node, call=None):  # type: ignore[override]
        return iter(self._cuts if node.id == 0 else ())


def cut(number: int, reason: str = "detach", label: str = "") -> GraphCut:
    source = SourceLine("<cell 1>", number, f"h{number} = x.detach()") if number else None
    return GraphCut(node=0, input=0, label=label, reason=reason, source=source)  # type: ignore


@pytest.mark.parametrize(
    ("count", "end"),
    [
        (1, "It was cut: `h1` by detach() (line 1: h1 = x.detach())."),
        (3, "; `h3` by detach() (line 3: h3 = x.detach())."),
        (4, "; `h3` by detach() (line 3: h3 = x.detach()); and 1 more."),
        (5, "; `h3` by detach() (line 3: h3 = x.detach()); and 2 more."),
    ],
)
def test_the_first_three_cuts_are_named(count: int, end: str) -> None:
    x = torch.ones(2, requires_grad=True)
    graph = read_graph((x.detach() * torch.ones(2, requires_grad=True)).sum() * 1)
    graph.cut[:] = [0]
    cuts = [cut(number, label=f"h{number}") for number in range(1, count + 1)]
    found = MissingGradients(graph, Cuts(*cuts), {"x": x}, "loss").why("x", x)
    assert found.reason == "cut" and f"{end} Gradients do not pass a cut." in found.text
    assert (found.node, found.cut) == (0, cuts[0])


def test_without_a_name_or_a_line_a_cut_is_told_by_its_kind() -> None:
    x = torch.ones(2, requires_grad=True)
    graph = read_graph(torch.ones(2, requires_grad=True).sum() * 1)
    graph.cut[:] = [0]
    provenance = Cuts(cut(0, "no_grad"), cut(0, "integer"))
    found = MissingGradients(graph, provenance, {"x": x}, "loss").why("x", x)
    assert "It was cut: under no_grad." in found.text
    nothing = MissingGradients(graph, Cuts(cut(0, "integer")), {"x": x}, "loss").why("x", x)
    assert nothing.reason == "no_path"
    late = MissingGradients(graph, Cuts(cut(0, "input", "x")), {"x": x}, "loss").why("x", x)
    assert late.reason == "late" and "when it was used, so the graph has no edge" in late.text


# -- in parts --------------------------------------------------------------------------------------


def test_a_snapshot_comes_whole_or_in_parts_that_hold_each_item_once() -> None:
    y = torch.ones(1, requires_grad=True)
    for _ in range(100):
        y = y * 1.0
    graph = read_graph(y)
    (whole,) = graph_snapshots(graph, graph.nodes, Provenance())
    fields = ("nodes", "edges", "plan")
    assert in_parts(whole, fields) == [whole] and (whole.part, whole.parts) == (0, 1)
    parts = in_parts(whole, fields, max_bytes=2_000)
    assert len(parts) > 3
    assert [(each.part, each.parts) for each in parts] == [
        (n, len(parts)) for n in range(len(parts))
    ]
    for name in fields:
        joined = [item for each in parts for item in getattr(each, name)]
        assert tuple(joined) == getattr(whole, name)
    assert all(each.root == whole.root and each.saved_bytes == whole.saved_bytes for each in parts)
    single = in_parts(whole, fields, max_bytes=1)
    assert all(sum(len(getattr(p, name)) for name in fields) == 1 for p in single)
    assert len(single) == sum(len(getattr(whole, name)) for name in fields)


def test_a_node_is_titled_by_its_name_and_operation() -> None:
    x = nn.Parameter(torch.ones(1))
    graph = read_graph(x * 2, names={"w": x})
    product, leaf = graph.nodes
    assert (title(product), title(leaf)) == ("mul", "w")
    product.label, leaf.label = "h", ""
    assert (title(product), title(leaf)) == ("h = mul", "leaf 1")


def test_only_the_first_nodes_are_shown_with_the_edges_between_them() -> None:
    x = torch.ones(1, requires_grad=True)
    y = ((x * 2).exp() + x).sin()
    graph = read_graph(y)
    (all_,) = graph_snapshots(graph, graph.nodes, Provenance())
    assert (len(all_.nodes), len(all_.edges), all_.truncated) == (5, 5, 0)
    (some,) = graph_snapshots(graph, graph.nodes, Provenance(), max_nodes=3)
    assert [node.op for node in some.nodes] == ["sin", "add", "exp"]
    assert all(e.source < 3 and e.target < 3 for e in some.edges) and len(some.edges) == 2
    assert some.truncated == 2 and len(some.plan) == 5 and some.saved_bytes == all_.saved_bytes
