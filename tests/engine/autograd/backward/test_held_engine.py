"""The real engine, held between nodes, against backward() and against stepping node by node."""

from __future__ import annotations

import threading
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from engine.autograd import BackwardStepper, BreakMode, read_graph
from engine.autograd.graph.hooks import hooks_on
from tests.engine.autograd import backward_cases as cases
from tests.engine.autograd.backward.test_stepper import assert_grads, by_backward, kept, same_bits

pytestmark = pytest.mark.filterwarnings("ignore:.*(Sparse invariant|sparse gradient).*:UserWarning")


def twice_and_one(grads):
    """An edit, as the stepper and a pre-hook of torch's take it."""
    return (grads[0] * 2 + 1,)


def threads() -> list[threading.Thread]:
    return [t for t in threading.enumerate() if t.name == "backward"]


@pytest.fixture(autouse=True)
def no_thread_stays_behind() -> Any:
    yield
    assert threads() == []


@pytest.mark.parametrize(
    ("name", "create_graph"),
    [(name, False) for name in cases.CASES]
    + [(name, True) for name in cases.CASES if name != "checkpoint_with_reentry"],  # torch refuses
)
def test_stepping_leaves_the_bits_of_backward(name: str, create_graph: bool) -> None:
    expected = by_backward(name, create_graph)
    roots, compared = cases.CASES[name]()
    torch.manual_seed(1)
    with BreakMode(roots, create_graph=create_graph) as engine:
        ran = []
        while (node := engine.next_node) is not None:
            step = engine.step()
            assert step is not None and step.node is node and engine.last is step
            ran.append(node)
        assert ran == engine.plan and engine.step() is None
        assert engine.position == len(engine.plan)
    assert_grads(compared, expected)
    for t in compared:
        t.grad = None


@pytest.mark.parametrize("name", [c for c in cases.CASES if not c.startswith("checkpoint")])
def test_its_steps_are_those_of_the_stepper(name: str) -> None:
    roots, _ = cases.CASES[name]()
    torch.manual_seed(1)
    stepper = BackwardStepper(roots)
    expected = list(iter(stepper.step, None))
    roots, _ = cases.CASES[name]()
    torch.manual_seed(1)
    with BreakMode(roots) as engine:
        for wanted in expected:
            node = engine.next_node
            assert node is not None
            assert engine.arrived[node.id] == engine.expected[node.id]
            arrived = engine.pending(node)
            assert len(arrived) == len(wanted.incoming)
            step = engine.step()
            assert step is not None
            for a, b in zip(
                step.incoming + step.outgoing, wanted.incoming + wanted.outgoing, strict=True
            ):
                assert same_bits(a, b), (node, a, b)


@pytest.mark.parametrize(
    "name", ["mlp", "lstm", "tensor_hooks_and_retain_grad", "embedding_sparse"]
)
def test_running_at_full_speed_to_a_place_and_on(name: str) -> None:
    expected = by_backward(name)
    roots, compared = cases.CASES[name]()
    asked: list[int] = []
    with BreakMode(roots) as engine:
        half = len(engine.plan) // 2

        def until(e: BreakMode) -> bool:
            asked.append(e.position)
            assert threading.current_thread() in threads() or e.next_node is None
            return e.position == half

        engine.run(until)
        assert engine.position == half and asked == list(range(1, half + 1))
        engine.run()
        assert engine.next_node is None
    assert_grads(compared, expected)


def test_saved_tensors_are_freed_as_it_goes() -> None:
    x = torch.ones(3, requires_grad=True)
    loss = (x.sin().exp() * 2).sum()
    with BreakMode(loss) as engine:
        held = [len([s for s in n.saved if s.data is not None]) for n in engine.plan]
        for place, node in enumerate(engine.plan):
            assert len([s for s in node.saved if s.data is not None]) == held[place]
            engine.step()
            assert [s for s in node.saved if s.data is not None] == []
    assert sum(held) == 3  # sin keeps x, exp its result, mul the number 2
    with pytest.raises(RuntimeError, match="second time"):
        loss.backward()
    other = (x.sin().exp() * 2).sum()
    with BreakMode(other, retain_graph=True) as engine:
        engine.run()
    other.backward()


def test_closing_half_way_leaves_no_hook_and_the_graph_usable() -> None:
    net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    x = torch.randn(5, 3)
    loss = net(x).sum()
    engine = BreakMode(loss, retain_graph=True)
    engine.step()
    engine.step()
    assert hooks_on(engine.plan[3], own=engine.own_hooks) == ""
    engine.close()
    engine.close()
    assert engine.step() is None and threads() == []
    net.zero_grad()
    loss.backward()
    stepped = kept(list(net.parameters()))
    assert all(hooks_on(node) == "" for node in read_graph(net(x).sum()).nodes)
    net.zero_grad()
    net(x).sum().backward()  # reuses the AccumulateGrad nodes; a hook left behind would hang here
    assert_grads(list(net.parameters()), stepped)


def test_edits_equal_hooks_and_can_be_made_while_held() -> None:
    for name in ("mlp", "cnn_with_batch_norm", "views_and_in_place"):
        roots, compared = cases.CASES[name]()
        with BreakMode(roots) as engine:
            places = [p for p, n in enumerate(engine.plan) if len(n.outputs) == 1 and not n.is_leaf]
            now, later = places[1], places[-1]
            engine.run(lambda e, now=now: e.position == now)
            engine.edit(engine.plan[now], twice_and_one)
            engine.edit(engine.plan[later], lambda grads: (grads[0].clamp(-0.1, 0.1),))
            engine.edit(engine.plan[places[-2]], None)
            engine.unedit(engine.plan[places[-2]])
            with pytest.raises(ValueError, match="already run"):
                engine.edit(engine.plan[0], None)
            engine.run()
        stepped = kept(compared)
        roots, compared = cases.CASES[name]()
        order = [n.fn for n in BackwardStepper(roots).plan]
        order[now].register_prehook(twice_and_one)
        order[later].register_prehook(lambda grads: (grads[0].clamp(-0.1, 0.1),))
        torch.autograd.backward(roots)
        assert_grads(compared, stepped)


def test_an_edit_that_fails_leaves_the_pass_before_its_node() -> None:
    x = torch.ones(3, requires_grad=True)
    with BreakMode((x * 3).sin().sum()) as engine:
        node = engine.plan[2]

        def broken(grads: Any) -> Any:
            raise KeyboardInterrupt  # as an interrupted expression would

        engine.edit(node, broken)
        for _ in range(2):
            with pytest.raises(KeyboardInterrupt):
                engine.run()
            assert engine.next_node is node and x.grad is None
        engine.edit(node, lambda grads: (grads[0].double(),))
        with pytest.raises(ValueError, match=r"dtype torch\.float64"):
            engine.run()
        engine.unedit(node)
        engine.run()
    assert_grads([x], [3 * (x.detach() * 3).cos()])


def test_errors_come_out_and_end_the_pass() -> None:
    x = torch.ones(2, requires_grad=True)
    y = x * 3
    y.register_hook(lambda g: 1 / 0)
    with BreakMode(y.exp().sum()) as engine:
        engine.step()
        with pytest.raises(ZeroDivisionError):
            engine.run()
        assert engine.position == 2
        with pytest.raises(ZeroDivisionError):
            engine.step()
    root = (x * 2).sum()
    root.register_hook(lambda g: [][0])  # before the first node, already at the start
    with BreakMode(root) as engine, pytest.raises(IndexError):
        engine.step()


def test_a_checkpoint_is_recomputed_once() -> None:
    calls: list[int] = []
    net = nn.Sequential(nn.Linear(3, 3), nn.Tanh())

    def block(t: torch.Tensor) -> torch.Tensor:
        calls.append(1)
        return net(t)

    def loss() -> torch.Tensor:
        calls.clear()
        x = torch.ones(2, 3, requires_grad=True)
        return checkpoint(block, x, use_reentrant=False).sum()

    plain = loss()
    plain.backward()
    recomputed = len(calls)
    net.zero_grad()
    with BreakMode(loss()) as engine:
        while engine.step() is not None:
            pass
    assert len(calls) == recomputed == 2


def test_leaves_tell_what_was_there_before() -> None:
    x = torch.tensor(3.0, requires_grad=True)
    for before, after in ((None, 6.0), (6.0, 12.0), (12.0, 18.0)):
        with BreakMode(x**2) as engine:
            engine.run()
            assert x.grad is not None and x.grad.item() == after
            seen = engine.grad_before(engine.plan[-1])
            assert (None if seen is None else seen.item()) == before
            assert engine.step_of(engine.plan[0]) is None
            assert engine.step_of(engine.plan[1]) is engine.last


def test_interrupting_the_wait_loses_nothing() -> None:
    """An interrupt ends the wait for a node, not the engine; the next step goes on."""
    entered, leave = threading.Event(), threading.Event()

    class Slow(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, t: torch.Tensor) -> torch.Tensor:
            return t * 1

        @staticmethod
        def backward(ctx: Any, g: torch.Tensor) -> torch.Tensor:
            entered.set()
            leave.wait()
            return g

    x = torch.ones((), requires_grad=True)
    engine = BreakMode(Slow.apply(x * 2))
    wait = engine._condition.wait

    def interrupted(timeout: float | None = None) -> bool:
        if threading.current_thread() is not engine._thread:
            engine._condition.release()
            entered.wait()
            engine._condition.acquire()
            raise KeyboardInterrupt
        return wait(timeout)

    engine._condition.wait = interrupted  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        engine.step()
    engine._condition.wait = wait  # type: ignore[method-assign]
    leave.set()
    engine.run()
    assert x.grad is not None and x.grad.item() == 2.0
    engine.close()
