"""Code that is held: what the console shows, where it leads, and how it goes on."""

from __future__ import annotations

from typing import Any

import pytest

from app.presenters.cells import CellsPresenter
from app.presenters.tensors.console import ConsolePresenter
from app.presenters.tensors.held import HeldPresenter
from app.presenters.tensors.workspace import TensorsPresenter
from app.window.tensors_page import TensorsPage
from engine.protocol import (
    CellSnapshot,
    ContinueTrainingCommand,
    ErrorReport,
    HeldSnapshot,
    InterruptSignal,
    OutputSnapshot,
    RunCellCommand,
    RunHeldCommand,
    StartTraceCommand,
    StepBackwardSignal,
    StepLineCommand,
    StepTrainingCommand,
    StopSignal,
)
from tests.app.conftest import SCRIPT

LINE = HeldSnapshot(at="line", title="cell 1", file="cell 1", line=3, source="a\nb\nc\n")
STEP = HeldSnapshot(at="step", title="cell 1", file="cell 1", line=3, source="a\nb\nc\n")
BACKWARD = HeldSnapshot(at="backward", title="cell 1", file="cell 1", line=2, source="a\nb\n")
ON = HeldSnapshot()


class Desk:
    def __init__(self, bench, qtbot) -> None:
        self.bench, self.made = bench, 0
        self.page = TensorsPage()
        qtbot.addWidget(self.page)
        cells = CellsPresenter(bench, bench.window)
        console = ConsolePresenter(bench, cells, self.page.console, bench.window)
        self.tensors = TensorsPresenter(bench, self.page, console, bench.window)
        self.held = HeldPresenter(bench, self.make, bench.window)
        self.backward: list[Any] = []
        self.held.backward_held.connect(self.backward.append)

    def make(self) -> TensorsPresenter:
        self.made += 1
        return self.tensors


@pytest.fixture
def desk(bench, link, qtbot) -> Desk:
    link.get_ready()
    made = Desk(bench, qtbot)
    link.sent.clear()
    link.signals.clear()
    return made


def sent(link) -> list[type]:
    return [type(command) for command in link.sent]


def test_the_console_and_the_variables_show_where_code_is_held(desk, bench) -> None:
    shown: list[Any] = []
    desk.page.console.show_held = shown.append
    desk.page.variables.show_held = shown.append
    bench.store.take(ON)
    assert desk.made == 0 and shown == []  # no code was held yet
    bench.store.take(STEP)
    bench.store.take(ON)
    assert desk.made == 1
    assert shown == [STEP, STEP.where, None, ""]
    assert desk.page.console.held.stop.isHidden() is False


@pytest.mark.parametrize(
    ("how", "signal", "command"),
    [
        ("on", "continue_requested", ContinueTrainingCommand),
        ("line", "line_requested", StepLineCommand),
        ("step", "step_requested", StepTrainingCommand),
    ],
)
def test_code_goes_on_as_it_is_told(desk, bench, link, how, signal: str, command: type) -> None:
    desk.held.go_on(how)
    assert link.sent == []
    assert bench.window.said == ["No code is held: breakpoint() in it holds it there."]
    bench.store.take(STEP)
    getattr(desk.page.console.held, signal).emit()
    desk.held.go_on(how)
    assert sent(link) == [command, command]


def test_stop_ends_a_cell_and_is_not_offered_for_a_script(desk, bench, link) -> None:
    cell = bench.send(RunCellCommand(source="loop()"))
    bench.send(StartTraceCommand(source="x"))  # it waits
    bench.store.take(STEP)
    desk.page.console.held.stop_requested.emit()
    assert link.signals == [StopSignal(command=cell), InterruptSignal(command=cell)]
    link.attach_to(SCRIPT)
    bench.store.take(STEP)
    assert desk.page.console.held.stop.isHidden()


@pytest.mark.parametrize(
    ("workspace", "held", "leads_to", "said"),
    [
        ("model", LINE, "tensors", False),
        ("tensors", LINE, "tensors", False),
        ("train", LINE, "train", False),
        ("autograd", LINE, "autograd", True),
        ("model", STEP, "model", False),
        ("model", BACKWARD, "model", False),
    ],
)
def test_a_line_is_shown_where_code_can_be_seen(
    desk, bench, workspace: str, held: HeldSnapshot, leads_to: str, said: bool
) -> None:
    bench.window.workspace = workspace
    bench.store.take(held)
    assert bench.window.workspace == leads_to
    assert bench.window.said == ([f"{held.where}: Tensors shows it."] if said else [])


def test_a_backward_of_the_code_is_told_until_it_goes_on(desk, bench, link) -> None:
    assert desk.held.in_backward is None
    bench.store.take(LINE)
    bench.store.take(BACKWARD)
    assert desk.held.in_backward == BACKWARD
    bench.store.take(ON)
    assert desk.backward == [None, BACKWARD, None]
    bench.store.take(BACKWARD)
    link.close()
    assert desk.backward[3:] == [BACKWARD, None]


def test_holding_each_backward_is_told_to_every_engine(desk, bench, link) -> None:
    switched: list[bool] = []
    desk.held.backward_switched.connect(switched.append)
    action = bench.actions["autograd.own_backward"]
    desk.held.step_backward(False)
    assert link.signals == []
    desk.held.step_backward(True)
    desk.held.step_backward(True)
    assert link.signals == [StepBackwardSignal(on=True)]
    assert (switched, action.isChecked()) == ([True], True)
    link.close()
    link.signals.clear()
    link.get_ready()
    assert link.signals == [StepBackwardSignal(on=True)]
    desk.held.step_backward(False)
    assert link.signals[1:] == [StepBackwardSignal(on=False)]
    assert (switched, action.isChecked()) == ([True, False], False)


def test_python_runs_where_code_is_held_and_its_answers_come_to_the_console(
    desk, bench, link
) -> None:
    bench.store.take(LINE)
    console = desk.page.console
    output: list[str] = []
    ended: list[Any] = []
    console.add_output = lambda snapshot: output.append(snapshot.text)
    console.finish_held = ended.append
    console.held_run_requested.emit("x")
    console.held_run_requested.emit("y")
    assert [(type(each), each.source) for each in link.sent] == [
        (RunHeldCommand, "x"), (RunHeldCommand, "y"),
    ]  # fmt: skip
    link._receive(OutputSnapshot(stream="stdout", text="1\n", reply_to=1))
    error = ErrorReport("NameError", "No y.")
    link.answer(CellSnapshot(ok=True, error=None), to=1)
    link.answer(CellSnapshot(ok=False, error=error), to=2)
    assert output.count("1\n") >= 1 and ended == [None, error]


def test_python_that_cannot_run_there_says_why(desk, bench, link, qtbot) -> None:
    bench.store.take(LINE)

    def questions() -> int:
        return sum(type(each).__name__ == "Questions" for each in desk.held.children())

    console = desk.page.console
    console.held_run_requested.emit("x")
    link.fail("It goes on already.", "Wait.")
    assert bench.window.said == ["It goes on already. Wait."]
    console.held_run_requested.emit("x")
    link.answer(CellSnapshot(ok=True, error=None))
    link.close()
    bench.window.said.clear()
    console.held_run_requested.emit("x")
    assert bench.window.said == [link.unsent]
    qtbot.waitUntil(lambda: questions() == 0)
