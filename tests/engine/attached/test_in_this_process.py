"""What a script calls, and what a window of it is told: the script is this test, and its window
another thread of it."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import Pipe
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from engine.attached import script_calls
from engine.attached.watching import Watching
from engine.connecting.dialing import dial
from engine.connecting.greeting import Role, Unwelcome
from engine.project.document import Model, TrainingSetup
from engine.protocol import (
    CellSnapshot,
    ContinueTrainingCommand,
    DoneSnapshot,
    ErrorSnapshot,
    FarewellSnapshot,
    HeldSnapshot,
    LoopSnapshot,
    OutputSnapshot,
    PauseSignal,
    ReadVariablesCommand,
    ReadySnapshot,
    RunCellCommand,
    RunHeldCommand,
    TrainCommand,
    VariablesSnapshot,
)
from engine.system.program import version
from tests.engine.attaching import Window
from tests.engine.drawn import drawn
from tests.engine.processes import WAIT_S


class Script:
    """A model with its optimizer, and what it takes for a step."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.net = nn.Linear(2, 1)
        self.sgd = torch.optim.SGD(self.net.parameters(), lr=0.1)
        self.windows: list[Window] = []

    def watch(self, **options: Any) -> Watching:
        net, optimizer = self.net, self.sgd
        script_calls.watch(net, optimizer, **options)
        found = script_calls._watching
        assert found is not None
        return found

    def attach(self, wants: Role = "steer") -> Window:
        watching = script_calls._watching
        assert watching is not None
        window = Window(dial(watching.listener.address, version(), wants=wants))
        self.windows.append(window)
        assert watching.wait(WAIT_S)
        window.until(VariablesSnapshot)  # now it is one of the session's
        return window

    def step(self) -> float:
        self.sgd.zero_grad()
        loss = self.net(torch.ones(3, 2)).square().mean()
        loss.backward()
        self.sgd.step()
        return loss.item()


@pytest.fixture
def script(sockets: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Script]:
    monkeypatch.setattr(script_calls, "_watching", None)
    made = Script()
    yield made
    watching = script_calls._watching
    if watching is not None:
        watching.close()
    for window in made.windows:
        window.close()


@contextmanager
def beside(work: Callable[[], object]) -> Iterator[None]:
    """`work` runs in a thread while the block does; its error is the test's."""
    errors: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    yield
    thread.join(WAIT_S)
    assert not errors, errors
    assert not thread.is_alive()


def test_a_process_that_is_watched_says_how_to_attach(script: Script, capsys) -> None:
    watching = script.watch()
    assert capsys.readouterr().err == f"Tensor Lab: tensorlab attach {os.getpid()}\n"
    assert script.watch() is watching and capsys.readouterr().err == ""
    assert watching._living() == {"net": script.net, "optimizer": script.sgd}


def test_on_tcp_it_says_address_and_key(script: Script, capsys) -> None:
    watching = script.watch(host="127.0.0.1", name="mine")
    listener = watching.listener
    said = f"Tensor Lab: tensorlab attach {listener.address} --key {listener.key}\n"
    assert capsys.readouterr().err == said and listener.key
    assert watching.about.name == "mine"
    assert set(watching._living()) == {"mine", "optimizer"}


def test_things_without_a_variable_have_a_name_all_the_same(script: Script) -> None:
    kept = [nn.Linear(1, 1)]
    kept_sgd = [torch.optim.SGD(kept[0].parameters())]
    script_calls.watch(kept[0], kept_sgd[0])
    watching = script_calls._watching
    assert watching is not None and set(watching._living()) == {"model", "optimizer"}
    kept.clear()
    kept_sgd.clear()
    assert watching._living() == {}  # it keeps nothing alive


@pytest.mark.parametrize(("spawn", "display"), [(True, True), (True, False), (False, True)])
def test_a_window_is_opened_if_it_is_wanted_and_there_is_a_display(
    script: Script, monkeypatch: pytest.MonkeyPatch, spawn: bool, display: bool
) -> None:
    opened: list[tuple[object, ...]] = []
    monkeypatch.setattr(script_calls, "has_display", lambda: display)
    monkeypatch.setattr(script_calls, "open_window", lambda *where: opened.append(where))
    script.watch(spawn=spawn)
    assert opened == ([(os.getpid(),)] if spawn and display else [])
    script.watch(spawn=spawn)
    assert len(opened) <= 1


def test_a_script_that_waits_goes_on_when_a_window_has_attached(script: Script) -> None:
    watching = script.watch()
    assert not watching.wait(0)
    with beside(lambda: script.attach()):
        script.watch(wait=True)
        assert watching.session is not None


def test_a_window_that_comes_is_told_what_there_is(script: Script) -> None:
    watching = script.watch(name="run")
    window = script.attach()
    assert (window.welcome.role, window.welcome.models) == ("steer", ("run",))
    assert window.welcome.about == watching.about
    ready, variables = window.seen
    assert isinstance(ready, ReadySnapshot) and isinstance(variables, VariablesSnapshot)
    assert {"run", "optimizer"} <= {each.name for each in variables.variables}


def test_another_version_is_refused(script: Script) -> None:
    watching = script.watch()
    with pytest.raises(Unwelcome) as raised:
        dial(watching.listener.address, "0.0")
    assert str(raised.value) == (
        f"This process has Tensor Lab {version()}, your window 0.0: use the same one."
    )


def test_steps_are_counted_and_drawn_for_the_window(script: Script) -> None:
    watching = script.watch()
    script.step()
    window = script.attach()
    losses = [script.step() for _ in range(3)]
    assert watching.steps == 4 and watching.has_stepped
    watching.exit_code = 3
    watching.close()
    seen = window.to_end()
    loops = [each for each in seen if isinstance(each, LoopSnapshot)]
    assert (loops[-1].step, loops[-1].state) == (4, "finished")
    drawn = {
        step: loss
        for loop in loops
        for step, loss in zip(loop.steps.step, loop.steps.loss, strict=True)
    }
    assert drawn == pytest.approx(dict(zip((2, 3, 4), losses, strict=True)))
    (farewell,) = [each for each in seen if isinstance(each, FarewellSnapshot)]
    assert farewell.code == 3


def test_figures_that_are_logged_are_told_and_can_be_read(script: Script) -> None:
    script_calls.log(before=1.0)  # nobody is there
    watching = script.watch()
    window = script.attach()
    for number in range(3):
        script.step()
        script_calls.log(half=number / 2, twice=torch.tensor([2.0 * number, 1.0]))
    assert torch.equal(script_calls.logged["twice"], torch.tensor([4.0, 1.0]))
    watching.close()
    logged: dict[int, float] = {}
    for each in window.to_end():
        if isinstance(each, LoopSnapshot) and "half" in each.logged:
            points = each.logged["half"]
            logged |= dict(zip(points.steps, points.values, strict=True))
    assert logged == {1: 0.0, 2: 0.5, 3: 1.0}
    script.windows.clear()
    window.close()


def test_a_step_in_which_a_question_comes_has_its_own_figures(script: Script) -> None:
    watching = script.watch()
    window = script.attach()
    while not watching._gate.is_shut:  # the first steps are all looked at
        script.step()
        script_calls.log(each=float(watching.steps))
    shut_after = watching.steps
    loss = script.net(torch.ones(3, 2)).square().mean()
    watching._gate.open()  # as the thread of a window does
    loss.backward()
    script.sgd.step()
    watching.is_awake = True
    script_calls.log(each=float(watching.steps))
    watching.close()
    logged = drawn(window.to_end(), "each")
    assert max(logged) == shut_after + 1
    assert logged == {step: step for step in logged}
    script.windows.clear()
    window.close()


def test_without_an_optimizer_a_call_that_logs_again_begins_a_step(script: Script) -> None:
    script_calls.watch(script.net)
    watching = script_calls._watching
    assert watching is not None
    script.attach()
    for number in range(3):
        script_calls.log(loss=float(number))
        script_calls.log(other=1.0)
    assert watching.steps == 2  # the third goes on
    script_calls.log(10, loss=3.0)
    assert watching.steps == 3
    script_calls.log(10, other=2.0)
    assert watching.steps == 3
    script_calls.log(11, other=3.0)
    assert watching.steps == 10


def test_a_pause_holds_after_the_next_step_until_the_window_lets_it_go_on(script: Script) -> None:
    script.watch()
    window = script.attach()

    def steer() -> None:
        held = window.until(HeldSnapshot, lambda held: held.at)
        assert (held.at, held.function) == ("step", "step")
        window.send(RunHeldCommand(source="loss.shape"))
        assert window.until(OutputSnapshot).text == "torch.Size([])\n"
        assert window.until(CellSnapshot).ok
        window.send(ContinueTrainingCommand())
        assert window.until(HeldSnapshot).at == ""

    window.send(PauseSignal())
    with beside(steer):
        while not any(isinstance(each, HeldSnapshot) and not each.at for each in window.seen):
            script.step()


def test_hold_holds_where_it_is_called_if_a_window_steers(script: Script) -> None:
    conditions: list[str] = []

    def asked(name: str, is_met: bool) -> Callable[[], bool]:
        return lambda: bool(conditions.append(name)) or is_met

    script_calls.hold()
    watching = script.watch()
    script_calls.hold(asked("without a window", True))
    window = script.attach("watch")
    script_calls.hold()  # nobody could let it go on
    window = script.attach()
    script_calls.hold(asked("not met", False))
    script_calls.hold(0)
    other = threading.Thread(target=script_calls.hold)
    other.start()
    other.join(WAIT_S)  # only the thread that watches is held
    assert not other.is_alive() and not any(isinstance(e, HeldSnapshot) for e in window.seen)
    assert watching.may_hold()

    def steer() -> None:
        held = window.until(HeldSnapshot, lambda held: held.at)
        assert held.at == "line" and held.function == asked_in.__name__
        assert "script_calls.hold(asked" in held.source.splitlines()[held.line - 1]
        window.send(ContinueTrainingCommand())
        window.until(HeldSnapshot, lambda held: not held.at)

    def asked_in() -> None:
        script_calls.hold(asked("met", True))

    with beside(steer):
        asked_in()
    assert conditions == ["not met", "met"]


def test_a_condition_of_hold_that_fails_does_not_reach_the_script(script: Script, caplog) -> None:
    script.watch()
    script.attach()

    def fail() -> bool:
        raise ValueError("which x?")

    script_calls.hold(fail)
    assert [record.message for record in caplog.records] == ["tensorlab.hold: which x?"]


def test_a_window_that_leaves_lets_code_go_on_that_it_holds(script: Script) -> None:
    script.watch()
    window = script.attach()

    def steer() -> None:
        window.until(HeldSnapshot, lambda held: held.at)
        window.close()

    with beside(steer):
        script_calls.hold()


@pytest.mark.parametrize("attached", [True, False])
@pytest.mark.parametrize(
    ("body", "times"), [("none", 1), ("own", 1), ("function", 1), ("list", 1), ("other", 2)]
)
def test_backward_runs_once_whoever_calls_it(
    script: Script, attached: bool, body: str, times: int
) -> None:
    if attached:
        script.watch()
        script.attach("watch")
    x = torch.ones(3, 2)
    loss, other = script.net(x).square().mean(), script.net(x).square().mean()
    expected = torch.autograd.grad(loss, script.net.weight, retain_graph=True)[0]
    with script_calls.backward(loss):
        if body == "own":
            loss.backward()
        elif body in ("function", "list"):
            torch.autograd.backward([loss] if body == "list" else loss)
        elif body == "other":
            other.backward()
    torch.testing.assert_close(script.net.weight.grad, times * expected)


def test_backward_has_the_arguments_that_it_is_given(script: Script) -> None:
    loss = script.net(torch.ones(3, 2)).square().mean()
    with script_calls.backward(loss, retain_graph=True):
        pass
    loss.backward()  # the graph is there


def test_after_an_error_no_backward_runs(script: Script) -> None:
    loss = script.net(torch.ones(3, 2)).square().mean()
    with pytest.raises(KeyError), script_calls.backward(loss):
        raise KeyError("x")
    assert script.net.weight.grad is None


def test_a_command_is_answered_after_a_step_or_aside(script: Script) -> None:
    script.watch()
    window = script.attach()
    asked = window.send(ReadVariablesCommand())  # no step comes
    told = window.until(VariablesSnapshot, lambda each: each.reply_to == asked)
    assert any(each.name == "net" for each in told.variables)
    window.until(DoneSnapshot, lambda done: done.reply_to == asked)


def test_what_a_script_does_not_do_is_refused_in_words(script: Script) -> None:
    script.watch()
    window, watching = script.attach(), script.attach("watch")
    refused = []
    for each in (
        RunCellCommand(source="x = 1"), TrainCommand(model=Model(), training=TrainingSetup()),
    ):  # fmt: skip
        asked = window.send(each)
        error = window.until(ErrorSnapshot)
        assert (error.reply_to, error.command) == (asked, type(each).__name__)
        refused.append(error.error.message)
        window.until(DoneSnapshot, lambda done, asked=asked: done.reply_to == asked)
    assert "only while it is held" in refused[0] and "trains by itself" in refused[1]
    watching.send(ContinueTrainingCommand())
    error = watching.until(ErrorSnapshot).error
    assert error.message == "Another window steers this process."
    assert error.hint == "Detach it there first."
    watching.send(PauseSignal())  # it does not steer
    asked = watching.send(ReadVariablesCommand())
    watching.until(VariablesSnapshot, lambda each: each.reply_to == asked)
    script.step()
    script.step()


def test_the_exit_code_is_told_to_what_watches(script: Script) -> None:
    script_calls.tell_exit_code(4)
    watching = script.watch()
    assert watching.exit_code is None
    script_calls.tell_exit_code(4)
    assert watching.exit_code == 4


def test_once_the_process_ends_no_window_is_taken(script: Script, monkeypatch) -> None:
    watching = script.watch()
    script.attach()
    session = watching.session
    assert session is not None
    monkeypatch.setattr(session._windows, "peers", ())  # none of them could say that it has left
    session.close(None, 0)
    ours, theirs = Pipe()
    assert session.add(ours, "watch") is False
    ours.close()
    theirs.close()


def test_a_fault_of_ours_in_an_answer_is_logged_and_the_next_question_answered(
    script: Script, monkeypatch, caplog
) -> None:
    watching = script.watch()
    window = script.attach()
    session = watching.session
    assert session is not None
    answer, failed = session._answer_waiting, threading.Event()

    def fail(is_aside: bool) -> None:
        if not failed.is_set():
            session._waiting.clear()
            failed.set()
            raise ValueError("a fault of ours")
        answer(is_aside)

    monkeypatch.setattr(session, "_answer_waiting", fail)
    window.send(ReadVariablesCommand())
    assert failed.wait(WAIT_S)
    asked = window.send(ReadVariablesCommand())
    window.until(VariablesSnapshot, lambda told: told.reply_to == asked)
    assert [record.message for record in caplog.records] == ["A question to a script has failed."]


def test_what_is_unseen_is_not_the_scripts_own(script: Script, monkeypatch) -> None:
    watching = script.watch()
    assert watching._is_unseen() is False
    script.attach()
    session = watching.session
    assert session is not None and watching._is_unseen() is False
    watching.is_awake = False
    assert watching._is_unseen() is False
    monkeypatch.setattr(type(session), "is_working", True)
    assert watching._is_unseen() is True
