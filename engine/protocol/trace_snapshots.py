"""The trace: what torch ran, call by call, and the details of one node of the graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct, field, structs

from .autograd_snapshots import SourceLine
from .snapshots import Snapshot
from .values import ErrorReport, TensorSpec, Value

CallKind = Literal["line", "module", "function", "op"]

TraceMark = Literal["", "made_nan", "made_inf", "passed_on", "error"]
"""What became of the numbers in a call: `made_nan`, `made_inf` (only finite numbers went in, and
such came out), `passed_on` (they went in already), `error` (the call raised)."""


class TraceCall(Struct, frozen=True, array_like=True):
    """One call as it ran. `parent` is the index of the call around it (-1: none), always smaller
    than its own index.

    A line of the user's code is a call too, around all that ran in it; its text stands for a name
    (`name` is empty). A module's call is named by its class (`"Linear"`), a function's as people
    write it (`"linear"`, `"+"`, `"[0] ="`), an op's by its schema (`"aten::addmm"`). `module` is
    the dotted path of the innermost module around it (for a module: its own). `line` is the place
    in `TraceSnapshot.lines` of the line of the user's code that it ran under, -1 where there is
    none.
    `result` is what came out, in short: `"(32, 10) float32"`; of a line the names that it bound or
    changed: `"k = 3, y (13,) float32"`. `nodes` counts the autograd nodes
    that it made, `writes` says that it wrote into a tensor in place. `turn` counts the times that
    the statement of its line had begun to run, 1 for the first (loops); 0 where it is not known.
    """

    parent: int
    kind: CallKind
    name: str
    module: str = ""
    line: int = -1
    result: str = ""
    nodes: int = 0
    writes: bool = False
    mark: TraceMark = ""
    turn: int = 0


class TraceSnapshot(Snapshot, frozen=True, kw_only=True):
    """The whole trace; the calls are in the order in which they began, and a call's children
    follow it before its next sibling.

    A long trace comes in `parts` (this is number `part`, from 0) that follow each other: `calls`
    and `lines` are cut into pieces, see `join_trace`. `source` is the code that was traced under
    the name `file` (both empty for the model's batch, whose blocks are the outermost calls);
    `sources` has the text of other files of the user's that lines of it stand in. `rule` names the
    node of the graph whose rule was traced, empty for what is none. Each of `lines` is a different
    line that ran. `note` says in words what is not in the trace.
    `error` is what ended the code before its end. `origin` is the first call that made NaN or
    inf from finite numbers, -1 without one (an op rather than the function around it).
    """

    calls: tuple[TraceCall, ...]
    lines: tuple[SourceLine, ...] = ()
    modules: dict[str, str] = field(default_factory=dict)
    source: str = ""
    file: str = ""
    sources: dict[str, str] = field(default_factory=dict)
    rule: str = ""
    note: str = ""
    error: ErrorReport | None = None
    origin: int = -1
    part: int = 0
    parts: int = 1


class TraceStepSnapshot(Snapshot, frozen=True, kw_only=True):
    """Where the trace stands: at call `position`, counted from 0 in the order in which the calls
    began; -1 before the first.

    `inputs` and `outputs` are its tensors as they were when it ran (labelled by argument, as
    `mat1 = w` where a variable is known, `result`), whatever was written into them since.
    `arguments` and `results` are those that are no tensors: (name, text). For a line they are the
    names that it read, and those that it bound or changed; beside these `return` or `yield` for
    what it gave, and `goes on at` for where a branch went. `note` says why values are missing.
    `nodes` counts the autograd nodes it made, and `first_node` is the sequence number of the first
    (for the model's batch: of the same node of the pass under way; -1 where there is no such
    node, or it has not run that far). `grad_enabled` says whether it could make any,
    `error` is what it raised.
    """

    position: int
    inputs: tuple[Value, ...] = ()
    outputs: tuple[Value, ...] = ()
    arguments: tuple[tuple[str, str], ...] = ()
    results: tuple[tuple[str, str], ...] = ()
    source: SourceLine | None = None
    nodes: int = 0
    first_node: int = -1
    grad_enabled: bool = True
    error: str = ""
    note: str = ""


class TraceRootSnapshot(Snapshot, frozen=True, kw_only=True):
    """In which graph the nodes of call `position` are: that of `root`, an expression of the
    console; empty where no variable leads to them, and `note` says so."""

    position: int
    root: str = ""
    note: str = ""


def join_trace(parts: Sequence[TraceSnapshot]) -> TraceSnapshot:
    """The whole trace from its parts in order, as if it had come in one."""
    return structs.replace(
        parts[0],
        calls=tuple(call for part in parts for call in part.calls),
        lines=tuple(line for part in parts for line in part.lines),
        modules={path: name for part in parts for path, name in part.modules.items()},
        sources={file: text for part in parts for file, text in part.sources.items()},
        parts=1,
    )


class SavedValue(Struct, frozen=True):
    """A tensor that a node keeps for its rule, under torch's name for it (`"mat1"`).

    `value` is None where it cannot be read; `note` then says why (freed, packed by hooks).
    `storage_bytes` is the whole storage that it keeps alive, `shared_with` says who else holds
    this storage: parameters and variables by name, other nodes as `#12`.
    """

    name: str
    value: Value | None
    storage_bytes: int = 0
    shared_with: tuple[str, ...] = ()
    version: int | None = None
    saved_version: int | None = None
    note: str = ""


class NodeEnd(Struct, frozen=True):
    """One input or output of a node: a gradient comes or goes here. `spec` is its shape and dtype
    in forward, `device` where it was; `nodes` are those at the other end (ids), empty where the
    way ends: `text` then says why. `output` is the number of the output of that node which an
    input leads to, None where it has but one."""

    spec: TensorSpec | None
    nodes: tuple[int, ...]
    text: str = ""
    device: str = ""
    output: int | None = None


class NodeCaller(Struct, frozen=True):
    """One of the calls around a node's making, as `TraceCall`: `line` of the user's code."""

    kind: CallKind
    name: str
    source: SourceLine | None = None


class NodeDetailSnapshot(Snapshot, frozen=True, kw_only=True):
    """All that is known of node `node` of the graph under way.

    `sequence` is torch's sequence number, -1 for a leaf. `outputs` are the outputs of the forward
    operation (a gradient comes in for each), `inputs` its inputs (a gradient goes out to each).
    `also_called` are a leaf's other names. `settings` are what else it keeps, as text (`dim` is
    `-1`). `callers` lead from the outermost module over the function to the op; empty where
    nothing was recorded. `metadata` is what user code put into `node.metadata`, `hooks` tells of
    hooks on it. `note` says what cannot be read.
    """

    node: int
    name: str
    sequence: int = -1
    also_called: tuple[str, ...] = ()
    saved: tuple[SavedValue, ...] = ()
    settings: tuple[tuple[str, str], ...] = ()
    outputs: tuple[NodeEnd, ...] = ()
    inputs: tuple[NodeEnd, ...] = ()
    callers: tuple[NodeCaller, ...] = ()
    metadata: tuple[tuple[str, str], ...] = ()
    hooks: str = ""
    note: str = ""
