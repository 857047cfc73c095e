"""What the Autograd workspace asks: passes forward and backward, traces, rules, derivatives."""

from __future__ import annotations

from typing import Literal

from msgspec import field

from ..project.document import Model, ParamValue, TrainingSetup
from .commands import Command
from .derivative_snapshots import DerivativeKind
from .flow_snapshots import Initialisation
from .stepping import Breakpoint

# -- autograd: one batch of the chosen data set --------------------------------------------------


class StartForwardCommand(Command, frozen=True, kw_only=True):
    """Take batch number `batch` of the training data, stand before the first block
    -> ForwardSnapshot."""

    handler = "models:start_forward"
    model: Model
    training: TrainingSetup
    batch: int = 0


class MoveForwardCommand(Command, frozen=True, kw_only=True):
    """Run one block (`step`), undo one (`back`), run until `target` has run (`to`), run all
    blocks and the loss (`end`), or return before the first (`reset`) -> ForwardSnapshot."""

    handler = "models:move_forward"
    move: Literal["step", "back", "to", "end", "reset"]
    target: str = ""


class StartBackwardCommand(Command, frozen=True, kw_only=True):
    """Finish the forward pass if need be (-> ForwardSnapshot), read the graph from `loss.grad_fn`,
    stand before its root -> GraphSnapshots, then BackwardSnapshot.

    `root` takes the graph of the console instead: an expression (`loss`, `y[0]`, `model.out`), or
    several with commas between; then no forward pass is needed. `gradient` is what backward starts
    with, needed where a root is no scalar: an expression of the console (`torch.ones_like(y)`, one
    per root with commas between). With `create_graph` the gradients have graphs of their own.

    A pass of the model starts from `.grad`s of None unless `accumulate`; under a console root,
    `.grad` is what the user's code left there, and the steps add to it. With `inputs` (names of
    leaves or other tensors) the gradients are found as by `torch.autograd.grad`: only for these,
    and no `.grad` changes.

    `real_engine` lets backward() itself run, held before each node: without `retain_graph` it frees
    saved tensors as it goes, and it cannot go back. Else each node is run by itself, and the graph
    is kept.

    With `of`, the root is the gradient of that tensor as the pass under way has found it, with
    `create_graph`: the graph of a gradient is stepped in turn. `.grad`s then start from None unless
    `accumulate`, and the gradient it starts with is ones unless `gradient` says otherwise.
    """

    handler = "backward:start_backward"
    root: str = ""
    gradient: str = ""
    create_graph: bool = False
    accumulate: bool = False
    inputs: tuple[str, ...] = ()
    real_engine: bool = False
    retain_graph: bool = False
    of: str = ""


class NodeDetailCommand(Command, frozen=True, kw_only=True):
    """Tell all that is known of one node of the graph under way -> NodeDetailSnapshot."""

    handler = "node_detail:node_detail"
    node: int


class StartTraceCommand(Command, frozen=True, kw_only=True):
    """Run code and record all that torch does in it -> OutputSnapshots as it prints, then
    TraceSnapshots and a TraceStepSnapshot that stands before the first call.

    `source` runs as a cell of the console does, and what it leaves stays. Empty: the batch of the
    forward pass under way runs through the model, in a pass of its own; with `node` (an id), the
    rule of that node of the backward pass under way runs once more, on copies, and the trace stands
    at its first call. An exception or an InterruptSignal ends the trace, not what it has recorded.
    """

    handler = "trace:start_trace"
    source: str = ""
    node: int = -1


TraceMove = Literal[
    "step", "over", "out", "back", "to", "start", "end", "line", "back_line", "origin"
]


class MoveTraceCommand(Command, frozen=True, kw_only=True):
    """Go to another call of the trace -> TraceStepSnapshot.

    `step` goes to the next call, into modules and functions; `over` to the next that is not inside
    this one, `out` to the next that is not inside the call around it; `back` to the one before;
    `to` to number `target`; `start` before the first, `end` to the last; `line` to the next line of
    the user's code that ran, into functions too, `back_line` to the one before; `origin` to the
    first that made NaN or inf.
    """

    handler = "trace:move_trace"
    move: TraceMove
    target: int = -1


class TraceRootCommand(Command, frozen=True, kw_only=True):
    """Of which tensor of the console is the graph that the nodes of call `position` of the trace
    are in -> TraceRootSnapshot."""

    handler = "trace:find_root"
    position: int


BackwardMove = Literal[
    "step", "back", "to", "end", "reset", "run", "back_run", "leaf", "out", "again"
]


class MoveBackwardCommand(Command, frozen=True, kw_only=True):
    """As MoveForwardCommand, over nodes; `target` is a node id -> BackwardSnapshot.

    `run` goes on to the next breakpoint, `back_run` back to the one before; `leaf` runs until a
    leaf has run, `out` to the last node of the next node's module. `to`, `leaf` and `out` stop at
    breakpoints on their way, `end` does not. `again` begins another pass over the same graph:
    what is in `.grad` stays, and the pass before cannot be gone back into.
    """

    handler = "backward:move_backward"
    move: BackwardMove
    target: int = -1


class SetBreakpointsCommand(Command, frozen=True, kw_only=True):
    """Stop at these from now on, also in later passes -> BackwardSnapshot if a pass is under
    way."""

    handler = "backward_edits:set_breakpoints"
    breakpoints: tuple[Breakpoint, ...]


class EditGradientCommand(Command, frozen=True, kw_only=True):
    """Let `expression` replace the gradient that comes in at a node that has not run, in place
    of any earlier edit there -> BackwardSnapshot.

    It is Python of `g`, the gradient for output `output` of the node, or `grads`, those for all
    of them; torch, F, np and the console's variables stand ready. None cuts the branch.
    """

    handler = "backward_edits:edit_gradient"
    node: int
    expression: str
    output: int = 0


class UneditGradientCommand(Command, frozen=True, kw_only=True):
    """Forget the edits of a node that has not run -> BackwardSnapshot."""

    handler = "backward_edits:unedit_gradient"
    node: int


class ZeroGradientsCommand(Command, frozen=True, kw_only=True):
    """`zero_grad()`: make every `.grad` of the pass None, or zeros -> BackwardSnapshot."""

    handler = "backward_edits:zero_gradients"
    set_to_none: bool = True


class ExportBackwardCommand(Command, frozen=True, kw_only=True):
    """Write all that was done, up to the end of this pass, as a script that runs by itself, to a
    file if `path` is given -> BackwardScriptSnapshot."""

    handler = "backward_edits:export_backward"
    path: str = ""


class CompareGradientsCommand(Command, frozen=True, kw_only=True):
    """Run the same batch through plain `loss.backward()` and compare -> ComparisonSnapshot."""

    handler = "backward:compare_gradients"


class InspectCommand(Command, frozen=True, kw_only=True):
    """Show one value of the current pass in full -> ValueSnapshot.

    `of` says what `key` names: an activation (block id), a parameter or its `.grad`
    (`"linear1.weight"`), or a node of the graph (node id as text: its last step). With an
    `optimizer` (`"optim.SGD"`) and its options, a parameter's gradient comes with its update.
    """

    handler = "backward:inspect_value"
    of: Literal["activation", "parameter", "gradient"]
    key: str
    optimizer: str = ""
    optimizer_params: dict[str, ParamValue] = field(default_factory=dict)


class WhyNoGradientCommand(Command, frozen=True, kw_only=True):
    """Say why `name`, a tensor of the console, has no `.grad`, after backward from `root` (an
    expression; empty when it is not known) -> WhyNoGradientSnapshot."""

    handler = "missing_gradient:why_no_gradient"
    name: str
    root: str = ""


# -- autograd: derivatives of a function ---------------------------------------------------------
#
# `function` is an expression of the console that can be called (`f`, `model`, `torch.tanh`,
# `lambda x: (x @ w).sum()`), `inputs` are expressions of its tensors. An empty function is the
# model of the forward pass under way, in evaluation mode, at the first sample of its batch.


class DerivativeCommand(Command, frozen=True, kw_only=True):
    """Differentiate by input number `argument` -> DerivativeSnapshot, sent again as its
    comparisons arrive. `vector` (an expression) is what a jvp, vjp or hvp multiplies by; empty
    for ones. `mode` is how a Jacobian is computed: by rows (reverse) or columns (forward)."""

    handler = "derivatives:differentiate"
    kind: DerivativeKind
    function: str = ""
    inputs: tuple[str, ...] = ()
    argument: int = 0
    vector: str = ""
    mode: Literal["reverse", "forward"] = "reverse"


class ReadEntryCommand(Command, frozen=True, kw_only=True):
    """Tell of an entry of the last derivative's matrix -> EntrySnapshot."""

    handler = "derivatives:read_entry"
    row: int
    column: int


class GradcheckCommand(Command, frozen=True, kw_only=True):
    """torch.autograd.gradcheck of a function, of its gradient with `second` -> GradcheckSnapshot.

    With `double` the floating inputs (and a module's parameters) are turned into float64 first,
    as the check expects.
    """

    handler = "derivatives:check_gradient"
    function: str = ""
    inputs: tuple[str, ...] = ()
    second: bool = False
    double: bool = True
    eps: float = 1e-6
    atol: float = 1e-5
    rtol: float = 1e-3


class FlowCommand(Command, frozen=True, kw_only=True):
    """Train `steps` steps from each initialisation, on the same batches, and watch the gradients
    -> FlowSnapshots. The lab's own weights are left alone."""

    handler = "flow:gradient_flow"
    model: Model
    training: TrainingSetup
    steps: int = 60
    initialisations: tuple[Initialisation, ...] = ("default", "normal_0.01", "normal_1")


class ReadFlowCommand(Command, frozen=True, kw_only=True):
    """Show the gradients of one layer in step `step` (from 0) of the last flow
    -> FlowHistogramsSnapshot."""

    handler = "flow:read_flow"
    layer: str
    step: int


# -- autograd: a node's rule ---------------------------------------------------------------------


class RuleCommand(Command, frozen=True, kw_only=True):
    """Tell the rule of a node of the backward pass for its input `input` (the first that gets a
    gradient, for -1), with the numbers of one element of the outgoing gradient (the first for None)
    -> RuleSnapshot."""

    handler = "rules:tell_rule"
    node: int
    input: int = -1
    element: tuple[int, ...] | None = None


class CheckRuleCommand(Command, frozen=True, kw_only=True):
    """Hold a node's last step against finite differences of the recorded operator
    -> RuleCheckSnapshot."""

    handler = "rules:check_step"
    node: int


class RuleOpsCommand(Command, frozen=True, kw_only=True):
    """Run a node's rule once more, on copies, and list what torch runs in it -> RuleOpsSnapshot."""

    handler = "rules:list_ops"
    node: int
