"""Backward from the console's tensors, where its nodes come from, and all that is known of one."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import torch

from engine.autograd.graph.provenance import Provenance
from engine.autograd.graph.reading import read_graph
from engine.autograd.graph.snapshot import graph_snapshots
from engine.console.output import Output
from engine.handlers import backward as handlers
from engine.handlers.models import start_forward
from engine.handlers.node_detail import node_detail
from engine.lab import Lab
from engine.models.code import MODEL_FILE
from engine.project.files import load
from engine.protocol import (
    BackwardSnapshot,
    CompareGradientsCommand,
    GraphNode,
    GraphSnapshot,
    InspectCommand,
    MoveBackwardCommand,
    NodeDetailCommand,
    NodeDetailSnapshot,
    Snapshot,
    StartBackwardCommand,
    StartForwardCommand,
    encode_snapshot,
    join_graph,
)
from engine.recording.light.light_recorder import LightRecorder
from engine.system.errors import LabError

TEMPLATES = sorted((Path(__file__).parents[4] / "assets" / "templates").glob("*.tlab"))


def console(*cells: str) -> Lab:
    lab = Lab(emit=lambda snapshot: None)
    run(lab, *cells)
    return lab


def run(lab: Lab, *cells: str) -> None:
    for cell in cells:
        output = Output(lambda told: None)
        error, _ = lab.console.namespace.run(cell, "<cell>", output, lab.control)
        assert error is None, error


def ask(answers: Iterable[Snapshot | None]) -> list[Any]:
    found = [snapshot for snapshot in answers if snapshot is not None]
    for snapshot in found:
        assert encode_snapshot(snapshot)
    return found


def begin(lab: Lab, root: str, gradient: str = "", **options: Any) -> GraphSnapshot:
    command = StartBackwardCommand(root=root, gradient=gradient, **options)
    answers = ask(handlers.start_backward(lab, command))
    assert isinstance(answers[-1], BackwardSnapshot) and answers[-1].position == 0
    return join_graph([a for a in answers if isinstance(a, GraphSnapshot)])


def move(lab: Lab, where: Any) -> BackwardSnapshot:
    return ask(handlers.move_backward(lab, MoveBackwardCommand(move=where)))[-1]


def compare(lab: Lab) -> float:
    (comparison,) = ask(handlers.compare_gradients(lab, CompareGradientsCommand()))
    return comparison.max_difference


def named(graph: GraphSnapshot, name: str) -> GraphNode:
    (node,) = [n for n in graph.nodes if n.name == name]
    return node


def variable(lab: Lab, name: str) -> Any:
    return lab.console.namespace.variables[name]


CELLS = (
    "x = torch.tensor([1.0, 2.0])\nw = torch.tensor([3.0, 4.0], requires_grad=True)",
    "h = x * w\nloss = (h.sin() + h).sum()",
)


def test_a_console_root_is_stepped_to_the_gradients_of_backward() -> None:
    lab = console(*CELLS)
    graph = begin(lab, "loss")
    assert graph.root == "loss"
    assert {n.label for n in graph.nodes if n.kind == "leaf"} == {"w"}
    product = named(graph, "MulBackward0")
    assert product.label == "h = mul" and product.device == "cpu"
    assert product.source is not None
    assert (product.source.file, product.source.line, product.source.text) == (
        "<cell 2>",
        1,
        "h = x * w",
    )
    root = next(n for n in graph.nodes if n.id == 0)
    assert root.label == "loss = sum" and root.source.text == "loss = (h.sin() + h).sum()"
    (cut,) = graph.cuts
    assert (cut.node, cut.input, cut.reason, cut.label) == (product.id, 0, "input", "x")
    end = move(lab, "end")
    assert [(g.name, g.shape) for g in end.gradients] == [("w", (2,))]
    assert compare(lab) == 0.0
    stepped = variable(lab, "w").grad.clone()
    run(lab, "w.grad = None\nloss.backward()")
    assert torch.equal(stepped, variable(lab, "w").grad)
    (shown,) = ask(handlers.inspect_value(lab, InspectCommand(of="gradient", key="w")))
    assert shown.values[0].label == "w.grad"


def test_gradients_that_the_user_left_are_added_to_and_put_back() -> None:
    lab = console(
        "x = torch.tensor(3.0, requires_grad=True)\ny = x**2\ny.backward(retain_graph=True)"
    )
    begin(lab, "y")
    assert variable(lab, "x").grad.item() == 6
    move(lab, "end")
    assert variable(lab, "x").grad.item() == 12
    assert compare(lab) == 0.0 and variable(lab, "x").grad.item() == 12
    move(lab, "again")
    move(lab, "end")
    assert variable(lab, "x").grad.item() == 18
    move(lab, "reset")
    assert variable(lab, "x").grad.item() == 12


@pytest.mark.parametrize(
    ("gradient", "expected"),
    [
        ("torch.ones_like(y)", [2.0, 4.0]),
        ("2", [4.0, 8.0]),
        ("[1, 0.5]", [2.0, 2.0]),
        ("g", [20.0, 40.0]),
    ],
)
def test_a_root_that_is_no_scalar_needs_a_gradient(gradient: str, expected: list[float]) -> None:
    lab = console(
        "x = torch.tensor([1.0, 2.0], requires_grad=True)\ny = x**2\ng = torch.full((2,), 10.0)"
    )
    with pytest.raises(LabError, match=r"shape \(2,\)") as caught:
        begin(lab, "y")
    assert "torch.ones_like(y)" in caught.value.hint
    begin(lab, "y", gradient)
    move(lab, "end")
    assert variable(lab, "x").grad.tolist() == expected
    assert compare(lab) == 0.0


def test_several_roots() -> None:
    lab = console("x = torch.tensor([1.0, 2.0], requires_grad=True)\ny = (x**2).sum()\nz = x.exp()")
    begin(lab, "y, z", "None, z")
    move(lab, "end")
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    torch.autograd.backward([(x**2).sum(), x.exp()], [None, x.exp().detach()])
    assert x.grad is not None and torch.equal(variable(lab, "x").grad, x.grad)
    assert compare(lab) == 0.0


def test_the_graph_of_the_gradient_is_a_graph_like_others() -> None:
    """x³ at 3: 27, then 18, then 6."""
    lab = console("x = torch.tensor(3.0, requires_grad=True)\ny = x**3")
    for root, expected in (("y", 27.0), ("first", 18.0), ("second", 6.0)):
        run(lab, "x.grad = None")
        begin(lab, root, create_graph=True)
        assert move(lab, "end").create_graph
        assert variable(lab, "x").grad.item() == expected
        run(lab, f"{'first' if root == 'y' else 'second'} = x.grad")


@pytest.mark.parametrize(
    ("root", "words"),
    [
        ("nothing", "cannot be computed: NameError"),
        ("x +", "is not an expression"),
        ("number", "is of type int, not a tensor"),
        ("data", "has no graph"),
        ("loss, number", "is of type int"),
    ],
)
def test_roots_that_cannot_be_are_explained(root: str, words: str) -> None:
    lab = console(*CELLS, "number = 3\ndata = torch.ones(2)")
    with pytest.raises(LabError, match=words) as caught:
        begin(lab, root)
    assert caught.value.hint
    assert lab.backward.under_way is None


@pytest.mark.parametrize(
    ("gradient", "words"),
    [("torch.ones(3)", r"shape \(3,\)"), ("1, 2", "1 roots need"), ("'a'", "neither a tensor")],
)
def test_gradients_that_do_not_fit_are_explained(gradient: str, words: str) -> None:
    lab = console("x = torch.ones(2, requires_grad=True)\ny = x * 2")
    with pytest.raises(LabError, match=words):
        begin(lab, "y", gradient)


def test_a_root_may_be_an_expression() -> None:
    lab = console("x = torch.ones(2, requires_grad=True)\ny = x * 2")
    graph = begin(lab, "(y * y).sum()")
    assert named(graph, "SumBackward0").source.text == "(y * y).sum()"
    assert {n.label for n in graph.nodes} == {"sum", "mul", "y = mul", "x"}
    move(lab, "end")
    assert variable(lab, "x").grad.tolist() == [8, 8]


def test_tensors_that_retain_their_gradient_are_shown() -> None:
    lab = console(*CELLS, "h.retain_grad()")
    begin(lab, "loss")
    end = move(lab, "end")
    told = {g.name: g for g in end.gradients}
    assert told["h"].retained and not told["w"].retained
    assert torch.equal(variable(lab, "h").grad, variable(lab, "h").detach().cos() + 1)
    assert compare(lab) == 0.0
    move(lab, "reset")
    assert variable(lab, "h").grad is None and variable(lab, "w").grad is None


NET = """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))
        self.head = nn.Linear(4, 2)
        self.layers[0].weight.requires_grad_(False)
    def forward(self, x):
        for layer in self.layers:
            x = x + layer(x).relu()  # turn
        return self.head(x)
net = Net()
"""


def test_modules_of_the_console_are_the_paths_of_their_nodes() -> None:
    lab = console(NET, "loss = net(torch.ones(1, 4)).square().sum()")
    graph = begin(lab, "loss")
    by_name: dict[str, list[GraphNode]] = {}
    for node in graph.nodes:
        by_name.setdefault(node.name, []).append(node)
    assert {n.module for n in by_name["AddmmBackward0"]} == {
        *(f"net.layers.{i}" for i in range(3)),
        "net.head",
    }
    assert {n.module for n in by_name["ReluBackward0"]} == {"net"}
    assert all(n.source.text.endswith("# turn") for n in by_name["ReluBackward0"])
    leaves = {n.label: n.module for n in by_name["AccumulateGrad"]}
    assert leaves["net.layers[1].weight"] == "net.layers.1"
    assert leaves["net.head.bias"] == "net.head"
    assert graph.modules["net.layers.1"] == "Linear" and graph.modules["net"] == "Net"
    frozen = [cut for cut in graph.cuts if cut.reason == "frozen"]
    assert [cut.label for cut in frozen] == ["net.layers[0].weight"]
    assert frozen[0].source is not None and "requires_grad_(False)" in frozen[0].source.text
    first = next(n for n in by_name["AddmmBackward0"] if n.module == "net.layers.0")
    assert frozen[0].node == first.id
    turns = {n.sequence for n in by_name["ReluBackward0"]}
    assert len(turns) == 3


GPT2 = """\
from tests.engine.autograd.shaped_models import GPT2
net = GPT2(layers=12)
"""


def test_every_node_of_a_large_model_has_module_and_line() -> None:
    lab = console(GPT2, "loss = net(torch.randint(0, 64, (2, 8))).square().mean()")
    graph = begin(lab, "loss")
    operations = [n for n in graph.nodes if n.kind == "operation"]
    assert len(operations) > 400
    assert all(n.source is not None for n in operations)
    outside = {n.module for n in graph.nodes} - set(graph.modules)
    assert outside == {""} and sum(n.module == "" for n in graph.nodes) == 2
    blocks = {found[1] for n in graph.nodes if (found := re.search(r"\.h\.(\d+)", n.module))}
    assert blocks == {str(i) for i in range(12)}
    parameters = {id(p): name for name, p in variable(lab, "net").named_parameters()}
    for node in lab.backward.under_way.stepper.graph.nodes:
        if node.is_leaf:
            told = graph.nodes[node.id]
            owner = parameters[id(node.variable)].rpartition(".")[0]
            tied = owner in ("wte", "lm_head", "transformer.wte")
            assert tied or told.module == f"net.{owner}".rstrip(".")


@pytest.mark.parametrize("product", ["x @ w", "x[None] @ w", "F.linear(x[None], w.T)"])
def test_a_frozen_factor_is_found_whatever_torch_makes_of_the_product(product: str) -> None:
    lab = console(
        "x = torch.ones(2, 3, requires_grad=True)\nw = nn.Parameter(torch.ones(3, 4), False)",
        f"y = ({product}).sum()",
    )
    cuts = begin(lab, "y").cuts
    assert ("frozen", "w") in {(cut.reason, cut.label) for cut in cuts}
    for cut in cuts:
        node = lab.backward.under_way.stepper.graph.nodes[cut.node]
        assert node.fn.next_functions[cut.input][0] is None


FROZEN = {
    "F.linear(a, bias=c, weight=b)": ("2, 3", "4, 3", "4"),
    "torch.addmm(mat2=c, mat1=b, input=a)": ("2, 4", "2, 3", "3, 4"),
    "torch.lerp(weight=c, end=b, input=a)": ("3", "3", "3"),
    "F.layer_norm(a, (3,), bias=c, weight=b)": ("2, 3", "3", "3"),
    "F.conv1d(bias=c, input=a, weight=b)": ("1, 2, 5", "3, 2, 2", "3"),
    "F.conv2d(a, b, c, padding=1)": ("1, 2, 5, 5", "3, 2, 2, 2", "3"),
    "F.conv1d(a, b)": ("1, 2, 5", "3, 2, 2"),
    "F.batch_norm(a, torch.zeros(3), torch.ones(3), b, c, True)": ("4, 3", "3", "3"),
    "torch.batch_norm(a, b, c, torch.zeros(3), torch.ones(3), False, 0.1, 1e-5, False)": (
        ("4, 3", "3", "3")
    ),
}


@pytest.mark.parametrize("call", FROZEN)
def test_each_frozen_argument_is_told_at_the_input_that_it_stands_for(call: str) -> None:
    """However it is given: the inputs are those that lead to it while it is not frozen."""
    shapes = dict(zip("abc", FROZEN[call], strict=False))

    def inputs(free: Iterable[str]) -> tuple[Lab, GraphSnapshot, dict[str, int]]:
        made = (f"{n} = nn.Parameter(torch.ones({s}), {n in free})" for n, s in shapes.items())
        lab = console("\n".join(made), f"y = {call}\nloss = y.sum()")
        graph = begin(lab, "loss")
        below = variable(lab, "y").grad_fn.next_functions
        owners = {id(variable(lab, n)): n for n in shapes}
        leaves = ((i, getattr(fn, "variable", None)) for i, (fn, _) in enumerate(below))
        return lab, graph, {owners[id(t)]: i for i, t in leaves if id(t) in owners}

    direct = inputs(shapes)[2]
    for free in ("a", "b", "c", "ab", "ac", "bc"):
        frozen = set(shapes) - set(free)
        if not frozen or frozen == set(shapes):
            continue
        lab, graph, _ = inputs(free)
        top = lab.backward.under_way.stepper.graph.node_of(variable(lab, "y").grad_fn).id
        cuts = {cut.label: cut for cut in graph.cuts}
        assert set(cuts) == frozen and {cut.reason for cut in graph.cuts} == {"frozen"}
        for name in frozen & set(direct):
            assert (cuts[name].node, cuts[name].input) == (top, direct[name])


def test_cuts_tell_what_made_them() -> None:
    lab = console(
        "x = torch.ones(2, requires_grad=True)\ncut = (x * 2).detach()  # here\n"
        "with torch.no_grad():\n    off = x.exp()  # there\n",
        "y = (x * cut + x * off).sum()",
    )
    graph = begin(lab, "y")
    told = {cut.reason: cut for cut in graph.cuts}
    assert set(told) == {"detach", "no_grad"}
    assert told["detach"].label == "cut" and told["no_grad"].label == "off"
    assert told["detach"].source is not None and told["detach"].source.text.endswith("# here")
    assert told["no_grad"].source is not None and told["no_grad"].source.text.endswith("# there")
    for cut in graph.cuts:
        assert (
            lab.backward.under_way.stepper.graph.nodes[cut.node].fn.next_functions[cut.input][0]
            is None
        )


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.stem)
def test_nodes_of_a_model_tell_block_operator_and_line(path: Path) -> None:
    lab, project = Lab(emit=lambda snapshot: None), load(path)
    list(start_forward(lab, StartForwardCommand(model=project.model, training=project.training)))
    graph = begin(lab, "")
    names = {b.id: b.name for b in project.model.blocks}
    parameters = dict(lab.models.forward.state.named_parameters())
    for node in graph.nodes:
        path_of_block = names.get(node.block or "", "loss")
        assert node.module.split(".")[0] == path_of_block, node
        assert node.module in graph.modules
        if node.kind == "leaf":
            assert node.label in parameters and node.label.startswith(f"{node.module}.")
            continue
        aten = node.aten.removeprefix("aten::").split(".")[0].replace("_", "")
        assert aten.startswith(node.op.replace("_", "")), node
        if path_of_block != "loss":
            assert node.source is not None and node.source.file == MODEL_FILE
            if project.model.block(node.block or "").kind.startswith("nn."):
                assert f"self.{path_of_block}(" in node.source.text
    reasons = {cut.reason for cut in graph.cuts}
    assert reasons <= {"input", "integer"}
    if not any(b.kind == "nn.Embedding" for b in project.model.blocks):
        assert any(cut.label for cut in graph.cuts if cut.reason == "input")


def test_a_large_graph_comes_in_parts_that_join_to_the_same() -> None:
    x = torch.ones(2, requires_grad=True)
    with LightRecorder() as recorder:
        y = x
        for _ in range(6_000):
            y = y * 1.0
    graph = read_graph(y.sum(), names={"x": x})
    parts = graph_snapshots(graph, graph.nodes, Provenance([recorder.recording]))
    assert len(parts) > 3
    assert all(len(encode_snapshot(part)) < 200 * 1024 for part in parts)
    assert [p.part for p in parts] == list(range(len(parts)))
    whole = join_graph(parts)
    assert [n.id for n in whole.nodes] == [n.id for n in graph.nodes]
    assert [(e.source, e.target) for e in whole.edges] == [
        (e.source, e.target) for e in graph.edges
    ]
    assert len(whole.plan) == len(graph.nodes)


def test_what_a_graph_keeps_counts_a_shared_storage_once() -> None:
    x = torch.ones(256, requires_grad=True)
    graph = read_graph((x.sin() * x[:128].cos().sum()).sum())  # sin and cos both save x
    (whole,) = graph_snapshots(graph, graph.nodes, Provenance())
    kept = {"sin": 1024, "cos": 1024, "mul": 1024 + 4}
    assert {n.op: n.saved_bytes for n in whole.nodes if n.saved_bytes} == kept
    assert whole.saved_bytes == 1024 + 1024 + 4


def test_numbers_of_another_thread_name_nothing() -> None:
    lab = console("x = torch.ones(2, requires_grad=True)\nfor _ in range(5): y = x * 2")
    first = lab.console.namespace.recordings.kept[0].span[0]
    other = torch.ones(2, requires_grad=True).tanh()
    custom = Provenance(lab.console.namespace.recordings.kept)
    graph = read_graph(other)
    assert graph.nodes[0].sequence > first
    assert custom.chain(graph.nodes[0]) == []


THREADS = """
import threading
from concurrent.futures import ThreadPoolExecutor
from threading import Thread

torch.ones(2, requires_grad=True).exp()
first = torch.autograd._get_sequence_nr()
x = torch.ones(2, requires_grad=True)
here = [x.sin() for _ in range(5)]
box = []
class Own(Thread):
    def run(self):
        while torch.autograd._get_sequence_nr() < first:
            x * 1
        box.append((x * 3).sin())
threads = [Own(), Thread(target=lambda: box.append(x.sin()))]
for thread in threads:
    thread.start()
    thread.join()
with ThreadPoolExecutor(1) as pool:
    other = pool.submit(lambda: nn.Linear(2, 2)(x * 2)).result()
taken = max(box[0].grad_fn._sequence_nr(), other.grad_fn._sequence_nr()) + 1
while torch.autograd._get_sequence_nr() < taken:
    x * 1
loss = (box[0] + box[1] + other.sum() + here[0]).sum()
"""


def test_nodes_of_threads_are_never_taken_for_those_of_a_cell() -> None:
    """Every thread counts from 0, so their numbers are those of other nodes here."""
    start = threading.Thread.start
    lab = console(THREADS)
    assert threading.Thread.start is start
    variables = lab.console.namespace.variables
    assert all(vars(thread).get("run") is None for thread in variables["threads"])
    graph = begin(lab, "loss")
    last = THREADS.rstrip().count("\n") + 1
    here = variables["here"][0].grad_fn._sequence_nr()
    assert variables["first"] <= here < variables["taken"]  # in question: a thread has as many
    for node in graph.nodes:
        if node.kind == "operation":
            lines = (None,) if node.sequence < variables["taken"] else (last,)
            assert (node.source and node.source.line) in lines and not node.module, node
    assert sum(node.source is not None for node in graph.nodes) == 5


def detail(lab: Lab, node: int) -> NodeDetailSnapshot:
    (snapshot,) = ask(node_detail(lab, NodeDetailCommand(node=node)))
    return snapshot


def console_sequence(lab: Lab, name: str) -> int:
    return lab.console.namespace.variables[name].grad_fn._sequence_nr()


def test_ends_tell_which_output_they_lead_to_and_leaves_all_their_names() -> None:
    lab = console(
        "a, b = nn.Linear(2, 2), nn.Linear(2, 2)\nb.weight = a.weight\n"
        "top, low = torch.split(b(a(torch.ones(4, 2))), 2)\nloss = (low * 2).sum()",
    )
    graph = begin(lab, "loss")
    (end,) = [e for e in detail(lab, named(graph, "MulBackward0").id).inputs if e.nodes]
    assert (end.nodes, end.output) == ((named(graph, "SplitBackward0").id,), 1)
    assert [e.text for e in detail(lab, end.nodes[0]).outputs] == ["not used", ""]
    leaf = next(n for n in graph.nodes if n.label == "a.weight")
    assert detail(lab, leaf.id).also_called == ("b.weight",)
    assert detail(lab, 0).also_called == ()


def test_all_that_is_known_of_a_node() -> None:
    lab = console(
        "x = torch.arange(6.0).reshape(2, 3)\nw = torch.ones(3, 4, requires_grad=True)",
        "h = x @ w\ny = h.softmax(-1)[0].sum() + (w * w).sum()",
        "h.grad_fn.metadata['mine'] = 7",
    )
    graph = begin(lab, "y")
    product = detail(lab, named(graph, "MmBackward0").id)
    (saved,) = [s for s in product.saved if s.value is not None]
    assert saved.name == "self" and saved.value.summary.shape == (2, 3)
    assert saved.shared_with == ("x",) and saved.storage_bytes == 24
    assert product.metadata == (("mine", "7"),)
    assert [end.text for end in product.inputs] == ["data that requires no grad: x", ""]
    assert product.inputs[1].nodes == (named(graph, "AccumulateGrad").id,)
    softmax = detail(lab, named(graph, "SoftmaxBackward0").id)
    assert ("dim", "-1") in softmax.settings or ("dim", "1") in softmax.settings
    assert softmax.inputs[0].nodes == (product.node,)
    assert product.outputs[0].nodes == (softmax.node,)
    assert [caller.name for caller in softmax.callers] == ["softmax"]
    square = detail(lab, next(n.id for n in graph.nodes if n.op == "mul"))
    assert all("w" in s.shared_with for s in square.saved)
    root = detail(lab, 0)
    assert root.outputs[0].text.startswith("the root")
    assert root.sequence == console_sequence(lab, "y") and softmax.sequence < root.sequence
    ends = [end for n in graph.nodes for side in ("inputs", "outputs")
            for end in getattr(detail(lab, n.id), side)]  # fmt: skip
    assert {end.device for end in ends if end.spec is not None} == {"cpu"}
    with pytest.raises(LabError, match="no node 999"):
        detail(lab, 999)


def test_details_of_freed_overwritten_and_custom_nodes() -> None:
    lab = console(
        "class Twice(torch.autograd.Function):\n"
        "    @staticmethod\n    def forward(ctx, x):\n"
        "        ctx.save_for_backward(x)\n        ctx.factor = 2\n        return x * 2\n"
        "    @staticmethod\n    def backward(ctx, g):\n        return g * ctx.factor\n",
        "x = torch.ones(2, requires_grad=True)\ny = Twice.apply(x).exp()\nz = y.sin().sum()",
        "y.mul_(2)",
    )
    graph = begin(lab, "z")
    custom = detail(lab, named(graph, "TwiceBackward").id)
    assert ("factor", "2") in custom.settings
    assert custom.saved[0].shared_with[0] == "x"
    (saved,) = detail(lab, named(graph, "SinBackward0").id).saved
    assert (saved.saved_version, saved.version) == (0, 1) and "overwritten" in saved.note
    assert saved.value is not None and "14.7781" in saved.value.text

    lab = console("x = torch.ones(2, requires_grad=True)\ny = x.exp().sum()\ny.backward()")
    freed = detail(lab, named(begin(lab, "y"), "ExpBackward0").id)
    assert freed.saved[0].value is None and "freed" in freed.saved[0].note
    assert "freed" in freed.note


def test_very_many_leaves_are_told_in_part() -> None:
    lab = console(
        "xs = [torch.full((1,), float(i), requires_grad=True) for i in range(2_500)]",
        "y = torch.cat(xs).square().sum()",
    )
    begin(lab, "y")
    end = move(lab, "end")
    assert (len(end.gradients), end.gradients_more) == (500, 2_000)
    assert compare(lab) == 0.0
    assert variable(lab, "xs")[2_000].grad.item() == 4_000
