"""Snapshots of the Autograd workspace: the forward pass, the graph, the backward pass."""

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
    """`order` lists the block ids in the order of execution; the last is the loss (`"loss"` if no
    loss block is on the canvas). The first `position` of them have run: `activations` are theirs,
    and `current` are the outputs of the last one, `inputs` what it ran on, with pictures."""

    order: tuple[str, ...]
    position: int
    activations: tuple[Activation, ...]
    current: tuple[Value, ...] = ()
    inputs: tuple[Value, ...] = ()
    loss: float | None = None
    batch: int = 0
    batch_size: int = 0


MODEL_FILE = "<model>"
"""The file of the canvas's Python, in a SourceLine."""


class SourceLine(Struct, frozen=True, array_like=True, gc=False):
    """A line of the user's code: `file` is a path or a cell's name (`"<cell 3>"`), `line` counts
    from 1, `text` is the line itself without its indentation."""

    file: str
    line: int
    text: str = ""


class GraphNode(Struct, frozen=True, array_like=True, gc=False):
    """One node of the autograd graph. `name` is torch's (`"AddmmBackward0"`), `label` the name of
    its parameter or variable, `block` the block whose forward made it. `outputs` are the specs of
    the forward operation's outputs; `saved_bytes` is the size of the unique storages that the node
    keeps. `sequence` is torch's sequence number; -1 for AccumulateGrad.

    `module` is the dotted path of the `nn.Module` whose forward made the node (for a leaf: the
    module that owns the parameter), `aten` the operator that torch ran, `source` the line of the
    user's code. These three were recorded in forward, and are empty if they were not. `stale`: a
    tensor that the node saved was overwritten since. `freed`: a backward pass has freed what the
    node saved.
    """

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
    """An edge that a gradient follows: from input `input` of node `source` (its index in
    next_functions) to output `output` of node `target`. Parallel edges are kept."""

    source: int
    target: int
    input: int
    output: int


CutReason = Literal["detach", "no_grad", "frozen", "input", "integer", "unknown"]


class GraphCut(Struct, frozen=True, array_like=True, gc=False):
    """An edge that is missing: input `input` of node `node` needs no gradient.

    `reason` says why: `.detach()` or `no_grad`, a frozen parameter, data that never required grad,
    or a dtype that cannot. `label` names the tensor or the line.
    """

    node: int
    input: int
    reason: CutReason
    label: str = ""
    source: SourceLine | None = None


class StaleTensor(Struct, frozen=True, array_like=True):
    """Saved tensor `saved` of node `node` was saved at version `saved_version` and written to
    since; it is at `version` now, and backward will raise. `op` and `source` are those of the last
    write, empty if it was not seen; `error` is what torch will raise."""

    node: int
    saved: str
    saved_version: int
    version: int
    op: str = ""
    source: SourceLine | None = None
    error: str = ""


GraphOf = Literal["autograd", "program"]
"""The graph that autograd recorded, or the operations of a program in a file, which has no
gradients."""


class GraphSnapshot(Snapshot, frozen=True, kw_only=True):
    """The graph of a root; nodes are indexed by id, 0 is the root.

    `plan` is torch's order of execution, as node ids. `truncated` nodes are left out, because a
    snapshot holds a limited number; they are stepped all the same, so `plan` and NodeStep may name
    ids beyond the last in `nodes`.

    A large graph comes in `parts`; this is part number `part`, from 0. Nodes, edges, cuts and the
    plan are divided among them, and `join_graph` joins them. `root` is the expression whose graph
    this is, empty for the model's loss. `saved_bytes` is what all nodes keep, with a shared storage
    counted once. `modules` gives the class name for each module path. `stale` are the saved tensors
    that were overwritten, up to a hundred. `rules` gives the backward rule in words for node names
    that have one. `sources` has the texts of the cells and the user's files whose lines made nodes,
    by their names (`"<cell 3>"`). `subject_path` is what `modules` calls the module of the
    project's subject, where this is the graph of its loss: leaves then have the names of
    `named_parameters()`. It is None for tensors of the console, whose leaves are labelled by their
    expressions.
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
    sources: dict[str, str] = field(default_factory=dict)
    root: str = ""
    subject_path: str | None = None
    of: GraphOf = "autograd"
    part: int = 0
    parts: int = 1


def join_graph(parts: Sequence[GraphSnapshot]) -> GraphSnapshot:
    """One graph from all its parts, in order."""
    if len(parts) == 1:
        return parts[0]
    return structs.replace(
        parts[0],
        nodes=tuple(node for part in parts for node in part.nodes),
        edges=tuple(edge for part in parts for edge in part.edges),
        plan=tuple(node for part in parts for node in part.plan),
        cuts=tuple(cut for part in parts for cut in part.cuts),
        stale=tuple(save for part in parts for save in part.stale),
        modules={path: name for part in parts for path, name in part.modules.items()},
        rules={name: words for part in parts for name, words in part.rules.items()},
        sources={file: text for part in parts for file, text in part.sources.items()},
        parts=1,
    )


MissingReason = Literal[
    "has_gradient", "integer", "not_required", "not_leaf", "not_yet", "late", "cut", "no_path"
]
"""Why a tensor has no gradient: `late` says that it required none when it was used, `cut` and
`no_path` that the graph has no path to it, `not_yet` that it has one."""


class WhyNoGradientSnapshot(Snapshot, frozen=True, kw_only=True):
    """Why a tensor has no gradient. `text` says why, `hint` what to write instead. `node` and `cut`
    are the place in the graph of the root (node ids as in its GraphSnapshot)."""

    reason: MissingReason
    text: str
    hint: str = ""
    node: int | None = None
    cut: GraphCut | None = None


class NodeStep(Struct, frozen=True):
    """A node that has run: the gradients that came in (one per output of the forward op) and that
    went out (one per next_functions entry); None where undefined.

    `grad_before` and `grad_after` are a leaf's `.grad` before and after the step, which added the
    incoming gradient. `hooks` describes the hooks on the node. `edited`: an edit changed the
    incoming gradient.
    """

    node: int
    incoming: tuple[Value | None, ...]
    outgoing: tuple[Value | None, ...]
    grad_before: Value | None = None
    grad_after: Value | None = None
    hooks: str = ""
    edited: bool = False


class ParameterGradient(Struct, frozen=True):
    """A parameter, or another tensor that keeps its gradient, and its `.grad` now; None before its
    AccumulateGrad has run. `retained`: it is not a leaf, and retain_grad() was called. `missing`
    says why this pass leaves its `.grad` as it is (`not_yet`: the pass is at its end, and a
    function on the path gave None); None where a gradient has come or can come."""

    name: str
    shape: tuple[int, ...]
    gradient: TensorSummary | None
    retained: bool = False
    missing: MissingReason | None = None


class TensorNumber(Struct, frozen=True, array_like=True, gc=False):
    """A tensor in a few numbers: its elements in C order if it is tiny and real (at most 4), and
    its 2-norm, which is nan or inf if an element is."""

    shape: tuple[int, ...]
    norm: float
    elements: tuple[float, ...] = ()


class NodeNumbers(Struct, frozen=True, array_like=True, gc=False):
    """The numbers of one node. `values` are what its operation returned in forward (a leaf: its
    tensor), one per output; None where that is not known.

    `incoming` are the gradients that came in, one per output: of a node that has run, or that has
    got all its contributions. `outgoing` are those that went out, one per input; empty before the
    node has run. `grad` is a leaf's `.grad` now.
    """

    node: int
    values: tuple[TensorNumber | None, ...] = ()
    incoming: tuple[TensorNumber | None, ...] = ()
    outgoing: tuple[TensorNumber | None, ...] = ()
    grad: TensorNumber | None = None


class BackwardSnapshot(Snapshot, frozen=True, kw_only=True):
    """The first `position` nodes of the plan have run. `step` is the last of them, `next` the node
    after it (None at the end).

    `stopped_by` says in words why a run stopped before its goal. `pending` are the nodes that a
    gradient has reached; `pending_more` of them are left out, and `gradients_more` of `gradients`.
    Of `saved_bytes`, `freed_bytes` would be freed by now with `retain_graph=False` (with
    `real_engine`: are freed). `pass_number` counts the passes over this graph from 1. A
    `real_engine` pass cannot go back. With `inputs` the pass is one of `torch.autograd.grad`, and
    `gradients` are what it has found for these. `numbers` are those of the nodes that the last
    GraphNumbersCommand of this pass has named.
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
    numbers: tuple[NodeNumbers, ...] = ()


class GraphNumbersSnapshot(Snapshot, frozen=True, kw_only=True):
    """The numbers of the nodes that were asked for, when `position` nodes of the plan had run."""

    position: int
    numbers: tuple[NodeNumbers, ...]


class BackwardCodeSnapshot(Snapshot, frozen=True, kw_only=True):
    """A pass as code that can be run in a new console."""

    text: str


class ComparisonSnapshot(Snapshot, frozen=True, kw_only=True):
    """The stepped gradients compared with those of `loss.backward()`: the largest absolute
    difference over all parameters, and for each parameter (if there are too many, those that differ
    most). It is inf where only one of the two has a gradient. `zeroed`: zero_grad has emptied
    `.grad` during the pass."""

    max_difference: float
    differences: dict[str, float]
    zeroed: bool = False


class ParameterUpdate(Struct, frozen=True, kw_only=True):
    """The optimizer's first step on one element of a parameter, the one at `index`.

    `rule` is a formula of the names in `numbers`: `old − lr · grad`. `new` is the value that
    torch's own optimizer computes.
    """

    optimizer: str
    index: tuple[int, ...]
    rule: str
    numbers: dict[str, float]
    new: float


class ValueSnapshot(Snapshot, frozen=True, kw_only=True):
    """The answer to an InspectCommand: one value per output. Of an activation, `inputs` and
    `weights` are what the block computed it from. `update` is the optimizer's update of a parameter
    with this gradient. `missing` says why a parameter gets no gradient in this pass."""

    of: str
    key: str
    values: tuple[Value, ...]
    inputs: tuple[Value, ...] = ()
    weights: tuple[Value, ...] = ()
    update: ParameterUpdate | None = None
    missing: str = ""
