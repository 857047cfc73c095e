"""What the window asks of the engine. One struct a request; `engine.session` has one handler each.

`id` is set by the link and comes back as `reply_to`; `revision` is the document's, so that an
answer about an older document can be told and dropped.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from ..project.document import Model, TrainingSetup
from .derivative_snapshots import DerivativeKind
from .flow_snapshots import Initialisation
from .stepping import Breakpoint


class Command(Struct, frozen=True, kw_only=True, tag=True):
    id: int = 0
    revision: int = 0


class HelloCommand(Command, frozen=True, kw_only=True):
    """Ask for a ReadySnapshot (also sent unasked once torch has loaded)."""


# -- model ---------------------------------------------------------------------------------------


class CheckModelCommand(Command, frozen=True, kw_only=True):
    """Work out shapes, parameter counts, problems and Python code -> ModelSnapshot."""

    model: Model
    training: TrainingSetup


class InitialiseCommand(Command, frozen=True, kw_only=True):
    """Forget all trained weights: build the live model anew from `training.seed`
    -> WeightsSnapshot."""

    model: Model
    training: TrainingSetup


# -- autograd: one batch of the chosen data set --------------------------------------------------


class StartForwardCommand(Command, frozen=True, kw_only=True):
    """Take batch number `batch` of the training data, stand before the first block
    -> ForwardSnapshot."""

    model: Model
    training: TrainingSetup
    batch: int = 0


class MoveForwardCommand(Command, frozen=True, kw_only=True):
    """Run one block (`step`), undo one (`back`), run until `target` has run (`to`), run all
    blocks and the loss (`end`), or return before the first (`reset`) -> ForwardSnapshot."""

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

    node: int


class StartTraceCommand(Command, frozen=True, kw_only=True):
    """Run code and record all that torch does in it -> OutputSnapshots as it prints, then
    TraceSnapshots and a TraceStepSnapshot that stands before the first call.

    `source` runs as a cell of the console does, and what it leaves stays. Empty: the batch of the
    forward pass under way runs through the model, in a pass of its own. An exception or an
    InterruptSignal ends the trace, not what it has recorded.
    """

    source: str = ""


TraceMove = Literal["step", "over", "out", "back", "to", "start", "end", "line", "origin"]


class MoveTraceCommand(Command, frozen=True, kw_only=True):
    """Go to another call of the trace -> TraceStepSnapshot.

    `step` goes to the next call, into modules and functions; `over` to the next that is not inside
    this one, `out` to the next that is not inside the call around it; `back` to the one before;
    `to` to number `target`; `start` before the first, `end` to the last; `line` to the first call
    under another line of the user's code; `origin` to the first that made NaN or inf.
    """

    move: TraceMove
    target: int = -1


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

    move: BackwardMove
    target: int = -1


class SetBreakpointsCommand(Command, frozen=True, kw_only=True):
    """Stop at these from now on, also in later passes -> BackwardSnapshot if a pass is under
    way."""

    breakpoints: tuple[Breakpoint, ...]


class EditGradientCommand(Command, frozen=True, kw_only=True):
    """Let `expression` replace the gradient that comes in at a node that has not run, in place
    of any earlier edit there -> BackwardSnapshot.

    It is Python of `g`, the gradient for output `output` of the node, or `grads`, those for all
    of them; torch, F, np and the console's variables stand ready. None cuts the branch.
    """

    node: int
    expression: str
    output: int = 0


class UneditGradientCommand(Command, frozen=True, kw_only=True):
    """Forget the edits of a node that has not run -> BackwardSnapshot."""

    node: int


class ZeroGradientsCommand(Command, frozen=True, kw_only=True):
    """`zero_grad()`: make every `.grad` of the pass None, or zeros -> BackwardSnapshot."""

    set_to_none: bool = True


class ExportBackwardCommand(Command, frozen=True, kw_only=True):
    """Write the pass with its edits and breakpoints as a script, to a file if `path` is given
    -> BackwardScriptSnapshot."""

    path: str = ""


class CompareGradientsCommand(Command, frozen=True, kw_only=True):
    """Run the same batch through plain `loss.backward()` and compare -> ComparisonSnapshot."""


class InspectCommand(Command, frozen=True, kw_only=True):
    """Show one value of the current pass in full -> ValueSnapshot.

    `of` says what `key` names: an activation (block id), a parameter or its `.grad`
    (`"linear1.weight"`), or a node of the graph (node id as text: its last step).
    """

    of: Literal["activation", "parameter", "gradient"]
    key: str


# -- training ------------------------------------------------------------------------------------


class TrainCommand(Command, frozen=True, kw_only=True):
    """Train. Streams TrainingSnapshots, at most 30 a second, until finished, stopped or failed.

    With `checkpoint`, go on from that file (a path) instead of the live weights. With `paused`,
    stand before the first step and wait for `StepTrainingCommand` or `ContinueTrainingCommand`.
    """

    model: Model
    training: TrainingSetup
    checkpoint: str = ""
    paused: bool = False


class StepTrainingCommand(Command, frozen=True, kw_only=True):
    """Run one optimizer step of the paused run."""


class ContinueTrainingCommand(Command, frozen=True, kw_only=True):
    """Let the paused run go on."""


# -- results and code ----------------------------------------------------------------------------


class ExportCommand(Command, frozen=True, kw_only=True):
    """Write the live model's state_dict (or its Python) to `path`, load it back, compare
    -> ExportSnapshot. `weights` (a path) exports that file's state_dict instead of the live one."""

    model: Model
    training: TrainingSetup
    format: Literal["pt", "safetensors", "py"]
    path: str
    weights: str = ""


class RunCellCommand(Command, frozen=True, kw_only=True):
    """Run Python in the console's namespace -> OutputSnapshots as it prints, then the tensors it
    leaves as TensorsSnapshots, then one CellSnapshot. `filename` is what its traceback calls it;
    a file that exists becomes its `__file__` and its folder is importable."""

    source: str
    filename: str = "<cell>"


class NewNamespaceCommand(Command, frozen=True, kw_only=True):
    """Forget all that cells have made and begin with a fresh namespace -> VariablesSnapshot."""


class ReadVariablesCommand(Command, frozen=True, kw_only=True):
    """List the console's variables -> VariablesSnapshot (which also follows every cell)."""


class CompleteCommand(Command, frozen=True, kw_only=True):
    """What could stand at `cursor` (an offset into `source`, in characters), from live objects
    -> CompletionsSnapshot."""

    source: str
    cursor: int


# -- tensors: shapes that meet -------------------------------------------------------------------
#
# An operand is a variable's expression (`x`, `model.linear1.weight`), a number, or a shape that
# need not exist (`(8, 1, 6, 1)`). `element` is an element of the result; None or one that is not
# there is its first.


class BroadcastCommand(Command, frozen=True, kw_only=True):
    """Align two to four operands from the right -> BroadcastSnapshot. With `in_place` the result
    is written into the first."""

    operands: tuple[str, ...]
    in_place: bool = False
    element: tuple[int, ...] | None = None


class ReductionCommand(Command, frozen=True, kw_only=True):
    """Which elements of `expression` fold into each of the result -> ReductionSnapshot.

    `op` is a function of torch (`reductions.OPS`); `dims` None folds all dimensions.
    """

    expression: str
    op: str = "sum"
    dims: tuple[int, ...] | None = None
    keepdim: bool = False
    element: tuple[int, ...] | None = None


class ProductCommand(Command, frozen=True, kw_only=True):
    """Which rows meet which columns -> ProductSnapshot. `equation` is einsum's."""

    operands: tuple[str, ...]
    op: Literal["matmul", "mm", "bmm", "mv", "dot", "outer", "einsum"] = "matmul"
    equation: str = ""
    element: tuple[int, ...] | None = None


class PickCommand(Command, frozen=True, kw_only=True):
    """Which elements an indexing expression picks (`x[0, :, ::2]`, `x[mask]`, `x.gather(1, i)`)
    -> PickSnapshot. Nothing is run in the console."""

    source: str
    element: tuple[int, ...] | None = None


# -- values --------------------------------------------------------------------------------------


class ReadValuesCommand(Command, frozen=True, kw_only=True):
    """Read a window of a tensor under a slice -> ValuesSnapshot.

    `slice` is what stands between the brackets, or all of `x[0, :, ::2]`; empty for the whole.
    The window is of the table that `ValuesSnapshot` describes; at most 4,000 cells are read.
    With `picture`, what there is to paint comes along.
    """

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

    expression: str
    slice: str = ""
    restart: bool = False


class LinesCommand(Command, frozen=True, kw_only=True):
    """Look on through the first `lines` rows of a tensor under a slice for a moment, to draw them
    over its last dimension -> LinesSnapshot, with how far it came. Ask again until all is seen.
    """

    expression: str
    slice: str = ""
    lines: int = 6
    restart: bool = False


class BitsCommand(Command, frozen=True, kw_only=True):
    """Take one element apart into the bits of its dtype -> BitsSnapshot."""

    expression: str
    index: tuple[int, ...]


# -- tensors: storage and aliases ----------------------------------------------------------------


class ReadStorageCommand(Command, frozen=True, kw_only=True):
    """Read `count` cells of the storage under a tensor from cell `first` on (None: from where the
    tensor starts) -> StorageSnapshot."""

    expression: str
    first: int | None = None
    count: int = 1024


class LocateCommand(Command, frozen=True, kw_only=True):
    """Where an element lies, or who reads a cell: one of `index` and `cell` is given
    -> LocationSnapshot."""

    expression: str
    index: tuple[int, ...] | None = None
    cell: int | None = None


class AliasesCommand(Command, frozen=True, kw_only=True):
    """Which of the console's tensors and arrays share memory, and how they came to
    -> AliasesSnapshot."""


# -- tensors: operations explained ---------------------------------------------------------------


class ExplainCommand(Command, frozen=True, kw_only=True):
    """What one line, such as `y = x.T.reshape(-1)`, will give, told before it runs
    -> ExplanationSnapshot. With `run`, it is also run aside, on copies where it writes, and each
    prediction held against what torch gave. No variable changes either way."""

    source: str
    run: bool = False


class WhyNoGradientCommand(Command, frozen=True, kw_only=True):
    """Say why `name`, a tensor of the console, has no `.grad`, after backward from `root` (an
    expression; empty when it is not known) -> WhyNoGradientSnapshot."""

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

    kind: DerivativeKind
    function: str = ""
    inputs: tuple[str, ...] = ()
    argument: int = 0
    vector: str = ""
    mode: Literal["reverse", "forward"] = "reverse"


class ReadEntryCommand(Command, frozen=True, kw_only=True):
    """Tell of an entry of the last derivative's matrix -> EntrySnapshot."""

    row: int
    column: int


class GradcheckCommand(Command, frozen=True, kw_only=True):
    """torch.autograd.gradcheck of a function, of its gradient with `second` -> GradcheckSnapshot.

    With `double` the floating inputs (and a module's parameters) are turned into float64 first,
    as the check expects.
    """

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

    model: Model
    training: TrainingSetup
    steps: int = 60
    initialisations: tuple[Initialisation, ...] = ("default", "normal_0.01", "normal_1")


class ReadFlowCommand(Command, frozen=True, kw_only=True):
    """Show the gradients of one layer in step `step` (from 0) of the last flow
    -> FlowHistogramsSnapshot."""

    layer: str
    step: int


# -- autograd: a node's rule ---------------------------------------------------------------------


class RuleCommand(Command, frozen=True, kw_only=True):
    """Tell the rule of a node of the backward pass for its input `input` (the first that gets a
    gradient, for -1), with the numbers of one element of the outgoing gradient (the first for None)
    -> RuleSnapshot."""

    node: int
    input: int = -1
    element: tuple[int, ...] | None = None


class CheckRuleCommand(Command, frozen=True, kw_only=True):
    """Hold a node's last step against finite differences of the recorded operator
    -> RuleCheckSnapshot."""

    node: int


class RuleOpsCommand(Command, frozen=True, kw_only=True):
    """Run a node's rule once more, on copies, and list what torch runs in it -> RuleOpsSnapshot."""

    node: int


AnyCommand = (
    HelloCommand
    | CheckModelCommand
    | InitialiseCommand
    | StartForwardCommand
    | MoveForwardCommand
    | StartBackwardCommand
    | MoveBackwardCommand
    | NodeDetailCommand
    | StartTraceCommand
    | MoveTraceCommand
    | SetBreakpointsCommand
    | EditGradientCommand
    | UneditGradientCommand
    | ZeroGradientsCommand
    | ExportBackwardCommand
    | CompareGradientsCommand
    | InspectCommand
    | TrainCommand
    | StepTrainingCommand
    | ContinueTrainingCommand
    | ExportCommand
    | RunCellCommand
    | NewNamespaceCommand
    | ReadVariablesCommand
    | CompleteCommand
    | BroadcastCommand
    | ReductionCommand
    | ProductCommand
    | PickCommand
    | ReadValuesCommand
    | StatisticsCommand
    | LinesCommand
    | BitsCommand
    | ReadStorageCommand
    | LocateCommand
    | AliasesCommand
    | ExplainCommand
    | WhyNoGradientCommand
    | DerivativeCommand
    | ReadEntryCommand
    | GradcheckCommand
    | FlowCommand
    | ReadFlowCommand
    | RuleCommand
    | CheckRuleCommand
    | RuleOpsCommand
)


# -- out of band ---------------------------------------------------------------------------------
#
# A signal acts at once, whatever the engine is doing. It is meant for the commands sent before it.


class PauseSignal(Struct, frozen=True, tag=True):
    """Pause the training run at the next step boundary."""


class StopSignal(Struct, frozen=True, tag=True):
    """End the job in hand at its next step boundary; what it has done stays."""


class InterruptSignal(Struct, frozen=True, tag=True):
    """Raise KeyboardInterrupt in the engine's main thread: for user code that does not return."""


class QuitSignal(Struct, frozen=True, tag=True):
    """Stop the job in hand and leave."""


AnySignal = PauseSignal | StopSignal | InterruptSignal | QuitSignal
