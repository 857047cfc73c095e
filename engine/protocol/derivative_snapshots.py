"""Derivatives of a function of the user's choice, and the check of its backward."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from .snapshots import Snapshot
from .values import Picture, TensorSummary, Value

DerivativeKind = Literal["jacobian", "hessian", "jvp", "vjp", "hvp"]


class MatrixEntry(Struct, frozen=True):
    """One entry of a derivative's matrix: how much element `output_index` of the output changes
    with element `input_index` of the input (of a Hessian: two elements of the input).

    `numeric` is the same by central differences in the same dtype.
    """

    row: int
    column: int
    output_index: tuple[int, ...]
    input_index: tuple[int, ...]
    value: float
    numeric: float


class DerivativeComparison(Struct, frozen=True):
    """A way of computing (`"numeric, float32"`) against the analytic derivative in float64: the
    largest absolute difference, and that relative to the largest entry. NaN where there is none;
    `note` says why."""

    way: str
    max_difference: float
    relative: float
    note: str = ""


class DerivativeSnapshot(Snapshot, frozen=True, kw_only=True):
    """A derivative at a point. `code` is the line of Python that computes it.

    A Jacobian (`rows` elements of the output by `columns` elements of the input, both in C order)
    or a Hessian comes as `picture` with `summary`, and `entry` of it; a product as `result` in
    its own shape, with `picture` None. `texts` are the entries in C order, as torch prints them,
    where there are few. `input` and `output` are the point and the function's value there.
    `comparisons` grow: the snapshot is sent again with each, and is `complete` at the end.
    """

    kind: DerivativeKind
    code: str
    input: Value
    output: Value
    rows: int = 0
    columns: int = 0
    picture: Picture | None = None
    summary: TensorSummary | None = None
    texts: tuple[str, ...] = ()
    entry: MatrixEntry | None = None
    result: Value | None = None
    comparisons: tuple[DerivativeComparison, ...] = ()
    complete: bool = False
    note: str = ""


class EntrySnapshot(Snapshot, frozen=True, kw_only=True):
    """The entry asked for, and its row and column in the shapes of input and output: what moves
    this output, and what this input moves."""

    entry: MatrixEntry
    of_output: Value
    of_input: Value


class CheckedPair(Struct, frozen=True):
    """The Jacobian of one output by one input, analytic and numeric, and their difference:
    pictures and texts (in C order, where there are few) of `rows` by `columns`. `worst` is the
    entry that exceeds the tolerance most, None if none does; `allowed` is the tolerance there."""

    input: int
    output: int
    rows: int
    columns: int
    analytic: Picture | None
    numeric: Picture | None
    difference: Picture | None
    analytic_texts: tuple[str, ...] = ()
    numeric_texts: tuple[str, ...] = ()
    max_difference: float = 0.0
    worst: MatrixEntry | None = None
    allowed: float = 0.0


class GradcheckSnapshot(Snapshot, frozen=True, kw_only=True):
    """torch's verdict. `message` is its own, whole, when it fails; `hint` says what to look at.
    `code` is the line of Python that asks the same."""

    ok: bool
    code: str
    message: str = ""
    hint: str = ""
    pairs: tuple[CheckedPair, ...] = ()
