"""Snapshots from the engine to the window: frozen, each complete in itself, at most 256 KiB."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from ..project.problems import Problem
from .values import Device, ErrorReport, TensorSpec


class Snapshot(Struct, frozen=True, kw_only=True, tag=True):
    """`reply_to` is the id of the command that this answers (0: none), `revision` that command's
    revision."""

    reply_to: int = 0
    revision: int = 0


class ReadySnapshot(Snapshot, frozen=True, kw_only=True):
    """torch has loaded. `torch_threads` is torch.get_num_threads()."""

    torch_version: str
    python_version: str
    pid: int
    devices: tuple[Device, ...]
    torch_threads: int


class ErrorSnapshot(Snapshot, frozen=True, kw_only=True):
    """The command named `command` (its class) failed; the engine goes on."""

    command: str
    error: ErrorReport
    problems: tuple[Problem, ...] = ()


class DoneSnapshot(Snapshot, frozen=True, kw_only=True):
    """The command `reply_to` has ended, well or not: no more answers to it follow. For training
    this is the end of the run. A link uses it to know which commands are running, and does not pass
    it on."""


# -- model ---------------------------------------------------------------------------------------


class BlockReport(Struct, frozen=True):
    """One block: the spec at each output port, its learnable parameters (count and bytes), the
    bytes of its output activations for a batch of one, and its problems."""

    block: str
    outputs: dict[str, TensorSpec] = {}
    parameters: int = 0
    parameter_bytes: int = 0
    activation_bytes: int = 0
    problems: tuple[Problem, ...] = ()


class ModelSnapshot(Snapshot, frozen=True, kw_only=True):
    """`code` is a runnable Python file; `lines` gives each block's 1-based lines in it.

    `problems` are those of the model as a whole; a block's own are in its report. `runnable` is
    true if nothing prevents a forward pass.
    """

    blocks: tuple[BlockReport, ...]
    parameters: int
    parameter_bytes: int
    activation_bytes: int
    problems: tuple[Problem, ...]
    runnable: bool
    code: str
    lines: dict[str, tuple[int, ...]]


class WeightsSnapshot(Snapshot, frozen=True, kw_only=True):
    """The live model has new weights, and not from training; `origin` says from where. `learnt`:
    its seed would not give them again."""

    origin: str
    parameters: int
    learnt: bool = False


# -- results and code ----------------------------------------------------------------------------


class KeyFit(Struct, frozen=True):
    """A tensor of a weights file or of a module, by its name there. Of one that is in both,
    `shape` is that of the file and `own_shape` that of the module."""

    name: str
    shape: tuple[int, ...]
    own_shape: tuple[int, ...] = ()


class FitSnapshot(Snapshot, frozen=True, kw_only=True):
    """How the weights file at `path` fits the subject `title`, and whether they are `loaded`.

    `matched` counts the tensors of the subject that the file has. Of `missing` (the file has none),
    `unexpected` (only the file has them) and `misshapen`, the first are told, and all counted in
    `counts`, in this order. `renaming` tells the prefix that is taken off or put before the file's
    names for this, in words. `saved_beside`: the subject's weights are saved beside the project.
    """

    path: str
    title: str
    loaded: bool
    matched: int
    missing: tuple[KeyFit, ...] = ()
    unexpected: tuple[KeyFit, ...] = ()
    misshapen: tuple[KeyFit, ...] = ()
    counts: tuple[int, int, int] = (0, 0, 0)
    renaming: str = ""
    saved_beside: bool = False


class SavedWeightsSnapshot(Snapshot, frozen=True, kw_only=True):
    """The weights of a project were written beside it, as they were after step `step` of the newest
    run (`run` is empty if there was none)."""

    run: str = ""
    step: int = 0


Stream = Literal["stdout", "stderr", "result"]
"""The streams of a cell's output; `result` is the repr of its last expression."""


class OutputSnapshot(Snapshot, frozen=True, kw_only=True):
    """A piece of what a cell printed. A carriage return at its beginning takes back the line that
    the pieces before have started, as progress bars want it; there are no others, except where a
    command asks for all output."""

    stream: Stream
    text: str


class OutputPiece(Struct, frozen=True):
    stream: Stream
    text: str


class OutputTailSnapshot(Snapshot, frozen=True, kw_only=True):
    """The newest lines of a long output, in place of the tail that was sent before.

    `left_out_lines` and `left_out_characters` were printed between the OutputSnapshots and
    `pieces`, and are not sent. The file at `path` holds all of the output, or its beginning if not
    `is_whole`; `fault` says why it could not be written ("" if it could).
    """

    pieces: tuple[OutputPiece, ...]
    left_out_lines: int
    left_out_characters: int
    path: str
    is_whole: bool = True
    fault: str = ""


class TensorReport(Struct, frozen=True):
    """A tensor of the namespace, field by field as torch reports it. Fields that its layout does
    not have (the strides of a sparse tensor) are None. `values` and `grad` are nested lists, with
    NaN and infinities as strings; None above 1,000 elements."""

    shape: tuple[int, ...]
    dtype: str
    device: str
    stride: tuple[int, ...] | None
    storage_offset: int | None
    is_contiguous: bool | None
    requires_grad: bool
    is_leaf: bool
    grad_fn: str | None
    version: int | None
    storage_id: int | None
    values: object = None
    grad: object = None


class TensorsSnapshot(Snapshot, frozen=True, kw_only=True):
    """Tensors of the namespace by name. Several of these follow each other if one would be too
    large. Sent only where a command asks for it."""

    tensors: dict[str, TensorReport]


class CellSnapshot(Snapshot, frozen=True, kw_only=True):
    """A cell has ended; its output and the namespace's tensors were sent before. `file` is the name
    that its lines have in graphs and traces (`<cell 3>`)."""

    ok: bool
    error: ErrorReport | None
    file: str = ""


VariableKind = Literal["tensor", "module", "optimizer", "number", "function", "other"]
"""A function is one that may take tensors: it needs arguments."""


class Variable(Struct, frozen=True):
    """A variable of the console. `type` is the name of its class, `text` a few words on its value.

    The fields from `shape` on are those of a tensor (an ndarray has some of them), and None for
    other objects and for layouts without them; a ragged dimension is -1. A module's `size_bytes` is
    that of its parameters and buffers; `methods` are those that may be functions of tensors;
    `same_as` is the name that the same module has already, that of an earlier variable or
    `canvas.model`. `storage` is a number from 1: variables with equal numbers share memory, and a
    number stays as long as the memory does.
    """

    name: str
    kind: VariableKind
    type: str
    text: str = ""
    shape: tuple[int, ...] | None = None
    dtype: str = ""
    device: str = ""
    requires_grad: bool = False
    is_leaf: bool = False
    grad_fn: str | None = None
    size_bytes: int | None = None
    version: int | None = None
    storage: int | None = None
    same_as: str = ""
    methods: tuple[str, ...] = ()


class VariablesSnapshot(Snapshot, frozen=True, kw_only=True):
    """The console's variables in the order they were made; `left_out` more did not fit."""

    variables: tuple[Variable, ...]
    left_out: int = 0


class ExampleSnapshot(Snapshot, frozen=True, kw_only=True):
    """An example has run: its variables, and the error that ended it, if any."""

    variables: tuple[Variable, ...]
    error: ErrorReport | None = None


class Completion(Struct, frozen=True):
    """`text` is the whole name, with `=` for a parameter. `kind` and `detail` describe it (a
    signature, a shape, a parameter's default)."""

    text: str
    kind: Literal["variable", "module", "class", "function", "keyword", "attribute", "parameter"]
    detail: str = ""


class CompletionsSnapshot(Snapshot, frozen=True, kw_only=True):
    """Completions that may replace the characters from `start` up to the cursor."""

    start: int
    completions: tuple[Completion, ...]
