"""Commands of the Tensors workspace: shapes, values, storages, operations explained."""

from __future__ import annotations

from typing import Literal

from .commands import Command

# -- tensors: shapes that meet -------------------------------------------------------------------
#
# An operand is a variable's expression (`x`, `model.linear1.weight`), a number, or a shape that
# need not exist (`(8, 1, 6, 1)`). `element` is an element of the result; None or one that is not
# there is its first.


class BroadcastCommand(Command, frozen=True, kw_only=True):
    """Broadcast two to four operands -> BroadcastSnapshot. With `in_place` the result is written
    into the first operand."""

    handler = "shapes:broadcast"
    while_running = True
    operands: tuple[str, ...]
    in_place: bool = False
    element: tuple[int, ...] | None = None


class ReductionCommand(Command, frozen=True, kw_only=True):
    """Show which elements of `expression` each element of the result is computed from ->
    ReductionSnapshot.

    `op` is a function of torch (`reductions.OPS`); with `dims` None all dimensions are reduced.
    """

    handler = "shapes:reduce"
    while_running = True
    expression: str
    op: str = "sum"
    dims: tuple[int, ...] | None = None
    keepdim: bool = False
    element: tuple[int, ...] | None = None


class ProductCommand(Command, frozen=True, kw_only=True):
    """Show which rows and columns each element of a product is computed from -> ProductSnapshot.
    `equation` is einsum's."""

    handler = "shapes:multiply"
    while_running = True
    operands: tuple[str, ...]
    op: Literal["matmul", "mm", "bmm", "mv", "dot", "outer", "einsum"] = "matmul"
    equation: str = ""
    element: tuple[int, ...] | None = None


class PickCommand(Command, frozen=True, kw_only=True):
    """Show which elements an indexing expression picks (`x[0, :, ::2]`, `x[mask]`, `x.gather(1,
    i)`) -> PickSnapshot. Nothing runs in the console."""

    handler = "shapes:pick"
    while_running = True
    source: str
    element: tuple[int, ...] | None = None


# -- values --------------------------------------------------------------------------------------


class ReadValuesCommand(Command, frozen=True, kw_only=True):
    """Read a window of a tensor under a slice -> ValuesSnapshot.

    `slice` is the text between the brackets, or all of `x[0, :, ::2]`; empty for the whole tensor.
    The window is one of the table that `ValuesSnapshot` describes, of at most 4,000 cells. With
    `picture`, the answer also has a picture. With `file`, here and in the other commands about
    values, `expression` is the key of a tensor in that file.
    """

    handler = "values:read_values"
    while_running = True
    expression: str
    file: str = ""
    slice: str = ""
    row_start: int = 0
    row_count: int = 0
    column_start: int = 0
    column_count: int = 0
    picture: bool = False


class StatisticsCommand(Command, frozen=True, kw_only=True):
    """Compute statistics of a tensor for a short time -> StatisticsSnapshot, which says how many
    elements are counted so far.

    Send it again until all are counted, or send no more to stop. With `restart`, count from the
    beginning.
    """

    handler = "values:statistics"
    while_running = True
    expression: str
    file: str = ""
    slice: str = ""
    restart: bool = False


class LinesCommand(Command, frozen=True, kw_only=True):
    """Read the first `lines` rows of a tensor under a slice for a short time, as lines over its
    last dimension -> LinesSnapshot, which says how many elements are read so far. Send it again
    until all are read."""

    handler = "values:lines"
    while_running = True
    expression: str
    file: str = ""
    slice: str = ""
    lines: int = 6
    restart: bool = False


class BitsCommand(Command, frozen=True, kw_only=True):
    """Show the bits of one element -> BitsSnapshot."""

    handler = "values:bits"
    while_running = True
    expression: str
    file: str = ""
    index: tuple[int, ...]


# -- tensors: storage and aliases ----------------------------------------------------------------


class ReadStorageCommand(Command, frozen=True, kw_only=True):
    """Read `count` cells of a tensor's storage from cell `first` on (None: from the tensor's first
    element) -> StorageSnapshot."""

    handler = "memory:read_storage"
    while_running = True
    expression: str
    first: int | None = None
    count: int = 1024


class LocateCommand(Command, frozen=True, kw_only=True):
    """Find the cell of an element (`index`), or the tensors that read a cell (`cell`); one of the
    two is given -> LocationSnapshot."""

    handler = "memory:locate"
    while_running = True
    newest_only = True
    expression: str
    index: tuple[int, ...] | None = None
    cell: int | None = None


class AliasesCommand(Command, frozen=True, kw_only=True):
    """Find which of the console's tensors and arrays share memory, and which operations made them
    -> AliasesSnapshot."""

    handler = "memory:read_aliases"
    while_running = True


# -- tensors: operations explained ---------------------------------------------------------------


class ExplainCommand(Command, frozen=True, kw_only=True):
    """Predict the result of one line, such as `y = x.T.reshape(-1)` -> ExplanationSnapshot. With
    `run`, the line also runs, on copies where it writes, and each prediction is compared with
    torch's result. No variable changes in either case."""

    handler = "explain:explain"
    newest_only = True
    source: str
    run: bool = False
