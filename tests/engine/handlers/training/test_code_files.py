"""Which of the user's files a run needs, and which its record names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from engine.handlers.training.code_files import (
    data_of_console,
    expressions_of,
    files_needed,
    files_that_ran,
)
from engine.lab import Lab
from engine.project.document import DataSetup, Loading, Model, TrainingSetup
from engine.project.subject import CanvasSubject, ConsoleSubject, FileSubject, Objective
from engine.protocol import RunFileCommand, TrainCommand
from engine.runs.record import CodeFile, changed
from engine.server.session import handler_of


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


def test_files_that_ran_are_told_with_what_they_import(tmp_path: Path) -> None:
    lab = Lab(emit=lambda snapshot: None)
    (tmp_path / "parts_that_ran.py").write_text("size = 3\n")
    net = tmp_path / "net.py"
    net.write_text(
        "from torch import nn\nfrom parts_that_ran import size\nNet = lambda: nn.Linear(size, 1)\n"
    )
    list(handler_of(RunFileCommand)(lab, RunFileCommand(path=str(net))))
    command = wanted(FileSubject(str(net), "Net()"), Objective("/never/ran.py:data"))
    file = lab.subjects.files[net]
    parts = tmp_path / "parts_that_ran.py"
    assert list(files_that_ran(lab, command)) == [
        CodeFile(str(net), file.digest),
        CodeFile(str(parts), file.imports[parts]),
    ]


def test_files_that_have_changed_are_named() -> None:
    then = CodeFile("/own/net.py", "1f"), CodeFile("/own/act.py", "2f")
    assert changed(then, then) == ()
    assert changed(then, [then[0], CodeFile("/own/act.py", "3f")]) == ("act.py",)
    assert changed((), then) == () and changed(then, ()) == ()
