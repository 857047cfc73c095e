"""How the parameters of a run moved, in the SQLite file of its figures:

    parameters(step, place, name, gradient_norm, weight_norm, update_norm)
    histograms(name, kind, step, low, high, others, counts)      kind: weights, gradients

A row is of one look at one parameter. `counts` are 64 little-endian uint32 of equal bins from `low`
to `high`, the lowest and the highest finite element; `others` counts those that are not finite.
`place` is that of the parameter in its model. NULL is NaN, or a gradient that there is not.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from .metrics import marks
from .reading import opened

Kind = Literal["weights", "gradients", "logged"]
""""logged" are tensors that a loop has given to `lab.log`: they are in the tables of a loop, never
in a run's file."""
_TABLES = """
CREATE TABLE IF NOT EXISTS parameters (step INTEGER, place INTEGER, name TEXT,
    gradient_norm REAL, weight_norm REAL, update_norm REAL, PRIMARY KEY (step, name)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS histograms (name TEXT, kind TEXT, step INTEGER, low REAL, high REAL,
    others INTEGER, counts BLOB, PRIMARY KEY (name, kind, step)) WITHOUT ROWID;
"""
_WIDTHS = {"parameters": 6, "histograms": 7}
MAX_ROWS = {"parameters": 200_000, "histograms": 40_000}
MAX_LOOKS = {"parameters": 1000, "histograms": 256}
"""The most looks that are kept. Beyond that some are left out, evenly over the steps, so that the
file stops growing: a histogram takes some 350 bytes."""
LEAST_LOOKS = 32
"""The fewest looks that are kept, however many parameters the model has."""
SOME = 64
"""Looks are counted after this many new ones, because counting reads the whole table."""


class ParameterRow(NamedTuple):
    """The 2-norms of one parameter at one step: of its gradient before clipping, of its weights
    before the update, of the update. NaN where there is none."""

    step: int
    place: int
    name: str
    gradient_norm: float
    weight_norm: float
    update_norm: float


class Histogram(NamedTuple):
    name: str
    kind: Kind
    step: int
    low: float
    high: float
    others: int
    counts: bytes


class Look(NamedTuple):
    """The figures from one look at the parameters."""

    rows: tuple[ParameterRow, ...]
    histograms: tuple[Histogram, ...]


class LookTables:
    """The tables of looks, to write them; they are made if an earlier version wrote the file."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._new = 0
        connection.executescript(_TABLES)

    def append(self, looks: Iterable[Look]) -> None:
        """Add looks, in the caller's transaction; those of steps that are there are replaced."""
        for look in looks:
            self._insert("parameters", look.rows)
            self._insert("histograms", look.histograms)
            self._new += 1

    def _insert(self, table: str, rows: Sequence[tuple]) -> None:
        values = marks(_WIDTHS[table])
        self._connection.executemany(f"INSERT OR REPLACE INTO {table} VALUES ({values})", rows)

    def keep_until(self, step: int) -> None:
        """Remove what is after a step."""
        with self._connection:
            for table in _WIDTHS:
                self._connection.execute(f"DELETE FROM {table} WHERE step > ?", (step,))

    def copy(self, source: Path, step: int) -> None:
        """Take over the looks of another run up to a step. Raises RunProblem."""
        if not source.is_file():
            return
        with opened(source, as_copy=False) as (other, _), self._connection:
            if not has_tables(other):
                return
            for table in _WIDTHS:
                rows = other.execute(f"SELECT * FROM {table} WHERE step <= ?", (step,))
                self._insert(table, rows.fetchall())

    def thin_out(self) -> None:
        """After SOME new looks: if there are more than MAX_LOOKS and MAX_ROWS allow, leave half of
        what they allow."""
        if self._new < SOME:
            return
        self._new = 0
        for table in _WIDTHS:
            steps = steps_of(self._connection, table)
            rows = self._connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
            limit = min(MAX_LOOKS[table], MAX_ROWS[table] * len(steps) // max(1, rows))
            limit = max(LEAST_LOOKS, limit)
            if len(steps) > limit:
                kept = set(spread(steps, limit // 2))
                gone = [(step,) for step in steps if step not in kept]
                with self._connection:
                    self._connection.executemany(f"DELETE FROM {table} WHERE step = ?", gone)


def spread(steps: Sequence[int], limit: int) -> list[int]:
    """At most `limit` of some rising steps, evenly over them, with the first and the last."""
    if len(steps) <= limit:
        return list(steps)
    first, last = steps[0], steps[-1]
    found, place = [], 0
    for number in range(limit):
        wanted = first + (last - first) * number / (limit - 1)
        while place + 1 < len(steps) and abs(steps[place + 1] - wanted) <= abs(
            steps[place] - wanted
        ):
            place += 1
        found.append(steps[place])
    return sorted(set(found))


def steps_of(connection: sqlite3.Connection, table: str) -> list[int]:
    query = f"SELECT DISTINCT step FROM {table} ORDER BY step"
    return [step for (step,) in connection.execute(query)]


def has_tables(connection: sqlite3.Connection) -> bool:
    query = "SELECT count(*) FROM sqlite_master WHERE name IN ('parameters', 'histograms')"
    return connection.execute(query).fetchone()[0] == len(_WIDTHS)
