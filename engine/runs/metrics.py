"""The figures of a run in SQLite: tables that any program can read.

    steps(step, loss, accuracy, gradient_norm, learning_rate, step_ms, rss_bytes, ...)
    step_figures(step, name, value)
    epochs(epoch, step, train_loss, train_accuracy, validation_loss, validation_accuracy)
    epoch_figures(epoch, part, name, value)      part: train, validation

The columns are those of `StepColumns` and `EpochRow`; NULL is NaN, or a figure that there is not.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from math import nan
from pathlib import Path

from ..protocol import EpochRow, StepColumns
from .record import RunProblem

VERSION = 1
MAX_ROWS = 200_000
"""Of more steps, some are left out, so that the file stays under some 50 MB."""
BUSY_S = 5.0

STEP_COLUMNS = tuple(name for name in StepColumns.__struct_fields__ if name != "figures")
EPOCH_COLUMNS = EpochRow.__struct_fields__[:6]
_COUNTS = ("step", "epoch", "rss_bytes", "cuda_allocated_bytes", "cuda_reserved_bytes")


def _table(name: str, columns: Sequence[str]) -> str:
    typed = (f"{c} {'INTEGER' if c in _COUNTS else 'REAL'}" for c in columns[1:])
    return f"CREATE TABLE {name} ({columns[0]} INTEGER PRIMARY KEY, {', '.join(typed)});"


_SCHEMA = f"""
BEGIN;
{_table("steps", STEP_COLUMNS)}
CREATE TABLE step_figures (step INTEGER, name TEXT, value REAL, PRIMARY KEY (step, name))
    WITHOUT ROWID;
{_table("epochs", EPOCH_COLUMNS)}
CREATE TABLE epoch_figures (epoch INTEGER, part TEXT, name TEXT, value REAL,
    PRIMARY KEY (epoch, part, name)) WITHOUT ROWID;
PRAGMA user_version = {VERSION};
COMMIT;
"""
_KEEP = """
DELETE FROM steps WHERE step NOT IN (SELECT step FROM kept);
DELETE FROM step_figures WHERE step NOT IN (SELECT step FROM kept);
"""


@contextmanager
def problems_told(path: Path) -> Iterator[None]:
    """What SQLite raises becomes a RunProblem that names the file."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise RunProblem(f"{path} cannot be used: {error}.") from error


def open_to_write(path: Path) -> sqlite3.Connection:
    """Open the file, or make it. For one thread at a time. Raises RunProblem."""
    with problems_told(path):
        connection = sqlite3.connect(path, timeout=BUSY_S, check_same_thread=False)
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            if not connection.execute("PRAGMA user_version").fetchone()[0]:
                connection.executescript(_SCHEMA)
            _require_version(connection, path)
        except BaseException:
            connection.close()
            raise
    path.chmod(0o600)
    return connection


def _require_version(connection: sqlite3.Connection, path: Path) -> None:
    (found,) = connection.execute("PRAGMA user_version").fetchone()
    if found != VERSION:
        raise RunProblem(f"{path} has version {found}; this Tensor Lab reads {VERSION}.")


@contextmanager
def _reading(path: Path) -> Iterator[sqlite3.Connection]:
    if not path.is_file():
        raise RunProblem(f"There is no {path}.")
    # To write if that is allowed: what a killed process has begun is taken back first.
    uri = f"{path.absolute().as_uri()}?mode=rw"
    with problems_told(path), ExitStack() as opened:
        connection = opened.enter_context(closing(sqlite3.connect(uri, timeout=BUSY_S, uri=True)))
        if not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            connection = opened.enter_context(closing(sqlite3.connect(":memory:")))
            connection.executescript(_SCHEMA)  # the file has no tables yet
        _require_version(connection, path)
        yield connection


# -- writing -------------------------------------------------------------------------------------


def append(
    connection: sqlite3.Connection, steps: StepColumns, epochs: Sequence[EpochRow] = ()
) -> None:
    """Add rows, in the caller's transaction; those of steps and epochs that are there are
    replaced."""
    columns = [getattr(steps, name) or (None,) * len(steps.step) for name in STEP_COLUMNS]
    _insert(connection, "steps", zip(*columns, strict=True), len(STEP_COLUMNS))
    figures = (
        (step, name, value)
        for name, values in steps.figures.items()
        for step, value in zip(steps.step, values, strict=True)
        if value == value
    )
    _insert(connection, "step_figures", figures, 3)
    rows = ([getattr(row, name) for name in EPOCH_COLUMNS] for row in epochs)
    _insert(connection, "epochs", rows, len(EPOCH_COLUMNS))
    figures = (
        (row.epoch, part, name, value)
        for row in epochs
        for part, named in (
            ("train", row.train_figures),
            ("validation", row.validation_figures),
        )
        for name, value in named.items()
    )
    _insert(connection, "epoch_figures", figures, 4)


def _insert(
    connection: sqlite3.Connection, table: str, rows: Iterator[Sequence] | zip, width: int
) -> None:
    marks = ", ".join("?" * width)
    connection.executemany(f"INSERT OR REPLACE INTO {table} VALUES ({marks})", rows)


def keep_until(connection: sqlite3.Connection, step: int) -> None:
    """Remove what is after a step: the run goes on from there."""
    with connection:
        for table in ("steps", "step_figures"):
            connection.execute(f"DELETE FROM {table} WHERE step > ?", (step,))
        last = "SELECT epoch FROM epochs WHERE step > ?"
        connection.execute(f"DELETE FROM epoch_figures WHERE epoch IN ({last})", (step,))
        connection.execute("DELETE FROM epochs WHERE step > ?", (step,))


def thin_out(connection: sqlite3.Connection, limit: int) -> None:
    """Leave at most `limit` steps, chosen so that a plot of the loss looks the same."""
    with connection:
        connection.execute("CREATE TEMP TABLE kept (step INTEGER PRIMARY KEY)")
        connection.execute(f"INSERT OR IGNORE INTO kept {_chosen(connection, limit)}")
        for statement in filter(str.strip, _KEEP.split(";")):
            connection.execute(statement)
        connection.execute("DROP TABLE kept")


def _chosen(connection: sqlite3.Connection, limit: int) -> str:
    """A query for at most `limit` steps: of each of some equal stretches the ones with the lowest
    and the highest loss, and the first and the last step of all."""
    first, last, count = connection.execute(
        "SELECT min(step), max(step), count(*) FROM steps"
    ).fetchone()
    if count <= limit:
        return "SELECT step FROM steps"
    stretches = max(1, (limit - 2) // 2)
    bucket = f"(step - {first}) * {stretches} / {last - first + 1}"
    # SQLite takes `step` from the row of the minimum or the maximum.
    parts = (
        f"SELECT step FROM (SELECT step, {end}(loss) FROM steps GROUP BY {bucket})"
        for end in ("min", "max")
    )
    return f"{' UNION '.join(parts)} UNION VALUES ({first}) UNION VALUES ({last})"


def count(connection: sqlite3.Connection) -> int:
    return connection.execute("SELECT count(*) FROM steps").fetchone()[0]


# -- reading -------------------------------------------------------------------------------------


def figure_count(path: Path) -> int:
    """How many named figures the steps have. Raises RunProblem."""
    with _reading(path) as connection:
        query = "SELECT count(DISTINCT name) FROM step_figures"
        return connection.execute(query).fetchone()[0]


def read(path: Path, limit: int) -> tuple[StepColumns, tuple[EpochRow, ...]]:
    """At most `limit` of the steps (see `thin_out`), and all epochs. Raises RunProblem."""
    with _reading(path) as connection:
        chosen = _chosen(connection, limit)
        names = ", ".join(STEP_COLUMNS)
        found = connection.execute(
            f"SELECT {names} FROM steps WHERE step IN ({chosen}) ORDER BY step"
        ).fetchall()
        figures: dict[str, dict[int, float]] = {}
        for step, name, value in connection.execute(
            f"SELECT step, name, value FROM step_figures WHERE step IN ({chosen})"
        ):
            figures.setdefault(name, {})[step] = value
        return _columns(found, figures), _epochs(connection)


def _columns(rows: list[tuple], figures: dict[str, dict[int, float]]) -> StepColumns:
    if not rows:
        return StepColumns()
    by_name: dict[str, tuple] = {}
    for name, values in zip(STEP_COLUMNS, zip(*rows, strict=True), strict=True):
        if name in _COUNTS:  # there is no figure of CUDA's memory on another device
            by_name[name] = () if None in values else values
        else:
            by_name[name] = tuple(nan if value is None else value for value in values)
    named = {
        name: tuple(values.get(row[0], nan) for row in rows) for name, values in figures.items()
    }
    return StepColumns(**by_name, figures=named)


def _epochs(connection: sqlite3.Connection) -> tuple[EpochRow, ...]:
    figures: dict[tuple[int, str], dict[str, float]] = {}
    for epoch, part, name, value in connection.execute("SELECT * FROM epoch_figures"):
        figures.setdefault((epoch, part), {})[name] = nan if value is None else value
    return tuple(
        EpochRow(
            epoch,
            step,
            *(nan if number is None else number for number in numbers),
            train_figures=figures.get((epoch, "train"), {}),
            validation_figures=figures.get((epoch, "validation"), {}),
        )
        for epoch, step, *numbers in connection.execute(
            f"SELECT {', '.join(EPOCH_COLUMNS)} FROM epochs ORDER BY epoch"
        )
    )


def last_figures(path: Path) -> tuple[int, float, EpochRow | None]:
    """The last step with its loss, and the last epoch; (0, NaN, None) before the first. Raises
    RunProblem."""
    with _reading(path) as connection:
        row = connection.execute("SELECT step, loss FROM steps ORDER BY step DESC LIMIT 1")
        step, loss = row.fetchone() or (0, nan)
        epochs = _epochs(connection)
        return step, nan if loss is None else loss, epochs[-1] if epochs else None
