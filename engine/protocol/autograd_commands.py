"""Commands of the Autograd workspace: forward and backward passes, traces, rules, derivatives."""

from __future__ import annotations

from typing import Literal

from msgspec import field

from ..project.document import Model, ParamValue, TrainingSetup
from ..project.subject import CanvasSubject, Objective, Subject
from .commands import Command, ExampleTab
from .derivative_snapshots import DerivativeKind
from .flow_snapshots import Initialisation
from .stepping import Breakpoint

# -- autograd: one batch of the chosen data set --------------------------------------------------


class StartForwardCommand(Command, frozen=True, kw_only=True):
    """Start a forward pass before the first block, with batch number `batch` of the training data
    -> ForwardSnapshot."""

    handler = "models:start_forward"
    model: Model
    training: TrainingSetup
    batch: int = 0


class MoveForwardCommand(Command, frozen=True, kw_only=True):
    """Run one block (`step`), undo one (`back`), run up to and including `target` (`to`), run all
    blocks and the loss (`end`), or return before the first block (`reset`) -> ForwardSnapshot."""

    handler = "models:move_forward"
    move: Literal["step", "back", "to", "end", "reset"]
    target: str = ""


class StartBackwardCommand(Command, frozen=True, kw_only=True):
    """Read the graph of a root and start a backward pass before its first node -> GraphSnapshots,
    then BackwardSnapshot.

    With `example`, the expressions are those of that tab's example, not of the console.

    Without `root`, the root is the loss of the forward pass, which is finished first if need be (->
    ForwardSnapshot). If `subject` is code, it is the loss of one step of it for `objective`, on
    batch number `batch` of a run that begins; the module itself gets the gradients. With `root`, it
    is an expression of the console (`loss`, `y[0]`, `model.out`), or several with commas between;
    then no forward pass is needed. `gradient` is what backward starts with, an expression of the
    console (`torch.ones_like(y)`, one per root with commas between); a root that is not a scalar
    needs it. With `create_graph` the gradients have graphs of their own.

    A pass of the model starts from `.grad`s of None unless `accumulate`. A pass of a console root
    adds to the `.grad`s that the user's code has left. With `inputs` (names of leaves or other
    tensors) the pass is one of `torch.autograd.grad`: it finds the gradients of these only, and
    changes no `.grad`.

    With `real_engine`, torch's backward() runs and is held before each node: it cannot go back, and
    without `retain_graph` it frees saved tensors as it goes. Otherwise each node is run by itself,
    and the graph is kept.

    With `of`, the root is the gradient that the pass under way, with `create_graph`, has found for
    that tensor; so the graph of a gradient is stepped. `.grad`s then start from None unless
    `accumulate`, and backward starts with ones unless `gradient` is given.
    """

    handler = "backward:start_backward"
    while_held = True
    root: str = ""
    example: ExampleTab = ""
    gradient: str = ""
    create_graph: bool = False
    accumulate: bool = False
    inputs: tuple[str, ...] = ()
    real_engine: bool = False
    retain_graph: bool = False
    of: str = ""
    subject: Subject = CanvasSubject()
    objective: Objective = Objective()
    training: TrainingSetup = TrainingSetup()
    batch: int = 0


class NodeDetailCommand(Command, frozen=True, kw_only=True):
    """Ask for all that is known of one node of the current graph -> NodeDetailSnapshot."""

    handler = "node_detail:node_detail"
    while_held = True
    newest_only = True
    node: int


class GraphNumbersCommand(Command, frozen=True, kw_only=True):
    """Ask for the numbers of these nodes of the current graph, as the pass stands ->
    GraphNumbersSnapshot. Each BackwardSnapshot of the pass has them from then on."""

    handler = "backward:graph_numbers"
    while_held = True
    newest_only = True
    nodes: tuple[int, ...]


class StartTraceCommand(Command, frozen=True, kw_only=True):
    """Run code and record every call of torch in it -> OutputSnapshots and OutputTailSnapshots as
    it prints, then TraceSnapshots and a TraceStepSnapshot before the first call.

    `source` runs like a cell of the console, and the variables that it sets stay; a
    VariablesSnapshot follows. An `example` runs in a new namespace instead, and an ExampleSnapshot
    follows. Without `source`, the batch of the forward pass runs through the model, in a pass of
    its own. With `node` (an id), the rule of that node of the backward pass runs once more on
    copies, and the trace stands at its first call. An exception or an InterruptSignal ends the
    trace; what was recorded until then is kept.
    """

    handler = "trace:start_trace"
    source: str = ""
    example: bool = False
    node: int = -1


TraceMove = Literal[
    "step", "over", "out", "back", "to", "start", "end", "line", "back_line", "origin"
]


class MoveTraceCommand(Command, frozen=True, kw_only=True):
    """Go to another call of the trace -> TraceStepSnapshot.

    `step` goes to the next call, also into modules and functions; `over` to the next call outside
    this one; `out` to the next call outside the one around it; `back` to the previous call; `to` to
    call number `target`; `start` before the first call; `end` to the last. `line` goes to the next
    line of the user's code that ran, also into functions; `back_line` to the previous one; `origin`
    to the first call that made NaN or inf.
    """

    handler = "trace:move_trace"
    move: TraceMove
    target: int = -1


class TraceRootCommand(Command, frozen=True, kw_only=True):
    """Find the tensor, of the console or of the example, whose graph contains the nodes that call
    `position` of the trace made -> TraceRootSnapshot."""

    handler = "trace:find_root"
    position: int


BackwardMove = Literal[
    "step", "back", "to", "end", "reset", "run", "back_run", "leaf", "out", "again"
]


class MoveBackwardCommand(Command, frozen=True, kw_only=True):
    """Move the backward pass: as MoveForwardCommand, with nodes for blocks; `target` is a node id
    -> BackwardSnapshot.

    `run` goes on to the next breakpoint, `back_run` back to the previous one; `leaf` runs until a
    leaf has run; `out` runs to the last node of the next node's module. `to`, `leaf` and `out` stop
    at breakpoints on the way, `end` does not. `again` begins another pass over the same graph: the
    `.grad`s stay, and the previous pass cannot be returned to.
    """

    handler = "backward:move_backward"
    while_held = True
    move: BackwardMove
    target: int = -1


class SetBreakpointsCommand(Command, frozen=True, kw_only=True):
    """Replace the breakpoints, for this pass and later ones -> BackwardSnapshot if there is a
    pass."""

    handler = "backward_edits:set_breakpoints"
    while_held = True
    breakpoints: tuple[Breakpoint, ...]


class EditGradientCommand(Command, frozen=True, kw_only=True):
    """Replace the gradient that comes in at a node, before the node runs -> BackwardSnapshot.

    `expression` is Python of `g`, the gradient for output `output` of the node, or of `grads`, the
    gradients for all its outputs; it can use torch, F, np and the console's variables. None cuts
    the branch. An earlier edit at the same place is replaced.
    """

    handler = "backward_edits:edit_gradient"
    while_held = True
    node: int
    expression: str
    output: int = 0


class UneditGradientCommand(Command, frozen=True, kw_only=True):
    """Remove the edits of a node that has not run -> BackwardSnapshot."""

    handler = "backward_edits:unedit_gradient"
    while_held = True
    node: int


class ZeroGradientsCommand(Command, frozen=True, kw_only=True):
    """`zero_grad()`: set every `.grad` of the pass to None, or to zeros -> BackwardSnapshot."""

    handler = "backward_edits:zero_gradients"
    while_held = True
    set_to_none: bool = True


class ReadBackwardCodeCommand(Command, frozen=True, kw_only=True):
    """The cells of the console behind the graph, and the call that runs the pass at once ->
    BackwardCodeSnapshot."""

    handler = "backward_edits:read_code"
    while_held = True


class CompareGradientsCommand(Command, frozen=True, kw_only=True):
    """Run the same batch through plain `loss.backward()` and compare the gradients ->
    ComparisonSnapshot."""

    handler = "backward:compare_gradients"
    while_held = True


class InspectCommand(Command, frozen=True, kw_only=True):
    """Show one value of the current pass in full -> ValueSnapshot.

    `of` says what `key` names: an activation (block id), a parameter or its `.grad`
    (`"linear1.weight"`), or the last step of a node of the graph (node id as text). With an
    `optimizer` (`"optim.SGD"`) and its options, a parameter's gradient comes with the parameter's
    update.
    """

    handler = "backward:inspect_value"
    while_held = True
    of: Literal["activation", "parameter", "gradient"]
    key: str
    optimizer: str = ""
    optimizer_params: dict[str, ParamValue] = field(default_factory=dict)


class WhyNoGradientCommand(Command, frozen=True, kw_only=True):
    """Ask why the tensor `name` has no `.grad` after backward from `root` (an expression; empty if
    it is not known) -> WhyNoGradientSnapshot.

    Both are looked up in the namespace of the tab `example`. Without it they are looked up where
    the graph on screen came from, and an empty root is that of this graph; without a graph, in the
    console.
    """

    handler = "missing_gradient:why_no_gradient"
    while_held = True
    name: str
    root: str = ""
    example: ExampleTab = ""


# -- autograd: derivatives of a function ---------------------------------------------------------
#
# `function` is an expression of the console that can be called (`f`, `model`, `torch.tanh`, `lambda
# x: (x @ w).sum()`); `inputs` are expressions for its tensors. If `function` is empty, it is the
# model of the forward pass, in evaluation mode, at the first sample of its batch. With `example`,
# the expressions are those of that tab's example.


class DerivativeCommand(Command, frozen=True, kw_only=True):
    """Compute a derivative by input number `argument` -> DerivativeSnapshot, sent again as its
    comparisons arrive. `vector` (an expression; ones if empty) is what a jvp, vjp or hvp multiplies
    by. `mode` says how a Jacobian is computed: by rows (reverse) or by columns (forward)."""

    handler = "derivatives:differentiate"
    kind: DerivativeKind
    function: str = ""
    inputs: tuple[str, ...] = ()
    argument: int = 0
    vector: str = ""
    mode: Literal["reverse", "forward"] = "reverse"
    example: ExampleTab = ""


class ReadEntryCommand(Command, frozen=True, kw_only=True):
    """Read an entry of the last derivative's matrix -> EntrySnapshot."""

    handler = "derivatives:read_entry"
    newest_only = True
    row: int
    column: int


class GradcheckCommand(Command, frozen=True, kw_only=True):
    """Run torch.autograd.gradcheck on a function, or gradgradcheck if `second` ->
    GradcheckSnapshot.

    With `double`, the floating-point inputs (and a module's parameters) are converted to float64
    first, as the check expects.
    """

    handler = "derivatives:check_gradient"
    function: str = ""
    inputs: tuple[str, ...] = ()
    second: bool = False
    double: bool = True
    example: ExampleTab = ""
    eps: float = 1e-6
    atol: float = 1e-5
    rtol: float = 1e-3


class FlowCommand(Command, frozen=True, kw_only=True):
    """Train `steps` steps from each initialisation, on the same batches, and measure the gradients
    -> FlowSnapshots. Copies of the subject are trained; its own weights are not changed."""

    handler = "flow:gradient_flow"
    model: Model
    training: TrainingSetup
    subject: Subject = CanvasSubject()
    objective: Objective = Objective()
    steps: int = 60
    initialisations: tuple[Initialisation, ...] = ("default", "normal_0.01", "normal_1")


class ReadFlowCommand(Command, frozen=True, kw_only=True):
    """Ask for the gradients of one layer in step `step` (from 0) of the last gradient flow ->
    FlowHistogramsSnapshot."""

    handler = "flow:read_flow"
    layer: str
    step: int


# -- autograd: a node's rule ---------------------------------------------------------------------


class RuleCommand(Command, frozen=True, kw_only=True):
    """Ask for the rule of a node of the backward pass for its input `input` (-1: the first that
    gets a gradient), with the numbers for one element of the outgoing gradient (None: the first) ->
    RuleSnapshot."""

    handler = "rules:tell_rule"
    while_held = True
    node: int
    input: int = -1
    element: tuple[int, ...] | None = None


class CheckRuleCommand(Command, frozen=True, kw_only=True):
    """Check a node's last step against finite differences of the recorded operator ->
    RuleCheckSnapshot."""

    handler = "rules:check_step"
    while_held = True
    node: int


class RuleOpsCommand(Command, frozen=True, kw_only=True):
    """Run a node's rule once more, on copies, and list what torch runs in it -> RuleOpsSnapshot."""

    handler = "rules:list_ops"
    while_held = True
    node: int
