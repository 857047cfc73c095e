"""The figures of a loop whose steps are told by hand: its time, its names, what is logged."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import nn

from engine.loops.logged_numbers import LoggedNumbers
from engine.loops.own_loop import OwnLoop
from engine.loops.step_losses import Root
from engine.protocol import HeldAt, LoopSnapshot
from engine.system.control import Control
from engine.training.figures.pace import Budget
from tests.engine.loops.test_own_loops import column


class Loop:
    """An OwnLoop with a clock of its own, whose steps take a second."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **parts: object) -> None:
        self.now = 100.0
        monkeypatch.setattr("engine.loops.own_loop.perf_counter", lambda: self.now)
        self.sent: list[LoopSnapshot] = []
        self.control = Control()
        self.loop = OwnLoop("loop", self.control, self.sent.append, **parts)  # pyright: ignore
        self.weight = nn.Parameter(torch.ones(2))
        self.optimizer = torch.optim.SGD([self.weight], lr=0.5)

    def step(self, loss: float | None = None, of: torch.optim.Optimizer | None = None) -> None:
        self.now += 1.0
        if loss is not None:
            root = (self.weight * loss).sum()
            self.loop.saw_loss(torch.tensor(loss), root)
            self.loop.losses.know([of or self.optimizer])
            self.loop.losses.begin_backward([Root(torch.tensor(loss), root)], is_named=True)
            root.backward()
            self.loop.losses.end_backward(has_failed=False)
        self.loop.before_step(of or self.optimizer, False)
        self.loop.losses.end_step(of or self.optimizer, self.loop.step + 1)
        self.loop.after_step(of or self.optimizer, False)
        self.weight.grad = None

    def shown(self, name: str) -> list[float]:
        """A column of all rows."""
        self.loop.catch_up()
        return column(self.sent, name)


@pytest.fixture
def make(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Loop]:
    return lambda **parts: Loop(monkeypatch, **parts)


def test_the_time_of_a_step_is_that_between_two_ends_without_what_was_held(make) -> None:
    loop = make()
    loop.step()
    loop.step()
    loop.now += 7.0
    loop.loop.leave_out(7.0)
    loop.step()
    loop.now += 4.0
    loop.loop.begin_step()  # the steps before it were not shown
    loop.step()
    times = loop.shown("step_ms")
    assert math.isnan(times[0]) and times[1:] == [1000.0] * 3


def test_the_clock_stands_still_while_it_is_held_and_while_figures_are_made(make) -> None:
    loop = make()
    before = loop.loop.clock()
    loop.step()
    assert loop.loop.clock() - before == 1.0
    loop.now += 5.0
    loop.loop.leave_out(5.0)
    assert loop.loop.clock() - before == 1.0

    def send(snapshot: LoopSnapshot) -> None:
        loop.now += 2.0

    loop.loop._emit = send
    loop.loop.catch_up()
    assert loop.loop.clock() - before == 1.0
    loop.now += 0.5
    assert loop.loop.clock() - before == 1.5


def test_only_time_beside_a_measured_step_counts_as_measuring(
    make, monkeypatch: pytest.MonkeyPatch
) -> None:
    spent, is_measured = [], True
    monkeypatch.setattr(Budget, "takes", lambda self, step: is_measured)
    monkeypatch.setattr(Budget, "spend", lambda self, seconds: spent.append(seconds))
    loop = make()
    loop.step()
    loop.loop.spend(0.25)
    assert sum(spent) == 0.25 and loop.loop.is_due
    is_measured = False
    loop.step()
    loop.loop.spend(0.5)
    assert sum(spent) == 0.25 and not loop.loop.is_due
    assert loop.loop.due_s < math.inf


def test_an_error_of_ours_ends_the_figures_and_not_the_loop(make, caplog) -> None:
    loop = make()
    loop.step()
    loop.optimizer.param_groups[0]["lr"] = "fast"
    loop.step()
    assert loop.loop.step == 2 and not loop.loop.is_due and loop.loop.due_s == math.inf
    assert [record.message for record in caplog.records] == ["A loop cannot be shown any longer."]
    loop.step()
    assert loop.loop.step == 3 and loop.shown("step") == [1]


def test_a_loss_that_is_unknown_is_no_figure_and_the_next_step_has_its_own(make) -> None:
    loop = make()
    loop.step(2.0)
    loop.step()
    loop.step(3.0)
    assert loop.shown("loss") == [2.0, None, 3.0]
    norms = loop.shown("gradient_norm")
    assert norms == pytest.approx([2 * 2**0.5, 0.0, 3 * 2**0.5])


def test_optimizers_of_one_name_have_one_line_and_those_beyond_eight_share_the_last(make) -> None:
    names: dict[int, str] = {}
    loop = make(name_of=lambda thing: names.get(id(thing), ""))
    optimizers = [torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=0.1) for _ in range(11)]
    names[id(optimizers[1])] = names[id(optimizers[2])] = "both"
    for optimizer in optimizers:
        loop.step(of=optimizer)
    loop.loop.catch_up()
    found = [line.optimizer for line in loop.sent[-1].lines]
    numbered = [f"optimizer {number}" for number in range(2, 7)]
    assert found == ["optimizer 1", "both", *numbered, "other optimizers"]
    on_line = {step: line for each in loop.sent for step, line in each.line_of_step.items()}
    assert on_line == {2: 1, 3: 1, 4: 2, 5: 3, 6: 4, 7: 5, 8: 6, 9: 7, 10: 7, 11: 7}


# -- what is logged --------------------------------------------------------------------------------


def test_numbers_belong_to_the_step_that_has_ended_or_has_begun(make) -> None:
    loop = make()
    assert loop.loop.step_of(["early"]) == 1
    loop.step()
    assert loop.loop.step_of(["early", "late"]) == 1
    graph = loop.weight * 2  # the next step may have begun
    assert loop.loop.step_of(["late"]) == 1
    assert loop.loop.step_of(["late", "early"]) == 2
    loop.loop.saw_loss(torch.ones(()), graph)
    assert loop.loop.step_of(["late"]) == 2
    loop.step()
    assert loop.loop.step_of(["late"]) == 2


def test_without_steps_of_an_optimizer_a_step_ends_where_a_name_comes_again(make) -> None:
    numbers = LoggedNumbers()
    loop = make(logged=numbers)

    def log(**logged: float) -> int:
        step = loop.loop.step_by_logs(logged)
        numbers.add(step, logged)
        return step

    assert (log(a=1.0), log(loss=0.5), log(a=2.0), log(loss=0.25, c=3.0)) == (1, 1, 2, 2)
    assert loop.loop.step == 1
    last = loop.loop.last(None, None)
    assert last is not None and (last.step, last.state) == (2, "finished")
    assert column([*loop.sent, last], "loss") == [0.5, 0.25]
    logged = [snapshot.logged.get("a") for snapshot in [*loop.sent, last]]
    assert [(p.steps, p.values) for p in logged if p] == [((1,), (1.0,)), ((2,), (2.0,))]


def test_a_step_by_logs_that_an_optimizer_ends_is_one_step(make) -> None:
    loop = make()
    for _ in range(3):
        loop.loop.step_by_logs(["a"])
    assert loop.loop.step == 2
    loop.step()
    loop.step()
    last = loop.loop.last(None, None)
    assert last is not None and last.step == 4


def test_logs_of_our_own_code_and_of_other_loops_end_no_step(make) -> None:
    loop = make()
    with loop.control.user_code(), loop.control.own_code():
        assert loop.loop.step_by_logs(["a"]) == loop.loop.step_by_logs(["a"]) == 1
    assert loop.loop.step == 0 and loop.loop.last(None, None) is None
    loop.step()
    assert loop.loop.step_by_logs(["a"]) == loop.loop.step_by_logs(["a"]) == 1
    assert loop.loop.step == 1


# -- how it ends, and holding ----------------------------------------------------------------------


def test_the_end_tells_how_the_code_ended(make) -> None:
    for error, state in (
        (None, "finished"),
        (ValueError(), "failed"),
        (KeyboardInterrupt(), "stopped"),
    ):
        loop = make()
        assert loop.loop.last(error, None) is None
        loop.loop.catch_up()
        assert loop.sent == []
        loop.step()
        last = loop.loop.last(error, None)
        assert last is not None and (last.state, last.step, last.title) == (state, 1, "loop")


def test_a_pause_holds_after_a_step_and_tells_before_and_after(make) -> None:
    held: list[tuple[HeldAt, bool, int]] = []

    def hold(at: HeldAt) -> None:
        held.append((at, loop.control.in_own_code, loop.loop.step))
        loop.now += 50.0
        loop.control.pause.clear()

    loop = make(hold=hold)
    loop.step()
    assert held == []
    loop.control.pause.set()
    with loop.control.user_code():
        loop.step()
    assert held == [("step", True, 2)]
    assert [each.state for each in loop.sent[-2:]] == ["paused", "running"]
    loop.step()
    assert loop.shown("step_ms")[1:] == [1000.0, 1000.0]
    without = make()
    without.control.pause.set()
    without.step()
    assert [each.state for each in without.sent] == ["running"]


def test_what_is_sent_at_a_hold_takes_nothing_of_the_time_for_measuring(
    make, monkeypatch: pytest.MonkeyPatch
) -> None:
    spent: list[float] = []
    monkeypatch.setattr(Budget, "spend", lambda self, seconds: spent.append(seconds))
    loop = make(hold=lambda at: loop.control.pause.clear())

    def send(snapshot: LoopSnapshot) -> None:
        loop.now += 2.0

    loop.loop._emit = send
    loop.control.pause.set()
    loop.step()
    assert loop.now == 107.0 and sum(spent) == 0.0  # a step, and three snapshots


def test_a_loop_that_is_interrupted_while_it_is_held_says_no_more(make) -> None:
    def hold(at: HeldAt) -> None:
        loop.control.interrupted = True

    loop = make(hold=hold)
    loop.control.pause.set()
    loop.step()
    assert loop.sent[-1].state == "paused"
