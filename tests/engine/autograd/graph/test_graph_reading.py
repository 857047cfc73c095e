"""Reading the graph, against what torch says when asked node by node."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from engine.autograd import read_graph
from engine.autograd.graph.provenance import Provenance, origins
from engine.autograd.graph.reading import operation
from engine.autograd.graph.snapshot import graph_snapshots
from engine.protocol import GraphEdge, TensorSpec
from tests.engine.autograd import backward_cases as cases


def equal(a: torch.Tensor | None, b: torch.Tensor | None) -> bool:
    return a is not None and b is not None and torch.equal(a, b)


def bare_walk(roots: list[torch.Tensor]) -> tuple[set[Any], int]:
    """All nodes and the number of edges, the naive way."""
    seen: set[Any] = set()
    edges = 0
    todo = [torch.autograd.graph.get_gradient_edge(r).node for r in roots]
    while todo:
        fn = todo.pop()
        if fn in seen:
            continue
        seen.add(fn)
        for below, _ in fn.next_functions:
            if below is not None:
                edges += 1
                todo.append(below)
    return seen, edges


@pytest.mark.parametrize("name", cases.CASES)
def test_every_node_and_edge_is_there(name: str) -> None:
    roots, _ = cases.CASES[name]()
    graph = read_graph(roots)
    nodes, edges = bare_walk(roots)
    assert {node.fn for node in graph.nodes} == nodes
    assert (len(graph.nodes), len(graph.edges)) == (len(nodes), edges)
    for edge in graph.edges:
        below, output = graph.nodes[edge.source].fn.next_functions[edge.input]
        assert graph.nodes[edge.target].fn is below and output == edge.output
    for node in graph.nodes:
        assert node.is_leaf == (node.fn.name() == "torch::autograd::AccumulateGrad")
        assert node.sequence == (-1 if node.is_leaf else node.fn._sequence_nr())
        assert node.outputs and node.saved_bytes >= 0 and node.op
        assert node.storages == {
            each.storage_id: each.storage_bytes for each in node.saved if each.data is not None
        }
    without = [n.id for n in graph.nodes if any(fn is None for fn, _ in n.fn.next_functions)]
    assert graph.cut == without
    assert [graph.nodes[i].fn for i, _ in graph.roots] == [
        torch.autograd.graph.get_gradient_edge(r).node for r in roots
    ]


def test_a_graph_is_read_from_gradient_edges_as_from_their_tensors() -> None:
    x = torch.ones(4, requires_grad=True)
    first, second = x.exp().split(2)
    edges = [torch.autograd.graph.get_gradient_edge(t) for t in (second, first)]
    graph, expected = read_graph(edges), read_graph([second, first])
    assert [n.fn for n in graph.nodes] == [n.fn for n in expected.nodes]
    assert graph.roots == expected.roots == [(0, 1), (0, 0)]
    assert graph.edges == expected.edges and len(graph.nodes) == 3
    one = read_graph(edges[0], names={"x": x})
    assert one.roots == [(0, 1)] and [n.label for n in one.nodes] == ["", "", "x"]
    assert one.get(first.grad_fn) is one.nodes[0] and one.get((x * 1).grad_fn) is None
    assert (
        repr(one) == "<Graph of 3 nodes, 2 edges>" and repr(one.nodes[2]) == "<2 AccumulateGrad x>"
    )
    with pytest.raises(TypeError, match="read from a tensor, or several; got 3"):
        read_graph([first, 3])  # type: ignore[list-item]


def test_linear_and_loss_read_as_expected() -> None:
    net = nn.Linear(3, 2)
    x = torch.randn(5, 3)
    loss = net(x).square().mean()
    graph = read_graph(loss, names=dict(net.named_parameters()))
    by_name = {node.name: node for node in graph.nodes if not node.is_leaf}
    assert list(by_name) == ["MeanBackward0", "PowBackward0", "AddmmBackward0", "TBackward0"]
    assert by_name["AddmmBackward0"].outputs == (TensorSpec((5, 2), "float32"),)
    assert by_name["AddmmBackward0"].op == "addmm"
    leaves = {node.label: node for node in graph.nodes if node.is_leaf}
    assert set(leaves) == {"weight", "bias"} and leaves["bias"].variable is net.bias
    # addmm keeps x, but not the weight, as x needs no gradient; pow keeps its input
    (mat1,) = [s for s in by_name["AddmmBackward0"].saved if s.data is not None]
    assert mat1.name == "mat1" and equal(mat1.data, x)
    assert by_name["AddmmBackward0"].saved_bytes == 5 * 3 * 4
    assert graph.saved_bytes == (5 * 3 + 5 * 2) * 4
    assert graph.node_of(loss.grad_fn) is graph.nodes[0]


def test_parallel_edges_are_kept() -> None:
    x = torch.ones(2, requires_grad=True)
    graph = read_graph((x * x).sum())
    assert graph.edges == [GraphEdge(0, 1, 0, 0), GraphEdge(1, 2, 0, 0), GraphEdge(1, 2, 1, 0)]


def test_shared_storage_counts_once() -> None:
    x = torch.ones(100, requires_grad=True)
    y = x * x
    z = x[:50] * x[50:]
    graph = read_graph([y.sum(), z.sum()])
    product = graph.node_of(y.grad_fn)
    assert len(product.saved) == 2 and product.saved_bytes == 400
    assert graph.node_of(z.grad_fn).saved_bytes == 400  # views keep the whole storage
    assert graph.saved_bytes == 400


def test_saved_bytes_equal_what_the_hooks_see() -> None:
    net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten())
    storages: dict[int, int] = {}

    def pack(t: torch.Tensor) -> torch.Tensor:
        storages[t.untyped_storage()._cdata] = t.untyped_storage().nbytes()
        return t

    x = torch.randn(2, 1, 8, 8)
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        hooked = net(x).logsumexp(1).sum()
    torch.manual_seed(0)
    plain = net(x).logsumexp(1).sum()
    assert read_graph(plain).saved_bytes == sum(storages.values())
    assert hooked.requires_grad


def test_packed_and_checkpointed_tensors_are_not_unpacked() -> None:
    unpacked = []
    x = torch.ones(3, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(
        lambda t: t, lambda t: (unpacked.append(t), t)[1]
    ):
        y = x.sin()
    (saved,) = read_graph(y.sum()).nodes[1].saved
    assert (saved.note, unpacked) == ("packed by hooks", [])
    calls = []
    z = checkpoint(lambda t: (calls.append(1), t.exp())[1], x, use_reentrant=False)
    assert [n.saved_bytes for n in read_graph(z).nodes] == [0, 0] and calls == [1]


def test_what_was_freed_is_told_from_what_was_never_kept() -> None:
    x = torch.ones(2, 1, requires_grad=True)
    constant = torch.addmm(x, torch.ones(2, 3), torch.ones(3, 1))
    (node, _) = read_graph(constant).nodes
    assert {s.note for s in node.saved} == {"never set"} and not node.is_freed
    y = x.exp()
    y.sum().backward()
    node = read_graph(y).nodes[0]
    assert [s.note for s in node.saved] == ["freed"] and node.is_freed


def test_a_freed_graph_and_one_with_an_in_place_mistake_still_read() -> None:
    x = torch.ones(3, requires_grad=True)
    loss = x.sin().exp().sum()
    loss.backward()
    notes = [s.note for n in read_graph(loss).nodes for s in n.saved]
    assert notes == ["freed"] * 2
    y = x * 1
    loss = y.sin().sum()
    y.add_(1)  # overwrites what sin kept
    graph = read_graph(loss)
    (saved,) = graph.nodes[1].saved
    assert equal(saved.data, torch.full((3,), 2.0))
    with pytest.raises(RuntimeError, match="inplace"):
        loss.backward()


def test_reading_does_not_disturb_a_backward_pass() -> None:
    roots, compared = cases.CASES["checkpoint_without_reentry"]()
    graph = read_graph(roots)
    assert graph.saved_bytes >= 0 and str(graph) and str(graph.nodes)
    roots[0].backward()
    again, expected = cases.CASES["checkpoint_without_reentry"]()
    again[0].backward()
    assert all(equal(a.grad, b.grad) for a, b in zip(compared, expected, strict=True))


def test_a_cap_says_that_something_is_missing() -> None:
    y = torch.ones((), requires_grad=True)
    for _ in range(50):
        y = y * 2
    graph = read_graph(y, max_nodes=10)
    assert (len(graph.nodes), len(graph.edges), graph.truncated) == (10, 9, 1)
    assert read_graph(y).truncated == 0


def test_roots_without_a_graph_are_explained() -> None:
    with pytest.raises(ValueError, match="does not require grad"):
        read_graph(torch.ones(3))
    with pytest.raises(ValueError, match="at least one"):
        read_graph([])


@pytest.mark.parametrize(
    ("name", "op"),
    [
        ("AddmmBackward0", "addmm"),
        ("NllLossBackward0", "nll_loss"),
        ("ConvolutionBackward0", "convolution"),
        ("NativeBatchNormBackward0", "native_batch_norm"),
        ("CopySlices", "copy_slices"),
        ("MaxPool2DWithIndicesBackward0", "max_pool2d_with_indices"),
        ("FftC2CBackward0", "fft_c2c"),
        ("Log1PBackward0", "log1p"),
        ("SumBackward1", "sum"),
        ("TBackward0", "t"),
    ],
)
def test_operation_names(name: str, op: str) -> None:
    assert operation(name) == op


def test_custom_functions_keep_their_name() -> None:
    y, _ = cases.Scaled.apply(torch.ones(3, requires_grad=True), 2.0, torch.ones(3))
    node = read_graph(y).nodes[0]
    assert (node.op, node.is_custom, len(node.outputs)) == ("Scaled", True, 2)


def test_origins_are_exact_and_never_guessed() -> None:
    number: Callable[[], int] = torch.autograd._get_sequence_nr  # type: ignore[attr-defined]
    first, second, shared = nn.Linear(3, 3), nn.Linear(3, 3), nn.Parameter(torch.ones(3))
    ranges = {}
    x = torch.randn(2, 3)

    def block(key: str, call: Callable[[], torch.Tensor]) -> torch.Tensor:
        start = number()
        result = call()
        ranges[key] = (start, number())
        return result

    x = block("first", lambda: first(x) * shared)
    x = block("nothing", lambda: x)
    x = x + 1  # outside of every block
    x = block("second", lambda: second(x).relu() * shared)
    names = {
        **{f"first.{n}": p for n, p in first.named_parameters()},
        **{f"second.{n}": p for n, p in second.named_parameters()},
        "shared": shared,
    }
    graph = read_graph(x.sum(), names=names)
    found = origins(graph, ranges)
    by_block: dict[str | None, list[str]] = {}
    for node in graph.nodes:
        by_block.setdefault(found.get(node.id), []).append(node.label or node.op)
    assert {k: sorted(v) for k, v in by_block.items()} == {
        "first": ["addmm", "first.bias", "first.weight", "mul", "t"],
        "second": ["addmm", "mul", "relu", "second.bias", "second.weight", "t"],
        None: ["add", "shared", "sum"],
    }


def test_a_node_at_the_edge_of_a_block_is_of_that_block() -> None:
    """A block holds the numbers from its first to before its end; some blocks make no node."""
    number: Callable[[], int] = torch.autograd._get_sequence_nr  # type: ignore[attr-defined]
    x = torch.ones(3, requires_grad=True)
    start = number()
    y = x.exp().sin().cos().tan()
    ranges = {
        "none before": (start, start), "exp, sin": (start, start + 2),
        "none between": (start + 2, start + 2), "cos": (start + 2, start + 3),
        "none after": (start + 3, start + 3),
    }  # fmt: skip
    graph = read_graph(y)
    found = origins(graph, ranges)
    assert {node.op: found.get(node.id) for node in graph.nodes} == {
        "tan": None, "cos": "cos", "sin": "exp, sin", "exp": "exp, sin",
        "accumulate_grad": "exp, sin",
    }  # fmt: skip
    assert origins(graph, {}) == {}


DEEP = """
import gc, resource, torch
from engine.autograd import read_graph
resource.setrlimit(resource.RLIMIT_STACK, (2**20, -1))

def chain():
    x = torch.ones((), requires_grad=True)
    y = middle = x
    for i in range(20_000):
        y = y * 1.0
        if i == 12_000:
            middle = y
    graph = read_graph(y)
    assert len(graph.nodes) == 20_001 and len(graph.edges) == 20_000 and graph.truncated == 0
    return x, middle, y, graph

x, middle, y, graph = chain()
del y, middle
gc.collect()
del graph
print("tensors first")

x, middle, y, graph = chain()
del graph
gc.collect()
del y, middle
print("graph first")

x, middle, y, graph = chain()
del graph, y
middle.backward()
assert x.grad.item() == 1.0
del middle
print("from the middle")

x, middle, y, graph = chain()
print("at exit")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs a limit of the main thread's stack")
def test_a_deep_chain_reads_and_goes_without_a_crash() -> None:
    """In a process of its own: freeing such a chain carelessly is a segmentation fault. Its stack
    is an eighth of the usual one, so that the chain is shorter."""
    done = subprocess.run(
        [sys.executable, "-c", DEEP],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[4],
    )
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert done.stdout.splitlines() == [
        "tensors first",
        "graph first",
        "from the middle",
        "at exit",
    ]


class Parted(torch.autograd.Function):
    """Five outputs: a number, integers, one that is None, one of another dtype, one not used."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> Any:
        order = x.argsort()
        ctx.mark_non_differentiable(order)
        return x.sum(), order, None, x.to(torch.float64), x * 2

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> torch.Tensor:
        return gradients[-1]


@pytest.mark.parametrize("default", [torch.float32, torch.float64])
def test_outputs_without_a_gradient_are_told_from_scalars(default: torch.dtype) -> None:
    torch.set_default_dtype(default)
    try:
        results = Parted.apply(torch.ones(3, requires_grad=True))
        (node, *_) = read_graph(results[0]).nodes
        outputs = node.outputs
        assert torch.get_default_dtype() is default
    finally:
        torch.set_default_dtype(torch.float32)
    unknown, name = TensorSpec((), "unknown"), str(default).removeprefix("torch.")
    assert outputs == (
        TensorSpec((), name), unknown, unknown,
        TensorSpec((3,), "float64"), TensorSpec((3,), name),
    )  # fmt: skip
    assert node.devices == ("cpu",) * 5 and node.device == "cpu"


def test_ragged_results_have_the_dimensions_that_torch_names() -> None:
    rows = [torch.ones(2, 3), torch.ones(4, 3)]
    x = torch.nested.nested_tensor(rows, layout=torch.jagged, requires_grad=True)
    y = x * 2
    spec = TensorSpec((2, str(y.shape[1]), 3), "float32")
    assert [node.outputs for node in read_graph(y).nodes] == [(spec,), (spec,)]


class Hidden(torch.Tensor):
    """Says another shape than autograd has."""

    @property
    def shape(self):
        return torch.Size((9,))


@pytest.mark.parametrize("kind", ["plain", "parameter", "subclass", "nested", "sparse"])
def test_a_leaf_is_told_with_the_facts_that_autograd_has(kind: str) -> None:
    x = torch.rand(3, 2, dtype=torch.float64)
    leaf = {
        "plain": lambda: x.requires_grad_(),
        "parameter": lambda: torch.nn.Parameter(x),
        "subclass": lambda: x.as_subclass(Hidden).requires_grad_(),
        "nested": lambda: torch.nested.nested_tensor([x, x[:1]], requires_grad=True),
        "sparse": lambda: x.to_sparse().requires_grad_(),
    }[kind]()
    with torch.DisableTorchFunction():
        graph = read_graph(leaf.clone())
    (told,) = graph_snapshots(graph, graph.nodes, Provenance())
    facts = [(node.outputs, node.device) for node in graph.nodes]
    assert [(node.outputs, node.device) for node in told.nodes] == facts
    assert len(told.nodes) == 2
