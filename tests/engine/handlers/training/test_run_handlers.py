"""Answers about the folders of runs, each of which a writer made."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from app import templates
from app.commands.runs import list_runs
from engine.errors import LabError
from engine.handlers.training import run_script, runs
from engine.lab import Lab
from engine.project.document import Project, TrainingSetup, replace
from engine.protocol import (
    CompareRunsCommand,
    DeleteRunsCommand,
    EpochRow,
    ListRunsCommand,
    MoveRunsCommand,
    NoteRunCommand,
    ReadRunCommand,
    RestoreRunsCommand,
    StepColumns,
    TrainCommand,
)
from engine.runs.record import MAX_NOTE_CHARS
from engine.runs.writer import RunWriter
from engine.session import handler_of
from widgets.runs.run_words import tips

PROJECT = Project(training=TrainingSetup(epochs=3))


def answer(handler: Callable[[Lab, Any], Iterator[Any]], command: Any) -> Any:
    (snapshot,) = handler(Lab(lambda _: None), command)
    return snapshot


def made(place: Path, steps: int = 4, project: Project = PROJECT) -> Path:
    writer = RunWriter.new(place, project)
    writer.begin()
    numbers = tuple(range(1, steps + 1))
    floats = tuple(map(float, numbers))
    columns = StepColumns(numbers, floats, floats, floats, floats, floats, numbers)
    writer.add(columns, (EpochRow(1, steps, 1.0, 0.5, 2.0, 0.25),))
    writer.end("finished")
    return writer.folder


def listed(place: Path) -> list[str]:
    return [row.folder for row in answer(runs.list_runs, ListRunsCommand(runs=str(place))).runs]


def test_runs_are_listed_as_far_as_a_snapshot_takes_them(tmp_path: Path, monkeypatch) -> None:
    folders = [made(tmp_path) for _ in range(3)]
    assert sorted(listed(tmp_path)) == sorted(map(str, folders))
    whole = answer(runs.list_runs, ListRunsCommand(runs=str(tmp_path)))
    assert (whole.left_out, whole.deleted, whole.problem) == (0, 0, "")
    monkeypatch.setattr(runs, "MAX_LIST_BYTES", 600)
    part = answer(runs.list_runs, ListRunsCommand(runs=str(tmp_path)))
    assert 0 < len(part.runs) < 3 and part.left_out == 3 - len(part.runs)
    assert part.runs == whole.runs[: len(part.runs)]


def test_a_long_run_is_read_in_as_many_steps_as_a_snapshot_takes(tmp_path: Path) -> None:
    folder = str(made(tmp_path, steps=5000))
    kept = answer(runs.read_run, ReadRunCommand(folder=folder))
    assert 1000 < len(kept.steps.step) <= 15_000 // len(runs.metrics.STEP_COLUMNS)
    assert (kept.steps.step[0], kept.steps.step[-1]) == (1, 5000)
    assert kept.project == PROJECT and kept.folder == folder
    assert [row.validation_accuracy for row in kept.epoch_rows] == [0.25]


def test_a_run_without_a_script_tells_why(tmp_path: Path, monkeypatch, capsys) -> None:
    """One whose data is too large, and one that goes on from it."""
    monkeypatch.setattr(run_script, "MAX_BYTES", 1000)
    model = templates.load_template("mlp").model
    setup, lab = TrainingSetup(epochs=1, batch_size=400), Lab(lambda _: None)
    command = TrainCommand(model=model, training=setup, runs=str(tmp_path))
    for each in (command, replace(command, to_step=2)):
        *_, last = handler_of(TrainCommand)(lab, each)
        assert last.error is None
    (later, first) = answer(runs.list_runs, ListRunsCommand(runs=str(tmp_path))).runs
    assert first.no_script.startswith("Data and first weights lie beside it, in each run: ")
    assert later.origin and "begins at the first step" in later.no_script
    assert not list(tmp_path.glob("*/train*"))
    assert f"It has no train.py. {first.no_script}" in tips(first, 0.0)[0]
    list_runs(tmp_path, None)
    assert f"    It has no train.py. {first.no_script}" in capsys.readouterr().out
    monkeypatch.undo()
    *_, last = handler_of(TrainCommand)(lab, command)
    (has, *_) = answer(runs.list_runs, ListRunsCommand(runs=str(tmp_path))).runs
    assert has.no_script == "" and "train.py" not in tips(has, 0.0)[0]
    assert (Path(has.folder) / "train.py").exists()


def test_a_run_without_figures_is_told(tmp_path: Path) -> None:
    folder = made(tmp_path)
    (folder / "metrics.sqlite").unlink()
    with pytest.raises(LabError, match=r"There is no .*metrics\.sqlite"):
        answer(runs.read_run, ReadRunCommand(folder=str(folder)))


def test_two_runs_differ_in_their_settings(tmp_path: Path, monkeypatch) -> None:
    other = replace(PROJECT, training=replace(PROJECT.training, epochs=1234, batch_size=77))
    command = CompareRunsCommand(
        first=str(made(tmp_path)), second=str(made(tmp_path, project=other))
    )
    whole = answer(runs.compare_runs, command)
    assert {(row.first, row.second) for row in whole.rows} >= {("3", "1234")}
    assert whole.left_out == 0
    monkeypatch.setattr(runs, "MAX_DIFFERENCES", 1)
    monkeypatch.setattr(runs, "MAX_VALUE_CHARS", 2)
    part = answer(runs.compare_runs, command)
    assert len(part.rows) == 1 and part.left_out == len(whole.rows) - 1
    assert part.rows[0].second == whole.rows[0].second[:2]


def test_a_note_is_written_up_to_its_length(tmp_path: Path) -> None:
    folder, longest = made(tmp_path), "x" * MAX_NOTE_CHARS
    (row,) = answer(runs.note_run, NoteRunCommand(folder=str(folder), note=longest)).runs
    assert row.note == longest
    with pytest.raises(LabError, match="A note has at most"):
        answer(runs.note_run, NoteRunCommand(folder=str(folder), note=longest + "x"))
    with pytest.raises(LabError) as told:
        answer(runs.note_run, NoteRunCommand(folder=str(tmp_path / "none"), note=""))
    assert told.value.hint == "Choose another run."


def test_runs_are_deleted_together_and_brought_back(tmp_path: Path) -> None:
    first, second, third = (made(tmp_path) for _ in range(3))
    command = DeleteRunsCommand(folders=(str(first), str(third)))
    left = answer(runs.delete_runs, command)
    assert [row.folder for row in left.runs] == [str(second)] and left.deleted == 2
    back = answer(runs.restore_runs, RestoreRunsCommand(runs=str(tmp_path)))
    assert len(back.runs) == 3 and back.deleted == 0
    answer(runs.delete_runs, command)
    answer(runs.delete_runs, DeleteRunsCommand(folders=(str(second),)))
    answer(runs.restore_runs, RestoreRunsCommand(runs=str(tmp_path)))
    assert listed(tmp_path) == [str(second)]  # those before are gone for good


def test_a_run_that_is_trained_is_not_deleted(tmp_path: Path) -> None:
    rests, trains = made(tmp_path), RunWriter.new(tmp_path, PROJECT)
    trains.begin()
    with pytest.raises(LabError, match=f"The run {trains.folder.name} is being trained"):
        answer(runs.delete_runs, DeleteRunsCommand(folders=(str(rests), str(trains.folder))))
    assert len(listed(tmp_path)) == 2
    trains.close()


def test_runs_move_unless_they_are_gone_or_there_already(tmp_path: Path) -> None:
    before, after = tmp_path / "before", tmp_path / "after"
    moves, stays = made(before), made(before)
    (after / stays.name).mkdir(parents=True)
    folders = tuple(map(str, (before / "gone", stays, moves)))
    done = answer(runs.move_runs, MoveRunsCommand(folders=folders, runs=str(after)))
    assert done.moved == ((str(moves), str(after / moves.name)),)
    assert listed(after) == [str(after / moves.name)] and listed(before) == [str(stays)]
    moved = answer(runs.read_run, ReadRunCommand(folder=str(after / moves.name)))
    assert moved.steps.step == (1, 2, 3, 4)
