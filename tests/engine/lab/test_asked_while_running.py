"""Questions to an engine whose cell runs and is not held: they are answered in its middle."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from types import ModuleType
from unittest import mock

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from engine.console.output import Output
from engine.lab import Lab
from engine.lab.holding import seen_and_held, shown_and_held
from engine.loops.hooks import is_out_of_reach
from engine.process import EngineProcess
from engine.project.document import Model, TrainingSetup
from engine.project.subject import ConsoleSubject
from engine.protocol import (
    CellSnapshot,
    CheckModelCommand,
    Command,
    CompleteCommand,
    CompletionsSnapshot,
    ElementSnapshot,
    ErrorSnapshot,
    ModelSnapshot,
    ReadElementCommand,
    ReadParametersCommand,
    ReadValuesCommand,
    ReadVariablesCommand,
    RunCellCommand,
    RunFileCommand,
    Snapshot,
    StructureSnapshot,
    ValuesSnapshot,
    VariablesSnapshot,
)
from tests.engine.loops.held import HeldEngine

# Each of these goes on until it is told to end by a file, which the test writes once it has its
# answers: nothing depends on speed.
PURE = """
import os
marks = "lab"
turns = 0
print("begins")
while not os.path.exists(GO):
    turns += 1
"""
LOOP = """
import os
torch.manual_seed(1)
net = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.3), nn.Linear(8, 1))
x = torch.randn(16, 4)
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
def turn():
    optimizer.zero_grad()
    loss = F.mse_loss(net(x), x.sum(1, keepdim=True))
    loss.backward()
    optimizer.step()
print("begins")
for step in range(300):
    turn()
while not os.path.exists(GO):
    y = torch.sin(x)
for step in range(40):
    turn()
drawn = torch.rand(3)
"""
TRANSFORMED = """
import os
print("begins")
def wait(t):
    while not os.path.exists(HALF):
        pass
    return t * 2
doubled = torch.func.vmap(wait)(torch.arange(3.))
while not os.path.exists(GO):
    pass
"""
OWN_SIGNAL = """
import os, signal
before = signal.getsignal(signal.SIGURG)
seen = []
signal.signal(signal.SIGURG, lambda *args: seen.append(args))
print("begins")
for i in range(2_000_000):
    pass
signal.signal(signal.SIGURG, before)
"""


@pytest.fixture(autouse=True)
def no_cell_is_left_running(tmp_path) -> Iterator[None]:
    """The engine is shared: a test that fails must not leave it in an endless loop."""
    yield
    (tmp_path / "half").touch()
    (tmp_path / "go").touch()


class Running(HeldEngine):
    """A cell that runs until `go()`."""

    def __init__(self, engine: EngineProcess, source: str, folder) -> None:
        self.go_file, self.half_file = folder / "go", folder / "half"
        source = source.replace("GO", repr(str(self.go_file)))
        source = source.replace("HALF", repr(str(self.half_file)))
        super().__init__(engine, RunCellCommand(source=source))
        while "begins" not in self.printed:
            self.receive()

    def go(self) -> list[Snapshot]:
        self.go_file.touch()
        return self.end()

    def one(self, command: Command) -> Snapshot:
        (answer,) = self.ask(command)
        assert not isinstance(answer, ErrorSnapshot), answer
        return answer


def names(snapshot: Snapshot) -> dict[str, str]:
    assert isinstance(snapshot, VariablesSnapshot)
    return {variable.name: variable.text for variable in snapshot.variables}


def test_a_cell_in_pure_python_is_asked_in_its_middle(
    shared_engine: EngineProcess, tmp_path
) -> None:
    cell = Running(shared_engine, PURE, tmp_path)
    first = names(cell.one(ReadVariablesCommand()))
    found = cell.one(CompleteCommand(source="mark", cursor=4))
    assert isinstance(found, CompletionsSnapshot)
    assert [c.text for c in found.completions] == ["marks"]
    while names(cell.one(ReadVariablesCommand()))["turns"] == first["turns"]:
        pass  # answers may come within one turn
    end = [s for s in cell.go() if isinstance(s, CellSnapshot)]
    assert [s.ok for s in end] == [True]


def test_a_loop_that_was_asked_has_plain_pythons_bits(
    shared_engine: EngineProcess, tmp_path
) -> None:
    cell = Running(shared_engine, LOOP, tmp_path)
    for _ in range(20):  # some come while it trains, some while it waits
        listed = names(cell.one(ReadVariablesCommand()))
        assert listed["optimizer"].startswith("lr 0.01")
        values = cell.one(ReadValuesCommand(expression="net[0].weight"))
        assert isinstance(values, ValuesSnapshot) and (values.rows, values.columns) == (8, 4)
        read = cell.one(ReadParametersCommand(subject=ConsoleSubject("net")))
        assert isinstance(read, StructureSnapshot) and read.optimizers == ("optimizer",)
        subject = ConsoleSubject("net")
        found = cell.one(ReadElementCommand(name="0.weight", index=(1, 2), subject=subject))
        assert isinstance(found, ElementSnapshot) and found.element.optimizer == "Adam"
    cell.go()
    report = HeldEngine(
        shared_engine,
        RunCellCommand(source="print([p.tolist() for p in net.parameters()], drawn.tolist())"),
    )
    report.end()
    weights, drawn = plain_python()
    assert report.printed == f"{weights} {drawn}\n"


def plain_python() -> tuple[list, list]:
    with torch.random.fork_rng():
        torch.manual_seed(1)
        net = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.3), nn.Linear(8, 1))
        x = torch.randn(16, 4)
        optimizer = torch.optim.Adam(net.parameters(), lr=0.01)

        def turn() -> None:
            optimizer.zero_grad()
            F.mse_loss(net(x), x.sum(1, keepdim=True)).backward()
            optimizer.step()

        for _ in range(340):
            turn()
        return [p.tolist() for p in net.parameters()], torch.rand(3).tolist()


def test_what_does_more_than_read_waits_for_the_end(shared_engine: EngineProcess, tmp_path) -> None:
    cell = Running(shared_engine, PURE, tmp_path)
    checked = shared_engine.send(CheckModelCommand(model=Model(), training=TrainingSetup()))
    asked = shared_engine.send(ReadVariablesCommand())
    order: list[str] = []
    while not order or order[-1] != "checked":
        snapshot = cell.receive()
        if isinstance(snapshot, VariablesSnapshot) and snapshot.reply_to == asked:
            order.append("listed")
            cell.go_file.touch()
        elif isinstance(snapshot, CellSnapshot):
            order.append("ended")
        elif isinstance(snapshot, ModelSnapshot) and snapshot.reply_to == checked:
            order.append("checked")
    assert order == ["listed", "ended", "checked"]


def test_in_a_transformed_function_the_answer_comes_after_it(
    shared_engine: EngineProcess, tmp_path
) -> None:
    cell = Running(shared_engine, TRANSFORMED, tmp_path)
    asked = shared_engine.send(ReadVariablesCommand())
    cell.half_file.touch()
    while True:
        snapshot = cell.receive()
        if snapshot.reply_to == asked:
            break
    assert "doubled" in names(snapshot)
    assert [s.ok for s in cell.go() if isinstance(s, CellSnapshot)] == [True]


def test_torchis_out_of_reach_in_a_transformed_or_compiled_function() -> None:
    assert not is_out_of_reach()
    seen: list[bool] = []

    def look(x: torch.Tensor) -> torch.Tensor:
        seen.append(is_out_of_reach())
        return x * 2

    torch.func.vmap(look)(torch.arange(3.0))
    torch.func.grad(look)(torch.tensor(1.0))
    with mock.patch("torch.compiler.is_compiling", return_value=True):
        look(torch.tensor(1.0))
    assert seen == [True, True, True] and not is_out_of_reach()


def test_an_answer_is_not_interrupted_by_the_next() -> None:
    lab = Lab(lambda snapshot: None)
    lab.attend = lambda: None
    order: list[str] = []

    def first() -> None:
        assert lab.inside is not None
        lab.inside(partial(order.append, "second"))
        order.append("first")

    with shown_and_held(lab, lab.console.namespace, "a cell", Output(lab.emit)):
        assert lab.inside is not None
        lab.inside(first)
        lab.inside(partial(order.append, "third"))
    assert order == ["first", "third"]


def test_a_file_without_a_loop_tells_of_none(tmp_path) -> None:
    sent: list[Snapshot] = []
    lab = Lab(sent.append)
    with (
        seen_and_held(lab, tmp_path / "plain.py", Output(lab.emit)) as around,
        around(ModuleType("plain")),
    ):
        pass
    assert sent == []


def test_a_fault_of_an_answer_is_logged_and_the_code_goes_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    lab = Lab(lambda snapshot: None)
    lab.attend = lambda: None
    order: list[str] = []

    def fail() -> None:
        raise AttributeError("a fault of the lab's")

    with shown_and_held(lab, lab.console.namespace, "a cell", Output(lab.emit)):
        assert lab.inside is not None
        lab.inside(fail)
        lab.inside(partial(order.append, "next"))
    assert order == ["next"] and "a fault of the lab's" in caplog.text


def test_a_cell_that_takes_the_signal_for_itself_is_left_alone(
    shared_engine: EngineProcess, tmp_path
) -> None:
    cell = Running(shared_engine, OWN_SIGNAL, tmp_path)
    asked = shared_engine.send(ReadVariablesCommand())
    said = cell.end()
    after = HeldEngine(shared_engine, RunCellCommand(source="len(seen)"))
    found = [s for s in (*said, *after.end()) if s.reply_to == asked]
    assert after.printed == "0\n"
    assert any(isinstance(s, VariablesSnapshot) for s in found)


def test_a_file_that_runs_is_asked_too(shared_engine: EngineProcess, tmp_path) -> None:
    path = tmp_path / "long.py"
    go = tmp_path / "go"
    path.write_text(PURE.replace("GO", repr(str(go))))
    running = HeldEngine(shared_engine, RunFileCommand(path=str(path)))
    while "begins" not in running.printed:
        running.receive()
    (answer,) = running.ask(ReadVariablesCommand())
    assert isinstance(answer, VariablesSnapshot)
    go.touch()
    running.end()


def test_a_question_that_fails_does_not_end_the_cell(
    shared_engine: EngineProcess, tmp_path
) -> None:
    cell = Running(shared_engine, PURE, tmp_path)
    (answer,) = cell.ask(ReadValuesCommand(expression="there.is.none"))
    assert isinstance(answer, ErrorSnapshot)
    assert [s.ok for s in cell.go() if isinstance(s, CellSnapshot)] == [True]


def test_an_interrupt_still_ends_a_cell_that_was_asked(
    shared_engine: EngineProcess, tmp_path
) -> None:
    cell = Running(shared_engine, PURE, tmp_path)
    cell.one(ReadVariablesCommand())
    (end,) = [s for s in cell.stop() if isinstance(s, CellSnapshot)]
    assert end.error is not None and end.error.type == "KeyboardInterrupt"
