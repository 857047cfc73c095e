"""Runs that another process or another machine writes: its signs of life, and reading beside it."""

from __future__ import annotations

import os
import shutil
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from engine.project.document import Project
from engine.protocol import StepColumns
from engine.runs import heartbeat, metrics, reading, record
from engine.runs.record import RunProblem, Writer
from engine.runs.summary import row_of
from engine.runs.writer import RunWriter
from engine.system.errors import LabError

OTHER = Writer("another-machine", 4711, 1.0)


def steps(first: int, last: int) -> StepColumns:
    numbers = tuple(range(first, last + 1))
    floats = tuple(map(float, numbers))
    return StepColumns(numbers, floats, floats, floats, floats, floats, numbers)


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    """The folder of a run with nine steps that another machine trains."""
    writer = RunWriter.new(tmp_path, Project())
    writer.begin()
    writer.add(steps(1, 9), ())
    writer.end("stopped")
    folder = writer.folder
    record.save(folder, msgspec.structs.replace(writer.record, writer=OTHER, state="running"))
    (folder / heartbeat.ALIVE).write_bytes(msgspec.json.encode(OTHER))
    return folder


def make_silent(folder: Path, for_s: float) -> None:
    then = time.time() - for_s
    os.utime(folder / heartbeat.ALIVE, (then, then))


def test_a_run_gives_signs_from_its_begin_to_its_end(tmp_path: Path) -> None:
    writer = RunWriter.new(tmp_path, Project())
    writer.begin()
    assert heartbeat.owner_of(writer.folder) == Writer.own()
    make_silent(writer.folder, 3600)
    assert heartbeat.silent_s(writer.folder) > 3000
    writer._heart.beat()
    assert heartbeat.silent_s(writer.folder) < 3000
    moved = tmp_path / "moved"
    writer.move(moved)
    assert heartbeat.owner_of(moved) == Writer.own()
    writer.close()
    assert heartbeat.owner_of(moved) is None


def test_a_run_of_another_machine_is_running_until_it_is_silent(remote: Path) -> None:
    row = row_of(remote)
    assert (row.state, row.step, row.elsewhere) == (
        "running", 9, "process 4711 of another-machine",
    )  # fmt: skip
    assert row.told_s == (remote / "metrics.sqlite").stat().st_mtime
    with pytest.raises(LabError, match=r"trained on another-machine, by process 4711"):
        RunWriter.resumed(remote, "x", Project())
    make_silent(remote, heartbeat.SILENT_S + 1)
    assert row_of(remote).state == "silent"
    RunWriter.resumed(remote, "x", Project())


def test_a_run_that_was_taken_over_is_not_written_any_more(tmp_path: Path) -> None:
    writer = RunWriter.new(tmp_path, Project())
    writer.begin()
    (writer.folder / heartbeat.ALIVE).write_bytes(msgspec.json.encode(OTHER))
    before = (writer.folder / record.FILE).read_bytes()
    writer._heart.beat()
    assert "trained by process 4711 of another-machine now" in writer.taken
    writer.add(steps(1, 3), ())
    writer.end("finished")
    assert (writer.folder / record.FILE).read_bytes() == before
    assert not (writer.folder / "metrics.sqlite").exists()
    assert heartbeat.owner_of(writer.folder) == OTHER


def test_a_copy_is_read_while_the_journal_grows(remote: Path, tmp_path: Path) -> None:
    path = remote / "metrics.sqlite"
    with closing(metrics.open_to_write(path)) as connection:
        with connection:
            metrics.append(connection, steps(10, 12), (), 5.0)
        files = {file.name: file.stat().st_size for file in remote.iterdir()}
        assert reading.read(path, 100, as_copy=True)[0].step == tuple(range(1, 13))
        assert {file.name: file.stat().st_size for file in remote.iterdir()} == files
        # As another machine sees it: without the memory that two connections share.
        seen = shutil.copytree(remote, tmp_path / "seen", ignore=lambda *_: ["metrics.sqlite-shm"])
        assert reading.last_figures(seen / "metrics.sqlite", as_copy=True)[0] == 12


def test_a_journal_that_begins_anew_all_the_time_is_told(remote: Path, monkeypatch) -> None:
    heads = iter(bytes([number]) for number in range(100))
    (remote / "metrics.sqlite-wal").write_bytes(b"")
    monkeypatch.setattr(reading, "_head", lambda journal: next(heads))
    with pytest.raises(RunProblem, match="changes faster than it can be read"):
        reading.read(remote / "metrics.sqlite", 100, as_copy=True)


@pytest.mark.parametrize("version", [1, 2])
def test_a_file_of_an_earlier_version_gets_the_new_columns(version: int, remote: Path) -> None:
    path = remote / "metrics.sqlite"
    with closing(sqlite3.connect(path)) as connection, connection:
        (told_s,) = connection.execute("SELECT wall_s FROM steps WHERE step = 9").fetchone()
        for name in ("samples_per_second", "gpu_percent", "wall_s")[: 4 - version]:
            connection.execute(f"ALTER TABLE steps DROP COLUMN {name}")
        connection.execute(f"PRAGMA user_version = {version}")
    assert reading.read(path, 100)[0].step == tuple(range(1, 10))
    assert [step.step for step in reading.each_step(path)] == list(range(1, 10))
    with closing(metrics.open_to_write(path)) as connection, connection:
        more = replace(steps(9, 10), samples_per_second=(32.0, 64.0))
        metrics.append(connection, more, (), 7.0)
    with closing(sqlite3.connect(path)) as connection:
        found = connection.execute("SELECT step, wall_s FROM steps WHERE step > 8").fetchall()
    # A step that is told again keeps its time.
    assert found == [(9, None if version == 1 else told_s), (10, 7.0)]
    read = reading.read(path, 100)[0]
    assert repr(read.samples_per_second[7:]) == "(nan, 32.0, 64.0)" and read.gpu_percent == ()
