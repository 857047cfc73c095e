"""Where breakpoints hold and what they say, edits and comparisons, at ties and limits."""

from __future__ import annotations

import functools
import math
from typing import Any

import pytest
import torch
from torch import nn

from engine.autograd import BackwardStepper, read_graph
from engine.autograd.backward.breakpoints import Breakpoints, is_inside, norm
from engine.autograd.backward.edits import GradientExpression
from engine.autograd.backward.undo import leaves_held
from engine.protocol import (
    Breakpoint,
    CompareGradientsCommand,
    EditGradientCommand,
    MoveBackwardCommand,
    StartBackwardCommand,
)
from engine.server.session import handler_of
from engine.system.errors import LabError
from tests.engine.autograd.backward.test_roots import ask, console, run


def reason(root: torch.Tensor, gradient: torch.Tensor, steps: int, point: Breakpoint) -> str:
    """What one breakpoint says after some steps from a root."""
    stepper = BackwardStepper(root, gradient)
    for _ in range(steps):
        stepper.step()
    return Breakpoints([point]).reason(stepper)


X = torch.ones(2, requires_grad=True)
THREE_FOUR = torch.tensor([3.0, 4.0])


@pytest.mark.parametrize(("point", "steps", "said"), [
    # 3 and 4 come in at exp: their norm is 5
    (Breakpoint(condition="norm_above", threshold=4.9), 0,
     "Paused before ExpBackward0: norm 5 coming in, above 4.9."),
    (Breakpoint(condition="norm_above", threshold=5.0), 0, ""),
    (Breakpoint(condition="norm_below", threshold=5.0), 0, ""),
    (Breakpoint(condition="norm_below", threshold=5.5), 0,
     "Paused before ExpBackward0: norm 5 coming in, below 5.5."),
    (Breakpoint(condition="norm_above", of="outgoing", threshold=13), 0, ""),
    (Breakpoint(condition="norm_above", of="outgoing", threshold=13), 1,
     "Paused after ExpBackward0: norm 13.59 going out, above 13."),
    (Breakpoint(condition="shape", shape=(2,)), 0,
     "Paused before ExpBackward0: shape (2,) coming in."),
    (Breakpoint(condition="shape", shape=(1, 2)), 0, ""),
    (Breakpoint(condition="not_finite"), 0, ""),
    (Breakpoint(on="op", target="exp"), 0, "Paused before ExpBackward0."),
    (Breakpoint(on="op", target="ExpBackward0"), 0, "Paused before ExpBackward0."),
    (Breakpoint(on="op", target="ex"), 0, ""),
    (Breakpoint(on="node", target="0"), 0, "Paused before ExpBackward0."),
    (Breakpoint(on="node", target="1"), 0, ""),
    (Breakpoint(on="node", target="1"), 1, "Paused before AccumulateGrad."),
    (Breakpoint(on="node", target="1"), 2, ""),
    (Breakpoint(on="op", target="exp", enabled=False), 0, ""),
    (Breakpoint(on="op", target="exp", condition="norm_above", threshold=1), 1, ""),
])  # fmt: skip
def test_a_breakpoint_holds_at_its_node_and_says_why(
    point: Breakpoint, steps: int, said: str
) -> None:
    assert reason(X.exp(), THREE_FOUR, steps, point) == said


@pytest.mark.parametrize(("gradient", "said"), [
    ([math.nan, 1.0, math.nan, math.inf], "2 NaN and 1 inf"), ([math.nan, 1.0, 1.0, 1.0], "1 NaN"),
    ([-math.inf, math.inf, 1.0, 1.0], "2 inf"), ([0.0, 1.0, 2.0, 3.0], ""),
])  # fmt: skip
def test_numbers_that_are_not_finite_are_counted(gradient: list[float], said: str) -> None:
    root = torch.ones(4, requires_grad=True) * 1.0
    point = Breakpoint(condition="not_finite")
    expected = f"Paused before MulBackward0: {said} coming in." if said else ""
    assert reason(root, torch.tensor(gradient), 0, point) == expected


@pytest.mark.parametrize("bad", [0, 1, 2])
def test_all_gradients_that_come_in_are_looked_at(bad: int) -> None:
    parts = torch.ones(3, requires_grad=True).split(1)
    gradients: list[torch.Tensor] = [torch.ones(1) for _ in parts]
    gradients[bad] = torch.tensor([math.nan])
    stepper = BackwardStepper(parts, gradients)
    for condition, said in (
        ("not_finite", "1 NaN coming in"), ("makes_not_finite", ""),
    ):  # fmt: skip
        found = Breakpoints([Breakpoint(condition=condition)]).reason(stepper)  # type: ignore
        assert found == (f"Paused before SplitBackward0: {said}." if said else "")
    point = Breakpoint(condition="shape", shape=(2,))
    whole = BackwardStepper(
        torch.ones(3, requires_grad=True).split((1, 2)), [torch.ones(1), torch.ones(2)]
    )
    assert Breakpoints([point]).reason(whole).endswith("shape (2,) coming in.")


def test_only_the_node_that_makes_numbers_that_are_not_finite_is_told() -> None:
    x = torch.tensor([0.0, 1.0], requires_grad=True)
    root = ((x * 1.0).sqrt() * 1.0) * 1.0
    point = Breakpoint(condition="makes_not_finite")
    said = [reason(root, torch.ones(2), steps, point) for steps in range(6)]
    told = "Paused after SqrtBackward0: it was given finite numbers and made 1 inf."
    assert said == ["", "", "", told, "", ""]  # the next node passes it on


def test_a_module_is_told_where_it_is_entered() -> None:
    root = X.exp().sin().cos().tan()
    stepper = BackwardStepper(root, torch.ones(2))
    points = Breakpoints([Breakpoint(on="module", target="net.a")])
    points.begin({0: "net.b", 1: "net.a", 2: "net.a.0", 3: "net.ab", 4: "net.a"})
    said = []
    while stepper.next_node is not None:
        said.append(points.reach(stepper))
        stepper.step()
    enters = "Paused before the first node of net.a."
    assert said == ["", enters, "", "", enters]
    assert points.states[0].hits == 2
    assert [s.places for s in points.states_in(stepper.plan)] == [3]
    assert is_inside("a.b", "a") and is_inside("a", "a") and not is_inside("ab", "a")


def test_counts_stay_with_a_breakpoint_that_is_switched_and_not_with_one_that_is_changed() -> None:
    stepper = BackwardStepper(X.exp(), THREE_FOUR)
    first = Breakpoint(condition="norm_above", threshold=1)
    points = Breakpoints([first, Breakpoint(on="op", target="exp")])
    assert points.reach(stepper) == (
        "Paused before ExpBackward0: norm 5 coming in, above 1. Paused before ExpBackward0."
    )
    points.replace([
        Breakpoint(condition="norm_above", threshold=2),
        Breakpoint(condition="norm_above", threshold=1, enabled=False),
        Breakpoint(on="op", target="sin"),
        Breakpoint(on="op", target="exp"),
    ])  # fmt: skip
    assert [s.hits for s in points.states] == [0, 1, 0, 1]
    assert points.reach(stepper).count("Paused before") == 2
    assert [s.hits for s in points.states] == [1, 1, 0, 2]
    points.begin({})
    assert [s.hits for s in points.states] == [0, 0, 0, 0]


def test_a_norm_is_taken_in_double_precision() -> None:
    assert norm(torch.full((4,), 1e30)) == pytest.approx(2e30)
    assert norm(torch.tensor([3 + 4j])) == 5
    assert norm(torch.tensor([3.0, 4.0]).to_sparse()) == 5
    assert norm(torch.ones(2, device="meta")) is None


# -- edits


@pytest.mark.parametrize(("expression", "copies"), [
    ("g * 2", False), ("g.mul_(2)", True), ("g.clamp(0, 1)", False), ("torch.mul(g, 2)", False),
    ("torch.mul(g, 2, out=g)", True), ("F.relu(g, inplace=True)", True),
    ("torch.mul(g, 2, **options)", True), ("change(g)", True), ("g.__imul__(2)", True),
    ("g.__mul__(2)", False), ("torch.sum(g, dim=0)", False), ("None", False),
])  # fmt: skip
def test_an_expression_that_may_write_gets_copies(expression: str, copies: bool) -> None:
    assert GradientExpression(expression).copies is copies


def test_the_names_of_an_expression_are_the_variables_that_it_uses() -> None:
    variables = {"scale": 2.0, "unused": 1, "torch": torch, "b": 3.0}
    edit = GradientExpression(" scale * g + b * torch.ones(()) ", variables=variables)
    assert edit.names == ("b", "scale") and edit.expression == "scale * g + b * torch.ones(())"
    assert GradientExpression("g").names == ()


def edited(
    expression: str, output: int = 0, gradients: Any = None, **options: Any
) -> tuple[Any, GradientExpression]:
    """What an expression makes of the gradients that come in at a node with two outputs."""
    first, _ = torch.arange(4.0).requires_grad_().split(2)
    node = read_graph(first).nodes[0]
    edit = GradientExpression(expression, output, **options)
    given = (torch.ones(2), torch.full((2,), 3.0)) if gradients is None else gradients
    return edit(given, node), edit


def test_an_edit_replaces_the_gradient_of_its_output_alone() -> None:
    (first, second), _ = edited("g * 10 + grads[0]", 1)
    assert first.tolist() == [1, 1] and second.tolist() == [31, 31]
    given = (torch.ones(2), torch.full((2,), 3.0))
    (first, second), _ = edited("g.mul_(0)", 0, given)
    assert first.tolist() == [0, 0] and given[0].tolist() == [1, 1] and second is given[1]
    assert edited("None", 1)[0][1] is None


def test_an_edit_draws_from_a_stream_of_its_own() -> None:
    torch.manual_seed(7)
    before = torch.get_rng_state()
    (first, _), edit = edited("torch.rand_like(g)", seed=3)
    (again, _), _ = edited("torch.rand_like(g)", seed=3)
    (other, _), _ = edited("torch.rand_like(g)", seed=4)
    assert torch.equal(first, again) and not torch.equal(first, other)
    assert torch.equal(torch.get_rng_state(), before)
    assert edit.draws and not edited("g * 2")[1].draws


@pytest.mark.parametrize(("expression", "gradients", "words", "hint"), [
    ("g +", None, "`g +` is not an expression", "Write Python of g"),
    ("g = 1", None, "`g = 1` is not an expression", "Write Python of g"),
    ("g\0", None, "is not an expression", "Write Python of g"),
    ("1 / 0", None, "`1 / 0` fails: ZeroDivisionError: division by zero", "Write Python of g"),
    ("g * 2", (None, torch.ones(2)), "fails: TypeError", "No gradient arrives here: g is None."),
    ("3.0", None, "`3.0` gives 3.0, of type float: a gradient is a tensor, or None.", "full_like"),
    ("torch.ones(2)", (None, torch.ones(2)),
     "No gradient arrives at SplitBackward0 for output 0, and torch lets no hook", "node above"),
    ("g[0]", None, "`g[0]` does not fit: the gradient for SplitBackward0 has shape (), not (2,).",
     "expand_as(g)"),
    ("g.double()", None, "has dtype torch.float64, not torch.float32", "to(g)"),
    ("g.to_sparse()", None, "has layout torch.sparse_coo, not torch.strided", "to_dense()"),
])  # fmt: skip
def test_an_edit_that_cannot_be_is_refused_in_words(
    expression: str, gradients: Any, words: str, hint: str
) -> None:
    with pytest.raises(LabError) as refused:
        edited(expression, 0, gradients)
    assert words in str(refused.value) and hint in refused.value.hint


# -- what a Python Function holds


def test_leaves_are_found_wherever_a_function_holds_them() -> None:
    def leaf() -> torch.Tensor:
        return torch.ones(2, requires_grad=True)

    layer, closed, default, keyword, bound = nn.Linear(2, 2), leaf(), leaf(), leaf(), leaf()
    in_list, in_dict, attribute, argument = leaf(), leaf(), leaf(), leaf()

    class Holder:
        def __init__(self) -> None:
            self.own = attribute

        def method(self) -> None: ...

    def function(a: Any = default, *, k: Any = keyword) -> Any:
        def inner() -> Any:
            return closed

        return inner

    class Keeps(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            ctx.layer, ctx.items, ctx.table = layer, [in_list, (in_list, 1)], {"k": in_dict}
            ctx.function, ctx.method = function, Holder().method
            ctx.partial = functools.partial(len, argument, k=bound)
            ctx.constant, ctx.result, ctx.text = torch.ones(2), x * 2, "text"
            return x * 1

        @staticmethod
        def backward(ctx: Any, g: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
            return g

    with torch.enable_grad():
        fn = Keeps.apply(torch.ones(2, requires_grad=True)).grad_fn
    held = {id(t) for t in leaves_held(fn)}
    wanted = [*layer.parameters(), closed, default, keyword, in_list, in_dict, attribute, argument]
    assert held == {id(t) for t in [*wanted, bound]}
    assert len(leaves_held(fn)) == len(held)  # each once


# -- comparing


def test_a_pass_is_compared_at_its_end_only_and_each_gradient_by_itself() -> None:
    lab = console(
        "x, w = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)",
        "y = (x.sin() * w).sum()",
    )

    def send(command: Any) -> Any:
        return ask(handler_of(type(command))(lab, command))[-1]

    send(StartBackwardCommand(root="y"))
    with pytest.raises(LabError, match=r"^5 nodes have not run yet") as refused:
        send(CompareGradientsCommand())
    assert "to its end" in refused.value.hint
    send(MoveBackwardCommand(move="end"))
    assert send(CompareGradientsCommand()).differences == {"x": 0.0, "w": 0.0}
    run(lab, "w.grad = w.grad + 0.25")  # not by the pass
    assert send(CompareGradientsCommand()).max_difference == 0.0
    assert lab.console.namespace.variables["w"].grad.tolist() != [0.0] * 3
    assert lab.backward.under_way is not None
    nodes = lab.backward.under_way.stepper.graph.nodes
    (leaf,) = (node.id for node in nodes if node.label == "w")
    run(lab, "w.grad = None; x.grad = None")
    send(StartBackwardCommand(root="y"))
    send(EditGradientCommand(node=leaf, expression="g + 0.25"))
    send(MoveBackwardCommand(move="end"))
    compared = send(CompareGradientsCommand())
    assert compared.differences == pytest.approx({"w": 0.25, "x": 0.0})
    assert list(compared.differences) == ["w", "x"]  # the largest first
    assert compared.max_difference == pytest.approx(0.25)
    run(lab, "w.grad = None; x.grad = None")
    send(StartBackwardCommand(root="y"))
    send(EditGradientCommand(node=leaf, expression="None"))
    send(MoveBackwardCommand(move="end"))
    compared = send(CompareGradientsCommand())
    assert compared.differences["w"] == math.inf == compared.max_difference
    assert lab.console.namespace.variables["w"].grad is None  # `.grad` stays as it is
