"""How parameters moved, in the file of a run: written, read, thinned, taken over."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from itertools import pairwise
from math import nan
from pathlib import Path

import pytest

from engine.runs import metrics, parameter_figures, parameter_reading
from engine.runs.parameter_figures import Histogram, Look, LookTables, ParameterRow, spread

NAMES = ("b.weight", "a.weight")


def look(step: int) -> Look:
    return Look(
        tuple(ParameterRow(step, i, n, nan, float(i), 0.5) for i, n in enumerate(NAMES)),
        tuple(Histogram(n, "weights", step, -1.0, 1.0, 0, bytes([i] * 8)) for i, n in
              enumerate(NAMES)),
    )  # fmt: skip


def write(path: Path, *steps: int) -> None:
    with closing(metrics.open_to_write(path)) as connection:
        tables = LookTables(connection)
        with connection:
            tables.append(map(look, steps))
        tables.thin_out()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "metrics.sqlite"


def test_what_is_written_is_read_in_the_models_order(path: Path) -> None:
    assert parameter_reading.read_rows(path, 10) == [] == parameter_reading.names(path)
    write(path, 1, 2)
    rows = parameter_reading.read_rows(path, 10)
    assert repr(rows) == repr([*look(1).rows, *look(2).rows])
    assert parameter_reading.names(path) == list(NAMES)
    found = parameter_reading.read_histograms(path, "a.weight", "weights", 10)
    assert found == [look(1).histograms[1], look(2).histograms[1]]
    assert parameter_reading.read_histograms(path, "a.weight", "gradients", 10) == []


def test_a_file_of_an_earlier_version_has_no_looks_and_gets_the_tables(path: Path) -> None:
    metrics.open_to_write(path).close()
    assert parameter_reading.read_rows(path, 10) == []
    write(path, 3)
    with closing(sqlite3.connect(path)) as plain:
        assert plain.execute("SELECT step, name FROM parameters").fetchall() == [
            (3, "a.weight"), (3, "b.weight"),
        ]  # fmt: skip


def test_a_run_that_goes_back_loses_the_looks_after_it_and_a_new_one_takes_them_over(
    path: Path, tmp_path: Path
) -> None:
    write(path, 1, 2, 3)
    other = tmp_path / "other.sqlite"
    with closing(metrics.open_to_write(other)) as connection:
        tables = LookTables(connection)
        tables.copy(path, 2)
        tables.copy(tmp_path / "none.sqlite", 2)
    assert [row.step for row in parameter_reading.read_rows(other, 9)] == [1, 1, 2, 2]
    with closing(metrics.open_to_write(path)) as connection:
        LookTables(connection).keep_until(1)
    assert [row.step for row in parameter_reading.read_rows(path, 9)] == [1, 1]
    assert len(parameter_reading.read_histograms(path, "a.weight", "weights", 9)) == 1


def test_many_looks_are_thinned_evenly(path: Path, monkeypatch) -> None:
    monkeypatch.setattr(parameter_figures, "MAX_LOOKS", {"parameters": 100, "histograms": 50})
    write(path, *range(1, 102))
    steps = sorted({row.step for row in parameter_reading.read_rows(path, 999)})
    assert len(steps) == 50 and (steps[0], steps[-1]) == (1, 101)
    assert max(b - a for a, b in pairwise(steps)) <= 3
    assert len(parameter_reading.read_histograms(path, "a.weight", "weights", 999)) == 25


def test_a_model_of_many_parameters_keeps_fewer_looks(path: Path, monkeypatch) -> None:
    monkeypatch.setattr(parameter_figures, "MAX_ROWS", {"parameters": 160, "histograms": 80})
    write(path, *range(1, 101))
    assert len(parameter_reading.read_rows(path, 999)) == 2 * 40  # half of 80 looks
    assert len(parameter_reading.read_histograms(path, "a.weight", "weights", 999)) == 20


def test_as_many_looks_as_may_be_stay(path: Path, monkeypatch) -> None:
    monkeypatch.setattr(parameter_figures, "MAX_LOOKS", {"parameters": 64, "histograms": 64})
    write(path, *range(1, 65))
    assert len(parameter_reading.read_rows(path, 999)) == 2 * 64
    monkeypatch.setattr(parameter_figures, "MAX_ROWS", {"parameters": 2, "histograms": 2})
    monkeypatch.setattr(parameter_figures, "LEAST_LOOKS", 64)
    write(path, *range(1, 65))
    assert len(parameter_reading.read_rows(path, 999)) == 2 * 64


def test_looks_are_counted_only_after_some_new_ones(path: Path, monkeypatch) -> None:
    monkeypatch.setattr(parameter_figures, "MAX_LOOKS", {"parameters": 4, "histograms": 4})
    monkeypatch.setattr(parameter_figures, "LEAST_LOOKS", 4)
    with closing(metrics.open_to_write(path)) as connection:
        tables = LookTables(connection)
        left = []
        for step in range(1, 2 * parameter_figures.SOME + 1):
            with connection:
                tables.append([look(step)])
            tables.thin_out()
            left.append(len(parameter_figures.steps_of(connection, "parameters")))
    assert left == [*range(1, 64), 2, *range(3, 66), 2]


def test_steps_are_spread_evenly_with_both_ends() -> None:
    assert spread([1, 2, 4, 8, 16, 17, 18, 34], 3) == [1, 18, 34]
    assert spread([1, 2], 3) == [1, 2]
    assert spread([0, 1, 3, 4], 3) == [0, 3, 4]  # of two that are as near the later one
    assert spread([*range(10)], 9) == [0, 1, 2, 3, 5, 6, 7, 8, 9]
