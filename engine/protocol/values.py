"""Plain values that snapshots are made of: summaries, pictures, failures. No torch."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

Dim = int | str
"""A dimension: a number of elements, or the name of a symbolic one (`"B"`, `"2B"`)."""


class TensorSpec(Struct, frozen=True, gc=False):
    """Shape and dtype of a tensor that need not exist, e.g. `("B", 10)`, `"float32"`."""

    shape: tuple[Dim, ...]
    dtype: str


class Picture(Struct, frozen=True):
    """Numbers to paint: `data` is little-endian float32, C order, of shape `shape`.

    `shape` is (rows, columns) for a heat map and (images, rows, columns) for an image grid.
    `source_shape` is the tensor's own shape; when `sampled` is true, the picture holds a part or
    a thinned-out copy of it. Senders keep a picture under 64 KiB.
    """

    shape: tuple[int, ...]
    data: bytes
    source_shape: tuple[int, ...]
    sampled: bool = False


class TensorSummary(Struct, frozen=True):
    """A live tensor in numbers. The statistics are over finite elements; None where undefined
    (empty, complex, no data). `size_bytes` is numel * itemsize, `std` the sample standard
    deviation, `norm` the 2-norm. A ragged dimension of a nested tensor is -1. `note` says why
    data could not be read, or what is special about it; empty for ordinary tensors."""

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
    """A tensor as a view shows it. `values` are nested-list text rows for small tensors
    (at most 64 elements, as torch prints them); empty otherwise."""

    label: str
    summary: TensorSummary
    picture: Picture | None = None
    text: str = ""


class FailedOperand(Struct, frozen=True):
    """A tensor at an operation that torch refused, or what was asked of it: a shape, an index
    (`dtype` and `device` are then empty).

    `cells` are its sizes, or what else stands at each dimension, and `columns` the column each
    stands in, so that what should agree stands under each other. `failing` numbers the cells that
    do not fit; `wrong` names what else does not. `note` adds to the shape (`12 elements`).
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
    """The operands of a failed operation, placed as it reads them: aligned from the right for
    broadcasting, row against column for products, and so on. `headings` has a text for each
    column. `text` tells in a sentence what is marked; with kind "other" nothing is."""

    kind: FailureKind
    operation: str
    operands: tuple[FailedOperand, ...]
    headings: tuple[str, ...] = ()
    text: str = ""


class ErrorReport(Struct, frozen=True):
    """A Python exception: its type's name, its message, what to try, and where it arose.

    `line` is 1-based in the user's own source; None when it did not arise there. `operands` are
    those of the operation of torch that raised it, if one did.
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
    """A window of a tensor of shape `shape`: per dimension `size` elements from `start` on.

    `texts` are its elements in C order, as torch prints them (4 digits); empty where there is no
    data to read.
    """

    shape: tuple[int, ...]
    start: tuple[int, ...]
    size: tuple[int, ...]
    texts: tuple[str, ...] = ()


BroadcastRole = Literal["same", "stretched", "added", "conflict"]


class BroadcastDim(Struct, frozen=True):
    """Broadcasting's rule at one dimension, counted from the right (`dim` -1 is the last).

    `sizes` and `roles` have an entry per operand: its size there, None where it has no such
    dimension. `size` is the result's, None where the operands do not fit.
    """

    dim: int
    sizes: tuple[int | None, ...]
    roles: tuple[BroadcastRole, ...]
    size: int | None
    text: str


class PickPart(Struct, frozen=True):
    """One part of an index as typed, what it does, the dimensions of the source it stands at and
    the dimensions of the result it makes."""

    text: str
    rule: str
    source_dims: tuple[int, ...]
    result_dims: tuple[int, ...]
