"""Passes over the console's tensors: accumulation, inputs, gradients of gradients."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from engine.lab import Lab
from engine.protocol import (
    BackwardSnapshot,
    CompareGradientsCommand,
    EditGradientCommand,
    InspectCommand,
    MoveBackwardCommand,
    RuleCommand,
    RunCellCommand,
    SetBreakpointsCommand,
    StartBackwardCommand,
    ZeroGradientsCommand,
)
from engine.server.session import handler_of
from engine.system.errors import LabError
from tests.engine.autograd.backward.test_roots import ask, console, run

LABS: list[Lab] = []


@pytest.fixture(autouse=True)
def no_engine_stays_held() -> Any:
    yield
    while LABS:
        LABS.pop().close()


def made(*cells: str) -> Lab:
    LABS.append(console(*cells))
    return LABS[-1]


def send(lab: Lab, command: Any) -> Any:
    """The last answer."""
    return ask(handler_of(type(command))(lab, command))[-1]


def start(lab: Lab, **options: Any) -> BackwardSnapshot:
    return send(lab, StartBackwardCommand(**options))


def move(lab: Lab, where: Any) -> BackwardSnapshot:
    return send(lab, MoveBackwardCommand(move=where))


def variable(lab: Lab, name: str) -> torch.Tensor:
    return lab.console.namespace.variables[name]


@pytest.mark.parametrize("real_engine", [False, True])
def test_passes_add_up_in_grad(real_engine: bool) -> None:
    lab = made("x = torch.tensor(3., requires_grad=True); y = x**2")
    options = {"root": "y", "real_engine": real_engine, "retain_graph": True}
    start(lab, **options)
    for total in (6.0, 12.0, 18.0):
        done = move(lab, "end")
        assert variable(lab, "x").grad.item() == total
        before, after = done.step.grad_before, done.step.grad_after
        assert (before.text if before else "0.") == f"{total - 6:g}."
        assert after.text == f"{total:g}."
        move(lab, "again")
    send(lab, ZeroGradientsCommand(set_to_none=False))
    assert variable(lab, "x").grad.item() == 0.0
    assert move(lab, "end").step.grad_before.text == "0."
    assert variable(lab, "x").grad.item() == 6.0
    start(lab, **options)  # the console's .grad is the user's: another start adds to it
    move(lab, "end")
    assert variable(lab, "x").grad.item() == 12.0
    assert send(lab, CompareGradientsCommand()).max_difference == 0.0


TRAINING = (
    "opt.zero_grad(); (x * 5).backward(); opt.step()",
    "x.grad.zero_(); x.grad -= 7",
    "x.grad = None",
)


@pytest.mark.parametrize("training", TRAINING)
@pytest.mark.parametrize("real_engine", [False, True])
def test_a_finished_pass_shows_its_own_grad_and_not_that_of_a_later_step(
    real_engine: bool, training: str
) -> None:
    lab = made("x = torch.tensor(3., requires_grad=True); y = x**2; opt = torch.optim.SGD([x], 1)")
    start(lab, root="y", real_engine=real_engine, retain_graph=True)
    done = move(lab, "end")
    assert done.step.grad_after.text == "6."
    ask(handler_of(RunCellCommand)(lab, RunCellCommand(source=training)))
    told = send(lab, SetBreakpointsCommand(breakpoints=()))
    assert (told.step.grad_before, told.step.grad_after) == (None, done.step.grad_after)
    rule = send(lab, RuleCommand(node=done.step.node))
    assert (rule.numbers.value, rule.numbers.engine) == (6.0, 6.0)
    (row,) = told.gradients
    assert row.gradient.mean == 6.0
    inspected = send(lab, InspectCommand(of="gradient", key="x", optimizer="optim.SGD"))
    assert inspected.values[0].text == "6."


@pytest.mark.parametrize("inputs", [(), ("x",)])
@pytest.mark.parametrize("real_engine", [False, True])
def test_the_graph_of_a_gradient_is_stepped_in_turn(inputs, real_engine: bool) -> None:
    lab = made("x = torch.tensor(3., requires_grad=True); y = x**3")
    options: dict[str, Any] = {"create_graph": True, "inputs": inputs, "real_engine": real_engine}
    start(lab, root="y", **options)
    derivatives = []
    for _ in range(3):
        done = move(lab, "end")
        assert done.create_graph and done.inputs == inputs
        (gradient,) = done.gradients
        derivatives.append(gradient.gradient.mean)
        assert (variable(lab, "x").grad is None) == bool(inputs)
        start(lab, of="x", **options)
    assert derivatives == [27.0, 18.0, 6.0]
    variable(lab, "x").grad = None


def test_x_grad_can_be_chosen_as_a_root_of_the_console() -> None:
    lab = made("x = torch.tensor(3., requires_grad=True); y = x**3")
    start(lab, root="y", create_graph=True)
    move(lab, "end")
    run(lab, "g = x.grad; x.grad = None")
    start(lab, root="g")
    assert move(lab, "end").gradients[0].gradient.mean == 18.0


CHECKPOINTED = """
from torch.utils.checkpoint import checkpoint
net = nn.Linear(3, 3)
x = torch.ones(2, 3, requires_grad=True)
y = checkpoint(net, x * 2, use_reentrant=True).sum()
"""


def test_parameters_within_a_reentrant_checkpoint_are_told_compared_and_emptied() -> None:
    """They are not in the graph: the checkpoint's own backward adds to their `.grad`."""
    lab = made(CHECKPOINTED)
    begun = start(lab, root="y")
    assert [g.name for g in begun.gradients] == ["x", "net.weight", "net.bias"]
    end = move(lab, "end")
    assert [g.gradient is not None for g in end.gradients] == [True] * 3
    net: Any = variable(lab, "net")
    stepped = net.bias.grad.clone()
    assert stepped.tolist() == [2.0, 2.0, 2.0]
    compared = send(lab, CompareGradientsCommand())
    assert compared.max_difference == 0.0 and len(compared.differences) == 3
    assert torch.equal(net.bias.grad, stepped)
    assert [g.gradient for g in move(lab, "reset").gradients] == [None] * 3


def test_a_gradient_without_a_graph_is_explained() -> None:
    lab = made("x = torch.tensor(3., requires_grad=True); y = x**3")
    start(lab, root="y")
    with pytest.raises(LabError, match="x has no gradient yet"):
        start(lab, of="x")
    move(lab, "end")
    with pytest.raises(LabError, match="no graph of its own") as raised:
        start(lab, of="x")
    assert "create_graph" in raised.value.hint
    with pytest.raises(LabError, match="no gradient for `z`"):
        start(lab, of="z")


@pytest.mark.parametrize("real_engine", [False, True])
def test_only_the_gradients_of_inputs(real_engine: bool) -> None:
    lab = made(
        "x = torch.randn(4, requires_grad=True); w = torch.randn(4, requires_grad=True)",
        "h = x * w; y = h.sin().sum() + w.sum()",
    )
    plain = torch.autograd.grad(
        variable(lab, "y"), [variable(lab, "w"), variable(lab, "h")], retain_graph=True
    )
    options = {"root": "y", "inputs": ("w", "h"), "real_engine": real_engine, "retain_graph": True}
    begun = start(lab, **options)
    assert [g.name for g in begun.gradients] == ["w", "h"]
    done = move(lab, "end")
    for told, wanted in zip(done.gradients, plain, strict=True):
        assert told.gradient.norm == pytest.approx(wanted.double().norm().item())
    assert variable(lab, "x").grad is None and variable(lab, "w").grad is None
    assert send(lab, CompareGradientsCommand()).differences == {"w": 0.0, "h": 0.0}
    (shown,) = send(lab, InspectCommand(of="gradient", key="h")).values
    assert shown.summary.norm == done.gradients[1].gradient.norm
    for inputs, words in ((("z",), "no tensor named `z`"), (("y.foo",), "no tensor named")):
        with pytest.raises(LabError, match=words):
            start(lab, root="y", inputs=inputs)
    run(lab, "c = torch.ones(3)")
    with pytest.raises(LabError, match="does not require grad"):
        start(lab, root="y", inputs=("c",))


def test_gradients_of_chosen_parameters_of_the_model() -> None:
    from tests.engine.handlers.test_backward_handlers import begun

    lab, _ = begun()
    name = next(iter(dict(lab.models.forward.state.named_parameters())))
    start(lab, inputs=(name,))
    done = move(lab, "end")
    assert send(lab, CompareGradientsCommand()).differences == {name: 0.0}
    assert dict(lab.models.forward.state.named_parameters())[name].grad is None
    gradient = lab.backward.require().gradient_of(name)
    assert gradient is not None
    assert done.gradients[0].gradient.norm == pytest.approx(gradient.double().norm().item())


def test_hooks_on_tensors_of_the_console_are_told() -> None:
    lab = made(
        "x = torch.ones(2, requires_grad=True); h = x * 2; y = h.sum()",
        "h.register_hook(lambda g: g * 2); h.retain_grad()",
        "x.register_post_accumulate_grad_hook(lambda t: None)",
    )
    start(lab, root="y")
    before = move(lab, "step")
    assert before.next.hooks == "1 tensor hook, retain_grad"
    ran = move(lab, "step")
    assert ran.step.hooks == "1 tensor hook, retain_grad"
    assert [(g.name, g.retained) for g in ran.gradients] == [("x", False), ("h", True)]
    assert ran.gradients[1].gradient.mean == 2.0
    assert move(lab, "step").step.hooks == "1 post-accumulate hook"


def test_a_freed_graph_of_the_console_says_so() -> None:
    lab = made("x = torch.ones(2, requires_grad=True); y = x.sin().sum()")
    start(lab, root="y", real_engine=True)
    move(lab, "end")
    with pytest.raises(LabError, match="freed this graph"):
        send(lab, CompareGradientsCommand())
    start(lab, root="y", real_engine=True)
    with pytest.raises(LabError, match=r"^\w+Backward0 fails: Trying .* second time"):
        move(lab, "end")


FAILING = """
def late(g):
    raise KeyError("late")
x = torch.ones(3, requires_grad=True)
inner = x.exp()
inner.register_hook(late)
y = inner.sin().sum()
z = x.exp()
w = (z * z).sum()
z.add_(1)
"""


@pytest.mark.parametrize("real_engine", [False, True])
def test_what_fails_in_a_pass_is_told_with_node_line_and_what_to_try(real_engine: bool) -> None:
    lab = made(FAILING)
    start(lab, root="y", real_engine=real_engine)
    with pytest.raises(
        LabError, match=r"^ExpBackward0 of inner fails in line 3 of cell 1: Key"
    ) as (raised):
        move(lab, "end")
    assert "restart" in raised.value.hint
    start(lab, root="w", real_engine=real_engine)
    with pytest.raises(LabError, match=r"^MulBackward0 fails: one of the variables") as raised:
        move(lab, "end")
    assert "clone() before writing" in raised.value.hint


@pytest.mark.parametrize("real_engine", [False, True])
@pytest.mark.parametrize("wanted", [("inner",), ("y",), ("inner", "x"), ("spare", "inner")])
def test_inputs_that_are_no_leaves_and_one_that_is_not_used(wanted, real_engine: bool) -> None:
    lab = made(
        "x = torch.randn(3, requires_grad=True); inner = x.sin(); y = (inner * 2).exp().sum()",
        "spare = torch.ones(2, requires_grad=True)",
    )
    names = {name: variable(lab, name) for name in ("x", "inner", "y", "spare")}
    expected = torch.autograd.grad(
        names["y"], [names[name] for name in wanted], allow_unused=True, retain_graph=True
    )
    start(lab, root="y", inputs=wanted, real_engine=real_engine, retain_graph=True)
    while (done := move(lab, "step")).next is not None:  # each step is told
        pass
    for told, plain in zip(done.gradients, expected, strict=True):
        found = lab.backward.under_way.gradient_of(told.name)
        assert (told.gradient is None) == (plain is None) == (found is None)
        assert plain is None or (found is not None and torch.equal(found, plain))
    assert names["x"].grad is None


def test_a_pass_over_a_gradient_is_edited() -> None:
    lab = made("x = torch.tensor([1.0, 2.0], requires_grad=True); y = (x**3).sum()")
    start(lab, root="y", create_graph=True)
    move(lab, "end")
    start(lab, of="x")
    graph = lab.backward.under_way.stepper.graph
    last = next(node for node in graph.nodes if node.name == "PowBackward0")
    send(lab, EditGradientCommand(node=last.id, expression="g * 2"))
    move(lab, "end")
    found = lab.backward.under_way.gradient_of("x")
    assert found is not None and torch.equal(found, 12 * variable(lab, "x").detach())


def test_a_node_that_is_only_captured_is_not_edited() -> None:
    lab = made("x = torch.randn(3, requires_grad=True); inner = x.sin(); y = (inner * 2).sum()")
    start(lab, root="y", inputs=("inner",))
    node = lab.backward.under_way.stepper.graph.node_of(variable(lab, "inner").grad_fn).id
    with pytest.raises(LabError, match="SinBackward0 does not run"):
        send(lab, EditGradientCommand(node=node, expression="g * 2"))
    leaf = next(n.id for n in lab.backward.under_way.stepper.graph.nodes if n.is_leaf)
    with pytest.raises(
        LabError, match=r"does not run: .* x> is not on the way to any of the inputs"
    ) as refusal:
        send(lab, EditGradientCommand(node=leaf, expression="g * 2"))
    assert refusal.value.hint == "Start the pass without inputs."


@pytest.mark.parametrize("gradient", ["1j", "torch.ones(3).cfloat()"])
def test_a_complex_gradient_for_a_real_root_is_refused(gradient: str) -> None:
    lab = made("x = torch.randn(3, requires_grad=True); y = x * 2")
    with pytest.raises(LabError, match="is complex, and `y` is real"):
        start(lab, root="y", gradient=gradient)
