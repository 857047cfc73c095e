"""Snapshots of the trace, call by call, and of one node of the graph in detail."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct, field, structs

from .autograd_snapshots import SourceLine
from .snapshots import Snapshot
from .values import ErrorReport, TensorSpec, Value

CallKind = Literal["line", "module", "function", "op"]

TraceMark = Literal["", "made_nan", "made_inf", "passed_on", "error"]
"""The effect of a call on NaN and infinity: `made_nan`, `made_inf` (only finite numbers went in,
and NaN or inf came out), `passed_on` (they went in already), `error` (the call raised)."""


class TraceCall(Struct, frozen=True, array_like=True):
    """One call. `parent` is the index of the call around it (-1: none), smaller than its own index.

    A line of the user's code is a call too, around all that ran in it; its `name` is empty. A
    module's call has the name of its class (`"Linear"`), a function's the name that people write
    (`"linear"`, `"+"`, `"[0] ="`), an op's that of its schema (`"aten::addmm"`). `module` is the
    dotted path of the innermost module around the call (of a module's call: its own). `line` is the
    index in `TraceSnapshot.lines` of the user's line that it ran under, -1 if there is none.
    `result` is what the call returned, in short: `"(32, 10) float32"`; for a line, the names that
    it bound or changed: `"k = 3, y (13,) float32"`. `nodes` is the number of autograd nodes that it
    made; `writes`: it wrote into a tensor in place. `turn` counts the executions of the line's
    statement, 1 for the first (loops); 0 if it is not known.
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
    """The whole trace. The calls are in the order in which they began, and a call's children come
    before its next sibling.

    A long trace comes in `parts`; this is part number `part`, from 0. `calls` and `lines` are
    divided among them, and `join_trace` joins them. `source` is the code that was traced, `file`
    its name; both are empty for the model's batch, whose blocks are the outermost calls. `sources`
    has the text of the user's other files that its lines are in. `rule` names the node whose rule
    was traced, if one was. Each of `lines` is a different line that ran. `note` says in words what
    is not in the trace. `error` is the exception that ended the code. `origin` is the first call
    that made NaN or inf from finite numbers, -1 if none did (an op rather than the function around
    it).
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
    """One call of the trace. `position` is its number, from 0 in the order in which the calls
    began; -1 is the position before the first.

    `inputs` and `outputs` are its tensors with the values that they had when it ran (labelled by
    argument, as `mat1 = w` if a variable is known, or `result`). `arguments` and `results` are its
    other values, as (name, text). For a line these are the names that it read, and those that it
    bound or changed; `return` or `yield` is what it returned, and `goes on at` the line that a
    branch went to. `note` says why values are missing. `nodes` is the number of autograd nodes that
    it made, and `first_node` the sequence number of the first. For the model's batch that is the
    sequence number of the same node of the current forward pass, -1 if there is none yet.
    `grad_enabled` says whether it could make nodes; `error` is what it raised.
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
    """An expression of the console, `root`, whose graph has the nodes of call `position`. `root` is
    empty if no variable leads to the nodes, and `note` says so."""

    position: int
    root: str = ""
    note: str = ""


def join_trace(parts: Sequence[TraceSnapshot]) -> TraceSnapshot:
    """One trace from all its parts, in order."""
    return structs.replace(
        parts[0],
        calls=tuple(call for part in parts for call in part.calls),
        lines=tuple(line for part in parts for line in part.lines),
        modules={path: name for part in parts for path, name in part.modules.items()},
        sources={file: text for part in parts for file, text in part.sources.items()},
        parts=1,
    )


class SavedValue(Struct, frozen=True):
    """A tensor that a node has saved for its rule; `name` is torch's (`"mat1"`).

    `value` is None if it cannot be read; `note` then says why (freed, packed by hooks).
    `storage_bytes` is the size of the whole storage that it keeps alive; `shared_with` names the
    others that hold this storage: parameters and variables by name, nodes as `#12`.
    """

    name: str
    value: Value | None
    storage_bytes: int = 0
    shared_with: tuple[str, ...] = ()
    version: int | None = None
    saved_version: int | None = None
    note: str = ""


class NodeEnd(Struct, frozen=True):
    """One input or output of a node, where a gradient goes or comes. `spec` is its shape and dtype
    in forward, `device` its device; `nodes` are the ids of the nodes at the other end. Without any,
    `text` says why the gradient ends here. `output` is the number of the output that an input leads
    to, None if that node has only one."""

    spec: TensorSpec | None
    nodes: tuple[int, ...]
    text: str = ""
    device: str = ""
    output: int | None = None


class NodeCaller(Struct, frozen=True):
    """One of the calls during which a node was made, as in `TraceCall`."""

    kind: CallKind
    name: str
    source: SourceLine | None = None


class NodeDetailSnapshot(Snapshot, frozen=True, kw_only=True):
    """All that is known of node `node` of the current graph.

    `sequence` is torch's sequence number, -1 for a leaf. `outputs` are the outputs of the forward
    operation (a gradient comes in for each), `inputs` its inputs (a gradient goes out to each).
    `also_called` are a leaf's other names. `settings` are the other values that it keeps, as text
    (`dim` is `-1`). `callers` lead from the outermost module to the op; empty if nothing was
    recorded. `metadata` is what user code has put into `node.metadata`; `hooks` describes the hooks
    on the node. `note` says what cannot be read.
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
