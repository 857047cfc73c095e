"""Reading the figures of a run, also while another process or another machine writes them.

SQLite lets a reader of the writer's machine in at any time. Its memory that two connections share
does not reach another machine: there, and in a folder where nothing may be written, a copy is read.
"""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from math import nan
from os import W_OK, access
from pathlib import Path
from typing import Any, NamedTuple

from ..protocol import EpochRow, StepColumns
from .metrics import (
    BUSY_S,
    COUNTS,
    EPOCH_COLUMNS,
    LATER,
    SCHEMA,
    STEP_COLUMNS,
    WALL,
    chosen,
    not_in,
    problems_told,
    require_version,
)
from .record import RunProblem

TRIES = 5
_WAL_HEAD_BYTES = 32
"""The head of the journal has two numbers that change when it begins anew."""


@contextmanager
def opened(path: Path, as_copy: bool) -> Iterator[tuple[sqlite3.Connection, int]]:
    """The figures and the version of their file. Raises RunProblem."""
    if not path.is_file():
        raise RunProblem(f"There is no {path}.")
    with problems_told(path), ExitStack() as opened:
        source = path
        if as_copy or not access(path.parent, W_OK):
            folder = opened.enter_context(tempfile.TemporaryDirectory(prefix="tensorlab-run-"))
            source = _copied(path, Path(folder))
        # To write if that is allowed: what a killed process has begun is taken back first.
        uri = f"{source.absolute().as_uri()}?mode=rw"
        connection = opened.enter_context(closing(sqlite3.connect(uri, timeout=BUSY_S, uri=True)))
        if not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            connection = opened.enter_context(closing(sqlite3.connect(":memory:")))
            connection.executescript(SCHEMA)  # the file has no tables yet
        yield connection, require_version(connection, path)


def _copied(path: Path, folder: Path) -> Path:
    """A copy of the file and its journal as they are at one time. What the writer takes from the
    journal into the file meanwhile does no harm, as long as the journal keeps it too."""
    journal = path.with_name(f"{path.name}-wal")
    copy = folder / path.name
    for _ in range(TRIES):
        before = _head(journal)
        shutil.copyfile(path, copy)
        beside = copy.with_name(journal.name)
        beside.unlink(missing_ok=True)
        if before:
            shutil.copyfile(journal, beside)
        if _head(journal) == before:
            return copy
    raise RunProblem(f"{path} changes faster than it can be read. Try again.")


def _head(journal: Path) -> bytes:
    try:
        with journal.open("rb") as file:
            return file.read(_WAL_HEAD_BYTES)
    except FileNotFoundError:
        return b""


class StepFigures(NamedTuple):
    """One step: its columns, and the figures that the user's step names. `wall_s` is when it was
    told, None if that is not known."""

    step: int
    wall_s: float | None
    columns: dict[str, float]
    figures: dict[str, float]


def each_step(path: Path, as_copy: bool = False) -> Iterator[StepFigures]:
    """All steps, without the figures that they do not have. Raises RunProblem."""
    with opened(path, as_copy) as (connection, version):
        named = connection.execute("SELECT step, name, value FROM step_figures ORDER BY step, name")
        waiting = named.fetchone()
        names = _selected((WALL, *STEP_COLUMNS), version)
        for told, *row in connection.execute(f"SELECT {names} FROM steps ORDER BY step"):
            columns = dict(zip(STEP_COLUMNS, row, strict=True))
            step = columns.pop("step")
            figures: dict[str, float] = {}
            while waiting is not None and waiting[0] <= step:
                if waiting[0] == step:
                    figures[_text(waiting[1])] = _number(waiting[2])
                waiting = named.fetchone()
            found = {name: _number(value) for name, value in columns.items() if value is not None}
            yield StepFigures(step, None if told is None else _number(told), found, figures)


def each_epoch(path: Path, as_copy: bool = False) -> Iterator[tuple[EpochRow, float | None]]:
    """All epochs, each with the time at which its last step was told. Raises RunProblem."""
    with opened(path, as_copy) as (connection, version):
        wall = _selected((WALL,), version)
        query = f"SELECT {wall} FROM steps WHERE step <= ? ORDER BY step DESC LIMIT 1"
        for row in _epochs(connection, None):
            (told,) = connection.execute(query, (row.step,)).fetchone() or (None,)
            yield row, None if told is None else _number(told)


def figure_count(path: Path, as_copy: bool = False) -> int:
    """How many named figures the steps have. Raises RunProblem."""
    with opened(path, as_copy) as (connection, _):
        query = "SELECT count(DISTINCT name) FROM step_figures"
        return connection.execute(query).fetchone()[0]


def read(path: Path, limit: int, as_copy: bool = False) -> tuple[StepColumns, tuple[EpochRow, ...]]:
    """At most `limit` of the steps (see `thin_out`), and as many of the epochs, evenly spread, with
    the last. Raises RunProblem."""
    with opened(path, as_copy) as (connection, version):
        wanted = chosen(connection, limit)
        names = _selected(STEP_COLUMNS, version)
        found = connection.execute(
            f"SELECT {names} FROM steps WHERE step IN ({wanted}) ORDER BY step"
        ).fetchall()
        figures: dict[str, dict[int, float]] = {}
        for step, name, value in connection.execute(
            f"SELECT step, name, value FROM step_figures WHERE step IN ({wanted})"
        ):
            figures.setdefault(_text(name), {})[step] = _number(value)
        return _columns(found, figures), _epochs(connection, limit)


def _selected(names: Sequence[str], version: int) -> str:
    """These columns of steps in a query; NULL for those that a file of this version has not."""
    missing = not_in(version)
    return ", ".join("NULL" if name in missing else name for name in names)


def _columns(rows: list[tuple], figures: dict[str, dict[int, float]]) -> StepColumns:
    if not rows:
        return StepColumns()
    by_name: dict[str, tuple] = {}
    for name, values in zip(STEP_COLUMNS, zip(*rows, strict=True), strict=True):
        if name in COUNTS:  # there is no figure of CUDA's memory on another device
            by_name[name] = () if None in values else tuple(map(_count, values))
        elif name in LATER and not any(value is not None for value in values):
            by_name[name] = ()
        else:
            by_name[name] = tuple(map(_number, values))
    named = {
        name: tuple(values.get(row[0], nan) for row in rows) for name, values in figures.items()
    }
    return StepColumns(**by_name, figures=named)


def _epochs(connection: sqlite3.Connection, limit: int | None) -> tuple[EpochRow, ...]:
    last, count = connection.execute("SELECT max(epoch), count(*) FROM epochs").fetchone()
    apart = 1 if limit is None else max(1, -(-count // limit))
    wanted = f"(({last or 0}) - epoch) % {apart} = 0"
    figures: dict[tuple[int, str], dict[str, float]] = {}
    for epoch, part, name, value in connection.execute(
        f"SELECT epoch, part, name, value FROM epoch_figures WHERE {wanted}"
    ):
        figures.setdefault((epoch, part), {})[_text(name)] = _number(value)
    names = ", ".join(EPOCH_COLUMNS)
    return tuple(
        EpochRow(
            epoch,
            _count(step),
            *map(_number, numbers),
            train_figures=figures.get((epoch, "train"), {}),
            validation_figures=figures.get((epoch, "validation"), {}),
        )
        for epoch, step, *numbers in connection.execute(
            f"SELECT {names} FROM epochs WHERE {wanted} ORDER BY epoch"
        )
    )


def last_figures(path: Path, as_copy: bool = False) -> tuple[int, float, EpochRow | None]:
    """The last step with its loss, and the last epoch; (0, NaN, None) before the first. Raises
    RunProblem."""
    with opened(path, as_copy) as (connection, _):
        row = connection.execute("SELECT step, loss FROM steps ORDER BY step DESC LIMIT 1")
        step, loss = row.fetchone() or (0, nan)
        epochs = _epochs(connection, 1)
        return step, _number(loss), epochs[-1] if epochs else None


def _number(value: Any) -> float:
    """SQLite keeps anything in any column. Raises TypeError."""
    if value is None:
        return nan
    if not isinstance(value, int | float):
        raise TypeError(f"it has {str(value)[:40]!r} where a number is expected")
    return float(value)


def _count(value: Any) -> int:
    if not isinstance(value, int):
        raise TypeError(f"it has {str(value)[:40]!r} where a whole number is expected")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"it has {str(value)[:40]!r} where a name is expected")
    return value
