"""Data that expressions of code give: names that are missing, how often each is computed."""

from __future__ import annotations

import pytest

from engine.errors import LabError
from engine.project.document import Model, TrainingSetup
from engine.project.subject import CodeSubject, ConsoleSubject, FileSubject, Objective
from engine.protocol import (
    PredictionsSnapshot,
    ReadPredictionsCommand,
    ReadStructureCommand,
    RunCellCommand,
    RunFileCommand,
)
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


def read(ask: Ask, subject: CodeSubject, data: str = "data()") -> int:
    """The number of samples that the subject's predictions are of."""
    command = ReadPredictionsCommand(
        model=Model(),
        training=TrainingSetup(),
        subject=subject,
        objective=Objective(data),
        part="training",
    )
    (answer,) = ask(command)
    assert isinstance(answer, PredictionsSnapshot)
    return answer.samples


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
