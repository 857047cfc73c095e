"""Answers about shapes: broadcasting, reductions, products, indexing.

`code` is the Python line. `shape` is the shape of its result as torch computes it; None if torch
refuses the line. `error` then has torch's own message, and its hint says it in plain words.
`element` is the element of the result that the details are about; None if there is none.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from .snapshots import Snapshot
from .values import Cells, ErrorReport

BroadcastRole = Literal["same", "stretched", "added", "conflict"]


class BroadcastDim(Struct, frozen=True):
    """Broadcasting's rule at one dimension, counted from the right (`dim` -1 is the last).

    `sizes` and `roles` have an entry per operand: its size there, None if it has no such dimension.
    `size` is the result's, None if the operands do not fit.
    """

    dim: int
    sizes: tuple[int | None, ...]
    roles: tuple[BroadcastRole, ...]
    size: int | None
    text: str


class PickPart(Struct, frozen=True):
    """One part of an index as typed, its rule, the dimensions of the source that it indexes, and
    the dimensions of the result that it makes."""

    text: str
    rule: str
    source_dims: tuple[int, ...]
    result_dims: tuple[int, ...]


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
