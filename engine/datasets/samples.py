"""The result of a reader: a data set before it is split and made ready."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from ..project.document import Column
from ..system.errors import LabError
from .stored.rows import StoredRows


class DataProblem(LabError):
    """A data set cannot be used; the message names the file, the row or the parameter at fault."""


@dataclass(frozen=True)
class Source:
    """A column of a table: its elements of a sample are `start` to `stop` - 1. A category has one
    for each of its `texts`, 1 for the sample's own and 0 for the others; a number has no texts."""

    name: str
    start: int
    stop: int
    texts: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Samples:
    """Samples with their targets, in the order of their source.

    `x` is float32 (N, *sample_shape), float64 where float32 does not have all of its numbers, or
    int64 for ids of characters; in a table NaN stands for a missing value. Large samples may be
    left in their files (`stored`). `y` is int64 (N,) for labels from 0 to C - 1, float32 or float64
    (N, T) for numbers, int64 (N, L) for the next characters: all is made float32 last. `classes`
    names the classes or characters, and is empty for numbers; `targets` names numbers. `sources`
    are the features of a table, `roles` all columns of its file with what each is used for. The
    last `held_out` samples are a part for testing that the source itself has. `skipped` says what
    was left out. Samples of different `lengths` (N,) are padded, `on_the_left` or behind, with the
    `padding`.
    """

    x: np.ndarray | StoredRows
    y: np.ndarray
    classes: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    sources: tuple[Source, ...] = ()
    roles: tuple[tuple[str, Column], ...] = ()
    held_out: int = 0
    skipped: tuple[str, ...] = ()
    lengths: np.ndarray | None = None
    on_the_left: bool = False
    padding: float = 0.0


def number_sources(names: Iterable[str]) -> tuple[Source, ...]:
    """The columns of a table that has numbers only."""
    return tuple(Source(str(name), i, i + 1) for i, name in enumerate(names))
