"""The figures of a run in SQLite: tables that any program can read.

    steps(step, loss, accuracy, gradient_norm, learning_rate, step_ms, rss_bytes, ..., wall_s)
    step_figures(step, name, value)
    epochs(epoch, step, train_loss, train_accuracy, validation_loss, validation_accuracy)
    epoch_figures(epoch, part, name, value)      part: train, validation

The columns are those of `StepColumns` and `EpochRow`; NULL is NaN, or a figure that there is not.
`wall_s` is when the step was told, in seconds since 1970. Version 1 had no such column, and version
2 none of `samples_per_second` and `gpu_percent`.

Not here: `reading`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ..protocol import EpochRow, StepColumns
from .record import RunProblem

VERSION = 3
MAX_ROWS = 200_000
"""The most steps that are kept: beyond that some are left out, so that the file stays under some 50
MB."""
BUSY_S = 5.0

STEP_COLUMNS = tuple(name for name in StepColumns.__struct_fields__ if name != "figures")
WALL = "wall_s"
LATER = ("samples_per_second", "gpu_percent")
ADDED = {2: (WALL,), 3: LATER}
"""The columns of steps that each later version has more."""
EPOCH_COLUMNS = EpochRow.__struct_fields__[:6]
COUNTS = ("step", "epoch", "rss_bytes", "cuda_allocated_bytes", "cuda_reserved_bytes")


def _table(name: str, columns: Sequence[str]) -> str:
    typed = (f"{c} {'INTEGER' if c in COUNTS else 'REAL'}" for c in columns[1:])
    return f"CREATE TABLE {name} ({columns[0]} INTEGER PRIMARY KEY, {', '.join(typed)});"


SCHEMA = f"""
BEGIN;
{_table("steps", (*STEP_COLUMNS, WALL))}
CREATE TABLE step_figures (step INTEGER, name TEXT, value REAL, PRIMARY KEY (step, name))
    WITHOUT ROWID;
{_table("epochs", EPOCH_COLUMNS)}
CREATE TABLE epoch_figures (epoch INTEGER, part TEXT, name TEXT, value REAL,
    PRIMARY KEY (epoch, part, name)) WITHOUT ROWID;
PRAGMA user_version = {VERSION};
COMMIT;
"""
_UPSERT = (
    f"INSERT INTO steps ({', '.join((*STEP_COLUMNS, WALL))})"
    f" VALUES ({', '.join('?' * (len(STEP_COLUMNS) + 1))}) ON CONFLICT (step) DO UPDATE SET "
    + ", ".join(f"{name} = excluded.{name}" for name in STEP_COLUMNS[1:])
)
_KEEP = """
DELETE FROM steps WHERE step NOT IN (SELECT step FROM kept);
DELETE FROM step_figures WHERE step NOT IN (SELECT step FROM kept);
"""


@contextmanager
def problems_told(path: Path) -> Iterator[None]:
    """An error of SQLite becomes a RunProblem that names the file."""
    try:
        yield
    except RunProblem:
        raise
    except (sqlite3.Error, OSError) as error:
        raise RunProblem(f"{path} cannot be used: {error}.") from error
    except (TypeError, ValueError, OverflowError) as error:  # a column holds something else
        raise RunProblem(f"{path} is damaged: {error}.") from error


def open_to_write(path: Path) -> sqlite3.Connection:
    """Open the file, or make it. For one thread at a time. Raises RunProblem."""
    with problems_told(path):
        connection = sqlite3.connect(path, timeout=BUSY_S, check_same_thread=False)
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            if not connection.execute("PRAGMA user_version").fetchone()[0]:
                connection.executescript(SCHEMA)
            if missing := not_in(require_version(connection, path)):
                for name in missing:
                    connection.execute(f"ALTER TABLE steps ADD COLUMN {name} REAL")
                connection.execute(f"PRAGMA user_version = {VERSION}")
        except BaseException:
            connection.close()
            raise
    path.chmod(0o600)
    return connection


def require_version(connection: sqlite3.Connection, path: Path) -> int:
    """The version of the file, if it can be read. Raises RunProblem, also for a file with queries
    of its own in it, which may never end."""
    (queries,) = connection.execute(
        "SELECT count(*) FROM sqlite_master WHERE type IN ('view', 'trigger')"
        " OR sql LIKE 'CREATE VIRTUAL%'"
    ).fetchone()
    if queries:
        raise RunProblem(f"{path} has views or triggers, which no run writes.")
    (found,) = connection.execute("PRAGMA user_version").fetchone()
    if not 1 <= found <= VERSION:
        raise RunProblem(f"{path} has version {found}; this Tensor Lab reads 1 to {VERSION}.")
    return found


def not_in(version: int) -> list[str]:
    """The columns of steps that a file of this version does not have."""
    return [name for since, names in ADDED.items() if since > version for name in names]


# -- writing -------------------------------------------------------------------------------------


def append(
    connection: sqlite3.Connection,
    steps: StepColumns,
    epochs: Sequence[EpochRow] = (),
    wall_s: float | None = None,
) -> None:
    """Add rows, in the caller's transaction; those of steps and epochs that are there are
    replaced, but for when they were told: a run that is resumed tells its past again."""
    columns = [getattr(steps, name) or (None,) * len(steps.step) for name in STEP_COLUMNS]
    columns.append((wall_s,) * len(steps.step))
    connection.executemany(_UPSERT, zip(*columns, strict=True))
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
    connection.executemany(f"INSERT OR REPLACE INTO {table} VALUES ({marks(width)})", rows)


def marks(count: int) -> str:
    """`count` question marks, which stand for values."""
    return ", ".join("?" * count)


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
        connection.execute(f"INSERT OR IGNORE INTO kept {chosen(connection, limit)}")
        for statement in filter(str.strip, _KEEP.split(";")):
            connection.execute(statement)
        connection.execute("DROP TABLE kept")


def chosen(connection: sqlite3.Connection, limit: int) -> str:
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
