"""Answers about a tensor's numbers: a window of them, statistics, lines, bits."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from .snapshots import Snapshot
from .values import Picture


class DimCut(Struct, frozen=True):
    """One dimension of a tensor under a slice. Of its `size` elements `count` are shown: start,
    start + step, ... A `fixed` dimension is indexed by an integer, and the result does not have
    it."""

    size: int
    start: int
    step: int
    count: int
    fixed: bool = False


class ValuesSnapshot(Snapshot, frozen=True, kw_only=True):
    """A window of a tensor under a slice, as a table of `rows` x `columns`.

    The columns are the last dimension of the slice; the rows are all other dimensions, in C order.
    `cells` holds texts, row by row from (`row_start`, `column_start`) on. Each is the shortest text
    that reads back as the same element; empty where a ragged tensor has none. `picture`, if asked
    for, shows every `picture_step`-th (row, column) of the last two dimensions. `edit` says how an
    element can be assigned: not at all (empty), by plain assignment, or under `torch.no_grad()`.
    `note` is as in TensorSummary.
    """

    expression: str
    slice: str
    dims: tuple[DimCut, ...]
    dtype: str
    device: str
    rows: int
    columns: int
    row_start: int = 0
    column_start: int = 0
    cells: tuple[tuple[str, ...], ...] = ()
    picture: Picture | None = None
    picture_step: tuple[int, int] = (1, 1)
    version: int | None = None
    edit: Literal["", "assign", "no_grad"] = ""
    note: str = ""


class Histogram(Struct, frozen=True):
    """`counts[i]` finite elements x have low + i * width <= x < low + (i + 1) * width."""

    low: float
    width: float
    counts: tuple[int, ...]


class StatisticsSnapshot(Snapshot, frozen=True, kw_only=True):
    """Statistics of the first `done` of `total` elements (in memory order) of a tensor under a
    slice, computed in float64 over the finite ones; None where undefined. `std` is the sample
    standard deviation. With `magnitudes` the tensor is complex, and the statistics are of the
    absolute values."""

    expression: str
    slice: str
    done: int
    total: int
    minimum: float | None = None
    maximum: float | None = None
    mean: float | None = None
    std: float | None = None
    zeros: int = 0
    nans: int = 0
    positive_infs: int = 0
    negative_infs: int = 0
    magnitudes: bool = False
    histogram: Histogram | None = None
    note: str = ""


class LinesSnapshot(Snapshot, frozen=True, kw_only=True):
    """The first `lines` of `rows` rows of a tensor under a slice (rows as in ValuesSnapshot), each
    in bins of `bin_columns` neighbouring columns.

    `low` and `high` are the smallest and largest finite number in each bin: little-endian float64,
    C order, (lines, bins); NaN if there is none, or none was read yet. `low_at` and `high_at` are
    their columns, as little-endian int64. `done` of `total` elements have been read; `not_finite`
    of these are NaN or infinite. For a complex tensor the numbers are absolute values.
    """

    expression: str
    slice: str
    rows: int
    columns: int
    lines: int
    bin_columns: int
    low: bytes
    high: bytes
    low_at: bytes
    high_at: bytes
    done: int
    total: int
    not_finite: int = 0
    note: str = ""


class BitField(Struct, frozen=True):
    """Neighbouring bits with one meaning, most significant first. `kind` decides their colour,
    `meaning` is what they stand for (`127 - bias 127 = 0`)."""

    name: str
    kind: Literal["sign", "exponent", "mantissa", "integer"]
    bits: str
    meaning: str


class BitsPart(Struct, frozen=True):
    """One number: an element, or its real or imaginary part (`name`). `formula` shows how the
    fields give the value; `exact` is that value in full, in decimal."""

    name: str
    fields: tuple[BitField, ...]
    formula: str
    exact: str


class BitsSnapshot(Snapshot, frozen=True, kw_only=True):
    """One element in bits. `text` is as in ValuesSnapshot; `note` says why there are no parts, or
    what else the value depends on (a quantised tensor's scale)."""

    expression: str
    index: tuple[int, ...]
    dtype: str
    text: str
    parts: tuple[BitsPart, ...] = ()
    note: str = ""
