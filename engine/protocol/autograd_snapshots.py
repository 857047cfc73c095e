"""Answers of the Autograd workspace: the forward pass, the graph, the backward pass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct, field, structs

from .snapshots import Snapshot
from .stepping import BreakpointState, GradientEdit, NextNode, PendingGradient
from .values import TensorSpec, TensorSummary, Value


class Activation(Struct, frozen=True):
    """One executed block: the summary of each of its outputs, in port order."""

    block: str
    outputs: tuple[TensorSummary, ...]
    elapsed_ms: float


class ForwardSnapshot(Snapshot, frozen=True, kw_only=True):
    """`order` lists the block ids in the order of execution (the loss last, as `"loss"` when no
    loss block stands on the canvas); the first `position` of them have run, with their
    `activations`. `current` holds the outputs of the block last run, with pictures."""

    order: tuple[str, ...]
    position: int
    activations: tuple[Activation, ...]
    current: tuple[Value, ...] = ()
    loss: float | None = None
    batch: int = 0
    batch_size: int = 0


class SourceLine(Struct, frozen=True, array_like=True, gc=False):
    """A line of the user's code: `file` is a path or a cell's name (`"<cell 3>"`), `line` counts
    from 1, `text` is the line itself without its indentation."""

    file: str
    line: int
    text: str = ""


class GraphNode(Struct, frozen=True, array_like=True, gc=False):
    """One node of the autograd graph. `name` is torch's (`"AddmmBackward0"`), `label` what a
    reader calls it (the parameter's or variable's name), `block` the block whose forward made it.
    `outputs` are the specs of the node's outputs in forward, `saved_bytes` the unique storages
    it keeps. `sequence` is torch's sequence number; -1 for AccumulateGrad.

    `module` is the dotted path of the `nn.Module` whose forward made it (a leaf: the module that
    owns the parameter), `aten` the operator torch ran, `source` the line of the user's code. All
    three were recorded in forward and are empty where they were not. `stale` says that a tensor
    it saved was overwritten since, `freed` that a backward pass has let go of all it saved."""

    id: int
    name: str
    label: str
    kind: Literal["leaf", "operation"]
    block: str | None
    sequence: int
    outputs: tuple[TensorSpec, ...]
    saved_bytes: int = 0
    op: str = ""
    module: str = ""
    aten: str = ""
    source: SourceLine | None = None
    device: str = ""
    stale: bool = False
    freed: bool = False


class GraphEdge(Struct, frozen=True, array_like=True, gc=False):
    """The gradient's way: from input `input` of node `source` (its next_functions entry) to
    output `output` of node `target`. Parallel edges are kept."""

    source: int
    target: int
    input: int
    output: int


CutReason = Literal["detach", "no_grad", "frozen", "input", "integer", "unknown"]


class GraphCut(Struct, frozen=True, array_like=True, gc=False):
    """Where the gradient's way ends without a leaf: input `input` of node `node` needs none.

    `reason` is what made it so: `.detach()` or `no_grad` on the way, a frozen parameter, data
    that never required grad, a dtype that cannot. `label` names the tensor or the line.
    """

    node: int
    input: int
    reason: CutReason
    label: str = ""
    source: SourceLine | None = None


class StaleTensor(Struct, frozen=True, array_like=True):
    """Saved tensor `saved` of node `node` was written to after it was saved at version
    `saved_version`; it is at `version` now, and backward will refuse. `op` and `source` are of the
    last write, empty where it was not seen; `error` is what torch will say."""

    node: int
    saved: str
    saved_version: int
    version: int
    op: str = ""
    source: SourceLine | None = None
    error: str = ""


class GraphSnapshot(Snapshot, frozen=True, kw_only=True):
    """The graph under a root, nodes indexed by id (0 is the root). `plan` is the engine's own
    order of execution as node ids. `truncated` is the number of nodes left out by the cap; these
    are stepped all the same, so `plan` and NodeStep may name ids beyond the last in `nodes`.

    A large graph comes in `parts`, this is number `part` of them (from 0): nodes, edges, cuts and
    the plan are cut into pieces that follow each other; `join_graph` puts them together. `root`
    is the expression whose graph this is, empty for the model's loss. `saved_bytes` is what all
    its nodes keep, a storage that several share counted once. `modules` gives the class
    name of each module path. `stale` are the saved tensors that backward will find overwritten,
    the first hundred of them. `rules` tells the backward rule in words for
    the name of each node, where there are any.
    """

    nodes: tuple[GraphNode, ...]
    edges: tuple[GraphEdge, ...]
    plan: tuple[int, ...]
    truncated: int = 0
    saved_bytes: int = 0
    cuts: tuple[GraphCut, ...] = ()
    stale: tuple[StaleTensor, ...] = ()
    modules: dict[str, str] = field(default_factory=dict)
    rules: dict[str, str] = field(default_factory=dict)
    root: str = ""
    part: int = 0
    parts: int = 1


def join_graph(parts: Sequence[GraphSnapshot]) -> GraphSnapshot:
    """The whole graph from its parts in order, as if it had come in one."""
    return structs.replace(
        parts[0],
        nodes=tuple(node for part in parts for node in part.nodes),
        edges=tuple(edge for part in parts for edge in part.edges),
        plan=tuple(node for part in parts for node in part.plan),
        cuts=tuple(cut for part in parts for cut in part.cuts),
        stale=tuple(save for part in parts for save in part.stale),
        modules={path: name for part in parts for path, name in part.modules.items()},
        rules={name: words for part in parts for name, words in part.rules.items()},
        parts=1,
    )


class WhyNoGradientSnapshot(Snapshot, frozen=True, kw_only=True):
    """Why a tensor has no gradient: `text` says it, `hint` what to write instead. `node` and `cut`
    show it on the graph of the root asked about (node ids as in its GraphSnapshot)."""

    reason: Literal[
        "has_gradient",
        "integer",
        "not_required",
        "not_leaf",
        "not_yet",
        "late",
        "cut",
        "no_path",
    ]
    text: str
    hint: str = ""
    node: int | None = None
    cut: GraphCut | None = None


class NodeStep(Struct, frozen=True):
    """A node's rule as it was executed: gradients in (one per output of the forward op) and out
    (one per next_functions entry); None where undefined.

    At a leaf, `grad_before` and `grad_after` are its `.grad` on both sides of the step: what came
    in was added. `hooks` tells of the hooks on the node, in words; `edited` says that what came
    in was changed by an edit.
    """

    node: int
    incoming: tuple[Value | None, ...]
    outgoing: tuple[Value | None, ...]
    grad_before: Value | None = None
    grad_after: Value | None = None
    hooks: str = ""
    edited: bool = False


class ParameterGradient(Struct, frozen=True):
    """A parameter, or another tensor that keeps one, and its `.grad` as it stands; None before its
    AccumulateGrad has run. `retained` marks a tensor that is no leaf: retain_grad() was called."""

    name: str
    shape: tuple[int, ...]
    gradient: TensorSummary | None
    retained: bool = False


class BackwardSnapshot(Snapshot, frozen=True, kw_only=True):
    """The first `position` nodes of the plan have run; `step` is the last of them, `next` the one
    after it (None at the end).

    `stopped_by` says in words what ended a run before its goal. `pending` are the nodes that some
    gradient has reached (`pending_more` others are left out, and `gradients_more` of `gradients`).
    `freed_bytes` of `saved_bytes` are what `retain_graph=False` would have freed by now (with
    `real_engine`: has freed). `pass_number` counts the passes over this graph from 1. A
    `real_engine` cannot go back. With `inputs` the pass is one of `torch.autograd.grad`:
    `gradients` are what it has found for these.
    """

    position: int
    step: NodeStep | None
    gradients: tuple[ParameterGradient, ...]
    gradients_more: int = 0
    next: NextNode | None = None
    stopped_by: str = ""
    breakpoints: tuple[BreakpointState, ...] = ()
    edits: tuple[GradientEdit, ...] = ()
    pending: tuple[PendingGradient, ...] = ()
    pending_more: int = 0
    freed_bytes: int = 0
    saved_bytes: int = 0
    pass_number: int = 1
    real_engine: bool = False
    retain_graph: bool = True
    create_graph: bool = False
    inputs: tuple[str, ...] = ()


class BackwardScriptSnapshot(Snapshot, frozen=True, kw_only=True):
    """The pass as a Python script. `path` and `data_path` are the files written, if any: the
    second holds what the script needs beside itself (weights, batch, random state)."""

    text: str
    path: str = ""
    data_path: str = ""


class ComparisonSnapshot(Snapshot, frozen=True, kw_only=True):
    """Stepped gradients against `loss.backward()`: the largest absolute difference, over all
    parameters and for each (of very many those with the largest)."""

    max_difference: float
    differences: dict[str, float]


class ParameterUpdate(Struct, frozen=True, kw_only=True):
    """The first step of an optimizer on one element of a parameter, the one at `index`.

    `rule` is written in the names that `numbers` has: `old − lr · grad`; `new` is what torch's
    own optimizer makes of it.
    """

    optimizer: str
    index: tuple[int, ...]
    rule: str
    numbers: dict[str, float]
    new: float


class ValueSnapshot(Snapshot, frozen=True, kw_only=True):
    """The answer to an InspectCommand: one value per output of the thing asked for. `update` is
    what the optimizer would make of a parameter with this gradient."""

    of: str
    key: str
    values: tuple[Value, ...]
    update: ParameterUpdate | None = None
