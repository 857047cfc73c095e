"""Snapshots of the Tensors workspace: shapes, values, storages, aliases, predictions."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from .snapshots import Snapshot
from .values import BroadcastDim, Cells, ErrorReport, FailedOperands, PickPart, Picture

# -- tensors: shapes that meet -------------------------------------------------------------------
#
# `code` is the Python line. `shape` is the result's as torch makes it, None when it refuses;
# `error` is then torch's own message, and its hint says it in plain words. `element` is the
# element of the result that the details are about, None when there is none.


class BroadcastSnapshot(Snapshot, frozen=True, kw_only=True):
    """`dims` run from the last dimension to the first, the order in which the rule is applied.

    `strides` are each operand's strides after stretching, in elements (0: one element stands for
    all); empty if broadcasting fails. `fails_at` is the dimension (counted from the right) where it
    fails, 0 if it does not. `reads` is the element of each operand that `element` is computed from.
    `result` holds the operands' sum if they have numbers.
    """

    operands: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]
    in_place: bool
    code: str
    dims: tuple[BroadcastDim, ...]
    shape: tuple[int, ...] | None
    strides: tuple[tuple[int, ...], ...]
    cells: tuple[Cells, ...]
    result: Cells | None
    element: tuple[int, ...] | None
    reads: tuple[tuple[int, ...], ...]
    fails_at: int = 0
    error: ErrorReport | None = None


class ReductionSnapshot(Snapshot, frozen=True, kw_only=True):
    """`folded` are the dimensions that disappear (or become 1 with keepdim), counted from 0.

    `reads` gives for each dimension of the source the index that `element` reads, None for all
    indices: `count` elements, of which `terms` are the first. `winner` is the source element that a
    maximum or minimum has found, if it is one element.
    """

    expression: str
    op: str
    code: str
    source_shape: tuple[int, ...]
    folded: tuple[int, ...]
    shape: tuple[int, ...] | None = None
    dtype: str = ""
    source: Cells
    result: Cells | None = None
    element: tuple[int, ...] | None = None
    reads: tuple[int | None, ...] = ()
    count: int = 0
    terms: tuple[str, ...] = ()
    value: str = ""
    winner: tuple[int, ...] | None = None
    note: str = ""
    error: ErrorReport | None = None


class ProductSnapshot(Snapshot, frozen=True, kw_only=True):
    """A product written as an einsum: `letters` names each operand's dimensions, `result_letters`
    the result's. Letters that are not in the result are summed over. `conflicts` are the letters
    whose sizes differ.

    `reads` gives for each operand and dimension the index that `element` reads, None for all
    indices; `terms` are the first of its `count` products, `value` their sum.
    """

    op: str
    operands: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]
    code: str
    equation: str
    letters: tuple[str, ...]
    result_letters: str
    conflicts: str
    shape: tuple[int, ...] | None = None
    cells: tuple[Cells, ...]
    result: Cells | None = None
    element: tuple[int, ...] | None = None
    reads: tuple[tuple[int | None, ...], ...] = ()
    count: int = 0
    terms: tuple[str, ...] = ()
    value: str = ""
    note: str = ""
    error: ErrorReport | None = None


class PickSnapshot(Snapshot, frozen=True, kw_only=True):
    """`picked` says how often each cell of `source` is picked, in order. `reads` is the element of
    the source that `element` comes from. `is_view`: the result shares the source's memory.

    For a line that writes, `write` is "in place", or "copy" if it returns a new tensor. `result`
    are then the values written, named `value`, and `picked` counts the writes to each cell.
    `element` is written to `reads`; `others` are more values written there. `after` is the source,
    or the copy, after the write, in the window of `source`.
    """

    code: str
    expression: str
    source_shape: tuple[int, ...]
    parts: tuple[PickPart, ...] = ()
    shape: tuple[int, ...] | None = None
    is_view: bool = False
    why: str = ""
    source: Cells
    picked: tuple[int, ...]
    result: Cells | None = None
    element: tuple[int, ...] | None = None
    reads: tuple[int, ...] | None = None
    write: Literal["", "in place", "copy"] = ""
    value: str = ""
    others: tuple[tuple[int, ...], ...] = ()
    after: Cells | None = None
    error: ErrorReport | None = None


# -- values --------------------------------------------------------------------------------------


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

    `low` and `high` are the smallest and largest finite number in each bin: little-endian float32,
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


# -- tensors: storage and aliases ----------------------------------------------------------------


class Contiguity(Struct, frozen=True):
    """Whether a tensor's elements are in row-by-row order in its storage. `breaking_dim` is the
    first dimension from the right whose stride is not the `expected` one; `copy_bytes` is what
    `.contiguous()` would copy (0 if it returns the tensor itself)."""

    is_contiguous: bool
    expected: tuple[int, ...]
    text: str
    breaking_dim: int | None = None
    copy_bytes: int = 0
    channels_last: bool = False


class WrittenBy(Struct, frozen=True):
    """A line of the console that wrote or made a tensor: the operation, the cell's name, the
    1-based line in it and its text. `op` is empty if it was not seen (as for writes by
    backward)."""

    op: str
    cell: str
    line: int | None = None
    text: str = ""


class StorageSnapshot(Snapshot, frozen=True, kw_only=True):
    """A window of the storage of the tensor `expression`, in cells of its own element size.

    `strides` and `offset` are in elements. `values`, `readers` and `positions` have an entry for
    each cell from `first` on: its value (empty if it cannot be read), how many of the tensor's
    elements read it (0: a gap; counted up to 99), and the number of one of these elements, row by
    row (-1: none). `storage` is the storage's number as in `Variable`. If `cells` is None, the
    tensor has no storage to show, and `note` says why.
    """

    expression: str
    shape: tuple[int, ...]
    dtype: str
    device: str
    strides: tuple[int, ...] = ()
    offset: int = 0
    element_bytes: int = 0
    storage: int | None = None
    storage_bytes: int = 0
    cells: int | None = None
    first: int = 0
    values: tuple[str, ...] = ()
    readers: tuple[int, ...] = ()
    positions: tuple[int, ...] = ()
    contiguity: Contiguity | None = None
    version: int | None = None
    written_by: WrittenBy | None = None
    note: str = ""


class CellReader(Struct, frozen=True):
    """A tensor or NumPy array that the console's variables hold (`model[0].weight`, `xs[1]`), and
    its elements that read a cell. `more`: not all of them are listed."""

    expression: str
    elements: tuple[tuple[int, ...], ...]
    more: bool = False
    kind: Literal["tensor", "numpy"] = "tensor"


class LocationSnapshot(Snapshot, frozen=True, kw_only=True):
    """A cell of the storage of `expression`, an element there (None for a gap), and all that read
    any byte of the cell, `expression` first. `note` says what was not searched."""

    expression: str
    index: tuple[int, ...] | None
    cell: int
    readers: tuple[CellReader, ...]
    note: str = ""


class StorageNode(Struct, frozen=True):
    """A storage with its number as in `Variable`. All its tensors share `version` (None if torch
    counts none); writes by NumPy are not counted."""

    storage: int
    size_bytes: int
    device: str
    version: int | None = None
    written_by: WrittenBy | None = None


class AliasNode(Struct, frozen=True):
    """A tensor or array on a storage. `names` are its variables: several for one object (`y = x`),
    none for a base that only its views keep alive.

    `kind`: "base" (owns the storage), "view", "detached" (shares memory and version, not the
    graph), "shared" (shares memory in another way: `.data`, a Parameter), "numpy". `parent` is the
    number, in `AliasesSnapshot.tensors`, of the tensor that it was made from by `op`; None if it
    was made from the storage itself. `root` is the number of its `_base`.
    """

    names: tuple[str, ...]
    kind: Literal["base", "view", "detached", "shared", "numpy"]
    storage: int
    shape: tuple[int, ...]
    dtype: str
    strides: tuple[int, ...]
    offset: int
    parent: int | None = None
    root: int | None = None
    op: str = ""
    made_by: WrittenBy | None = None
    requires_grad: bool = False


class AliasesSnapshot(Snapshot, frozen=True, kw_only=True):
    """Storages and their tensors, in the order the variables were made; parents come before their
    children. Tensors inside other variables are listed if they share memory. `left_out` tensors did
    not fit; `note` says what was not searched."""

    storages: tuple[StorageNode, ...]
    tensors: tuple[AliasNode, ...]
    left_out: int = 0
    note: str = ""


# -- tensors: operations explained ---------------------------------------------------------------


class LayoutSpec(Struct, frozen=True):
    """How a tensor lies in its storage: `stride` and `storage_offset` are in elements."""

    shape: tuple[int, ...]
    stride: tuple[int, ...]
    storage_offset: int
    dtype: str
    device: str


class FactRow(Struct, frozen=True):
    """A prediction and torch's result."""

    name: str
    predicted: str
    actual: str
    agrees: bool


class ExplainedStep(Struct, frozen=True):
    """One operation of a line, with its prediction.

    `kind`: "view" (a new tensor on an operand's memory), "same" (the operand itself), "copy"
    (memory of its own), "in place" (the first operand, changed), "refused" (torch raises: `refusal`
    says why, `hint` what usually helps). `why` explains the kind in a sentence; `reasoning` is
    torch's rule with these numbers. `operands` and `shares_with` are parts of the line's text;
    `layouts` are the operands' layouts. `results` has the first of `result_count` results. `many`:
    torch returns a tuple. `facts` is empty until the step has run; then `actual` are torch's
    results, or `error` is its whole message. `failed` has the operands of a refused step.
    """

    code: str
    operation: str
    kind: Literal["view", "same", "copy", "in place", "refused"]
    why: str = ""
    reasoning: tuple[str, ...] = ()
    operands: tuple[str, ...] = ()
    layouts: tuple[LayoutSpec, ...] = ()
    results: tuple[LayoutSpec, ...] = ()
    result_count: int = 0
    many: bool = False
    shares_with: tuple[str, ...] = ()
    refusal: str = ""
    hint: str = ""
    facts: tuple[FactRow, ...] = ()
    actual: tuple[LayoutSpec, ...] = ()
    error: str = ""
    failed: FailedOperands | None = None


class ExplanationSnapshot(Snapshot, frozen=True, kw_only=True):
    """The operations of `source`, innermost first; after a refused one none follow.

    `problem` says why the line cannot be read or run, `note` that there is no rule for one of its
    operations, `hint` what to try. `ran`: the line was run, and the steps have facts.
    """

    source: str
    steps: tuple[ExplainedStep, ...] = ()
    problem: str = ""
    note: str = ""
    hint: str = ""
    ran: bool = False
