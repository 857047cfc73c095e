"""Whom torch's hooks show what, without a session: steps, losses, and calls of backward."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from engine.loops.backward_calls import backward_calls
from engine.loops.hooks import (
    Gate,
    Patch,
    Steps,
    gradient_norms,
    is_out_of_reach,
    is_outermost,
    is_stepping,
    quiet,
    steps_shown,
)


class Seen(Steps):
    """What it was shown."""

    def __init__(self) -> None:
        self.said: list[Any] = []

    def before_step(self, optimizer: torch.optim.Optimizer, has_closure: bool) -> None:
        self.said.append(("before", has_closure))

    def after_step(self, optimizer: torch.optim.Optimizer, has_closure: bool) -> None:
        self.said.append(("after", has_closure))

    def saw_loss(self, loss: Tensor, root: Tensor) -> None:
        assert not loss.requires_grad
        self.said.append((loss.item(), root.item()))


def made(value: float = 1.0) -> tuple[nn.Parameter, torch.optim.Optimizer]:
    weight = nn.Parameter(torch.tensor([value]))
    weight.grad = torch.ones(1)
    return weight, torch.optim.SGD([weight], lr=0.5)


def in_thread(work: Callable[[], object]) -> None:
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


# -- steps and losses ------------------------------------------------------------------------------


def test_a_closure_is_seen_however_it_is_given() -> None:
    _, optimizer = made()
    seen = Seen()
    with steps_shown(seen):
        optimizer.step()
        optimizer.step(lambda: 0.0)
        optimizer.step(closure=lambda: 0.0)
        optimizer.step(closure=None)
    kinds = (False, True, True, False)
    assert seen.said == [(when, kind) for kind in kinds for when in ("before", "after")]


def test_only_the_optimizer_whose_step_runs_is_stepping() -> None:
    (_, first), (_, second) = made(), made()
    found: list[tuple[bool, bool]] = []
    with steps_shown(Steps()):
        first.step(lambda: found.append((is_stepping(first), is_stepping(second))) or 0.0)
        found.append((is_stepping(first), is_stepping(second)))
    assert found == [(True, False), (False, False)]


def test_only_this_thread_and_only_while_it_is_open_and_nothing_forbids_it() -> None:
    weight, optimizer = made()
    seen, is_forbidden = Seen(), False

    def work() -> None:
        optimizer.step()
        (2 * weight).sum().backward()

    with steps_shown(seen, unless=lambda: is_forbidden):
        in_thread(work)
        is_forbidden = True
        work()
        assert seen.said == []
        is_forbidden = False
        work()
        assert [each[0] for each in seen.said[:2]] == ["before", "after"] and len(seen.said) == 3
        kept = torch.autograd.backward
    work()
    kept((2 * weight).sum())
    assert len(seen.said) == 3 and torch.autograd.backward is not kept


def test_the_losses_are_the_scalars_of_backward_before_they_were_scaled() -> None:
    weight, _ = made(3.0)
    seen = Seen()
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
    with steps_shown(seen):
        (2 * weight).sum().backward()
        torch.autograd.backward(
            [weight.sum(), (weight * torch.ones(2)).square()], [None, weight * torch.ones(2)]
        )
        torch.autograd.backward(((4 * weight),))
        loss = (weight * weight).sum()
        scaler.scale(loss).backward()
        (weight * 5).sum().backward()  # not the one that was scaled
    assert seen.said == [(6.0, 6.0), (3.0, 3.0), (12.0, 12.0), (9.0, 72.0), (15.0, 15.0)]
    scale = torch.amp.GradScaler.scale
    with steps_shown(seen):
        assert torch.amp.GradScaler.scale is not scale
    assert torch.amp.GradScaler.scale is scale


def test_who_takes_backward_gets_the_outermost_calls_of_this_thread() -> None:
    weight, _ = made()
    taken: list[bool] = []

    def take(*args: object, **kwargs: object) -> bool:
        taken.append(is_outermost())
        return len(taken) == 1

    def nested(gradient: Tensor) -> None:
        with torch.enable_grad():
            torch.autograd.backward((weight.detach().requires_grad_() * 2).sum())

    weight.grad = None
    gate = Gate()
    with steps_shown(gate=gate, take_backward=take):
        weight.sum().backward()
        assert taken == [True] and weight.grad is None  # it has run it
        weight.sum().backward()
        assert len(taken) == 2 and weight.grad.tolist() == [1.0]
        out = weight * 3
        out.register_hook(nested)
        out.sum().backward()
        in_thread(lambda: weight.sum().backward())
        assert len(taken) == 3
        gate.is_shut = True
        weight.sum().backward()
        assert len(taken) == 3
    weight.sum().backward()
    assert len(taken) == 3 and weight.grad.tolist() == [7.0]


def test_while_the_gate_is_shut_steps_are_counted_until_one_is_due(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 10.0
    ended: list[torch.optim.Optimizer] = []
    monkeypatch.setattr("engine.loops.hooks.perf_counter", lambda: now)
    _, optimizer = made()
    seen, gate = Seen(), Gate(is_shut=True, ended=lambda optimizer, _: ended.append(optimizer))
    gate.due_s = 12.0
    backward = torch.autograd.backward
    with steps_shown(seen, gate=gate):
        assert torch.autograd.backward is backward
        for _ in range(3):
            optimizer.step()
        in_thread(optimizer.step)
        assert (gate.steps, ended, seen.said) == (3, [], [])
        now = 12.0
        in_thread(optimizer.step)
        assert ended == []
        optimizer.step()
        assert (gate.steps, ended, seen.said) == (3, [optimizer], [])
        gate.open()
        assert torch.autograd.backward is not backward
        optimizer.step()
        assert (gate.steps, len(ended), len(seen.said)) == (3, 2, 2)
        gate.rest()
        assert torch.autograd.backward is backward
        gate.open()
    assert torch.autograd.backward is backward and not gate.patches
    assert not Gate().is_shut and Gate().steps == 0


def test_a_step_that_begins_before_the_gate_opens_is_not_shown_to_its_end() -> None:
    _, optimizer = made()
    seen, gate = Seen(), Gate(is_shut=True)
    gate.due_s = float("inf")
    optimizer.register_step_post_hook(lambda *_: gate.open())
    with steps_shown(seen, gate=gate):
        optimizer.step(lambda: gate.open() or 0.0)
        assert seen.said == []
        optimizer.step()
    assert seen.said == [("before", False), ("after", False)]


# -- what is replaced ------------------------------------------------------------------------------


def test_a_patch_leaves_in_place_what_others_have_put_there() -> None:
    owner = SimpleNamespace(ask=lambda: ["torch"])
    torchs = owner.ask
    patch = Patch(owner, "ask")
    patch.wrap(lambda: ["ours", *patch.original()])
    assert owner.ask is torchs
    for _ in range(2):
        patch.put_on()
        assert owner.ask() == ["ours", "torch"]
    ours = owner.ask
    patch.take_off()
    patch.take_off()
    assert owner.ask is torchs
    owner.ask = theirs = lambda: ["theirs", *torchs()]
    patch.put_on()
    assert owner.ask() == ["ours", "theirs", "torch"]
    patch.take_off()
    assert owner.ask is theirs
    patch.put_on()
    owner.ask = above = lambda: ["above", *ours()]
    patch.take_off()
    patch.put_on()
    assert owner.ask is above and owner.ask() == ["above", "ours", "theirs", "torch"]
    owner.ask = ours
    patch.take_off()
    assert owner.ask is theirs


def test_backward_is_handed_over_only_where_it_may_be() -> None:
    weight, _ = made()
    taken: list[float] = []
    is_forbidden, runs_it = False, True

    def take(root: Tensor, *_: object, **__: object) -> bool:
        taken.append(root.item())
        return runs_it

    weight.grad = None
    torchs = torch.autograd.backward
    with backward_calls(take, lambda: is_forbidden):
        weight.sum().backward()
        assert taken == [1.0] and weight.grad is None
        runs_it = False
        (weight * 2).sum().backward()
        assert taken == [1.0, 2.0] and weight.grad.tolist() == [2.0]
        in_thread(lambda: (weight * 3).sum().backward())
        is_forbidden = True
        (weight * 4).sum().backward()
        is_forbidden = False
        out = weight * 5
        out.register_hook(lambda g: torchs_again((weight.detach() * 1).requires_grad_()))
        out.sum().backward()
        assert taken == [1.0, 2.0, 5.0] and weight.grad.tolist() == [14.0]
        above = torch.autograd.backward
        torch.autograd.backward = replaced = lambda *given: above(*given)
    assert torch.autograd.backward is replaced  # another's is above it
    torch.autograd.backward = torchs
    with backward_calls(take):
        pass
    assert torch.autograd.backward is torchs


def torchs_again(leaf: Tensor) -> None:
    """A backward inside another."""
    with torch.enable_grad():
        torch.autograd.backward((leaf * 9).sum())


# -- gradients, and who sees us --------------------------------------------------------------------


def test_norms_are_of_the_gradients_that_are_there_unscaled() -> None:
    parameters = [nn.Parameter(torch.zeros(2)) for _ in range(3)]
    parameters[0].grad, parameters[2].grad = torch.tensor([3.0, 4.0]), torch.tensor([0.0, 8.0])
    groups = [{"params": parameters[:1]}, {"params": parameters[1:]}]
    optimizer = torch.optim.SGD(groups, lr=1.0)
    assert [float(norm) for norm in gradient_norms(optimizer)] == [5.0, 8.0]
    optimizer.grad_scale = torch.tensor(4.0)  # pyright: ignore[reportAttributeAccessIssue]
    assert [float(norm) for norm in gradient_norms(optimizer)] == [1.25, 2.0]
    optimizer.zero_grad()
    assert gradient_norms(optimizer) == []


def test_transforms_of_functions_are_out_of_reach() -> None:
    found: list[bool] = []

    def function(x: Tensor) -> Tensor:
        found.append(is_out_of_reach())
        return x * 2

    torch.func.vmap(function)(torch.ones(3))
    torch.func.grad(function)(torch.tensor(1.0))
    function(torch.ones(3))
    assert found == [True, True, False]


def test_what_we_compute_has_no_graph_and_is_not_seen() -> None:
    class Names(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None):
            names.append(func.__name__)
            return func(*args, **(kwargs or {}))

    names: list[str] = []
    weight, _ = made()
    with Names(), quiet():
        assert (weight * 2).grad_fn is None
    assert names == []
