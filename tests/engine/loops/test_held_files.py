"""The loop of a Python file, in an engine process: seen, held, stepped, continued, stopped."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from engine.process import EngineProcess
from engine.protocol import (
    ContinueTrainingCommand,
    DoneSnapshot,
    ErrorSnapshot,
    FileSnapshot,
    LoopSnapshot,
    PauseSignal,
    ReadValuesCommand,
    ReadVariablesCommand,
    RunFileCommand,
    Snapshot,
    StepTrainingCommand,
    ValuesSnapshot,
    VariablesSnapshot,
)
from tests.engine.drawn import drawn
from tests.engine.loops.held import HeldEngine
from tests.engine.loops.test_held_loops import UNTIL_PAUSED
from tests.engine.processes import answers, receive

FILE = """import torch
from torch import nn
import torch.nn.functional as F
from safetensors.torch import save_file

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.2), nn.Linear(8, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
history = []


def train(steps):
    for i in range(steps):
        x = torch.randn(16, 4)
        loss = F.mse_loss(net(x), x.sum(1, keepdim=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history.append(loss.item())


"""


def write(folder: Path, steps: int, before: str = "") -> Path:
    path = folder / "own_loop.py"
    path.write_text(
        f"{FILE}{before}train({steps})\nsave_file(net.state_dict(), {str(folder)!r} + '/w')\n"
    )
    return path


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "w")


def loops_of(said: list[Snapshot]) -> list[LoopSnapshot]:
    return [snapshot for snapshot in said if isinstance(snapshot, LoopSnapshot)]


def test_the_loop_of_a_file_is_seen(shared_engine: EngineProcess, tmp_path: Path) -> None:
    path = write(tmp_path, 20)
    said = answers(shared_engine, shared_engine.send(RunFileCommand(path=str(path))))
    plain: dict = {}
    exec(path.read_text(), plain)
    loops = loops_of(said)
    assert (loops[-1].title, loops[-1].state, loops[-1].step) == (
        "Loop in own_loop.py",
        "finished",
        20,
    )
    assert [loss for loop in loops for loss in loop.steps.loss] == plain["history"]
    assert isinstance(said[-1], FileSnapshot)
    assert not any(isinstance(snapshot, VariablesSnapshot) for snapshot in said)


def test_a_held_and_stepped_loop_of_a_file_ends_with_the_weights_of_plain_python(
    shared_engine: EngineProcess, tmp_path: Path
) -> None:
    (tmp_path / "plain").mkdir()
    exec(write(tmp_path / "plain", 12).read_text(), {})
    held = HeldEngine(shared_engine, RunFileCommand(path=str(write(tmp_path, 12, UNTIL_PAUSED))))
    shared_engine.signal(PauseSignal())
    first = held.wait()
    assert (first.at, first.title, first.file, first.function) == (
        "step",
        "own_loop.py",
        "own_loop.py",
        "train",
    )
    assert first.source.splitlines()[first.line - 1].strip() == "optimizer.step()"
    (listed,) = held.ask(ReadVariablesCommand())
    assert isinstance(listed, VariablesSnapshot)
    names = [variable.name for variable in listed.variables]
    assert names[:3] == ["steps", "i", "x"] and {"net", "optimizer", "history"} <= set(names)
    (values,) = held.ask(
        ReadValuesCommand(expression="net[0].weight.grad", row_count=2, column_count=2)
    )
    assert isinstance(values, ValuesSnapshot)
    for step in (2, 3, 4):
        held.engine.send(StepTrainingCommand())
        held.wait()
        assert held.type("i + 1") == f"{step}\n"
    held.ask(ContinueTrainingCommand())
    end = held.end()
    assert (loops_of(end)[-1].state, loops_of(end)[-1].step) == ("finished", 12)
    variables = [snapshot for snapshot in end if isinstance(snapshot, VariablesSnapshot)]
    assert all(
        variable.name != "net" for variable in variables[-1].variables
    )  # the console's again
    for name, value in weights(tmp_path / "plain").items():
        assert torch.equal(weights(tmp_path)[name], value), name


@pytest.mark.parametrize("is_held", [True, False])
def test_stop_ends_the_loop_of_a_file(
    shared_engine: EngineProcess, tmp_path: Path, is_held: bool
) -> None:
    held = HeldEngine(shared_engine, RunFileCommand(path=str(write(tmp_path, 10**9))))
    while not isinstance(receive(shared_engine), LoopSnapshot):
        pass
    if is_held:
        shared_engine.signal(PauseSignal())
        held.wait()
    end = held.stop()
    assert loops_of(end)[-1].state == "stopped"
    (error,) = (snapshot for snapshot in end if isinstance(snapshot, ErrorSnapshot))
    assert error.error.type == "KeyboardInterrupt"
    again = answers(shared_engine, shared_engine.send(RunFileCommand(path=str(write(tmp_path, 3)))))
    assert loops_of(again)[-1].state == "finished" and not isinstance(again[-1], DoneSnapshot)


def test_a_loop_of_a_file_that_fails_says_why(shared_engine: EngineProcess, tmp_path: Path) -> None:
    path = tmp_path / "fails.py"
    path.write_text(FILE + "train(3)\nnet(torch.ones(2, 5))\n")
    said = answers(shared_engine, shared_engine.send(RunFileCommand(path=str(path))))
    last = loops_of(said)[-1]
    assert (last.state, last.step) == ("failed", 3)
    assert last.error is not None and last.error.line == path.read_text().count("\n")
    assert isinstance(said[-1], ErrorSnapshot)


def test_a_file_has_lab_without_an_import(shared_engine: EngineProcess, tmp_path: Path) -> None:
    path = tmp_path / "logs.py"
    logs = "        history.append(loss.item())\n        lab.log(half=loss / 2)\n"
    source = FILE.replace("        history.append(loss.item())\n", "").replace(
        "        optimizer.step()\n", f"{logs}        optimizer.step()\n"
    )
    path.write_text(f"{source}lab.hold()\ntrain(3)\n")
    held = HeldEngine(shared_engine, RunFileCommand(path=str(path)))
    where = held.wait()
    assert where.source.splitlines()[where.line - 1] == "lab.hold()"
    held.ask(ContinueTrainingCommand())
    halves = drawn(held.end(), "half")
    plain: dict = {"lab": type("Lab", (), {"log": lambda **_: None, "hold": lambda: None})}
    exec(path.read_text(), plain)
    losses = plain["history"]
    assert halves == pytest.approx({step: loss / 2 for step, loss in enumerate(losses, 1)})


def test_a_name_of_the_files_own_is_not_lab(shared_engine: EngineProcess, tmp_path: Path) -> None:
    path = tmp_path / "own_lab.py"
    path.write_text("lab = 'mine'\nprint(lab)\n")
    run = HeldEngine(shared_engine, RunFileCommand(path=str(path)))
    run.end()
    assert run.printed == "mine\n"
