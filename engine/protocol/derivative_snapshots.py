"""Snapshots of derivatives of a function of the user's, and of gradcheck."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from .snapshots import Snapshot
from .values import Picture, TensorSummary, Value

DerivativeKind = Literal["jacobian", "hessian", "jvp", "vjp", "hvp"]


class MatrixEntry(Struct, frozen=True):
    """One entry of a Jacobian or Hessian: how much element `output_index` of the output changes
    with element `input_index` of the input (of a Hessian: two elements of the input).

    `numeric` is the entry by central differences in the same dtype.
    """

    row: int
    column: int
    output_index: tuple[int, ...]
    input_index: tuple[int, ...]
    value: float
    numeric: float


class DerivativeComparison(Struct, frozen=True):
    """Another way to compute the derivative (`"numeric, float32"`), compared with the analytic
    derivative in float64: the largest absolute difference, also relative to the largest entry. NaN
    if there is none; `note` says why."""

    way: str
    max_difference: float
    relative: float
    note: str = ""


class DerivativeSnapshot(Snapshot, frozen=True, kw_only=True):
    """A derivative at a point. `code` is the line of Python that computes it.

    A Jacobian (`rows` elements of the output by `columns` elements of the input, both in C order)
    or a Hessian has `picture`, `summary` and one `entry`. A product has `result`, in its own shape.
    `texts` are the entries in C order as torch prints them, if there are few. `input` and `output`
    are the point and the function's value there. The snapshot is sent again with each new one of
    `comparisons`; the last is `complete`.
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
    """An entry of the matrix. `of_output` is its row, in the input's shape: how the output element
    depends on each input element. `of_input` is its column, in the output's shape."""

    entry: MatrixEntry
    of_output: Value
    of_input: Value


class CheckedPair(Struct, frozen=True):
    """The Jacobian of one output by one input, analytic and numeric, and their difference: as
    pictures, and as texts (in C order) if there are few entries. `worst` is the entry that exceeds
    the tolerance most, None if none does; `allowed` is the tolerance there."""

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
    """The result of torch's gradcheck. `message` is torch's whole message if the check fails;
    `hint` says what to look at. `code` is the line of Python that runs the same check."""

    ok: bool
    code: str
    message: str = ""
    hint: str = ""
    pairs: tuple[CheckedPair, ...] = ()
