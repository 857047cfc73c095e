"""What an attached loop logs, and the modules that it runs, where one looks at them."""

from __future__ import annotations

from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

from engine.attached.figures import Found, LoggedFigures
from engine.attached.modules import SeenModules
from engine.attached.seen_steps import SeenSteps
from engine.loops.hooks import Gate


class Lab:
    """Keeps what is logged: the step and the figures."""

    def __init__(self) -> None:
        self.told: list[tuple[int | None, dict[str, Any]]] = []
        self.logged: dict[str, torch.Tensor] = {}

    def add(self, figures: dict[str, Any], step: int | None) -> int:
        if figures:
            self.told.append((step, dict(figures)))
        return 0


@pytest.fixture
def lab() -> Lab:
    return Lab()


@pytest.fixture
def figures(lab: Lab) -> LoggedFigures:
    return LoggedFigures(lab)  # pyright: ignore[reportArgumentType]


def test_a_number_that_is_logged_in_every_step_is_read_only_where_one_looks(lab, figures) -> None:
    for steps in range(1, 5):
        figures.add({"each": 0.5, "seldom": 1.0} if steps in (1, 4) else {"each": 0.5},
                    steps, None, is_looked_at=steps == 3)  # fmt: skip
    assert lab.told == [
        (None, {"each": 0.5, "seldom": 1.0}), (None, {"each": 0.5}), (None, {"seldom": 1.0}),
    ]  # fmt: skip
    lab.told.clear()
    figures.add({"each": torch.ones(3)}, 5, 7, is_looked_at=False)  # no number: a look of its own
    ((step, found),) = lab.told
    assert step == 7 and found["each"].shape == (3,)


def test_a_number_that_once_came_with_a_step_stands_where_it_was_logged(lab, figures) -> None:
    figures.add({"loss": 1.0}, 1, 10, is_looked_at=False)
    for steps in (2, 3):
        figures.add({"loss": float(steps)}, steps, None, is_looked_at=False)
    assert lab.told == [(10, {"loss": 1.0})]  # the others are passed by
    figures.catch_up()
    assert lab.told[1:] == [(3, {"loss": 3.0})]


def test_the_newest_tensors_are_those_of_now(lab: Lab, figures: LoggedFigures) -> None:
    newest = Found(figures.newest)
    assert list(newest) == [] and len(newest) == 0
    lab.logged = {"x": torch.ones(2)}
    assert list(newest) == ["x"] and len(newest) == 1 and newest["x"] is lab.logged["x"]
    with pytest.raises(KeyError):
        newest["y"]


# -- modules -------------------------------------------------------------------------------------


class Control:
    steps_backward = False

    def pauses_by(self, step: int) -> bool:
        return step == 7


class Recorder:
    recording = object()

    def __init__(self) -> None:
        self.calls: list[str] = []

    def begin(self) -> None:
        self.calls.append("begin")

    def end(self) -> None:
        self.calls.append("end")


@pytest.fixture
def seen() -> SeenModules:
    net = nn.Linear(1, 1)
    namespace = SimpleNamespace(recordings=SimpleNamespace(running=None))
    found = SeenModules(namespace, Control(), lambda: {"x": 1, "net": net}, lambda: False)  # pyright: ignore
    found._recorder = Recorder()  # pyright: ignore[reportAttributeAccessIssue]
    found.net = net  # pyright: ignore[reportAttributeAccessIssue]
    return found


def test_modules_are_recorded_in_the_steps_that_are_looked_at(seen: Any) -> None:
    recordings = seen._namespace.recordings

    def begun(step: int) -> list[str]:
        seen._recorder.calls.clear()
        seen.begin_step(step)
        assert (recordings.running is not None) == (seen._recorder.calls == ["begin"])
        return list(seen._recorder.calls)

    assert begun(6) == []
    assert begun(7) == ["begin"] and recordings.running is Recorder.recording
    assert begun(8) == ["end"] and begun(9) == []
    seen.are_wanted = True
    assert begun(10) == ["begin"]
    seen.are_wanted, seen._control.steps_backward = False, True
    assert begun(11) == ["begin"]
    seen.end()
    assert recordings.running is None and seen._recorder.calls[-1] == "end"


def test_a_module_has_the_name_that_the_user_gave_it(seen: Any) -> None:
    assert (seen._name_of(seen.net), seen._name_of(nn.Linear(1, 1))) == ("net", "")


# -- steps ---------------------------------------------------------------------------------------


class Told:
    """In place of what a step tells: the names of the methods that were called."""

    def __init__(self, calls: list[str], name: str, **fields: Any) -> None:
        self._calls, self._name = calls, name
        vars(self).update(fields)

    def __getattr__(self, method: str) -> Any:
        if method.startswith("__"):
            raise AttributeError(method)

        def call(*given: Any) -> None:
            self._calls.append(" ".join([f"{self._name}.{method}", *map(str, given)]))

        return call


@pytest.fixture
def steps() -> Any:
    """Steps of which none is due; each tick of the loop's clock is a second."""
    calls: list[str] = []
    ticks = count(1)
    loop = Told(
        calls, "loop", is_due=False, watch=None, looks=False, due_s=7.5, step=0,
        clock=lambda: next(ticks),
    )  # fmt: skip
    control = Told(
        calls, "control", pause_at=0, steps_backward=False, pauses_by=lambda step: step == 70
    )
    modules = Told(calls, "modules", are_wanted=False)
    patch = Told(calls, "patch")
    gate = Gate()
    gate.patches.append(patch)  # pyright: ignore[reportArgumentType]
    asked: list[str] = []
    parts: list[Any] = [loop, Told(calls, "updates", is_asked=False), modules,
                        Told(calls, "logged"), control]  # fmt: skip
    found: Any = SeenSteps(*parts, gate, lambda: asked, Told(calls, "looks"))  # pyright: ignore
    found.calls, found.gate, found.asked = calls, gate, asked
    return found


def awake(steps: Any) -> bool:
    steps.gate.steps += 1
    steps.calls.clear()
    found = steps.is_awake()
    assert steps._loop.step == steps.gate.steps
    assert f"modules.begin_step {steps.gate.steps + 1}" in steps.calls
    assert ("loop.begin_step" in steps.calls) == found
    return found


def test_a_step_is_looked_at_if_something_is_due(steps: Any) -> None:
    reasons = [
        ("_loop", "is_due"),
        ("_updates", "is_asked"),
        ("_loop", "watch"),
        ("_loop", "looks"),
    ]
    for part, name in reasons:
        before = getattr(getattr(steps, part), name)
        setattr(getattr(steps, part), name, True)
        assert awake(steps), name
        assert not steps.gate.is_shut and "patch.put_on" in steps.calls
        setattr(getattr(steps, part), name, before)
        assert not awake(steps), name
    steps.asked.append("a question")
    assert awake(steps)
    steps.asked.clear()
    assert not awake(steps)
    steps.gate.steps = 68  # the step that begins is number 70
    assert awake(steps) and not awake(steps)


def test_until_a_step_is_due_the_gate_is_shut_and_backward_is_followed(steps: Any) -> None:
    assert not awake(steps)
    assert steps.gate.is_shut and steps.gate.due_s == 7.5
    assert "patch.take_off" not in steps.calls and "patch.put_on" not in steps.calls
    for part, name in (("_control", "pause_at"), ("_control", "steps_backward"),
                       ("_modules", "are_wanted")):  # fmt: skip
        setattr(getattr(steps, part), name, True)
        assert not awake(steps), name
        assert not steps.gate.is_shut and "patch.put_on" in steps.calls, name
        setattr(getattr(steps, part), name, False)


def test_a_gate_that_is_opened_while_it_shuts_stays_open(steps: Any) -> None:
    steps._is_asked = steps.gate.open  # as another thread does, just after the question
    assert not awake(steps)
    assert not steps.gate.is_shut and "patch.take_off" not in steps.calls


def test_the_time_of_a_step_that_was_looked_at_is_told_once(steps: Any) -> None:
    steps.before_step("sgd", False)  # of one second by the loop's clock
    steps.after_step("sgd", False)
    steps.spend(0.5)
    steps._loop.is_due = True
    assert awake(steps) and "loop.spend 2.5" in steps.calls
    steps._loop.is_due = False
    assert not awake(steps)
    (spent,) = [call for call in steps.calls if call.startswith("loop.spend")]
    assert float(spent.split()[1]) < 0.5  # of what was just begun
    assert not awake(steps)
    assert not [call for call in steps.calls if call.startswith("loop.spend")]


def test_a_step_that_was_logged_is_counted_already(steps: Any) -> None:
    steps.gate.steps = 4
    steps.after_step("sgd", False)
    assert steps.calls[-1] == "loop.after_step sgd False" and steps._loop.step == 4
    steps.after_log()
    assert steps.calls[-1] == "loop.after_log" and steps._loop.step == 3


def test_parameters_are_looked_at_once_a_window_has_asked(steps: Any) -> None:
    for is_wanted in (False, True):
        steps.looks_are_wanted = is_wanted
        steps.calls.clear()
        steps.before_step("sgd", False)
        steps.after_step("sgd", False)
        names = [call.partition(" ")[0] for call in steps.calls]
        assert ("looks.before_step" in names) == ("looks.after_step" in names) == is_wanted
        assert "updates.before_step" in names and "loop.before_step" in names
    steps.gate.steps = 9
    steps.calls.clear()
    steps.catch_up()
    assert steps._loop.step == 9 and steps.calls == ["logged.catch_up", "loop.catch_up"]


def test_backward_is_stepped_in_its_context_if_a_window_steers(steps: Any) -> None:
    for is_steered in (True, False):
        steps._control.steps_backward = not is_steered
        steps.gate.is_shut = True
        with pytest.raises(KeyError), steps.stepping_backward(is_steered):
            assert steps.steps_backward == is_steered and not steps.gate.is_shut
            raise KeyError
        assert steps.steps_backward != is_steered and steps._modules.are_wanted is True
