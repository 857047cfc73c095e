"""Data that expressions of code give: names that are missing, how often each is computed."""

from __future__ import annotations

from typing import Any

import pytest

from engine.lab import Lab
from engine.project.document import Model, TrainingSetup
from engine.project.subject import CodeSubject, ConsoleSubject, FileSubject, Objective
from engine.protocol import (
    PredictionsSnapshot,
    ReadPredictionsCommand,
    ReadStructureCommand,
    RunCellCommand,
    RunFileCommand,
    TrainCommand,
)
from engine.server.session import handler_of
from engine.system.errors import LabError
from tests.engine.subjects.conftest import Ask, Write

NET = """
import torch
from torch import nn

net = nn.Linear(3, 1)
made = []

def data(count=4):
    made.append(count)
    return torch.arange(3.0 * count).view(count, 3), torch.zeros(count, 1)
"""


def predictions(ask: Ask, subject: CodeSubject, data: str = "data()") -> PredictionsSnapshot:
    command = ReadPredictionsCommand(
        model=Model(),
        training=TrainingSetup(),
        subject=subject,
        objective=Objective(data),
        part="training",
    )
    (answer,) = ask(command)
    assert isinstance(answer, PredictionsSnapshot)
    return answer


def read(ask: Ask, subject: CodeSubject, data: str = "data()") -> int:
    """The number of samples that the subject's predictions are of."""
    return predictions(ask, subject, data).samples


def test_a_name_that_a_file_lacks_is_told_of_the_file(ask: Ask, write: Write) -> None:
    path = str(write("net.py", NET))
    ask(RunFileCommand(path=path))
    objective = Objective("loader")
    (answer,) = ask(ReadStructureCommand(subject=FileSubject(path, "net"), objective=objective))
    assert (
        "no variable named `loader` in net.py. Define it in net.py and run"
        in f"{answer.unrun.message} {answer.unrun.hint}"
    )
    with pytest.raises(LabError, match=r"`Net` in net\.py") as told:
        ask(ReadStructureCommand(subject=FileSubject(path, "Net"), objective=objective))
    assert "console" not in told.value.hint


def test_a_name_that_the_console_lacks_is_told_of_the_console(ask: Ask) -> None:
    ask(RunCellCommand(source="net = nn.Linear(3, 1)"))
    objective = Objective("loader")
    (answer,) = ask(ReadStructureCommand(subject=ConsoleSubject("net"), objective=objective))
    assert "named `loader`. Make it in the console" in f"{answer.unrun.message} {answer.unrun.hint}"


def test_predictions_compute_the_data_once_until_code_runs(ask: Ask, lab) -> None:
    ask(RunCellCommand(source=NET))
    made, subject = lab.console.namespace.variables["made"], ConsoleSubject("net")
    assert [read(ask, subject), read(ask, subject), read(ask, subject, "data(6)")] == [4, 4, 6]
    assert made == [4, 6]
    ask(RunCellCommand(source="net.bias.data.fill_(1.0)"))
    read(ask, subject)
    assert made == [4, 6, 4]


def test_a_file_that_runs_again_has_its_data_computed_again(ask: Ask, write: Write) -> None:
    path = write("net.py", NET)
    subject = FileSubject(str(path), "net")
    ask(RunFileCommand(path=str(path)))
    assert read(ask, subject) == 4
    write("net.py", NET.replace("count=4", "count=5"))
    ask(RunFileCommand(path=str(path)))
    assert read(ask, subject) == 5


def test_a_run_is_predicted_on_the_data_that_it_has(lab: Lab, ask: Ask) -> None:
    ask(RunCellCommand(source=NET))
    net = ConsoleSubject("net")
    objective = Objective("data()")
    setup = TrainingSetup(epochs=1, batch_size=2)
    command = TrainCommand(model=Model(), training=setup, subject=net, objective=objective)
    steps: Any = handler_of(TrainCommand)(lab, command)
    while lab.run is None or lab.run.step < 1:
        next(steps)
    made = lab.console.namespace.variables["made"]
    assert made == [4]
    found = predictions(ask, net, "data(5)")
    assert (found.samples, found.step) == (4, 1) and made == [4]
    ask(RunCellCommand(source="other = nn.Linear(3, 1)"))
    beside = predictions(ask, ConsoleSubject("other"), "data(5)")
    assert (beside.samples, beside.step) == (5, 0) and made == [4, 5]
    steps.close()
