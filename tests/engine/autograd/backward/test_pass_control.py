"""Breakpoints, edits and passes of the backward control, against plain torch."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.autograd.graph import register_multi_grad_hook

from engine.autograd import BackwardStepper
from engine.autograd.backward.breakpoints import Breakpoints, norm
from engine.autograd.backward.pass_control import PassControl
from engine.autograd.backward.release import released_bytes
from engine.autograd.graph.hooks import hooks_on
from engine.autograd.graph.saved_for_backward import SavedForBackward
from engine.protocol import Breakpoint, BreakpointState, GradientEdit
from engine.system.errors import LabError
from tests.engine.autograd import backward_cases as cases
from tests.engine.autograd.backward.test_stepper import assert_grads, kept, same_bits


def control(
    roots: Any, *breakpoints: Breakpoint, modules: dict[int, str] | None = None, **kwargs: Any
) -> PassControl:
    return PassControl(
        lambda: BackwardStepper(roots), Breakpoints(breakpoints), modules=modules, **kwargs
    )


def go(d: PassControl, move: Any, target: int = -1) -> int:
    d.go(move, target)
    return d.stepped.position


def names(d: PassControl) -> list[str]:
    return [node.name for node in d.stepped.plan]


def mlp() -> tuple[torch.Tensor, nn.Sequential]:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2))
    return net(torch.randn(5, 3)).square().sum(), net


def expected_stops(d: PassControl, holds: Callable[[int], bool]) -> list[int]:
    return [p for p in range(1, len(d.stepped.plan) + 1) if holds(p)]


def stops(d: PassControl) -> list[int]:
    """Every position at which running stops, the end excluded."""
    found = []
    while go(d, "run") < len(d.stepped.plan) or d.stopped_by:
        if not d.stopped_by or (found and found[-1] == d.stepped.position):
            break
        found.append(d.stepped.position)
    return found


# -- breakpoints -----------------------------------------------------------------------------------


def test_run_stops_before_each_node_of_an_op_and_counts() -> None:
    loss, _ = mlp()
    d = control(loss, Breakpoint(on="op", target="addmm"))
    places = [p for p, name in enumerate(names(d)) if name == "AddmmBackward0"]
    assert len(places) == 3 and stops(d) == places
    assert d.breakpoints.states == (BreakpointState(Breakpoint(on="op", target="addmm"), 3),)
    assert d.stepped.next_node is None
    assert [s.places for s in d.breakpoints.states_in(d.stepped.plan)] == [3]
    go(d, "reset")
    assert d.breakpoints.states[0].hits == 0
    go(d, "run")
    assert d.stopped_by == "Paused before AddmmBackward0."


def test_a_breakpoint_on_a_node_and_one_that_is_off() -> None:
    loss, _ = mlp()
    on = Breakpoint(on="node", target="2")
    d = control(loss, Breakpoint(on="op", target="relu", enabled=False), on)
    assert stops(d) == [d.stepped.step_position(2) - 1]
    d.breakpoints.replace([Breakpoint(on="op", target="relu"), on])
    assert [s.hits for s in d.breakpoints.states] == [0, 1]
    go(d, "reset")
    assert len(stops(d)) == 3


def test_going_back_stops_at_the_same_places() -> None:
    loss, _ = mlp()
    points = (
        Breakpoint(on="op", target="ReluBackward0"),
        Breakpoint(condition="norm_above", of="outgoing", threshold=3.0),
        Breakpoint(condition="norm_below", threshold=1.0),
    )
    d = control(loss, *points)
    forth = stops(d)
    assert len(forth) > 3
    back = []
    while go(d, "back_run"):
        back.append(d.stepped.position)
        assert d.stopped_by
    assert [*reversed(back)] == [p for p in forth if p < len(d.stepped.plan)]


def test_norms_shapes_and_sides() -> None:
    loss, _ = mlp()
    probe = BackwardStepper(loss)
    steps = list(iter(probe.step, None))

    def over(gradients: Any, test: Callable[[float], bool]) -> bool:
        return any(g is not None and test(g.double().norm().item()) for g in gradients)

    cases_: list[tuple[Breakpoint, list[int]]] = [
        (
            Breakpoint(condition="norm_above", of="outgoing", threshold=2.0),
            [s.position for s in steps if over(s.outgoing, lambda n: n > 2.0)],
        ),
        (
            Breakpoint(condition="norm_below", of="incoming", threshold=2.0),
            [s.position - 1 for s in steps if over(s.incoming, lambda n: n < 2.0)],
        ),
        (
            Breakpoint(condition="shape", of="outgoing", shape=(5, 4)),
            [
                s.position
                for s in steps
                if any(g is not None and g.shape == (5, 4) for g in s.outgoing)
            ],
        ),
    ]
    for breakpoint, expected in cases_:
        probe.reset()
        found = stops(control(loss, breakpoint))
        assert expected and found == [p for p in expected if p > 0], breakpoint


def test_the_first_nan_is_told_from_those_that_passed_it_on() -> None:
    x = torch.tensor([0.0, 4.0], requires_grad=True)
    loss = (x.sqrt() * torch.tensor([0.0, 1.0])).exp().sum()  # 0 * inf at the square root
    made = control(loss, Breakpoint(condition="makes_not_finite"))
    assert stops(made) == [names(made).index("SqrtBackward0") + 1]
    go(made, "reset")
    go(made, "run")
    assert made.stopped_by == (
        "Paused after SqrtBackward0: it was given finite numbers and made 1 NaN."
    )
    assert x.grad is None and made.stepped.next_node is not None
    seen = control(loss, Breakpoint(condition="not_finite"))
    assert stops(seen) == [names(seen).index("SqrtBackward0") + 1]
    go(seen, "reset")
    go(seen, "run")
    assert seen.stopped_by == "Paused before AccumulateGrad: 1 NaN coming in."
    grown = torch.ones(1, requires_grad=True)
    d = control((grown * 1e20).sum() * 1e20, Breakpoint(condition="makes_not_finite"))
    go(d, "run")
    assert d.stopped_by.endswith("made 1 inf.")


def test_modules_stop_at_their_first_node_and_out_runs_to_their_last() -> None:
    loss, _ = mlp()
    d = control(loss)
    plan = [node.id for node in d.stepped.plan]
    modules = {plan[p]: "layers.1.attn" if p in (4, 5) else "layers.1" for p in range(3, 8)}
    modules |= {plan[p]: "layers.10" for p in range(8, 11)}
    d.modules.update(modules)
    d.breakpoints.begin(d.modules)
    d.breakpoints.replace([Breakpoint(on="module", target="layers.1")])
    assert stops(d) == [3]
    go(d, "reset")
    go(d, "run")
    assert d.stopped_by == "Paused before the first node of layers.1."
    assert go(d, "out") == 8 and d.stopped_by == ""
    assert go(d, "back") == 7
    go(d, "to", plan[3])
    assert go(d, "out") == 6  # layers.1.attn
    go(d, "reset")
    with pytest.raises(LabError, match="belongs to no module"):
        go(d, "out")
    d.breakpoints.replace([Breakpoint(on="node", target=str(plan[5]))])
    go(d, "to", plan[2])
    assert go(d, "out") == 5 and d.stopped_by  # a breakpoint on the way


def test_leaves_ends_and_stops() -> None:
    loss, net = mlp()
    d = control(loss, Breakpoint(on="op", target="t"))
    leaves = [p + 1 for p, node in enumerate(d.stepped.plan) if node.is_leaf]
    assert go(d, "leaf") == leaves[0] and d.stepped.last.node.is_leaf
    assert go(d, "end") == len(d.stepped.plan) and d.stopped_by == ""
    assert d.breakpoints.states[0].hits == 3
    expected = kept(list(net.parameters()))
    again, other = mlp()
    again.backward()
    assert_grads(list(other.parameters()), expected)
    asked = iter([False, False, True])
    stopped = control(loss, stop=lambda: next(asked))
    assert go(stopped, "end") == 3
    with pytest.raises(LabError, match="no node 999"):
        go(d, "to", 999)


def test_norm_in_double_precision() -> None:
    t = torch.full((4,), 1e30)
    assert norm(t) == pytest.approx(2e30) and math.isinf(t.norm().square().item())
    assert norm(torch.tensor([3 + 4j])) == pytest.approx(5.0)
    assert norm(torch.tensor([[0.0, 3.0], [4.0, 0.0]]).to_sparse()) == pytest.approx(5.0)
    assert norm(torch.empty(2, device="meta")) is None


# -- edits -----------------------------------------------------------------------------------------

EXPRESSIONS = (
    "g * 2",
    "torch.zeros_like(g)",
    "g * (1.0 / (g.norm() + 1e-6)).clamp(max=1.0)",
    "g.clamp(-0.5, 0.5)",
    "torch.sign(g)",
    "g.mul_(3)",
    "g.index_put(tuple(torch.tensor(0) for _ in g.shape), g.new_tensor(3.0)) if g.ndim else g + 1",
    "None",
)


@pytest.mark.parametrize("expression", EXPRESSIONS)
@pytest.mark.parametrize("name", ["mlp", "cnn_with_batch_norm", "lstm", "views_and_in_place"])
def test_edits_equal_pre_hooks(name: str, expression: str) -> None:
    roots, compared = cases.CASES[name]()
    d = control(roots)
    places = [p for p, n in enumerate(d.stepped.plan) if len(n.outputs) == 1 and not n.is_leaf]
    chosen = {places[len(places) // 3], places[2 * len(places) // 3]}
    for place in chosen:
        d.edit(d.stepped.plan[place].id, expression)
    go(d, "end")
    stepped = kept(compared)
    go(d, "reset")
    assert_grads(compared, [None] * len(compared))
    go(d, "end")
    assert_grads(compared, stepped)

    def hook(grads: Any) -> Any:
        g = None if grads[0] is None else grads[0].clone()
        return (eval(expression, {"g": g, "torch": torch}),)

    roots, compared = cases.CASES[name]()
    order = [n.fn for n in BackwardStepper(roots).plan]
    handles = [order[place].register_prehook(hook) for place in chosen]
    torch.autograd.backward(roots)
    for handle in handles:
        handle.remove()
    assert_grads(compared, stepped)


def test_an_edit_of_one_output_of_several() -> None:
    x = torch.arange(6.0).reshape(3, 2).requires_grad_()
    a, _, c = x.unbind(0)
    d = control((a * 2 + c * 3).sum())
    unbind = next(n for n in d.stepped.plan if n.name == "UnbindBackward0")
    d.edit(unbind.id, "g + grads[2]", 0)
    d.edit(unbind.id, "None", 2)
    assert d.edits == (
        GradientEdit(unbind.id, "g + grads[2]", 0),
        GradientEdit(unbind.id, "None", 2),
    )
    go(d, "end")
    assert_grads([x], [torch.tensor([[5.0, 5], [0, 0], [0, 0]])])
    go(d, "reset")
    d.edit(unbind.id, "torch.ones(2)", 1)
    with pytest.raises(LabError, match="for output 1, and torch lets no hook put one there"):
        go(d, "end")
    assert d.stepped.next_node is unbind
    with pytest.raises(LabError, match="no output 3"):
        d.edit(unbind.id, "g", 3)


def test_edits_see_variables_and_are_guarded() -> None:
    x = torch.ones(2, requires_grad=True)
    entered: list[str] = []

    class Guard:
        def __enter__(self) -> None:
            entered.append("in")

        def __exit__(self, *_: object) -> None:
            entered.append("out")

    def probe() -> float:
        inside.append(entered.count("in") > entered.count("out"))
        return 1.0

    inside: list[bool] = []
    variables: dict[str, Any] = {"scale": 3.0, "other": 1, "probe": probe}
    d = control((x * 2).sum(), variables=variables, guard=Guard)
    mul = d.stepped.plan[1]
    d.edit(mul.id, "g * scale * probe()")
    assert d.edits[0].names == ("probe", "scale") and not entered
    variables["scale"] = 5.0  # looked up when the node runs
    go(d, "end")
    assert_grads([x], [torch.full((2,), 10.0)])
    assert inside == [True] and entered.count("in") == entered.count("out")


def test_bad_edits_are_refused_in_words_and_change_nothing() -> None:
    x = torch.ones(2, 3, requires_grad=True)
    d = control((x * 2).sum())
    go(d, "step")
    mul = d.stepped.next_node
    assert mul is not None
    d.edit(mul.id, "g * 2")
    for expression, words in [
        ("g *", "is not an expression"),
        ("g = 3", "is not an expression"),
        ("3.0", "gives 3.0, of type float"),
        ("g.sum()", r"does not fit: the gradient for MulBackward0 has shape \(\), not \(2, 3\)"),
        ("g.double()", "has dtype torch.float64, not torch.float32"),
        ("nothing + g", "NameError"),
        ("g / 0 @ g", "RuntimeError"),
    ]:
        with pytest.raises(LabError, match=words) as raised:
            d.edit(mul.id, expression)
        assert raised.value.hint
    assert [e.expression for e in d.edits] == ["g * 2"]
    assert same_bits(d.preview()[0], torch.full((2, 3), 2.0))
    go(d, "end")
    assert_grads([x], [torch.full((2, 3), 4.0)])
    with pytest.raises(LabError, match="already run"):
        d.edit(mul.id, "g")
    with pytest.raises(LabError, match="already run"):
        d.unedit(mul.id)
    go(d, "reset")
    d.unedit(mul.id)
    assert d.edits == () and d.preview() == ()
    go(d, "end")
    assert_grads([x], [torch.full((2, 3), 2.0)])


def test_an_edit_that_fails_later_stops_there() -> None:
    x = torch.ones(2, requires_grad=True)
    d = control((x.sin() * 2).sum())
    sin = next(n for n in d.stepped.plan if n.name == "SinBackward0")
    d.edit(sin.id, "g @ torch.ones(5)")
    with pytest.raises(LabError, match="fails: RuntimeError"):
        go(d, "end")
    assert d.stepped.next_node is sin and x.grad is None
    d.edit(sin.id, "g")
    go(d, "end")
    assert_grads([x], [2 * torch.ones(2).cos()])


def test_an_edit_draws_the_same_random_numbers_each_time_and_none_of_others() -> None:
    x = torch.ones(3, requires_grad=True)
    d = control((x * 2).sum())
    torch.manual_seed(3)
    d.edit(0, "g * torch.rand(())")
    previews = [d.preview()[0], d.preview()[0]]
    go(d, "step")
    previews.append(d.stepped.last.incoming[0])
    go(d, "back")
    go(d, "step")
    assert all(same_bits(d.stepped.last.incoming[0], shown) for shown in previews)
    go(d, "reset")
    d.edit(0, "g * torch.rand(())")
    assert not same_bits(d.preview()[0], previews[0])
    after = torch.rand(())
    torch.manual_seed(3)
    assert same_bits(torch.rand(()), after)


# -- passes ----------------------------------------------------------------------------------------


def test_another_pass_adds_up_and_keeps_edits() -> None:
    x = torch.tensor(3.0, requires_grad=True)
    d = control(x**2)
    with pytest.raises(LabError, match="not at its end"):
        go(d, "again")
    for total in (6.0, 12.0, 18.0):
        go(d, "end")
        assert x.grad is not None and x.grad.item() == total
        step = d.stepped.last
        assert step.node.is_leaf and d.stepped.step_of(step.node) is step
        before = d.stepped.grad_before(step.node)
        assert (0.0 if before is None else before.item()) == total - 6.0
        assert go(d, "again") == 0
    assert d.pass_number == 4
    d.edit(0, "g * 10")
    go(d, "end")
    go(d, "again")
    go(d, "end")
    assert x.grad.item() == 18.0 + 60.0 + 60.0


def test_contributions_arrive_one_by_one_and_leave_again() -> None:
    for name in ("mlp", "lstm", "none_gradients", "several_roots", "unbind_split_chunk"):
        roots, _ = cases.CASES[name]()
        stepper = BackwardStepper(roots)
        history = [dict(stepper.arrived)]
        while (step := stepper.next_node) is not None:
            assert stepper.arrived[step.id] == stepper.expected[step.id]
            stepper.step()
            history.append(dict(stepper.arrived))
        assert history[-1] == {}
        for arrived in reversed(history):
            assert dict(stepper.arrived) == arrived
            stepper.back()
    x = torch.tensor(2.0, requires_grad=True)
    stepper = BackwardStepper(x.sin() + x.cos() + x)
    leaf = next(n.id for n in stepper.plan if n.is_leaf)
    seen = []
    while stepper.next_node is not stepper.graph.nodes[leaf]:
        stepper.step()
        seen.append(stepper.arrived[leaf])
    assert stepper.expected[leaf] == 3 and seen == [1, 1, 2, 3]


def test_hooks_are_counted_without_being_called() -> None:
    called: list[str] = []

    def hook(*_: object) -> None:
        called.append("hook")

    x = torch.ones(2, requires_grad=True)
    y = x * 2
    node = BackwardStepper(y.sum()).plan[1]
    assert hooks_on(node) == "" == hooks_on(node, [y])
    y.register_hook(hook)
    y.retain_grad()
    y.grad_fn.register_hook(hook)
    y.grad_fn.register_prehook(hook)
    y.grad_fn.register_prehook(hook)
    assert hooks_on(node) == "2 node pre-hooks, 1 node hook"
    assert hooks_on(node, [y]) == "2 node pre-hooks, 1 node hook, 1 tensor hook, retain_grad"
    x.register_hook(hook)
    x.register_post_accumulate_grad_hook(hook)
    leaf = BackwardStepper(y.sum()).plan[-1]
    assert hooks_on(leaf) == "1 tensor hook, 1 post-accumulate hook"
    register_multi_grad_hook([x, y], hook)
    register_multi_grad_hook([x], hook, mode="any")
    assert "1 tensor hook, 1 post-accumulate hook, 2 multi-grad hooks (each" in hooks_on(leaf)
    assert hooks_on(leaf, own=1).endswith("2 multi-grad hooks")
    assert called == []


def test_released_bytes_are_what_the_nodes_alone_hold() -> None:
    x = torch.randn(64, requires_grad=True)
    loss = (x.sin().exp() * x.cos()).tanh().sum()
    stepper = BackwardStepper(loss)
    freed = released_bytes(stepper.graph, stepper.plan, SavedForBackward(stepper.graph.nodes))
    assert freed == sorted(freed)
    kept_storage = {x.untyped_storage()._cdata}
    for place in range(len(freed)):
        left = {
            s.storage_id: s.storage_bytes
            for n in stepper.plan[place + 1 :]
            for s in n.saved
            if s.storage_id not in kept_storage
        }
        everything = {
            s.storage_id: s.storage_bytes
            for n in stepper.plan
            for s in n.saved
            if s.storage_id not in kept_storage
        }
        assert freed[place] == sum(everything.values()) - sum(left.values())
    # tanh keeps its result, mul its factors, exp its result (a factor already); sin and cos keep x
    assert freed[-1] == 3 * 64 * 4
