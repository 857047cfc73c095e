"""A stop and an interrupt end the command that they name: what else runs, or is held, stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.process import EngineProcess
from engine.project.document import Model, TrainingSetup
from engine.project.subject import ConsoleSubject, Objective
from engine.protocol import (
    CellSnapshot,
    Command,
    ContinueTrainingCommand,
    ErrorSnapshot,
    HeldSnapshot,
    InterruptSignal,
    OutputSnapshot,
    RunCellCommand,
    RunHeldCommand,
    Snapshot,
    StartForwardCommand,
    StartTraceCommand,
    StopSignal,
    TrainCommand,
    TrainingSnapshot,
)
from tests.engine.processes import answers, receive, run_cell, wait_for_print

pytestmark = pytest.mark.usefixtures("forked_processes")

WAITING = [
    StartTraceCommand(source="y = torch.ones(2)"),
    StartForwardCommand(model=Model(), training=TrainingSetup()),
    RunCellCommand(source="unwanted = 1"),
    TrainCommand(model=Model(), training=TrainingSetup()),
]


def stop(engine: EngineProcess, command_id: int) -> None:
    engine.signal(StopSignal(command=command_id))
    engine.signal(InterruptSignal(command=command_id))


def hold(engine: EngineProcess) -> int:
    """A cell that is held at its breakpoint; its id."""
    cell = engine.send(RunCellCommand(source="x = 1\nbreakpoint()\nx = 2\nprint('end', x)"))
    while not (isinstance(told := receive(engine), HeldSnapshot) and told.at):
        pass
    return cell


def goes_on(engine: EngineProcess, cell: int) -> None:
    """The cell is held, and ends as it would have."""
    engine.send(ContinueTrainingCommand())
    got = answers(engine, cell)
    assert ended(got).ok and "end 2\n" in printed(got)


def ended(got: list[Snapshot]) -> CellSnapshot:
    (cell,) = [each for each in got if isinstance(each, CellSnapshot)]
    return cell


def printed(got: list[Snapshot]) -> str:
    return "".join(each.text for each in got if isinstance(each, OutputSnapshot))


def is_refused(got: list[Snapshot]) -> bool:
    (error,) = [each.error for each in got if isinstance(each, ErrorSnapshot)]
    return error.type == "KeyboardInterrupt" and "before it began" in error.message


@pytest.mark.parametrize("command", WAITING, ids=lambda command: type(command).__name__)
def test_what_waits_for_held_code_is_dropped_and_the_code_stays_held(
    shared_engine: EngineProcess, command: Command
):
    cell = hold(shared_engine)
    first, second = shared_engine.send(command), shared_engine.send(command)
    for each in (second, first):
        stop(shared_engine, each)
        assert is_refused(answers(shared_engine, each))
    goes_on(shared_engine, cell)
    assert printed(run_cell(shared_engine, "print('unwanted' in globals())")) == "False\n"


def test_what_is_typed_for_held_code_is_interrupted_alone(shared_engine):
    cell = hold(shared_engine)
    typed = shared_engine.send(RunHeldCommand(source="print('typed')\nwhile True: pass"))
    wait_for_print(shared_engine)
    stop(shared_engine, typed)
    error = ended(answers(shared_engine, typed)).error
    assert error is not None and error.type == "KeyboardInterrupt"
    goes_on(shared_engine, cell)


def test_held_code_ends_if_it_is_named(shared_engine):
    cell = hold(shared_engine)
    trace = shared_engine.send(WAITING[0])
    stop(shared_engine, cell)
    error = ended(answers(shared_engine, cell)).error
    assert error is not None and error.type == "KeyboardInterrupt"
    assert not any(isinstance(each, ErrorSnapshot) for each in answers(shared_engine, trace))


def until(path: Path) -> str:
    """A cell that runs until there is this file."""
    waits = f"while not os.path.exists({str(path)!r}):\n    time.sleep(0.01)"
    return f"import os, time\nprint('runs')\n{waits}"


def test_what_waits_for_a_cell_that_runs_is_dropped_and_the_cell_goes_on(shared_engine, tmp_path):
    cell = shared_engine.send(RunCellCommand(source=until(tmp_path / "end")))
    wait_for_print(shared_engine)
    trace = shared_engine.send(WAITING[0])
    stop(shared_engine, trace)
    assert is_refused(answers(shared_engine, trace))  # before the cell has ended
    (tmp_path / "end").touch()
    assert ended(answers(shared_engine, cell)).ok


def test_the_stop_of_a_run_does_not_end_a_cell_between_its_steps(shared_engine, tmp_path):
    run_cell(shared_engine, "net = nn.Linear(2, 1)\ndata = (torch.ones(4, 2), torch.ones(4, 1))")
    train = shared_engine.send(
        TrainCommand(
            model=Model(),
            training=TrainingSetup(epochs=1),
            subject=ConsoleSubject("net"),
            objective=Objective("data"),
            paused=True,
        )
    )
    cell = shared_engine.send(RunCellCommand(source=until(tmp_path / "end")))
    wait_for_print(shared_engine)
    stop(shared_engine, train)
    (tmp_path / "end").touch()
    assert ended(answers(shared_engine, cell)).ok
    got = answers(shared_engine, train)
    assert [each.state for each in got if isinstance(each, TrainingSnapshot)][-1] == "stopped"


def test_the_interrupt_of_a_cell_leaves_a_paused_run(shared_engine):
    run_cell(shared_engine, "net = nn.Linear(2, 1)\ndata = (torch.ones(4, 2), torch.ones(4, 1))")
    command = TrainCommand(
        model=Model(),
        training=TrainingSetup(epochs=1),
        subject=ConsoleSubject("net"),
        objective=Objective("data"),
        paused=True,
    )
    train = shared_engine.send(command)
    cell = shared_engine.send(RunCellCommand(source="print('runs')\nwhile True: pass"))
    wait_for_print(shared_engine)
    stop(shared_engine, cell)
    error = ended(answers(shared_engine, cell)).error
    assert error is not None and error.type == "KeyboardInterrupt"
    shared_engine.send(ContinueTrainingCommand())
    got = answers(shared_engine, train)
    assert [each.state for each in got if isinstance(each, TrainingSnapshot)][-1] == "finished"


def test_an_interrupt_that_a_finalizer_raises_itself_interrupts_nothing_else(shared_engine):
    source = (
        "class Trap:\n    def __del__(self): raise KeyboardInterrupt\ntrap = Trap()\ndel trap\n"
    )
    source += "import time\nfor _ in range(20): time.sleep(0.01)\nprint('end')"
    got = run_cell(shared_engine, source)
    assert ended(got).ok and printed(got).endswith("end\n")
