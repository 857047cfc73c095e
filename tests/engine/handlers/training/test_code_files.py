"""Which of the user's files another process has to run for a run, and which are kept with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from engine.handlers.training.code_files import (
    data_of_console,
    expressions_of,
    files_needed,
    files_that_ran,
    run_again,
)
from engine.lab import Lab
from engine.project.document import DataSetup, Loading, Model, TrainingSetup
from engine.project.subject import CanvasSubject, ConsoleSubject, FileSubject, Objective
from engine.protocol import RunFileCommand, TrainCommand
from engine.runs.code import Ran
from engine.session import handler_of
from engine.subjects.python_file import PythonFile


def wanted(subject: Any = None, objective: Objective | None = None, **data: Any) -> TrainCommand:
    return TrainCommand(
        model=Model(), training=TrainingSetup(data=DataSetup(**data)),
        subject=subject or CanvasSubject(), objective=objective or Objective(),
    )  # fmt: skip


def test_the_files_are_those_of_the_subject_its_data_and_the_loader_each_once() -> None:
    net = FileSubject("/net.py", "Net()")
    objective = Objective("data", "/other.py:held_out")
    loading = Loading(sampler="/loader.py:rows", collate_fn="/net.py:collate", generator="drawn")
    command = wanted(net, objective, loading=loading)
    assert files_needed(command) == ["/net.py", "/other.py", "/loader.py"]
    assert expressions_of(command) == [
        "data", "/other.py:held_out", "/loader.py:rows", "drawn", "/net.py:collate",
    ]  # fmt: skip
    assert files_needed(wanted(ConsoleSubject("net"), Objective("data"))) == []


@pytest.mark.parametrize(
    ("subject", "objective", "data", "expected"),
    [
        (CanvasSubject(), Objective(), {"kind": "console", "path": "x, y"}, ["x, y"]),
        (CanvasSubject(), Objective(), {"kind": "console", "path": ""}, []),
        (CanvasSubject(), Objective(), {"kind": "csv", "path": "a.csv"}, []),
        (ConsoleSubject("n"), Objective("d"), {"kind": "console", "path": "x"}, []),
        (ConsoleSubject("n"), Objective("d", of_setup=True), {"kind": "console", "path": "x"},
         ["x"]),
    ],
)  # fmt: skip
def test_data_of_the_console_counts_where_it_is_trained_on(
    subject: Any, objective: Objective, data: dict[str, Any], expected: list[str]
) -> None:
    assert data_of_console(subject, objective, TrainingSetup(data=DataSetup(**data))) == expected
    own = () if isinstance(subject, CanvasSubject) else objective.expressions
    assert expressions_of(wanted(subject, objective, **data)) == [*expected, *own]


def test_files_that_ran_are_told_with_what_they_import_and_copies_of_gone_ones(
    tmp_path: Path,
) -> None:
    lab = Lab(emit=lambda snapshot: None)
    (tmp_path / "parts_that_ran.py").write_text("size = 3\n")
    net = tmp_path / "net.py"
    net.write_text(
        "from torch import nn\nfrom parts_that_ran import size\nNet = lambda: nn.Linear(size, 1)\n"
    )
    list(handler_of(RunFileCommand)(lab, RunFileCommand(path=str(net))))
    command = wanted(FileSubject(str(net), "Net()"), Objective("/never/ran.py:data"))
    file = lab.subjects.files[net]
    (imported,) = file.imports.items()
    assert list(files_that_ran(lab, command)) == [
        Ran(net, tmp_path, file.digest),
        Ran(imported[0], tmp_path, imported[1], imported=True),
    ]
    assert imported[0] == tmp_path / "parts_that_ran.py"
    plain = [RunFileCommand(path=str(net)), RunFileCommand(path="/never/ran.py")]
    assert list(run_again(lab, command)) == plain
    copy = tmp_path / "copies" / "net.py"
    lab.subjects.files[net] = PythonFile(copy, copy.parent, file.module, "5f", {}, file.modules)
    assert list(run_again(lab, command)) == [
        RunFileCommand(path=str(net), copy=str(copy), digest="5f"), plain[1],
    ]  # fmt: skip
    assert list(files_that_ran(lab, command)) == []  # what is kept is the user's own file
