"""Reading how the parameters of a run moved, also while it is written."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from math import nan
from pathlib import Path

from .metrics import marks
from .parameter_figures import Histogram, Kind, ParameterRow, has_tables, spread, steps_of
from .reading import opened

Source = Path | sqlite3.Connection
"""The file of a run, or the tables of a loop."""


def read_rows(source: Source, limit: int, as_copy: bool = False) -> list[ParameterRow]:
    """The rows of at most `limit` steps, by step and then in the model's order; none before the
    first look. Raises RunProblem."""
    with _looked(source, as_copy) as connection:
        if connection is None:
            return []
        chosen = spread(steps_of(connection, "parameters"), limit)
        found = connection.execute(
            f"SELECT * FROM parameters WHERE step IN ({marks(len(chosen))}) ORDER BY step, place",
            chosen,
        )
        return [
            ParameterRow(step, place, name, *(nan if n is None else n for n in numbers))
            for step, place, name, *numbers in found
        ]


def names(source: Source, as_copy: bool = False) -> list[str]:
    """The parameters of the newest looks, which may be at those of several optimizers in turn, in
    the model's order. Raises RunProblem."""
    with _looked(source, as_copy) as connection:
        if connection is None:
            return []
        newest = "SELECT DISTINCT step FROM parameters ORDER BY step DESC LIMIT 16"
        query = (
            f"SELECT name, min(place) AS first FROM parameters WHERE step IN ({newest})"
            " GROUP BY name ORDER BY min(step), first"
        )
        return [name for name, _ in connection.execute(query)]


def read_histograms(
    source: Source, name: str, kind: Kind, limit: int, as_copy: bool = False
) -> list[Histogram]:
    """The histograms of one parameter at `limit` steps at the most, in order. Raises RunProblem."""
    with _looked(source, as_copy) as connection:
        if connection is None:
            return []
        of_one = "FROM histograms WHERE name = ? AND kind = ?"
        query = f"SELECT step {of_one} ORDER BY step"
        chosen = spread([step for (step,) in connection.execute(query, (name, kind))], limit)
        found = connection.execute(
            f"SELECT * {of_one} AND step IN ({marks(len(chosen))}) ORDER BY step",
            (name, kind, *chosen),
        )
        return [Histogram(*row) for row in found]


@contextmanager
def _looked(source: Source, as_copy: bool) -> Iterator[sqlite3.Connection | None]:
    """The file; None if there is no look in it."""
    if isinstance(source, sqlite3.Connection):
        yield source
        return
    if not source.is_file():
        yield None  # nothing of the run is written yet
        return
    with opened(source, as_copy) as (connection, _):
        yield connection if has_tables(connection) else None
