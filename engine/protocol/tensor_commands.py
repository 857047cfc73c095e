"""What the Tensors workspace asks: shapes that meet, values, storage, operations explained."""

from __future__ import annotations

from typing import Literal

from .commands import Command

# -- tensors: shapes that meet -------------------------------------------------------------------
#
# An operand is a variable's expression (`x`, `model.linear1.weight`), a number, or a shape that
# need not exist (`(8, 1, 6, 1)`). `element` is an element of the result; None or one that is not
# there is its first.


class BroadcastCommand(Command, frozen=True, kw_only=True):
    """Align two to four operands from the right -> BroadcastSnapshot. With `in_place` the result
    is written into the first."""

    handler = "shapes:broadcast"
    operands: tuple[str, ...]
    in_place: bool = False
    element: tuple[int, ...] | None = None


class ReductionCommand(Command, frozen=True, kw_only=True):
    """Which elements of `expression` fold into each of the result -> ReductionSnapshot.

    `op` is a function of torch (`reductions.OPS`); `dims` None folds all dimensions.
    """

    handler = "shapes:reduce"
    expression: str
    op: str = "sum"
    dims: tuple[int, ...] | None = None
    keepdim: bool = False
    element: tuple[int, ...] | None = None


class ProductCommand(Command, frozen=True, kw_only=True):
    """Which rows meet which columns -> ProductSnapshot. `equation` is einsum's."""

    handler = "shapes:multiply"
    operands: tuple[str, ...]
    op: Literal["matmul", "mm", "bmm", "mv", "dot", "outer", "einsum"] = "matmul"
    equation: str = ""
    element: tuple[int, ...] | None = None


class PickCommand(Command, frozen=True, kw_only=True):
    """Which elements an indexing expression picks (`x[0, :, ::2]`, `x[mask]`, `x.gather(1, i)`)
    -> PickSnapshot. Nothing is run in the console."""

    handler = "shapes:pick"
    source: str
    element: tuple[int, ...] | None = None


# -- values --------------------------------------------------------------------------------------


class ReadValuesCommand(Command, frozen=True, kw_only=True):
    """Read a window of a tensor under a slice -> ValuesSnapshot.

    `slice` is what stands between the brackets, or all of `x[0, :, ::2]`; empty for the whole.
    The window is of the table that `ValuesSnapshot` describes; at most 4,000 cells are read.
    With `picture`, what there is to paint comes along.
    """

    handler = "values:read_values"
    expression: str
    slice: str = ""
    row_start: int = 0
    row_count: int = 0
    column_start: int = 0
    column_count: int = 0
    picture: bool = False


class StatisticsCommand(Command, frozen=True, kw_only=True):
    """Count on in a tensor's elements for a moment -> StatisticsSnapshot, with how far it came.

    Ask again until all is counted; to stop, do not. With `restart`, count from the beginning.
    """

    handler = "values:statistics"
    expression: str
    slice: str = ""
    restart: bool = False


class LinesCommand(Command, frozen=True, kw_only=True):
    """Look on through the first `lines` rows of a tensor under a slice for a moment, to draw them
    over its last dimension -> LinesSnapshot, with how far it came. Ask again until all is seen.
    """

    handler = "values:lines"
    expression: str
    slice: str = ""
    lines: int = 6
    restart: bool = False


class BitsCommand(Command, frozen=True, kw_only=True):
    """Take one element apart into the bits of its dtype -> BitsSnapshot."""

    handler = "values:bits"
    expression: str
    index: tuple[int, ...]


# -- tensors: storage and aliases ----------------------------------------------------------------


class ReadStorageCommand(Command, frozen=True, kw_only=True):
    """Read `count` cells of the storage under a tensor from cell `first` on (None: from where the
    tensor starts) -> StorageSnapshot."""

    handler = "memory:read_storage"
    expression: str
    first: int | None = None
    count: int = 1024


class LocateCommand(Command, frozen=True, kw_only=True):
    """Where an element lies, or who reads a cell: one of `index` and `cell` is given
    -> LocationSnapshot."""

    handler = "memory:locate"
    expression: str
    index: tuple[int, ...] | None = None
    cell: int | None = None


class AliasesCommand(Command, frozen=True, kw_only=True):
    """Which of the console's tensors and arrays share memory, and how they came to
    -> AliasesSnapshot."""

    handler = "memory:read_aliases"


# -- tensors: operations explained ---------------------------------------------------------------


class ExplainCommand(Command, frozen=True, kw_only=True):
    """What one line, such as `y = x.T.reshape(-1)`, will give, told before it runs
    -> ExplanationSnapshot. With `run`, it is also run aside, on copies where it writes, and each
    prediction held against what torch gave. No variable changes either way."""

    handler = "explain:explain"
    source: str
    run: bool = False
