"""What the console's commands answer, one by one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch

from engine.handlers import console
from engine.lab import Lab
from engine.protocol import (
    CellSnapshot,
    Command,
    CompleteCommand,
    CompletionsSnapshot,
    EnterFolderCommand,
    ExampleSnapshot,
    NewNamespaceCommand,
    ReadVariablesCommand,
    RecordCommand,
    RunCellCommand,
    RunExampleCommand,
    RunHeldCommand,
    TakeConsoleCommand,
    TensorsSnapshot,
    VariablesSnapshot,
)
from engine.server.session import handler_of
from engine.system.errors import LabError


@pytest.fixture
def lab() -> Lab:
    return Lab(emit=lambda snapshot: None)


def ask(lab: Lab, command: Command) -> list[Any]:
    return [s for s in handler_of(type(command))(lab, command) if s is not None]


def names(told: VariablesSnapshot | ExampleSnapshot) -> list[str]:
    return [variable.name for variable in told.variables]


def test_a_cell_is_answered_with_the_variables_and_then_its_end(lab: Lab) -> None:
    variables, end = ask(lab, RunCellCommand(source="x = torch.ones(2)\ny = 3"))
    assert names(variables) == ["x", "y"]
    assert isinstance(end, CellSnapshot) and end.ok and end.error is None and end.file
    tensors, variables, end = ask(lab, RunCellCommand(source="z = x + 1", report_tensors=True))
    assert isinstance(tensors, TensorsSnapshot) and set(tensors.tensors) == {"x", "z"}
    variables, end = ask(lab, RunCellCommand(source="1 / 0"))
    assert not end.ok and end.error.type == "ZeroDivisionError" and names(variables)[-1] == "z"


@pytest.mark.parametrize("share", [2, 3])
def test_reports_come_in_parts_that_can_be_sent(
    lab: Lab, share: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab.console.namespace.variables.update({f"t{n}": torch.ones(3) for n in range(5)})
    (whole,) = ask(lab, RunCellCommand(source="", report_tensors=True))[:-2]
    (size, *others) = {
        len(msgspec.msgpack.encode((name, report))) for name, report in whole.tensors.items()
    }
    assert not others
    monkeypatch.setattr(console, "MAX_SNAPSHOT_BYTES", 2 * share * size)
    parts = ask(lab, RunCellCommand(source="", report_tensors=True))[:-2]
    counts = [len(part.tensors) for part in parts]
    assert counts == ([2, 2, 1] if share == 2 else [3, 2])
    assert {name: r for part in parts for name, r in part.tensors.items()} == whole.tensors
    monkeypatch.setattr(console, "MAX_SNAPSHOT_BYTES", 0)
    parts = ask(lab, RunCellCommand(source="", report_tensors=True))[:-2]
    assert [len(part.tensors) for part in parts] == [1] * 5
    lab.console.namespace.variables.clear()
    assert len(ask(lab, RunCellCommand(source="", report_tensors=True))) == 2


def test_nothing_is_held_that_could_run_a_line(lab: Lab) -> None:
    with pytest.raises(LabError, match="The code goes on: nothing is held") as refused:
        ask(lab, RunHeldCommand(source="1"))
    assert refused.value.hint == "Run this as a cell."


def test_an_example_has_variables_of_its_own_and_its_error(lab: Lab) -> None:
    ask(lab, RunCellCommand(source="mine = 1"))
    (told,) = ask(lab, RunExampleCommand(source="theirs = 2", tab="derivatives"))
    assert names(told) == ["theirs"] and told.error is None
    (told,) = ask(lab, RunExampleCommand(source="a = 1\n1 / 0", tab="derivatives"))
    assert names(told) == ["a"] and told.error.type == "ZeroDivisionError"
    assert told.error.line == 2
    assert "mine" in lab.console.namespace.variables and "a" not in lab.console.namespace.variables


def test_values_from_another_process_that_are_gone_are_told(lab: Lab, tmp_path: Path) -> None:
    path = str(tmp_path / "console.bin")
    with pytest.raises(LabError, match=r"console\.bin cannot be read: No such file") as refused:
        ask(lab, TakeConsoleCommand(path=path))
    assert str(refused.value).startswith(path)


def test_cells_see_the_folder_that_was_entered(lab: Lab, tmp_path: Path) -> None:
    assert ask(lab, EnterFolderCommand(folder=str(tmp_path))) == []
    ask(lab, RunCellCommand(source="import os; here = os.getcwd()"))
    assert lab.console.namespace.variables["here"] == str(tmp_path)


def test_a_new_namespace_is_empty_and_counts_nothing_of_the_old_one(lab: Lab) -> None:
    ask(lab, RunCellCommand(source="x = torch.ones(2)"))
    counting: Any = "a count under way"
    lab.values.statistics = counting
    (told,) = ask(lab, NewNamespaceCommand())
    assert names(told) == [] and lab.values.statistics is None
    with pytest.raises(LabError, match="x"):
        lab.console.namespace.tensor("x")


def test_recording_is_switched(lab: Lab) -> None:
    for on in (False, True):
        assert ask(lab, RecordCommand(on=on)) == []
        assert lab.console.namespace.records is on


def test_variables_are_read(lab: Lab) -> None:
    ask(lab, RunCellCommand(source="x = 1"))
    (told,) = ask(lab, ReadVariablesCommand())
    assert names(told) == ["x"]


@contextmanager
def late(seconds: float) -> Iterator[None]:
    raise TimeoutError("late")
    yield


def test_an_object_that_takes_too_long_to_name_its_attributes_is_told(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask(lab, RunCellCommand(source="value = 1"))
    (told,) = ask(lab, CompleteCommand(source="val", cursor=3))
    assert isinstance(told, CompletionsSnapshot)
    assert "value" in [each.text for each in told.completions]
    monkeypatch.setattr(lab.control, "time_limit", late)
    with pytest.raises(LabError, match="takes too long to name its attributes"):
        ask(lab, CompleteCommand(source="val", cursor=3))


def test_an_error_whose_message_takes_too_long_keeps_its_class(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert console.cell_error(None, "<cell>", lab.control) is None
    monkeypatch.setattr(lab.control, "time_limit", late)
    told = console.cell_error(ValueError("long"), "<cell>", lab.control)
    assert told is not None
    assert (told.type, told.message) == ("ValueError", "its message took too long")


def test_a_stopped_cell_says_so_and_another_error_what_helps(lab: Lab) -> None:
    told = console.cell_error(KeyboardInterrupt(), "<cell>", lab.control)
    assert told is not None and told.hint == "The code was stopped while it ran."
    told = console.cell_error(RuntimeError("shape '[7]' is invalid for input of size 12"), "c",
                              lab.control)  # fmt: skip
    assert told is not None and told.hint and told.operands is None
    told = console.cell_error(LabError("No.", hint="Do."), "c", lab.control)
    assert told is not None and (told.message, told.hint) == ("No.", "Do.")


def test_operands_that_cannot_be_read_leave_the_error_as_it_is(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(*_: Any) -> None:
        raise ValueError("odd")

    monkeypatch.setattr(console, "raised_operands", fails)
    *_, end = ask(lab, RunCellCommand(source="torch.ones(2) @ torch.ones(3)"))
    assert end.error.type == "RuntimeError" and end.error.operands is None and end.error.hint
    assert "operands of an error could not be read" in caplog.text
