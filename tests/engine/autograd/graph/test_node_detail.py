"""What is told of one node: settings, ends, callers and holders, as torch has them."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from engine.handlers import node_detail as handler
from engine.protocol import (
    ErrorSnapshot,
    GraphNode,
    GraphSnapshot,
    NodeDetailCommand,
    NodeDetailSnapshot,
    RunCellCommand,
    Snapshot,
    StartBackwardCommand,
    join_graph,
)
from engine.server.session import Session


class Detailed:
    """The graph of `y` after these lines, and the details of its nodes."""

    def __init__(self, source: str) -> None:
        self.told: list[Snapshot] = []
        self.session = Session(self.told.append)
        self.session.handle(RunCellCommand(source=source))
        self.told.clear()
        self.session.handle(StartBackwardCommand(root="y"))
        self.graph = join_graph([s for s in self.told if isinstance(s, GraphSnapshot)])
        self.names: dict[str, Any] = self.session.lab.console.namespace.variables

    def node(self, name: str) -> GraphNode:
        return next(node for node in self.graph.nodes if name in (node.name, node.label))

    def of(self, name: str | int) -> NodeDetailSnapshot:
        number = name if isinstance(name, int) else self.node(name).id
        self.session.handle(NodeDetailCommand(node=number))
        found = self.told[-1]
        assert isinstance(found, NodeDetailSnapshot), found
        return found


def test_settings_are_as_the_user_wrote_them() -> None:
    told = Detailed("x = torch.ones(3, 4, requires_grad=True)\ny = x.sum(-1)[1:].clamp(0, 9).sum()")
    assert dict(told.of("SumBackward1").settings) == {
        "dim": "(-1,)", "keepdim": "False", "self_sym_sizes": "(3, 4)",
    }  # fmt: skip
    part = dict(told.of("SliceBackward0").settings)
    assert (part["start"], part["step"], part["dim"]) == ("1", "1", "0")
    assert part["end"] == "'the end'"
    clamp = dict(told.of("ClampBackward1").settings)
    assert clamp == {"min": "0", "max": "9"}


def test_a_custom_function_tells_what_it_put_on_ctx_in_few_letters() -> None:
    told = Detailed("""\
class Silent:
    def __repr__(self):
        raise ValueError("not shown")

class Own(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.size, ctx.long, ctx.just, ctx.silent = -1, "a" * 200, "a" * 198, Silent()
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2

y = Own.apply(torch.ones(2, requires_grad=True)).sum()
""")
    settings = dict(told.of("OwnBackward").settings)
    assert settings["size"] == "-1" and settings["just"] == repr("a" * 198)
    assert settings["long"] == repr("a" * 200)[:199] + "…" and len(settings["long"]) == 200
    assert settings["silent"] == "Silent (not shown)"


def test_the_outputs_tell_who_uses_them_and_what_has_no_gradient() -> None:
    told = Detailed("""\
class Sort(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        top, order = x.sort()
        ctx.mark_non_differentiable(order)
        return top, order

    @staticmethod
    def backward(ctx, g, _):
        return g

x = torch.tensor([3., 1., 2.], requires_grad=True)
top, order = Sort.apply(x)
parts = top.unbind()
y = parts[0] * parts[0] + parts[2] + order[0]
""")
    sort = told.of("SortBackward")
    unbind = told.node("UnbindBackward0")
    assert [(end.nodes, end.text) for end in sort.outputs] == [
        ((unbind.id,), ""), ((), "no gradient comes here: integers, or None"),
    ]  # fmt: skip
    assert (sort.outputs[0].spec.shape, sort.outputs[0].device) == ((3,), "cpu")
    assert sort.outputs[1].spec is None
    first, second, third = told.of("UnbindBackward0").outputs
    product = told.node("MulBackward0").id
    assert first.nodes == (product, product) and second.text == "not used" and second.nodes == ()
    assert len(third.nodes) == 1 and third.text == ""
    root = told.of(0)
    assert root.outputs[0].text == "the root: backward starts here" and not root.outputs[0].nodes
    ends = told.of("MulBackward0").inputs
    assert [(end.nodes, end.output) for end in ends] == [((unbind.id,), 0)] * 2
    (into,) = told.of("SortBackward").inputs
    assert into.nodes == (told.node("x").id,) and into.output is None
    assert (into.spec.shape, into.device) == ((3,), "cpu")


@pytest.mark.parametrize(
    ("cut", "text"),
    [
        ("x.detach()", "cut by detach()"),
        ("frozen", "data that requires no grad: frozen"),
        ("2.0", "no gradient goes here"),
    ],
)
def test_an_input_without_a_node_tells_why(cut: str, text: str) -> None:
    told = Detailed(
        "x = torch.ones(2, requires_grad=True)\nfrozen = torch.ones(2)\n"
        f"h = {cut}\ny = (x * h).sum()"
    )
    first, *rest = told.of("MulBackward0").inputs
    assert first.nodes == (told.node("x").id,)
    assert [end.text.partition(":")[0] for end in rest][:1] == [text.partition(":")[0]]
    assert all(end.nodes == () and end.spec is None for end in rest)


def test_all_that_holds_a_saved_tensor_is_named_up_to_a_number(monkeypatch) -> None:
    told = Detailed(
        "x = torch.ones(2, requires_grad=True)\nh = x * 1\nother = h\n"
        "y = (h.sin() + h.cos() + h.exp().detach() + h.sin()).sum()"
    )
    sines = [node.id for node in told.graph.nodes if node.name == "SinBackward0"]
    (saved,) = told.of(sines[0]).saved
    cosine = told.node("CosBackward0").id
    nodes = {f"#{number}" for number in (sines[1], cosine)}
    assert set(saved.shared_with[-2:]) == nodes and {"h", "other"} & set(saved.shared_with)
    whole = saved.shared_with
    assert saved.storage_bytes == 8 and (saved.version, saved.saved_version) == (None, None)
    for most, rest in ((len(whole), ()), (len(whole) - 1, ("1 more",))):
        monkeypatch.setattr(handler, "MAX_SHARED", most)
        (saved,) = told.of(sines[0]).saved
        assert saved.shared_with == (*whole[:most], *rest)


def test_the_callers_are_modules_and_functions_from_the_outermost_in() -> None:
    told = Detailed(
        "net = nn.Sequential(nn.Linear(2, 3), nn.Tanh())\ny = net(torch.ones(1, 2)).sum()"
    )
    callers = [(each.kind, each.name) for each in told.of("TanhBackward0").callers]
    assert callers[0] == ("module", "net.1 (Tanh)") and callers[-1][0] == "function"
    assert callers[-1][1] == "tanh"
    line = told.of("TanhBackward0").callers[-1].source
    assert line is not None and line.text == "y = net(torch.ones(1, 2)).sum()"
    assert [each.kind for each in told.of(0).callers] == ["function"]


def test_hooks_and_metadata_of_the_users_are_told() -> None:
    told = Detailed(
        "x = torch.ones(2, requires_grad=True)\nh = x.exp()\ny = h.sum()\n"
        "h.grad_fn.register_hook(lambda *_: None)\nh.grad_fn.metadata[3] = 'a'\n"
        "x.register_hook(lambda g: g)"
    )
    exp = told.of("ExpBackward0")
    assert exp.hooks == "1 node hook" and exp.metadata == (("3", "'a'"),)
    assert told.of("x").hooks == "1 tensor hook" and told.of(0).hooks == ""
    assert exp.sequence == told.names["h"].grad_fn._sequence_nr() and exp.note == ""
    assert told.of("x").sequence == -1


def test_without_a_pass_or_such_a_node_it_is_told() -> None:
    told = Detailed("y = torch.ones(2, requires_grad=True).sum()")
    for number in (-1, len(told.graph.nodes)):
        told.session.handle(NodeDetailCommand(node=number))
        error = told.told[-1]
        assert isinstance(error, ErrorSnapshot)
        assert error.error.message == f"There is no node {number} in the graph."
    assert told.of(len(told.graph.nodes) - 1).name == "AccumulateGrad"
    assert torch.is_grad_enabled()
