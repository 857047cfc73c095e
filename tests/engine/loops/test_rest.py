"""While no step of a loop needs to be shown, its hooks rest, and nothing is told wrongly for it."""

from __future__ import annotations

import threading
from math import inf, isnan

import pytest
import torch
from torch import Tensor, nn
from torch.optim import SGD, Optimizer

from engine.loops import hooks, own_loop, rest
from engine.loops.hooks import Passed, Steps, steps_shown
from engine.loops.own_loop import OwnLoop
from engine.loops.rest import MAX_KNOWN, Rest
from engine.protocol import LoopSnapshot
from engine.system.control import Control
from engine.system.private_torch import next_sequence
from engine.training.figures import pace
from engine.training.figures.pace import FREE_STEPS


class Seen(Steps):
    """Is needed again at `due`."""

    def __init__(self) -> None:
        self.due: tuple[float, float] = (-inf, 0)
        self.said: list[object] = []

    def needed_from(self) -> tuple[float, float]:
        return self.due

    def count(self, passed: Passed) -> None:
        self.said.append(passed)

    def begin_step(self) -> None:
        self.said.append("begins")

    def saw_loss(self, loss: Tensor, root: Tensor) -> None:
        self.said.append("loss")

    def before_step(self, optimizer: Optimizer, has_closure: bool) -> None:
        self.said.append("before")

    def after_step(self, optimizer: Optimizer, has_closure: bool) -> None:
        self.said.append("after")

    def taken(self) -> list[object]:
        said, self.said = self.said, []
        return said


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, and how much later it is each time it is asked for."""
    now = [10.0, 0.0]

    def tell() -> float:
        now[0] += now[1]
        return now[0]

    for module in (hooks, rest, own_loop, pace):
        monkeypatch.setattr(module, "perf_counter", tell)
    return now


def weight_and_optimizer() -> tuple[nn.Parameter, SGD]:
    weight = nn.Parameter(torch.ones(2))
    return weight, SGD([weight], lr=0.0)


SHOWN = ["loss", "before", "after"]


def test_steps_are_shown_again_from_the_first_that_one_of_the_watching_needs(
    clock: list[float],
) -> None:
    resting, first, second = Rest(), Seen(), Seen()
    resting.watching += [first, second]
    weight, optimizer = weight_and_optimizer()

    def turn() -> None:
        weight.sum().backward()
        optimizer.step()

    with steps_shown(resting, *resting.watching, gate=resting.gate):
        turn()
        assert first.taken() == second.taken() == SHOWN
        first.due, second.due = (inf, 3), (12.0, inf)
        turn()  # is shown: it was decided before
        assert first.taken() == SHOWN
        turn()
        turn()
        assert first.taken() == []
        first.due = (-inf, 0)
        turn()  # after this one, three have passed
        assert first.taken() == [Passed(3, next_sequence(), False), "begins"]
        first.due = (inf, 9)
        turn()
        assert first.taken() == SHOWN
        assert resting.gate.is_shut
        turn()
        clock[0] = 12.0  # the second one's time
        second.due = (12.0, inf)
        turn()
        assert first.taken() == [Passed(2, next_sequence(), False), "begins"]
        second.due = (inf, inf)
        turn()
        turn()
        assert first.taken() == SHOWN
    resting.reach()
    assert first.taken() == [Passed(1, next_sequence(), False)]
    assert resting.gate.steps == 10


def test_whoever_asks_is_shown_the_step_that_runs() -> None:
    asked = False
    resting, seen = Rest(lambda: asked), Seen()
    resting.watching.append(seen)
    seen.due = (inf, inf)
    weight, optimizer = weight_and_optimizer()
    with steps_shown(resting, seen, gate=resting.gate):
        optimizer.step()
        assert seen.taken() == ["before", "after"]
        optimizer.step()
        weight.sum().backward()
        made = next_sequence() - 1  # before the sum
        opening = threading.Thread(target=resting.gate.open)
        opening.start()
        opening.join()
        optimizer.step()
        passed, *said = seen.taken()
        assert (passed, said) == (Passed(1, made, True), ["before", "after"])
        asked = True
        optimizer.step()
        assert seen.taken() == []
        resting.gate.open()
        optimizer.step()
        optimizer.step()
        assert seen.taken()[-4:] == ["before", "after"] * 2


def test_the_first_step_of_another_optimizer_is_shown() -> None:
    resting, seen = Rest(), Seen()
    resting.watching.append(seen)
    seen.due = (inf, inf)
    _, first = weight_and_optimizer()
    _, second = weight_and_optimizer()
    with steps_shown(resting, seen, gate=resting.gate):
        first.step()
        first.step()
        assert seen.taken() == ["before", "after"]
        second.step()
        (passed, *said) = seen.taken()
        assert isinstance(passed, Passed) and passed.steps == 1
        assert said == ["before", "after"]
        first.step()
        second.step()
        assert seen.taken() == []
        for _ in range(3 * MAX_KNOWN):
            weight_and_optimizer()[1].step()
        assert seen.taken().count("after") == 3 * MAX_KNOWN
    assert len(resting._known) <= MAX_KNOWN + 1


def test_in_another_thread_no_step_is_counted_and_no_optimizer_known() -> None:
    resting, seen = Rest(), Seen()
    resting.watching.append(seen)
    seen.due = (inf, inf)
    weight, optimizer = weight_and_optimizer()
    _, other = weight_and_optimizer()
    with steps_shown(resting, seen, gate=resting.gate):
        optimizer.step()
        seen.taken()

        def elsewhere() -> None:
            weight.sum().backward()
            optimizer.step()
            other.step()

        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
        assert resting.gate.is_shut
        assert (resting.gate.steps, resting.gate.backwards) == (1, 0)
    assert seen.said == []


def test_pause_tells_who_asked() -> None:
    control, told = Control(), []
    control.asked = lambda: told.append(control.pause.is_set())
    control.pause.set()
    assert told == [True]
    control.pause_after(0)
    assert told == [True, True]
    control.pause_after(7)
    assert len(told) == 2


# -- a loop's figures ------------------------------------------------------------------------------


def rows(sent: list[LoopSnapshot], name: str) -> list[float]:
    return [value for snapshot in sent for value in getattr(snapshot.steps, name)]


def test_the_rows_of_a_loop_whose_hooks_rest_are_those_of_its_steps(clock: list[float]) -> None:
    sent: list[LoopSnapshot] = []
    resting, loop = Rest(), OwnLoop("loop", Control(), sent.append)
    resting.watching.append(loop)
    weight = nn.Parameter(torch.zeros(1))
    optimizer = SGD([weight], lr=0.5)
    loop.losses.know([optimizer])
    losses, norms, shown = [], [], []
    clock[1] = 2e-5
    with steps_shown(resting, loop, gate=resting.gate, losses=loop.losses):
        for _ in range(FREE_STEPS + 200):
            shown.append(not resting.gate.is_shut)
            optimizer.zero_grad()
            loss = (weight - 3).square().sum()
            loss.backward()
            losses.append(loss.item())
            assert weight.grad is not None
            norms.append(weight.grad.norm().item())
            optimizer.step()
            weight.data.mul_(0.9)
            clock[0] += 0.004
    resting.reach()
    loop.catch_up()
    assert loop.step == sent[-1].step == FREE_STEPS + 200
    steps = [int(step) for step in rows(sent, "step")]
    assert steps[:FREE_STEPS] == list(range(1, FREE_STEPS + 1))
    assert len(steps) == sum(shown) < FREE_STEPS + 60
    assert rows(sent, "loss") == [losses[step - 1] for step in steps]
    assert rows(sent, "gradient_norm") == pytest.approx([norms[step - 1] for step in steps])
    assert isnan(rows(sent, "step_ms")[0])
    assert rows(sent, "step_ms")[1:] == pytest.approx([4.0] * (len(steps) - 1), abs=0.2)


def test_a_step_whose_hooks_come_on_after_its_backward_has_its_own_figures(
    clock: list[float],
) -> None:
    sent: list[LoopSnapshot] = []
    resting, loop = Rest(), OwnLoop("loop", Control(), sent.append)
    resting.watching.append(loop)
    weight, optimizer = weight_and_optimizer()
    loop.losses.know([optimizer])
    with steps_shown(resting, loop, gate=resting.gate, losses=loop.losses):
        for _ in range(FREE_STEPS + 2):
            weight.sum().backward()
            optimizer.step()
        loop.spend(0.00001)  # the next row is due in some ms
        weight.sum().backward()
        optimizer.step()
        assert resting.gate.is_shut
        weight.sum().backward()
        clock[0] += 1.0  # it is due by now
        resting.gate.open()
        optimizer.step()
        weight.sum().backward()
        optimizer.step()
    loop.catch_up()
    assert loop.step == FREE_STEPS + 5
    assert rows(sent, "step")[-2:] == [FREE_STEPS + 4, FREE_STEPS + 5]
    assert rows(sent, "loss")[-2:] == [2.0, 2.0]
    assert rows(sent, "gradient_norm") == pytest.approx(
        [step * 2**0.5 for step in rows(sent, "step")]  # they are never set to zero
    )


def test_a_step_whose_hooks_come_on_inside_it_is_counted_and_has_its_loss() -> None:
    sent: list[LoopSnapshot] = []
    resting, loop = Rest(), OwnLoop("loop", Control(), sent.append)
    resting.watching.append(loop)
    weight, optimizer = weight_and_optimizer()
    loop.losses.know([optimizer])

    def opened_inside() -> float:
        resting.gate.open()
        weight.grad = None
        (weight * 7).sum().backward()
        return 0.0

    with steps_shown(resting, loop, gate=resting.gate, losses=loop.losses):
        weight.sum().backward()
        optimizer.step()
        resting.gate.is_shut = True
        optimizer.step(opened_inside)
        weight.grad = None
        (weight * 5).sum().backward()
        resting.gate.open()
        optimizer.step()
    loop.catch_up()
    assert (resting.gate.steps, loop.step) == (3, 3)
    drawn = list(zip(*(rows(sent, n) for n in ("step", "loss", "gradient_norm")), strict=True))
    assert drawn == [
        (1, 2.0, pytest.approx(2**0.5)),
        (3, 10.0, pytest.approx(5 * 2**0.5)),
    ]


@pytest.mark.parametrize("begun", ["no", "backward", "graph"])
def test_what_is_logged_while_the_hooks_rest_is_of_its_step(begun: str) -> None:
    resting, loop = Rest(), OwnLoop("loop", Control(), lambda snapshot: None)
    resting.watching.append(loop)
    weight, optimizer = weight_and_optimizer()
    loop.losses.know([optimizer])
    with steps_shown(resting, loop, gate=resting.gate, losses=loop.losses):
        loop.step_of(["early"])
        for _ in range(FREE_STEPS + 5):
            weight.sum().backward()
            optimizer.step()
        resting.gate.is_shut, resting.gate.due_s = True, inf
        resting._was_shut = True
        weight.sum().backward()
        optimizer.step()
        if begun != "no":
            total = weight.sum()
            if begun == "backward":
                total.backward()
        resting.reach()
        done = FREE_STEPS + 6
        assert loop.step_of(["late"]) == done + (begun == "backward")
        assert loop.step_of(["early"]) == done + (begun != "no")
