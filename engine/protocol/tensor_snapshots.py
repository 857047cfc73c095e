"""Answers of the Tensors workspace: values, storage, sharing, shapes that meet, predictions."""

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

    `strides` are each operand's in elements once stretched (0: one element stands for all), empty
    for a failed one. `fails_at` is the dimension (counted from the right) at which torch gives up,
    0 where all fit. `reads` is the element of each operand that `element` is made of. `result`
    holds the operands' sum where they have numbers.
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

    `reads` gives for each dimension of the source the index that `element` reads, None for all of
    them: `count` elements, of which `terms` are the first. `winner` is the source element that a
    maximum or minimum found, where it is one element.
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
    """A product as einsum writes it: `letters` names each operand's dimensions, `result_letters`
    the result's. `conflicts` are letters whose sizes differ. Letters that are not in the result
    are summed over.

    `reads` gives for each operand and dimension the index that `element` reads, None for all;
    `terms` are the first of its `count` products, `value` their sum.
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
    """`picked` says for each cell of `source`, in order, how often it was picked. `reads` is the
    source's element that `element` comes from. `is_view` is whether the result shares memory.

    Of a line that writes (`write`: "in place", or "copy" for one that returns a new tensor)
    `result` are the values written, named `value`, and `picked` counts the writes to each cell;
    `element` is written to `reads`, `others` are more values that go there too. `after` is the
    source, or the copy, once written, in the window of `source`.
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
    """One dimension of a tensor under a slice: `count` of its `size` elements are shown, those at
    start, start + step, ... A `fixed` one is indexed by an integer and leaves no dimension."""

    size: int
    start: int
    step: int
    count: int
    fixed: bool = False


class ValuesSnapshot(Snapshot, frozen=True, kw_only=True):
    """A window of a tensor under a slice, as a table of `rows` x `columns`.

    The columns are the last dimension that the slice leaves, the rows all others, counted through
    in order. `cells` holds texts, row by row from (`row_start`, `column_start`) on, each the
    shortest that reads back to the same element; empty where a ragged tensor has no element.
    `picture`, if asked for, shows every `picture_step`-th (row, column) of the last two
    dimensions. `edit` says how an element can be assigned to: not at all (empty), plainly, or
    under `torch.no_grad()`. `note` is as in TensorSummary.
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
    """The statistics of the first `done` of `total` elements (in memory order) of a tensor under
    a slice, computed in float64 over the finite ones; None where undefined. `std` is the sample
    standard deviation. Of a complex tensor they are those of the `magnitudes`."""

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

    `low` and `high` are the smallest and largest finite number of each bin: little-endian float32,
    C order, (lines, bins); NaN where there is none, or none was seen yet. `low_at` and `high_at`
    are the columns where these stand, as little-endian int64. `done` of `total` elements have been
    looked at; `not_finite` of these are NaN or infinite. Of a complex tensor they are magnitudes.
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
    `meaning` says what they stand for (`127 - bias 127 = 0`)."""

    name: str
    kind: Literal["sign", "exponent", "mantissa", "integer"]
    bits: str
    meaning: str


class BitsPart(Struct, frozen=True):
    """One number: an element, or the real or imaginary part of one (`name`). `formula` writes
    out how the fields give the value; `exact` is that value in full, in decimal."""

    name: str
    fields: tuple[BitField, ...]
    formula: str
    exact: str


class BitsSnapshot(Snapshot, frozen=True, kw_only=True):
    """One element in bits. `text` is as in ValuesSnapshot; `note` says why there are no parts, or
    what else belongs to the value (a quantised tensor's scale)."""

    expression: str
    index: tuple[int, ...]
    dtype: str
    text: str
    parts: tuple[BitsPart, ...] = ()
    note: str = ""


# -- tensors: storage and aliases ----------------------------------------------------------------


class Contiguity(Struct, frozen=True):
    """Whether a tensor lies row by row in its storage. `breaking_dim` is the first dimension from
    the right whose stride is not the `expected` one; `copy_bytes` is what `.contiguous()` would
    copy (0 when it returns the tensor itself)."""

    is_contiguous: bool
    expected: tuple[int, ...]
    text: str
    breaking_dim: int | None = None
    copy_bytes: int = 0
    channels_last: bool = False


class WrittenBy(Struct, frozen=True):
    """A line of the console that wrote or made a tensor: the operation, the cell's name, the
    1-based line in it and its text. `op` is empty where it was not seen (backward's writes)."""

    op: str
    cell: str
    line: int | None = None
    text: str = ""


class StorageSnapshot(Snapshot, frozen=True, kw_only=True):
    """A window of the storage under the tensor `expression`, in cells of its own element size.

    `strides` and `offset` are in elements. `values`, `readers` and `positions` have an entry for
    each cell from `first` on: what it holds (empty where there is no data to read), how many of
    the tensor's elements read it (0: a gap; counted up to 99), and the number, row by row, of one
    of these (-1). `storage` is the number of the memory as in `Variable`. Where `cells` is
    None the tensor has no storage to show: `note` says why.
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
    """A tensor or NumPy array that the console's variables lead to (`model[0].weight`, `xs[1]`),
    and its elements that read a cell; `more` when not all are named."""

    expression: str
    elements: tuple[tuple[int, ...], ...]
    more: bool = False
    kind: Literal["tensor", "numpy"] = "tensor"


class LocationSnapshot(Snapshot, frozen=True, kw_only=True):
    """A cell of the storage under `expression`, an element that lies there (None for a gap), and
    all that read any of its bytes, `expression` first. `note` says what was not looked at."""

    expression: str
    index: tuple[int, ...] | None
    cell: int
    readers: tuple[CellReader, ...]
    note: str = ""


class StorageNode(Struct, frozen=True):
    """A piece of memory with its number as in `Variable`. `version` is shared by all tensors on
    it (None where torch counts none); NumPy's writes do not count."""

    storage: int
    size_bytes: int
    device: str
    version: int | None = None
    written_by: WrittenBy | None = None


class AliasNode(Struct, frozen=True):
    """A tensor or array on a piece of memory. `names` are its variables: several for one object
    (`y = x`), none for a base that only its views still hold.

    `kind`: "base" (owns the storage), "view", "detached" (shares memory and version, not the
    graph), "shared" (shares memory by another way: `.data`, a Parameter), "numpy". `parent` is
    the number, in `AliasesSnapshot.tensors`, of the tensor that it was made from, by `op`; None
    hangs it on the storage itself. `root` is that of its `_base`.
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
    """Memory and who shares it, in the order the variables were made; parents come before their
    children. What is inside a variable is there when it shares memory. `left_out` tensors did not
    fit; `note` says what was not looked at."""

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
    """A prediction beside what torch gave."""

    name: str
    predicted: str
    actual: str
    agrees: bool


class ExplainedStep(Struct, frozen=True):
    """One operation of a line, with its prediction.

    `kind`: "view" (a new tensor over an operand's memory), "same" (the operand itself), "copy"
    (memory of its own), "in place" (the first operand, changed), "refused" (torch raises:
    `refusal` says why and `hint` what usually helps). `why` tells the kind in a sentence,
    `reasoning` is torch's rule on these numbers. `operands` and `shares_with` are texts of the
    line; `layouts` are the operands' layouts. Of `result_count` results the first are in
    `results`. `many`: torch gives a tuple. `facts` is empty until the step has run; then `actual`
    are the results that torch gave, or `error` is what it raised, whole. `failed` draws the
    operands of a step that was refused.
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
    """The operations of `source`, innermost first; the last may be refused, then none follow.

    `problem` says what keeps the line from being read or run, `note` that there is no rule for
    what it does; `hint` what to try. `ran`: facts were asked for and are there.
    """

    source: str
    steps: tuple[ExplainedStep, ...] = ()
    problem: str = ""
    note: str = ""
    hint: str = ""
    ran: bool = False
