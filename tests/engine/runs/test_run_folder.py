"""The folder of a run: what it has, who may look into it, and what is said of a damaged one."""

from __future__ import annotations

import errno
import json
import shutil
import stat
import sys
from pathlib import Path

import msgspec
import platformdirs
import pytest

from engine.project.document import Project, TrainingSetup, replace
from engine.protocol import EpochRow, StepColumns
from engine.runs import folders, reading, record
from engine.runs.record import RunProblem, Writer
from engine.runs.states import steps_in
from engine.runs.summary import row_of, rows_in
from engine.runs.writer import RunWriter
from engine.system.errors import LabError

PROJECT = Project(training=TrainingSetup(epochs=3, optimizer_params={"lr": float("inf")}))


def steps(first: int, last: int) -> StepColumns:
    numbers = tuple(range(first, last + 1))
    floats = tuple(map(float, numbers))
    return StepColumns(numbers, floats, floats, floats, floats, floats, numbers)


def run(folder: Path, *parts: StepColumns) -> RunWriter:
    writer = RunWriter.new(folder, PROJECT)
    writer.begin()
    writer.work()
    for part in parts:
        writer.add(part, (EpochRow(1, part.step[-1], 1.0, 0.5, 2.0, 0.25),))
    return writer


def test_a_run_leaves_its_settings_and_figures(tmp_path: Path) -> None:
    writer = run(tmp_path, steps(1, 4), steps(5, 9))
    assert row_of(writer.folder).state == "running"
    writer.end("finished")
    found = record.load(writer.folder)
    assert found == writer.record
    assert (found.project, found.state, found.error) == (PROJECT, "finished", "")
    assert found.began_s <= found.ended_s
    (row,) = rows_in(tmp_path)
    assert (row.id, row.state, row.step, row.loss, row.epochs) == (
        writer.record.id, "finished", 9, 9.0, 3,
    )  # fmt: skip
    assert row.epoch is not None and row.epoch.validation_accuracy == 0.25
    assert reading.read(writer.folder / "metrics.sqlite", 100)[0].loss == tuple(
        map(float, range(1, 10))
    )
    for part in (writer.folder, writer.checkpoints):
        assert stat.S_IMODE(part.stat().st_mode) == 0o700
    for file in ("run.json", "metrics.sqlite"):
        assert stat.S_IMODE((writer.folder / file).stat().st_mode) == 0o600


def test_a_run_whose_end_is_not_told_was_stopped(tmp_path: Path) -> None:
    writer = run(tmp_path, steps(1, 4))
    writer.close()
    assert (row_of(writer.folder).state, row_of(writer.folder).step) == ("stopped", 4)


def test_a_run_goes_on_in_its_folder_with_its_note(tmp_path: Path) -> None:
    writer = run(tmp_path, steps(1, 9))
    record.save(writer.folder, replace(record.load(writer.folder), note="the good one"))
    writer.end("failed", "The loss became nan.")
    assert row_of(writer.folder).note == "the good one"
    other = replace(PROJECT, training=TrainingSetup(epochs=7))
    again = RunWriter.resumed(writer.folder, writer.record.id, other)
    again.begin(5)
    again.add(steps(6, 7), ())
    again.settle(TrainingSetup(epochs=8))
    again.close()
    row = row_of(writer.folder)
    assert (row.id, row.note, row.state, row.error) == (
        writer.record.id, "the good one", "stopped", "",
    )  # fmt: skip
    assert (row.step, row.epochs) == (7, 8)
    assert reading.read(writer.folder / "metrics.sqlite", 100)[0].step == (1, 2, 3, 4, 5, 6, 7)


def test_a_run_that_was_only_opened_has_ended_when_it_had(tmp_path: Path) -> None:
    writer = run(tmp_path, steps(1, 4))
    writer.end("finished")
    record.save(writer.folder, replace(writer.record, ended_s=5.0))
    for end, ended_s in (("finished", 5.0), ("stopped", None)):
        again = RunWriter.resumed(writer.folder, writer.record.id, PROJECT)
        again.begin(4)
        again.add(steps(1, 4), ())  # it tells its past again
        again.end(end)  # pyright: ignore[reportArgumentType]
        assert (record.load(writer.folder).ended_s == 5.0) == (ended_s == 5.0)
    record.save(writer.folder, replace(again.record, ended_s=5.0))
    longer = RunWriter.resumed(writer.folder, writer.record.id, PROJECT)
    longer.begin(4)
    longer.add(steps(5, 5), ())
    longer.end("stopped")
    assert record.load(writer.folder).ended_s > 5.0


def test_a_fork_of_a_fork_that_has_no_folder_goes_on_from_the_first(tmp_path: Path) -> None:
    first = run(tmp_path, steps(1, 9))
    states = first.folder / "states"
    states.mkdir()
    for step in (0, 3, 6):
        (states / f"step-{step:08}.pt").write_bytes(b"state")
    second = first.forked(5).forked(7)
    third = first.forked(5).forked(2)
    first.close()
    for fork, kept in ((second, [0, 3]), (third, [0])):
        fork.begin()
        assert steps_in(fork.folder) == kept
        fork.close()


def test_runs_are_listed_the_newest_first(tmp_path: Path) -> None:
    writers = [run(tmp_path, steps(1, 2)) for _ in range(3)]
    for began_s, writer in zip((20.0, 30.0, 10.0), writers, strict=True):
        writer.close()
        record.save(writer.folder, replace(writer.record, began_s=began_s))
    assert [row.began_s for row in rows_in(tmp_path)] == [30.0, 20.0, 10.0]
    assert [row.began_s for row in rows_in(writers[0].folder)] == [20.0]


@pytest.mark.parametrize("field", ["began_s", "ended_s", "writer"])
@pytest.mark.parametrize("seconds", [-1.0, 3e10, float("nan"), float("inf")])
def test_a_time_that_no_date_has_is_told(tmp_path: Path, field: str, seconds: float) -> None:
    writer = run(tmp_path)
    writer.close()
    path = writer.folder / "run.json"
    fields = json.loads(path.read_text())
    value = {**fields["writer"], "began_s": seconds} if field == "writer" else seconds
    path.write_text(json.dumps({**fields, field: value}))
    with pytest.raises(RunProblem, match=r"is damaged: .*began_s|is damaged: ended_s"):
        record.load(writer.folder)


def test_a_fork_is_a_run_beside_the_other(tmp_path: Path) -> None:
    first = run(tmp_path, steps(1, 9))
    second = first.forked(4)
    first.close()
    second.begin()
    second.close()
    origins = {row.id: row.origin for row in rows_in(tmp_path)}
    assert origins == {
        first.record.id: "",
        second.record.id: f"step 4 of {first.record.id}",
    }


def test_a_process_that_has_ended_is_not_taken_for_a_later_one() -> None:
    own = Writer.own()
    assert own.is_own and own.is_alive()
    assert replace(own, began_s=own.began_s - 100).is_alive() is False
    assert replace(own, host="elsewhere").is_alive() is None


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is damaged"),
        (b"\xff\xfe", "is damaged"),
        (b"[" * 100_000, "is damaged"),
        (b"[]", "is not of a run"),
        (b'{"format": "tensorlab"}', "is not of a run"),
        (b'{"format": "tensorlab-run", "version": 99}', "has version 99"),
        (b'{"format": "tensorlab-run", "version": 1}', "is damaged"),
    ],
)
def test_a_damaged_run_is_told_and_the_others_are_listed(
    tmp_path: Path, content: bytes, words: str
) -> None:
    good, bad = run(tmp_path, steps(1, 4)), run(tmp_path, steps(1, 4))
    for writer in (good, bad):
        writer.close()
    (bad.folder / "run.json").write_bytes(content)
    rows = {row.folder: row for row in rows_in(tmp_path)}
    assert rows[str(good.folder)].state == "stopped"
    told = rows[str(bad.folder)]
    assert told.state == "damaged" and words in told.problem and "run.json" in told.problem


@pytest.mark.parametrize("field", ["id", "project", "writer", "began_s", "state"])
@pytest.mark.parametrize("value", [None, [], {"a": 1}, {"type": "\ud800"}])
def test_each_field_of_a_run_is_checked(tmp_path: Path, field: str, value: object) -> None:
    writer = run(tmp_path)
    writer.close()
    path = writer.folder / "run.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), field: value}))
    with pytest.raises(RunProblem, match=r"run\.json is damaged"):
        record.load(writer.folder)


def test_half_a_character_where_a_kind_is_expected_is_damage(tmp_path: Path) -> None:
    writer = run(tmp_path)
    writer.close()
    path = writer.folder / "run.json"
    fields = json.loads(path.read_text())
    for name, value in fields.items():
        if isinstance(value, dict) and "type" in value:
            path.write_text(json.dumps({**fields, name: {**value, "type": "\ud800"}}))
            with pytest.raises(RunProblem, match=r"run\.json is damaged"):
                record.load(writer.folder)
    path.write_text(json.dumps({**fields, "state": "\ud800"}))
    with pytest.raises(RunProblem, match=r"run\.json is damaged"):
        record.load(writer.folder)


@pytest.mark.parametrize("field", ["id", "note", "error", "no_script"])
def test_half_a_character_in_a_text_is_damage(tmp_path: Path, field: str) -> None:
    """It could not be sent to the window, nor could the other runs of its list."""
    writer = run(tmp_path)
    writer.close()
    path = writer.folder / "run.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), field: "a\udfff"}))
    with pytest.raises(RunProblem, match=r"run\.json is damaged: .*half of a character"):
        record.load(writer.folder)
    (row,) = rows_in(tmp_path)
    assert row.state == "damaged" and msgspec.msgpack.encode(row)


def test_damaged_figures_are_put_aside_and_the_run_goes_on(tmp_path: Path) -> None:
    writer = run(tmp_path, steps(1, 4))
    writer.close()
    path = writer.folder / "metrics.sqlite"
    path.write_bytes(b"not a database" * 100)
    assert "metrics.sqlite" in row_of(writer.folder).problem
    again = RunWriter.resumed(writer.folder, writer.record.id, PROJECT)
    again.begin(4)
    again.add(steps(1, 6), ())
    again.close()
    assert "metrics.damaged.sqlite" in again.problem
    assert reading.read(path, 100)[0].step == (1, 2, 3, 4, 5, 6)
    assert row_of(writer.folder).problem == ""


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("a file")
    with pytest.raises(LabError, match="could not be written"):
        run(tmp_path / "runs")


def test_figures_that_cannot_be_written_do_not_end_a_run(tmp_path: Path) -> None:
    writer = RunWriter.new(tmp_path, PROJECT)
    writer.begin()
    (writer.folder / "metrics.sqlite").mkdir()
    writer.work()
    writer.add(steps(1, 4), ())
    writer.rest()
    assert "are not kept" in writer.problem
    shutil.rmtree(writer.folder)
    writer.close()
    assert "could not be written" in writer.problem


def test_a_long_run_keeps_its_ends_and_extremes(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("engine.runs.metrics.MAX_ROWS", 20)
    writer = run(tmp_path, steps(1, 20))
    writer.rest()
    path = writer.folder / "metrics.sqlite"
    assert len(reading.read(path, 100)[0].step) == 20  # as many as may be
    writer.work()
    writer.add(steps(21, 21), ())
    writer.rest()
    kept = reading.read(path, 100)[0].step
    assert (kept[0], kept[-1]) == (1, 21) and 4 < len(kept) <= 10
    writer.close()


def test_a_disk_that_is_too_slow_takes_no_memory(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("engine.runs.writer.MAX_WAITING", 2)
    writer = RunWriter.new(tmp_path, PROJECT)
    for i in range(1, 4):
        writer.add(steps(i, i), ())
    assert "too slow" in writer.problem


def test_only_runs_in_the_data_folder_are_removed(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(folders, "KEPT_RUNS", 2)
    for place, kept in ((folders.data_runs(), 2), (tmp_path / "net.runs", 4)):
        for _ in range(4):
            run(place).close()
        assert len(folders.runs_in(place)) == kept


# -- the cache folder, where an earlier version kept runs ------------------------------------------


@pytest.fixture
def former(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the runs of an earlier version; it does not exist yet."""
    monkeypatch.delenv("TENSORLAB_DATA_DIR", raising=False)
    place = tmp_path / "cache"
    monkeypatch.setattr("platformdirs.user_cache_path", lambda *_, **__: place)
    return place / "runs"


def test_unsaved_runs_lie_in_the_users_data_folder(own_settings: Path, monkeypatch) -> None:
    monkeypatch.delenv("TENSORLAB_DATA_DIR", raising=False)
    assert folders.data_runs() == platformdirs.user_data_path("tensorlab", appauthor=False) / "runs"
    if sys.platform == "linux":
        assert folders.data_runs() == own_settings / "data" / "tensorlab" / "runs"
    monkeypatch.setenv("TENSORLAB_DATA_DIR", str(own_settings / "own"))
    assert folders.data_runs() == own_settings / "own" / "runs"


def test_runs_of_an_earlier_version_are_moved_there_from_the_cache(former: Path) -> None:
    ended, deleted, damaged = (run(former, steps(1, 4)) for _ in range(3))
    for writer in (ended, deleted, damaged):
        writer.close()
    folders.delete([deleted.folder])
    (damaged.folder / "run.json").write_text("{")
    whole = reading.read(ended.folder / "metrics.sqlite", 10)
    runs = folders.data_runs()
    assert {folder.name for folder in folders.runs_in(runs)} == {
        ended.folder.name,
        damaged.folder.name,
    }
    assert repr(reading.read(runs / ended.folder.name / "metrics.sqlite", 10)) == repr(whole)
    assert [folder.name for folder in folders.deleted_in(runs)] == [deleted.folder.name]
    assert not former.exists()


def test_a_run_that_is_trained_there_stays_until_its_end(former: Path) -> None:
    writer = run(former, steps(1, 4))
    runs = folders.data_runs()
    assert folders.runs_in(runs) == [] and folders.runs_in(former) == [writer.folder]
    writer.add(steps(5, 6), ())
    writer.close()
    assert folders.data_runs() == runs
    assert reading.read(runs / writer.folder.name / "metrics.sqlite", 10)[0].step[-1] == 6


def test_they_are_copied_from_another_disk_and_none_is_replaced(former: Path, monkeypatch) -> None:
    one, other = (run(former, steps(1, n)) for n in (3, 4))
    one.close()
    other.close()
    data = platformdirs.user_data_path("tensorlab", appauthor=False) / "runs"
    (data / other.folder.name).mkdir(parents=True)
    rename = Path.rename

    def within_a_disk(self: Path, target: Path) -> Path:
        if former in self.parents:
            raise OSError(errno.EXDEV, "another disk")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", within_a_disk)
    assert folders.runs_in(folders.data_runs()) == [data / one.folder.name]
    assert folders.runs_in(former) == [other.folder]


def test_a_run_is_listed_with_the_step_of_its_last_epoch(tmp_path: Path) -> None:
    """Not every step has a row of its own."""
    writer = RunWriter.new(tmp_path, Project())
    writer.begin()
    writer.add(steps(1, 4), (EpochRow(1, 6, 1.0, 0.5, 2.0, 0.25),))
    writer.end("finished")
    assert row_of(writer.folder).step == 6


def test_a_run_that_was_stopped_is_listed_with_the_step_at_which_it_stopped(tmp_path: Path) -> None:
    writer = RunWriter.new(tmp_path, Project())
    writer.begin()
    writer.add(steps(1, 4), ())
    kept = writer.checkpoints / "step-00000007.pt"
    kept.touch()
    assert row_of(writer.folder).step == 0  # its figures wait
    writer.end("stopped")
    assert row_of(writer.folder).step == 7
    kept.rename(writer.checkpoints / "step-mine.pt")
    assert row_of(writer.folder).step == 4
