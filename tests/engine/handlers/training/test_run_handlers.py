"""Answers about the folders of runs, each of which a writer made."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import psutil
import pytest

from app import templates
from app.commands.runs import list_runs
from engine.handlers.training import events, run_script, runs
from engine.handlers.training.ranks import RanksRun
from engine.lab import Lab
from engine.project.document import Project, TrainingSetup, replace
from engine.protocol import (
    CompareRunsCommand,
    CopyRunsCommand,
    DeleteRunsCommand,
    EpochRow,
    ListRunsCommand,
    MoveRunsCommand,
    NoteRunCommand,
    ReadRunCommand,
    RestoreRunsCommand,
    RunRow,
    RunsSnapshot,
    StepColumns,
    TrainCommand,
    WriteEventsCommand,
)
from engine.protocol.codec import decode_snapshot, encode_snapshot
from engine.runs.record import MAX_NOTE_CHARS, Writer, load, save
from engine.runs.writer import RunWriter
from engine.server.session import handler_of
from engine.system.errors import LabError
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


def test_a_run_that_this_engines_own_ranks_write_is_not_elsewhere(tmp_path: Path) -> None:
    folder = made(tmp_path)
    parent = Writer(Writer.own().host, os.getppid(), psutil.Process(os.getppid()).create_time())
    save(folder, msgspec.structs.replace(load(folder), state="running", writer=parent))
    lab = Lab(lambda _: None)

    def listed_row() -> RunRow:
        ((row,),) = (told.runs for told in runs.list_runs(lab, ListRunsCommand(runs=str(tmp_path))))
        return row

    assert listed_row().elsewhere == f"process {parent.pid} of {parent.host}"
    lab.run = RanksRun(PROJECT.training, folder, lambda command: None)
    assert (listed_row().state, listed_row().elsewhere) == ("running", "")


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are text there")
def test_a_folder_whose_name_is_no_text_is_told_and_the_others_are_listed(tmp_path: Path) -> None:
    whole, other = made(tmp_path), made(tmp_path)
    os.rename(other, os.fsencode(tmp_path) + b"/run-\xff")
    told = answer(runs.list_runs, ListRunsCommand(runs=str(tmp_path)))
    snapshot = decode_snapshot(encode_snapshot(told))
    assert isinstance(snapshot, RunsSnapshot)
    rows = {row.folder: row for row in snapshot.runs}
    assert rows[str(whole)].state == "finished"
    damaged = rows[f"{tmp_path}/run-\\udcff"]
    assert damaged.state == "damaged" and "rename the folder" in damaged.problem


def test_a_long_run_is_read_in_as_many_steps_as_a_snapshot_takes(tmp_path: Path) -> None:
    folder = str(made(tmp_path, steps=5000))
    kept = answer(runs.read_run, ReadRunCommand(folder=folder))
    assert 1000 < len(kept.steps.step) <= 15_000 // len(runs.metrics.STEP_COLUMNS)
    assert (kept.steps.step[0], kept.steps.step[-1]) == (1, 5000)
    assert kept.project == PROJECT and kept.folder == folder
    assert [row.validation_accuracy for row in kept.epoch_rows] == [0.25]


def test_a_list_tells_when_it_was_read_and_how_many_are_put_aside(
    tmp_path: Path, monkeypatch
) -> None:
    folder, other = made(tmp_path), made(tmp_path)
    monkeypatch.setattr(runs.time, "time", lambda: 5.0)
    told = answer(runs.delete_runs, DeleteRunsCommand(folders=(str(folder),)))
    assert (told.read_s, told.folder, told.deleted, told.left_out) == (5.0, str(tmp_path), 1, 0)
    assert [row.folder for row in told.runs] == [str(other)]


def test_differences_of_two_runs_have_a_bound(tmp_path: Path, monkeypatch) -> None:
    changed = replace(PROJECT, training=TrainingSetup(epochs=4, batch_size=7, seed=5))
    first, second = made(tmp_path), made(tmp_path, project=changed)
    command = CompareRunsCommand(first=str(first), second=str(second))
    whole = answer(runs.compare_runs, command)
    assert (whole.first, whole.second, whole.left_out) == (str(first), str(second), 0)
    assert len(whole.rows) == 3 and {(row.first, row.second) for row in whole.rows} >= {("3", "4")}
    monkeypatch.setattr(runs, "MAX_DIFFERENCES", 2)
    part = answer(runs.compare_runs, command)
    assert part.rows == whole.rows[:2] and part.left_out == 1
    monkeypatch.setattr(runs, "MAX_VALUE_CHARS", 0)
    assert {(row.first, row.second) for row in answer(runs.compare_runs, command).rows} == {
        ("", "")
    }


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


def test_runs_of_projects_without_a_file_are_brought_back_to_the_data_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TENSORLAB_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    run = made(tmp_path / "data" / "runs")
    answer(runs.delete_runs, DeleteRunsCommand(folders=(str(run),)))
    back = answer(runs.restore_runs, RestoreRunsCommand(runs=""))
    assert back.folder == str(tmp_path / "data" / "runs")
    assert ([row.folder for row in back.runs], back.deleted) == ([str(run)], 0)


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


def test_each_run_is_copied_and_told_before_and_after(tmp_path: Path) -> None:
    before, after = tmp_path / "before", tmp_path / "after"
    first, second = made(before), made(before, steps=6)
    folders = (str(first), str(second), str(first))
    command = CopyRunsCommand(folders=folders, runs=str(after))
    told = list(runs.copy_runs(Lab(lambda _: None), command))
    assert [None if each is None else (each.runs, each.copied) for each in told] == [
        (3, 0), None, (3, 1), None, (3, 2), None, (3, 3),
    ]  # fmt: skip
    assert sorted(listed(after)) == sorted(str(after / each.name) for each in (first, second))
    assert len(listed(before)) == 2
    copy = answer(runs.read_run, ReadRunCommand(folder=str(after / second.name)))
    assert copy.steps.step == (1, 2, 3, 4, 5, 6)
    lost = CopyRunsCommand(folders=(str(tmp_path / "gone"),), runs=str(after))
    with pytest.raises(LabError, match="gone: No such file"):
        list(runs.copy_runs(Lab(lambda _: None), lost))


def test_runs_are_written_as_event_files_each_into_its_own_folder(tmp_path: Path) -> None:
    folders = tuple(str(made(tmp_path / "runs", steps)) for steps in (2, 3))
    out = tmp_path / "events"
    command = WriteEventsCommand(folders=folders, path=str(out))
    told = list(events.write_events(Lab(lambda _: None), command))
    last = told.pop()
    written = tuple(str(out / Path(folder).name) for folder in folders)
    assert (last.runs, last.steps, last.written) == (2, 0, written)
    assert [None if each is None else (each.runs, each.steps, each.written) for each in told] == [
        (0, 2, ()), None, (1, 3, ()), None,
    ]  # fmt: skip
    assert {each.path for each in (*told[::2], last)} == {str(out)}
    assert all(list(Path(folder).glob("events.*")) for folder in written)
    with pytest.raises(LabError, match="has something already"):
        list(events.write_events(Lab(lambda _: None), command))
    lost = WriteEventsCommand(folders=(str(tmp_path),), path=str(out))
    with pytest.raises(LabError) as refused:
        list(events.write_events(Lab(lambda _: None), lost))
    assert refused.value.hint == "Choose another run."
    (tmp_path / "file").write_text("")
    barred = WriteEventsCommand(folders=folders, path=str(tmp_path / "file"))
    with pytest.raises(LabError, match=r"file/.* could not be written: Not a dir") as refused:
        list(events.write_events(Lab(lambda _: None), barred))
    assert refused.value.hint == "Choose a folder that you may write."


def test_a_run_that_goes_on_is_moved_with_all_that_it_writes_next(tmp_path: Path) -> None:
    lab, model = Lab(lambda _: None), templates.load_template("mlp").model
    setup = TrainingSetup(epochs=2, batch_size=400)
    command = TrainCommand(model=model, training=setup, runs=str(tmp_path / "before"))
    steps = handler_of(TrainCommand)(lab, command)
    for _ in steps:
        if lab.run is not None and lab.run.step == 3:
            break
    folder = lab.run.files.writer.folder
    lab.run.snapshot("paused")  # it writes a checkpoint
    move = MoveRunsCommand(folders=(str(folder),), runs=str(tmp_path / "after"))
    (done,) = runs.move_runs(lab, move)
    target = tmp_path / "after" / folder.name
    assert done.moved == ((str(folder), str(target)),) and not folder.exists()
    *_, last = steps
    assert (last.state, last.folder, last.step) == ("finished", str(target), 8)
    assert Path(last.checkpoint).is_relative_to(target) and Path(last.checkpoint).exists()
    kept = answer(runs.read_run, ReadRunCommand(folder=str(target)))
    assert kept.steps.step == tuple(range(1, 9)) and not folder.exists()
