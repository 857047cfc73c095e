"""Runs of the engine over some nodes: where they end, what hooks of the user's do in them."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch

from engine.autograd import BackwardStepper, read_graph
from engine.autograd.backward import stepper as stepper_module
from engine.autograd.graph.engine_run import capture, execution_order, run_node, run_nodes


def chain(x: torch.Tensor, length: int) -> torch.Tensor:
    for _ in range(length):
        x = x * 1.5
    return x


@pytest.mark.parametrize("length", [1, 3, 4, 5, 12])
def test_runs_of_a_few_nodes_add_up_to_backward(
    length: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each run ends after its last node: what is below runs once, in a later run."""
    monkeypatch.setattr(stepper_module, "NODES_OF_A_RUN", 4)
    monkeypatch.setattr(stepper_module, "PARTS_OF_A_RUN", 1_000)
    x = torch.ones(3, requires_grad=True)
    y = chain(x, length).sum()
    seen: list[int] = []
    stepper = BackwardStepper(y)
    stepper.run(lambda s: seen.append(s.position) or False)
    assert seen == list(range(1, length + 3)) and stepper.next_node is None
    stepped, x.grad = x.grad, None
    y.backward()
    assert stepped is not None and x.grad is not None and torch.equal(stepped, x.grad)


def test_a_run_ends_after_the_node_at_which_it_is_told_to() -> None:
    x = torch.ones(3, requires_grad=True)
    y = chain(x, 6).sum()
    fns = execution_order([y])
    ran: list[int] = []

    def after(place: int, outgoing: Any, incoming: Any) -> bool:
        ran.append(place)
        return place == 2

    run_nodes(fns, [(fns[0], 0, torch.ones(()))], lambda place: None, after)
    assert ran == [0, 1, 2] and x.grad is None
    ran.clear()
    run_nodes(fns[:2], [(fns[0], 0, torch.ones(()))], lambda place: None, lambda *_: False)
    assert x.grad is None  # it ends after the last of its nodes, too


def test_a_hook_that_runs_backward_itself_runs_over_the_same_leaf() -> None:
    """Its engine run is another one: the leaf's node runs in both."""

    def recorded() -> tuple[torch.Tensor, torch.Tensor]:
        x = torch.ones(3, requires_grad=True)
        y = x * 2

        @y.register_hook
        def hook(g: torch.Tensor) -> None:
            with torch.enable_grad():
                (x * 5).sum().backward()

        return x, y.exp().sum()

    plain, loss = recorded()
    loss.backward()
    x, loss = recorded()
    stepper = BackwardStepper(loss)
    stepper.run()
    assert plain.grad is not None and x.grad is not None
    assert torch.equal(x.grad, plain.grad)
    assert stepper.position == len(stepper.plan)


def test_a_node_that_gets_an_edit_of_its_own_leaves_no_hook() -> None:
    x = torch.ones(3, requires_grad=True)
    fn = (x * 2).grad_fn

    def three_times(grads: Any) -> Any:
        return (grads[0] * 3,)

    def fails(grads: Any) -> Any:
        return 1 / 0

    given, outgoing = run_node(fn, (torch.ones(3),), edit=three_times)
    assert given[0].tolist() == [3] * 3 and outgoing[0].tolist() == [6] * 3
    with pytest.raises(ZeroDivisionError):
        run_node(fn, (torch.ones(3),), edit=fails)
    given, outgoing = run_node(fn, (torch.ones(3),))
    assert given[0].tolist() == [1] * 3 and outgoing[0].tolist() == [2] * 3
    # Of undefined gradients the edit is told that they are: the zeros of the run are not theirs.
    arrived: list[Any] = []
    given, _ = run_node(fn, (None,), edit=lambda grads: arrived.append(grads) or (torch.ones(3),))
    assert arrived == [(None,)] and given[0].tolist() == [1] * 3


def test_a_leaf_passes_nothing_on() -> None:
    x = torch.ones(3, requires_grad=True)
    leaf = next(node for node in read_graph(x * 2).nodes if node.is_leaf)
    given, outgoing = run_node(leaf.fn, (torch.full((3,), 4.0),))
    assert outgoing == () and given[0].tolist() == [4] * 3
    assert x.grad is not None and x.grad.tolist() == [4] * 3


def test_what_is_captured_has_passed_the_tensors_hooks_and_the_node_has_not_run() -> None:
    x = torch.arange(6.0).requires_grad_()
    a, b, c = (x * 2).split(2)
    a.register_hook(lambda g: g * 10)
    fn = a.grad_fn
    found = capture(fn, (torch.ones(2), None, torch.full((2,), 3.0)))
    assert found[1] is None
    assert found[0].tolist() == [10, 10] and found[2].tolist() == [3, 3]
    assert capture(fn, (None, None, None)) == (None, None, None)
    assert x.grad is None and b.grad_fn is c.grad_fn
    gradient = torch.ones(2, requires_grad=True)
    assert capture(fn, (gradient * 2, None, None), create_graph=True)[0].requires_grad
    assert not capture(fn, (gradient.detach(), None, None))[0].requires_grad


def test_the_order_of_execution_is_asked_without_a_hook_and_without_a_trace() -> None:
    called: list[str] = []
    x = torch.ones(3, requires_grad=True)
    y, z = x.sin(), x.cos()
    for t in (x, y, z):
        t.register_hook(lambda g: called.append("tensor"))
    ran: list[str] = []
    order = execution_order([y, z])
    assert called == []
    for fn in order:
        fn.register_hook(lambda *_, fn=fn: ran.append(fn.name()))
    with torch.no_grad():
        assert execution_order([y, z]) == order
    torch.autograd.backward([y, z], [torch.ones(3)] * 2)
    assert ran == [fn.name() for fn in order] and len(order) == 3


def test_warnings_of_a_rule_are_told_under_anomaly_detection() -> None:
    class Warns(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            return x * 1

        @staticmethod
        def backward(ctx: Any, g: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
            warnings.warn("take care", UserWarning, stacklevel=1)
            return g

    x = torch.ones(2, requires_grad=True)
    with pytest.warns(UserWarning, match="Anomaly Detection"):
        detecting = torch.autograd.detect_anomaly(check_nan=False)
    with detecting, pytest.warns(UserWarning, match="take care") as told:
        BackwardStepper(Warns.apply(x).sum()).run()
    assert [str(w.message) for w in told] == ["take care"]
    with pytest.warns(UserWarning, match="take care"):
        BackwardStepper(Warns.apply(x).sum()).run()


def test_nan_is_refused_only_where_it_is_looked_for() -> None:
    with pytest.warns(UserWarning, match="Anomaly Detection"):
        detecting = torch.autograd.detect_anomaly(check_nan=False)
    with detecting:
        x = torch.zeros(2, requires_grad=True)
        BackwardStepper((x.sqrt() * 0).sum()).run()
        assert x.grad is not None and x.grad.isnan().all()
