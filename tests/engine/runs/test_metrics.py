"""The figures of a run in SQLite: what goes in comes out, and plain SQL reads it."""

from __future__ import annotations

import math
import random
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from engine.protocol import EpochRow, StepColumns
from engine.runs import metrics, reading
from engine.runs.record import RunProblem


def columns(first: int, last: int, loss=lambda step: 1 / step, **figures) -> StepColumns:
    steps = tuple(range(first, last + 1))
    floats = tuple(map(loss, steps))
    return StepColumns(
        step=steps,
        loss=floats,
        accuracy=(math.nan,) * len(steps),
        gradient_norm=floats,
        learning_rate=floats,
        step_ms=floats,
        rss_bytes=steps,
        figures={name: tuple(map(value, steps)) for name, value in figures.items()},
    )


def written(path: Path, *parts: StepColumns, epochs: tuple[EpochRow, ...] = ()) -> None:
    with closing(metrics.open_to_write(path)) as connection, connection:
        for part in parts:
            metrics.append(connection, part, epochs)


EPOCH = EpochRow(
    1, 3, 0.5, math.nan, math.inf, 0.25, train_figures={"R2": 0.5}, validation_figures={"R2": 0.25}
)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "metrics.sqlite"
    first, second = columns(1, 2, R2=float), columns(3, 5, other=lambda step: math.inf)
    written(path, first, second, epochs=(EPOCH,))
    steps, epochs = reading.read(path, 100)
    assert steps.step == (1, 2, 3, 4, 5)
    assert steps.loss == (1, 1 / 2, 1 / 3, 1 / 4, 1 / 5)
    assert (steps.rss_bytes, steps.cuda_allocated_bytes) == ((1, 2, 3, 4, 5), ())
    assert all(map(math.isnan, steps.accuracy))
    assert repr(steps.figures["R2"]) == repr((1.0, 2.0, math.nan, math.nan, math.nan))
    assert steps.figures["other"][2:] == (math.inf,) * 3
    assert repr(epochs) == repr((EPOCH,))
    assert repr(reading.last_figures(path)) == repr((5, 1 / 5, EPOCH))


def test_any_program_can_read_the_tables(tmp_path: Path) -> None:
    path = tmp_path / "metrics.sqlite"
    written(path, columns(1, 3, R2=float), epochs=(EPOCH,))
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        query = "SELECT steps.step, loss, value FROM steps JOIN step_figures USING (step)"
        assert connection.execute(query).fetchall()[2] == (3, 1 / 3, 3.0)
        assert connection.execute("SELECT accuracy FROM steps").fetchone() == (None,)
        assert connection.execute("SELECT * FROM epoch_figures").fetchall() == [
            (1, "train", "R2", 0.5),
            (1, "validation", "R2", 0.25),
        ]


def test_a_run_that_goes_on_from_a_step_forgets_what_was_after_it(tmp_path: Path) -> None:
    path = tmp_path / "metrics.sqlite"
    written(path, columns(1, 5, R2=float), epochs=(EPOCH,))
    with closing(metrics.open_to_write(path)) as connection:
        metrics.keep_until(connection, 2)
        with connection:
            metrics.append(connection, columns(2, 3, loss=float))
    steps, epochs = reading.read(path, 100)
    assert (steps.loss, epochs) == ((1.0, 2.0, 3.0), ())
    assert repr(steps.figures["R2"]) == repr((1.0, 2.0, math.nan))
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM epoch_figures").fetchone() == (0,)


@pytest.mark.parametrize("stored", [False, True])
def test_of_many_steps_the_peaks_stay(tmp_path: Path, stored: bool) -> None:
    path = tmp_path / "metrics.sqlite"
    draw = random.Random(0)
    losses = {step: draw.random() for step in range(1, 10_001)}
    losses[4321], losses[8765] = 100.0, -100.0
    written(path, columns(1, 10_000, loss=losses.__getitem__, R2=float))
    if stored:
        with closing(metrics.open_to_write(path)) as connection:
            metrics.thin_out(connection, 500)
            assert metrics.count(connection) <= 500
    steps, _ = reading.read(path, 10**6 if stored else 500)
    assert 250 < len(steps.step) <= 500
    assert {1, 4321, 8765, 10_000} <= set(steps.step)
    assert steps.step == tuple(sorted(steps.step))
    assert steps.loss == tuple(losses[step] for step in steps.step)
    assert steps.figures["R2"] == tuple(map(float, steps.step))
    for i in range(100):  # every stretch of a hundredth has its lowest and its highest
        inside = [losses[step] for step in steps.step if 100 * i < step <= 100 * (i + 1)]
        every = [losses[step] for step in range(100 * i + 1, 100 * (i + 1) + 1)]
        assert max(inside) >= sorted(every)[-5] and min(inside) <= sorted(every)[4]


def test_each_step_has_the_figures_and_the_time_that_it_had(tmp_path: Path) -> None:
    path = tmp_path / "metrics.sqlite"
    with closing(metrics.open_to_write(path)) as connection, connection:
        metrics.append(connection, columns(1, 2, R2=float), (), 5.0)
        metrics.append(connection, columns(3, 4, other=lambda step: math.nan), (), 7.0)
        metrics.append(connection, columns(5, 5, R2=float, f1=lambda step: 0.5), (), None)
        connection.execute("DELETE FROM steps WHERE step = 2")  # its figures are there yet
    found = list(reading.each_step(path))
    assert [(step.step, step.wall_s, step.figures) for step in found] == [
        (1, 5.0, {"R2": 1.0}), (3, 7.0, {}), (4, 7.0, {}), (5, None, {"R2": 5.0, "f1": 0.5}),
    ]  # fmt: skip
    assert found[1].columns["loss"] == 1 / 3 and "accuracy" not in found[1].columns
    assert reading.figure_count(path) == 2


def test_of_many_epochs_some_are_read_evenly_spread_with_the_last(tmp_path: Path) -> None:
    path = tmp_path / "metrics.sqlite"
    figures = {"train_figures": {"R2": 0.5}}
    rows = tuple(EpochRow(n, 10 * n, float(n), 0.5, 1.0, 0.5, **figures) for n in range(1, 11))
    with closing(metrics.open_to_write(path)) as connection, connection:
        metrics.append(connection, columns(1, 20), rows[:2], 5.0)
        metrics.append(connection, columns(21, 95), rows[2:], 7.0)

    def epochs(limit: int) -> list[int]:
        return [row.epoch for row in reading.read(path, limit)[1]]

    assert [epochs(limit) for limit in (10, 9, 5, 4, 3, 1)] == [
        [*range(1, 11)], [2, 4, 6, 8, 10], [2, 4, 6, 8, 10], [1, 4, 7, 10], [2, 6, 10], [10],
    ]  # fmt: skip
    assert reading.read(path, 3)[1] == (rows[1], rows[5], rows[9])
    # The last one ends with a step that is not told yet.
    assert [told for _, told in reading.each_epoch(path)] == [5.0, 5.0, *[7.0] * 8]


def test_a_run_without_a_step_has_no_time_of_its_epochs(tmp_path: Path) -> None:
    path = tmp_path / "metrics.sqlite"
    written(path, epochs=(EPOCH,))
    with closing(metrics.open_to_write(path)) as connection, connection:
        metrics.append(connection, StepColumns(), (EPOCH,))
    assert [told for _, told in reading.each_epoch(path)] == [None]


@pytest.mark.parametrize("limit", [10, 9])
def test_as_many_steps_as_may_be_are_all_read(tmp_path: Path, limit: int) -> None:
    path = tmp_path / "metrics.sqlite"
    written(path, columns(1, 10, loss=lambda step: 1.0))
    assert len(reading.read(path, limit)[0].step) == 10 if limit == 10 else 5


@pytest.mark.parametrize("content", [b"not a database" * 100, None])
def test_a_file_that_is_no_run_s_is_told(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "metrics.sqlite"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(RunProblem, match=r"metrics\.sqlite"):
        reading.read(path, 10)
    with pytest.raises(RunProblem, match=r"metrics\.sqlite"):
        reading.last_figures(path)


def test_a_file_whose_tables_are_not_made_yet_is_empty(tmp_path: Path) -> None:
    path = tmp_path / "metrics.sqlite"
    path.write_bytes(b"")
    assert reading.read(path, 10) == (StepColumns(), ())
    assert repr(reading.last_figures(path)) == repr((0, math.nan, None))


def test_a_database_of_another_program_is_told(tmp_path: Path) -> None:
    path = tmp_path / "metrics.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE steps (a)")
    with pytest.raises(RunProblem, match="has version 0"):
        reading.read(path, 10)


def test_what_a_killed_process_had_begun_is_taken_back(tmp_path: Path) -> None:
    path, copy = tmp_path / "metrics.sqlite", tmp_path / "copy.sqlite"
    with closing(sqlite3.connect(path)) as connection:  # its journal is not a WAL yet
        connection.executescript(f"PRAGMA user_version = {metrics.VERSION}; CREATE TABLE a (b);")
        connection.execute("PRAGMA cache_size = 1")
        connection.execute("BEGIN")
        for i in range(2000):
            connection.execute("INSERT INTO a VALUES (?)", (f"{i}" * 100,))
        for suffix in ("", "-journal"):
            found = path.with_name(path.name + suffix).read_bytes()
            copy.with_name(copy.name + suffix).write_bytes(found)
    with pytest.raises(RunProblem, match="no such table: steps"):
        reading.read(copy, 10)
    assert not copy.with_name("copy.sqlite-journal").exists()


def test_a_schema_of_other_bytes_than_text_is_told(tmp_path: Path) -> None:
    path = tmp_path / "metrics.sqlite"
    written(path, columns(1, 3))
    data = path.read_bytes()
    path.write_bytes(data.replace(b"TABLE steps", b"TABLE \xff\xfeeps"))
    with pytest.raises(RunProblem, match=r"metrics\.sqlite"):
        reading.read(path, 10)


@pytest.mark.parametrize(("column", "value"), [("loss", "a"), ("rss_bytes", 0.5), ("loss", b"\0")])
def test_a_column_with_something_else_is_told(tmp_path: Path, column: str, value) -> None:
    path = tmp_path / "metrics.sqlite"
    written(path, columns(1, 3))
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"UPDATE steps SET {column} = ? WHERE step = 2", [value])
    with pytest.raises(RunProblem, match=r"is damaged: it has .* number is expected"):
        reading.read(path, 10)
    with pytest.raises(RunProblem, match="is damaged"):
        list(reading.each_step(path)) if column == "loss" else reading.read(path, 10)
