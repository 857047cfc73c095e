"""A loop of a cell that is held at an optimizer step, in an engine process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import nn

from engine.process import EngineLost, EngineProcess
from engine.protocol import (
    BitsCommand,
    BitsSnapshot,
    CellSnapshot,
    Command,
    CompleteCommand,
    CompletionsSnapshot,
    ContinueTrainingCommand,
    DoneSnapshot,
    InterruptSignal,
    LoopSnapshot,
    PauseSignal,
    QuitSignal,
    ReadValuesCommand,
    ReadVariablesCommand,
    RunCellCommand,
    Snapshot,
    StepTrainingCommand,
    StopSignal,
    ValuesSnapshot,
    VariablesSnapshot,
)
from tests.engine.processes import receive, run_cell

CODE = """
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.2), nn.Linear(8, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
for i in range({steps}):
    x = torch.randn(16, 4)
    loss = F.mse_loss(net(x), x.sum(1, keepdim=True))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
ENDLESS = CODE.format(steps=10**9)
UNTIL_PAUSED = """
import gc, tensorlab.engine.system.control
next(o for o in gc.get_objects() if type(o) is tensorlab.engine.system.control.Control).pause.wait()
"""
"""Before a loop: it begins after the engine was told to pause, however slow the machine is."""


class Held:
    """An engine in which a cell has begun that is held after its first step."""

    def __init__(self, engine: EngineProcess, source: str) -> None:
        self.engine = engine
        self.cell = engine.send(RunCellCommand(source=UNTIL_PAUSED + source))
        engine.signal(PauseSignal())
        assert self.wait_held() == 1

    def wait_held(self) -> int:
        """The step after which the loop is held."""
        while True:
            snapshot = receive(self.engine)
            assert not isinstance(snapshot, CellSnapshot), "the cell has ended"
            if isinstance(snapshot, LoopSnapshot) and snapshot.state == "paused":
                return snapshot.step

    def ask(self, command: Command) -> list[Snapshot]:
        """The answers to a command, without what the cell says meanwhile."""
        asked, found = self.engine.send(command), []
        while True:
            snapshot = receive(self.engine)
            if isinstance(snapshot, DoneSnapshot) and snapshot.reply_to == asked:
                return found
            if snapshot.reply_to == asked:
                found.append(snapshot)

    def end(self) -> list[Snapshot]:
        """What the cell says up to its end."""
        found: list[Snapshot] = []
        while not (isinstance(snapshot := receive(self.engine), DoneSnapshot)):
            found.append(snapshot)
        return found


@pytest.fixture
def held(shared_engine: EngineProcess) -> Iterator[Held]:
    """A loop without an end; it is stopped after the test."""
    held = Held(shared_engine, ENDLESS)
    yield held
    shared_engine.signal(StopSignal())
    shared_engine.signal(InterruptSignal())
    held.end()


def test_a_held_and_stepped_loop_ends_with_the_weights_of_plain_python(
    shared_engine: EngineProcess, tmp_path: Path
) -> None:
    plain = {"torch": torch, "nn": nn, "F": nn.functional}
    exec(CODE.format(steps=12), plain)
    held = Held(shared_engine, CODE.format(steps=12))
    for step in (2, 3, 4):
        held.ask(ReadVariablesCommand())
        held.ask(CompleteCommand(source="net.", cursor=4))
        held.engine.send(StepTrainingCommand())
        assert held.wait_held() == step
    held.ask(ContinueTrainingCommand())
    loops = [snapshot for snapshot in held.end() if isinstance(snapshot, LoopSnapshot)]
    assert (loops[-1].state, loops[-1].step) == ("finished", 12)
    path = tmp_path / "weights.safetensors"
    saved = f"from safetensors.torch import save_file\nsave_file(net.state_dict(), {str(path)!r})"
    run_cell(shared_engine, saved)
    weights = load_file(path)
    for name, value in plain["net"].state_dict().items():
        assert torch.equal(weights[name], value), name


def test_while_the_loop_is_held_its_variables_are_read(held: Held) -> None:
    (listed,) = held.ask(ReadVariablesCommand())
    assert isinstance(listed, VariablesSnapshot)
    numbers = {variable.name: variable.text for variable in listed.variables}
    assert numbers["i"] == "0"
    (values,) = held.ask(ReadValuesCommand(expression="x", row_count=2, column_count=2))
    (bits,) = held.ask(BitsCommand(expression="x", index=(0, 0)))
    (names,) = held.ask(CompleteCommand(source="optimizer.st", cursor=12))
    assert isinstance(values, ValuesSnapshot) and isinstance(bits, BitsSnapshot)
    assert isinstance(names, CompletionsSnapshot)
    torch.manual_seed(0)
    nn.Linear(4, 8), nn.Linear(8, 1)
    x = torch.randn(16, 4)
    assert [float(cell) for cell in values.cells[0]] == pytest.approx(x[0, :2].tolist(), rel=1e-6)
    assert {"state", "step"} <= {completion.text for completion in names.completions}


def test_other_commands_wait_for_the_end_of_the_cell(shared_engine: EngineProcess) -> None:
    held = Held(shared_engine, CODE.format(steps=3))
    later = shared_engine.send(RunCellCommand(source="i * 100"))
    held.ask(ReadVariablesCommand())
    held.ask(ContinueTrainingCommand())
    ends = [held.end(), held.end()]
    assert [type(end[-1]) for end in ends] == [CellSnapshot, CellSnapshot]
    assert {snapshot.reply_to for snapshot in ends[1]} == {later}


def test_a_class_that_hangs_when_it_is_read_costs_its_time_and_not_the_loop(
    shared_engine: EngineProcess,
) -> None:
    slow = "class Slow:\n    def __dir__(self):\n        while True: pass\nslow = Slow()\n"
    held = Held(shared_engine, slow + CODE.format(steps=3))
    (error,) = held.ask(CompleteCommand(source="slow.", cursor=5))
    assert "takes too long" in str(error)
    held.ask(ContinueTrainingCommand())
    end = held.end()[-1]
    assert isinstance(end, CellSnapshot) and (end.ok, end.reply_to) == (True, held.cell)


@pytest.mark.parametrize("is_held", [True, False])
def test_stop_ends_the_cell_and_leaves_the_engine_working(
    shared_engine: EngineProcess, is_held: bool
) -> None:
    held = Held(shared_engine, ENDLESS)
    if not is_held:
        held.ask(ContinueTrainingCommand())
        while not (isinstance(said := receive(held.engine), LoopSnapshot) and said.step > 100):
            pass
    shared_engine.signal(StopSignal())
    shared_engine.signal(InterruptSignal())
    end = held.end()
    loops = [snapshot for snapshot in end if isinstance(snapshot, LoopSnapshot)]
    assert (loops[-1].state, loops[-1].error) == ("stopped", None)
    assert isinstance(end[-1], CellSnapshot) and end[-1].error is not None
    assert end[-1].error.type == "KeyboardInterrupt"
    again = run_cell(shared_engine, CODE.format(steps=5))  # not held, and not stopped
    assert isinstance(again[-2], LoopSnapshot) and again[-2].step == 5


def test_many_interrupts_leave_no_lock_held(shared_engine: EngineProcess) -> None:
    for _ in range(20):
        shared_engine.send(RunCellCommand(source=ENDLESS))
        while not isinstance(receive(shared_engine), LoopSnapshot):
            pass
        shared_engine.signal(InterruptSignal())
        while not isinstance(receive(shared_engine), DoneSnapshot):
            pass
    assert isinstance(run_cell(shared_engine, CODE.format(steps=2))[-2], LoopSnapshot)


def test_an_engine_with_a_held_loop_ends_when_it_is_asked_to(own_engine: EngineProcess) -> None:
    receive(own_engine)  # it is ready
    Held(own_engine, ENDLESS)
    own_engine.signal(QuitSignal())
    with pytest.raises(EngineLost):
        while True:
            receive(own_engine)
    assert own_engine.exit().code == 0
