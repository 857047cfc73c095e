"""Plain values that snapshots consist of: summaries, pictures, failures. No torch."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from msgspec import Struct

Dim = int | str
"""A dimension: a number of elements, or a symbolic name (`"B"`, `"2B"`)."""


def shape_text(shape: Iterable[object]) -> str:
    """A shape as Python writes a tuple: `(B, 3, 8, 8)`, `(5,)`, `()` for a scalar."""
    dims = [str(dim) for dim in shape]
    return f"({', '.join(dims)}{',' if len(dims) == 1 else ''})"


class TensorSpec(Struct, frozen=True, gc=False):
    """Shape and dtype of a tensor that need not exist, e.g. `("B", 10)`, `"float32"`."""

    shape: tuple[Dim, ...]
    dtype: str


class Picture(Struct, frozen=True):
    """Numbers to paint: `data` is little-endian float32, in C order, of shape `shape`.

    `shape` is (rows, columns) for a heat map and (images, rows, columns) for an image grid.
    `source_shape` is the tensor's own shape; with `sampled`, the picture shows only some of its
    elements. A picture must stay under 64 KiB.
    """

    shape: tuple[int, ...]
    data: bytes
    source_shape: tuple[int, ...]
    sampled: bool = False


class TensorSummary(Struct, frozen=True):
    """Statistics of a live tensor, over its finite elements; None where undefined (empty, complex,
    no data). `size_bytes` is numel * itemsize, `std` the sample standard deviation, `norm` the
    2-norm. A ragged dimension of a nested tensor is -1. `note` says why the data cannot be read, or
    what is special about it; empty for ordinary tensors."""

    shape: tuple[int, ...]
    dtype: str
    device: str
    size_bytes: int
    minimum: float | None = None
    maximum: float | None = None
    mean: float | None = None
    std: float | None = None
    norm: float | None = None
    zeros: int = 0
    nans: int = 0
    infs: int = 0
    note: str = ""


class Value(Struct, frozen=True):
    """A tensor as a view shows it. `text` has the elements of a small tensor (at most 64) as torch
    prints them; empty otherwise."""

    label: str
    summary: TensorSummary
    picture: Picture | None = None
    text: str = ""


class FailedOperand(Struct, frozen=True):
    """An operand of an operation that torch refused: a tensor, or a shape or index that was asked
    for (`dtype` and `device` are then empty).

    `cells` are its sizes, or what else is at each dimension. `columns` is the column of each cell,
    so that cells that should agree are under each other. `failing` are the indices of the cells
    that do not fit; `wrong` names the other fields that do not. `note` adds to the shape (`12
    elements`).
    """

    text: str
    cells: tuple[Dim, ...] = ()
    columns: tuple[int, ...] = ()
    failing: tuple[int, ...] = ()
    dtype: str = ""
    device: str = ""
    wrong: tuple[Literal["dtype", "device", "note"], ...] = ()
    note: str = ""


FailureKind = Literal[
    "broadcast", "product", "join", "elements", "index", "dimension", "dtype", "device", "other"
]


class FailedOperands(Struct, frozen=True):
    """The operands of a failed operation, aligned as the operation reads them: from the right for
    broadcasting, row against column for products, and so on. `headings` has a text for each column.
    `text` says in a sentence what does not fit; with kind "other" nothing is marked."""

    kind: FailureKind
    operation: str
    operands: tuple[FailedOperand, ...]
    headings: tuple[str, ...] = ()
    text: str = ""


class ErrorReport(Struct, frozen=True):
    """A Python exception: the name of its type, its message, what to try, and where it was raised.

    `line` is the 1-based line of the user's own source, None if it was raised elsewhere. `operands`
    are those of the torch operation that raised it, if one did.
    """

    type: str
    message: str
    hint: str = ""
    line: int | None = None
    traceback: str = ""
    operands: FailedOperands | None = None


class Device(Struct, frozen=True):
    """A device torch can use: `name` as torch spells it (`"cuda:0"`), `title` for people."""

    name: str
    title: str
    memory_bytes: int | None = None


class Cells(Struct, frozen=True):
    """A window of a tensor of shape `shape`: for each dimension, `size` elements from `start` on.

    `texts` are its elements in C order, as torch prints them (4 digits); empty if there is no data.
    """

    shape: tuple[int, ...]
    start: tuple[int, ...]
    size: tuple[int, ...]
    texts: tuple[str, ...] = ()
