"""`breakpoint()` in a step that Train runs holds it there; elsewhere the step says that it does not
stop, and goes on."""

from __future__ import annotations

import torch
from torch import nn

from engine.process import EngineProcess
from engine.project.document import Model, TrainingSetup
from engine.project.subject import ConsoleSubject, Objective
from engine.protocol import (
    ContinueTrainingCommand,
    HeldSnapshot,
    ReadStructureCommand,
    RunCellCommand,
    StepLineCommand,
    StepTrainingCommand,
    StructureSnapshot,
    TrainCommand,
    TrainingSnapshot,
    VariablesSnapshot,
)
from tests.engine.loops.held import HeldEngine

NET = ConsoleSubject("net")
CELL = """
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5), nn.Linear(4, 1))
data = (torch.linspace(-1, 1, 48).reshape(16, 3), torch.ones(16, 1))
"""
STEP = """
def step(batch):
    x, y = batch
    breakpoint()
    error = model(x) - y
    return error.square().mean()
"""
OBJECTIVE = Objective(data="data", step=STEP.lstrip())
SETUP = TrainingSetup(epochs=3, batch_size=16)


def train(engine: EngineProcess) -> HeldEngine:
    HeldEngine(engine, RunCellCommand(source=CELL)).end()
    command = TrainCommand(model=Model(), training=SETUP, subject=NET, objective=OBJECTIVE)
    return HeldEngine(engine, command)


def names(held: HeldEngine) -> list[str]:
    """The variables that the engine tells next."""
    while True:
        snapshot = held.receive()
        if isinstance(snapshot, VariablesSnapshot):
            return [variable.name for variable in snapshot.variables]


def test_it_holds_with_the_frames_variables_and_the_weights_stay_plain_pythons(
    shared_engine: EngineProcess,
) -> None:
    held = train(shared_engine)
    where = held.wait()
    assert (where.at, where.function, where.line) == ("line", "step", 3)
    assert names(held)[:3] == ["batch", "x", "y"]
    assert held.type("tuple(x.shape), torch.rand(2).shape") == "((16, 3), torch.Size([2]))\n"
    held.ask(StepLineCommand())
    assert held.wait().line == 4
    held.ask(ContinueTrainingCommand())
    assert held.wait().line == 3
    held.ask(StepTrainingCommand())  # to the end of this step, where the run is paused
    while not isinstance(paused := held.receive(), TrainingSnapshot) or paused.state != "paused":
        pass
    assert paused.step == 2
    held.ask(ContinueTrainingCommand())
    held.wait()
    held.ask(ContinueTrainingCommand())
    run = [s for s in held.end() if isinstance(s, TrainingSnapshot)][-1]
    assert (run.state, run.step, run.error) == ("finished", 3, None)
    report = HeldEngine(shared_engine, RunCellCommand(source="net[0].weight.tolist()"))
    report.end()
    assert report.printed == f"{plain()}\n"


def plain() -> list:
    """The first weights after three such steps; what is typed drew two numbers in the first."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5), nn.Linear(4, 1))
        x, y = torch.linspace(-1, 1, 48).reshape(16, 3), torch.ones(16, 1)
        torch.manual_seed(0)
        loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), 16, shuffle=True)
        optimizer = torch.optim.Adam(net.parameters())
        for epoch in range(3):
            for some, target in loader:
                if epoch == 0:
                    torch.rand(2)
                optimizer.zero_grad()
                (net(some) - target).square().mean().backward()
                optimizer.step()
        return net[0].weight.tolist()


def test_the_consoles_variables_come_back_after_the_step(shared_engine: EngineProcess) -> None:
    held = train(shared_engine)
    held.wait()
    assert "batch" in names(held)
    held.ask(ContinueTrainingCommand())
    assert "batch" not in names(held)
    held.wait()
    held.stop()


def test_stop_ends_a_run_that_is_held(shared_engine: EngineProcess) -> None:
    held = train(shared_engine)
    held.wait()
    answers = held.stop()
    assert [s.at for s in answers if isinstance(s, HeldSnapshot)] == [""]
    run = [s for s in answers if isinstance(s, TrainingSnapshot)][-1]
    assert (run.state, run.step, run.error) == ("stopped", 0, None)


def test_a_step_that_is_only_looked_at_says_that_it_does_not_stop(
    shared_engine: EngineProcess,
) -> None:
    HeldEngine(shared_engine, RunCellCommand(source=CELL)).end()
    command = ReadStructureCommand(subject=NET, objective=OBJECTIVE, training=SETUP)
    looked = HeldEngine(shared_engine, command)
    told = [s for s in looked.end() if isinstance(s, StructureSnapshot)][-1]
    assert told.unrun is None and told.modules[0].calls
    assert "breakpoint() in line 3 did not stop" in looked.printed
