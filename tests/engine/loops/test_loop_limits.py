"""The watchpoints of a loop of the user's own: it is held before the update of the step, as plain
torch has its numbers, and goes on to the weights of plain Python."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import nn

from engine.loops.limits import LoopLimits
from engine.process import EngineProcess
from engine.project.document import HoldWhen
from engine.protocol import (
    ContinueTrainingCommand,
    Hold,
    HoldWhenSignal,
    LoopSnapshot,
    RunCellCommand,
    StepTrainingCommand,
)
from tests.engine.loops.held import HeldEngine

BEGIN = """
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
x = torch.randn(16, 4)
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
norms, losses = [], []
"""
LOOP = """
for i in range(30):
    scale = {scale}
    loss = scale * F.mse_loss(net(x), x.sum(1, keepdim=True))
    optimizer.zero_grad()
    loss.backward()
    losses.append(loss.item())
    norms.append(torch.nn.utils.get_total_norm([p.grad for p in net.parameters()]).item())
    optimizer.step()
"""
NAN = "float('nan') if i == 17 else 1.0"
HIGH = "40.0 if i in (17, 18) else 1.0"


def plain(scale: str) -> dict[str, Any]:
    names = {"torch": torch, "nn": nn, "F": nn.functional}
    exec(BEGIN + LOOP.format(scale=scale), names)
    return names


class Loop(HeldEngine):
    """Its loop runs in a cell while these limits are set."""

    def __init__(self, engine: EngineProcess, when: HoldWhen, source: str) -> None:
        self.loops: list[LoopSnapshot] = []
        engine.signal(HoldWhenSignal(when=when))
        super().__init__(engine, RunCellCommand(source=source))

    def receive(self):
        snapshot = super().receive()
        if isinstance(snapshot, LoopSnapshot):
            self.loops.append(snapshot)
        return snapshot

    def held_for(self) -> Hold:
        assert self.wait().at == "update"
        hold = self.loops[-1].hold
        assert hold is not None and self.loops[-1].state == "paused"
        assert self.loops[-1].step == hold.step - 1
        return hold

    def go_on(self) -> None:
        self.engine.send(ContinueTrainingCommand())


@pytest.fixture
def engine(shared_engine: EngineProcess):
    yield shared_engine
    shared_engine.signal(HoldWhenSignal(when=HoldWhen()))


def test_a_loss_that_is_not_finite_holds_before_it_reaches_a_weight(engine) -> None:
    loop = Loop(engine, HoldWhen(not_finite=True), BEGIN + LOOP.format(scale=NAN))
    hold = loop.held_for()
    assert (hold.kind, hold.step) == ("not_finite", 18)
    assert hold.text == "The loss is nan. It is held before the update."
    assert loop.type("i, all(p.isfinite().all() for p in net.parameters())") == "(17, True)\n"
    before = loop.type("[p.flatten()[0].item() for p in net.parameters()]")
    names = {"torch": torch, "nn": nn, "F": nn.functional}
    exec(BEGIN + LOOP.format(scale="1.0").replace("range(30)", "range(17)"), names)
    assert before == f"{[p.flatten()[0].item() for p in names['net'].parameters()]}\n"
    loop.go_on()
    assert loop.next_hold() is None  # held once, not in each step that follows
    assert loop.loops[-1].step == 30 and loop.loops[-1].hold is None


def test_a_gradient_that_is_not_finite_is_named(engine) -> None:
    source = LOOP.format(scale="1.0").replace(
        "    losses", "    if i == 5: net[2].weight.grad[0, 3] = float('inf')\n    losses"
    )
    loop = Loop(engine, HoldWhen(not_finite=True), BEGIN + source)
    hold = loop.held_for()
    assert hold.step == 6 and hold.text.startswith("The gradient of `net.2.weight` is not finite.")
    loop.type("net[2].weight.grad.zero_()")
    loop.go_on()
    assert loop.next_hold() is None


def test_a_loss_spike_is_that_of_the_losses_and_the_loop_ends_as_plain_python_would(engine) -> None:
    expected = plain(HIGH)
    losses = expected["losses"]
    usual = sorted(losses[:17])[8]
    loop = Loop(engine, HoldWhen(loss_spike=5.0), BEGIN + LOOP.format(scale=HIGH))
    hold = loop.held_for()
    assert (hold.kind, hold.step) == ("loss_spike", 18)
    assert hold.text.startswith(
        f"The loss is {losses[17]:.4g}, {losses[17] / usual:.3g} times the median {usual:.4g} of"
        " the 17 before it."
    )
    loop.go_on()
    assert loop.next_hold() is None
    shown = loop.ask(RunCellCommand(source="losses == " + repr(losses)))
    assert any(getattr(each, "text", "") == "True\n" for each in shown)


def test_gradients_above_the_limit_hold_and_step_goes_to_the_end_of_the_step(engine) -> None:
    norms = plain(HIGH)["norms"]
    limit = norms[17] * 0.9
    assert max(norms[:17]) < limit
    loop = Loop(engine, HoldWhen(gradient_norm=limit), BEGIN + LOOP.format(scale=HIGH))
    hold = loop.held_for()
    assert (hold.kind, hold.step) == ("gradient_norm", 18)
    assert hold.text.startswith(f"The 2-norm of all gradients is {norms[17]:.4g}, above {limit:g};")
    assert "`net." in hold.text
    engine.send(StepTrainingCommand())
    assert loop.wait().at == "step"
    assert loop.loops[-1].step == 18 and loop.loops[-1].hold is None
    loop.go_on()
    loop.next_hold()


def test_without_limits_nothing_is_looked_at(engine) -> None:
    loop = Loop(engine, HoldWhen(), BEGIN + LOOP.format(scale=NAN))
    assert loop.next_hold() is None
    assert all(each.hold is None for each in loop.loops)


def test_limits_that_are_set_while_it_runs_hold(engine) -> None:
    source = LOOP.format(scale="1.0").replace("range(30)", "range(10**9)")
    loop = Loop(engine, HoldWhen(), BEGIN + source)
    while not loop.loops:
        loop.receive()
    engine.signal(HoldWhenSignal(when=HoldWhen(gradient_norm=1e-30)))
    assert loop.held_for().kind == "gradient_norm"
    loop.stop()


def looked(limits: LoopLimits, losses: list[float | None], norms: list[list[float]]) -> list[str]:
    """The kinds of the holds, step by step."""
    found = []
    for step, (loss, lengths) in enumerate(zip(losses, norms, strict=True), 1):
        hold = limits.look(
            step,
            None if loss is None else torch.tensor(loss),
            [torch.tensor(each) for each in lengths],
            None,
        )
        found.append("" if hold is None else hold.kind)
    return found


def test_each_limit_holds_once_until_it_was_kept_again() -> None:
    limits = LoopLimits(HoldWhen(not_finite=True, gradient_norm=5.0), lambda thing: "")
    assert limits.are_set
    losses = [1.0, math.inf, math.nan, 1.0, math.nan, 1.0, 1.0, 1.0, None]
    norms = [[3.0], [3.0], [3.0], [3.0], [3.0], [3.0, 4.0], [4.0, 4.0], [3.0, 4.0 * 2], []]
    assert looked(limits, losses, norms) == [
        "", "not_finite", "", "", "not_finite", "", "gradient_norm", "", "",
    ]  # fmt: skip


def test_a_loop_without_a_loss_or_a_gradient_is_not_held() -> None:
    limits = LoopLimits(HoldWhen(not_finite=True, loss_spike=2.0, gradient_norm=1.0), lambda _: "")
    assert looked(limits, [None] * 30, [[]] * 30) == [""] * 30


def test_the_parameter_of_the_gradient_that_holds_is_told() -> None:
    """One without a gradient, between them, has no norm."""
    first, idle, second = (torch.ones(n, requires_grad=True) for n in (1, 2, 3))
    optimizer = torch.optim.SGD([{"params": [first, idle]}, {"params": [second]}])
    first.grad, second.grad = torch.full((1,), 3.0), torch.tensor([0.0, 0.0, 4.0])
    norms, names = [first.grad.norm(), second.grad.norm()], {id(first): "net.0.bias"}
    when = HoldWhen(not_finite=True, gradient_norm=4.0)
    limits = LoopLimits(when, lambda thing: names.get(id(thing), ""))
    hold = limits.look(7, torch.tensor(1.0), norms, optimizer)
    assert hold is not None and (hold.kind, hold.step) == ("gradient_norm", 7)
    assert hold.text == (
        "The 2-norm of all gradients is 5, above 4; a parameter of shape (3,) has the largest part"
        " of it, 4. It is held before the update."
    )
    norms[0] = torch.tensor(math.inf)
    hold = limits.look(8, torch.tensor(1.0), norms, optimizer)
    assert hold is not None and (hold.kind, hold.step) == ("not_finite", 8)
    assert hold.text.startswith("The gradient of `net.0.bias` is not finite.")
