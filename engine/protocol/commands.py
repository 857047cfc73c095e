"""Commands and signals from the window to the engine: one struct each. A command names its handler.

The link sets a command's `id`; its answers carry it as `reply_to`. `revision` is that of the
document, so that answers about an older document can be recognised and dropped.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from msgspec import Struct

from ..project.document import HoldWhen, Model, TrainingSetup
from ..project.subject import Subject

ExampleTab = Literal["", "steps", "trace", "derivatives", "mistakes"]
"""A tab of the window whose examples have a namespace of their own; "" means the console."""


class Command(Struct, frozen=True, kw_only=True, tag=True):
    """`handler` is `module:function` in `engine.handlers`, imported at its first use; "" means that
    the session itself answers. `newest_only`: of the commands of this kind that the engine has not
    read yet, only the newest is wanted. `while_held`: the engine answers it inside the user's code
    that is held, too, since it changes nothing of it; with `while_running`, also inside code that
    runs: it only reads. `apart`: a thread of its own answers it, in the order of such commands; its
    handler uses files only, nothing of the lab. Every struct that derives from this one is a
    command; there is no other list of them.

    `unagreed`: the command's document has Python that the user has not agreed to. Then nothing that
    it names is looked up, opened or called."""

    handler: ClassVar[str] = ""
    newest_only: ClassVar[bool] = False
    while_held: ClassVar[bool] = False
    while_running: ClassVar[bool] = False
    apart: ClassVar[bool] = False
    id: int = 0
    revision: int = 0
    unagreed: bool = False


class HelloCommand(Command, frozen=True, kw_only=True):
    """Ask for a ReadySnapshot. The engine also sends one by itself when torch has loaded."""

    handler = "engine:hello"


# -- model ---------------------------------------------------------------------------------------


class CheckModelCommand(Command, frozen=True, kw_only=True):
    """Compute the model's shapes, parameter counts, problems and Python code -> ModelSnapshot."""

    handler = "models:check_model"
    newest_only = True
    model: Model
    training: TrainingSetup


class InitialiseCommand(Command, frozen=True, kw_only=True):
    """Replace the live model by a new one with weights from `training.seed` -> WeightsSnapshot."""

    handler = "models:initialise"
    model: Model
    training: TrainingSetup


# -- results and code ----------------------------------------------------------------------------


class LoadWeightsCommand(Command, frozen=True, kw_only=True):
    """Load the tensors of a file into the subject -> FitSnapshot. With `group`, only those whose
    keys are in that branch, `model` or `state_dict/encoder`. Unless `agreed`, nothing is loaded if
    a tensor of the subject is missing or of another shape, or a prefix would be taken off the
    names; what does not fit is never loaded. `branches` names, for modules of the subject, the
    branches of the file that have their tensors, where they are called otherwise there."""

    handler = "exporting.weights:load_into_subject"
    model: Model
    training: TrainingSetup
    subject: Subject
    path: str
    group: str = ""
    branches: dict[str, str] = {}
    agreed: bool = False


class SaveWeightsCommand(Command, frozen=True, kw_only=True):
    """Write the live model's state_dict beside its project, as safetensors ->
    SavedWeightsSnapshot. `path` is in the bytes of the file system: it need not be UTF-8."""

    handler = "exporting.weights:save_project_weights"
    model: Model
    training: TrainingSetup
    path: bytes


class OpenWeightsCommand(Command, frozen=True, kw_only=True):
    """Forget all weights, since another project was opened -> WeightsSnapshot. With `path`, the
    weights of that file take their place; without, the model is initialised when it is needed."""

    handler = "exporting.weights:open_project_weights"
    model: Model
    training: TrainingSetup
    path: bytes = b""


class RunCellCommand(Command, frozen=True, kw_only=True):
    """Run Python in the console's namespace -> OutputSnapshots and OutputTailSnapshots as it
    prints, then a VariablesSnapshot and one CellSnapshot. If it takes optimizer steps,
    LoopSnapshots come meanwhile, and a VariablesSnapshot when its loop is held.

    `filename` is the cell's name in tracebacks; if the file exists, it becomes `__file__`, and the
    modules in its folder can be imported.

    `all_output`: no output is left out or taken back, and no OutputTailSnapshot sent; the code
    waits for who reads it. `report_tensors`: TensorsSnapshots come before the CellSnapshot.

    `model` and `training` are what the cell knows as `canvas`. A WeightsSnapshot tells that it has
    changed the weights.
    """

    handler = "console:run_cell"
    source: str
    filename: str = "<cell>"
    all_output: bool = False
    report_tensors: bool = False
    model: Model | None = None
    training: TrainingSetup | None = None


class RunExampleCommand(Command, frozen=True, kw_only=True):
    """Run an example of a tab in a new namespace -> its output, then an ExampleSnapshot. The
    console's variables and those of other tabs' examples stay as they are."""

    handler = "console:run_example"
    source: str
    tab: ExampleTab


class EnterFolderCommand(Command, frozen=True, kw_only=True):
    """Let relative paths of cells start from `folder` -> no answer. "": from where the program was
    started."""

    handler = "console:enter_folder"
    folder: str


class NewNamespaceCommand(Command, frozen=True, kw_only=True):
    """Replace the console's namespace by a new one -> VariablesSnapshot."""

    handler = "console:begin_namespace"


class RecordCommand(Command, frozen=True, kw_only=True):
    """Record what later cells run, or do not -> no answer. An engine begins with recording on, and
    new namespaces keep what is set."""

    handler = "console:set_recording"
    on: bool


class ReadVariablesCommand(Command, frozen=True, kw_only=True):
    """List the console's variables -> VariablesSnapshot (also sent after every cell)."""

    handler = "console:read_variables"
    while_running = True


class CompleteCommand(Command, frozen=True, kw_only=True):
    """Complete the word at `cursor` (an offset into `source`, in characters) ->
    CompletionsSnapshot."""

    handler = "console:complete_source"
    while_running = True
    newest_only = True
    source: str
    cursor: int


# -- out of band ---------------------------------------------------------------------------------
#
# A signal acts at once, whatever the engine is doing. It is meant for the commands sent before it.


class PauseSignal(Struct, frozen=True, tag=True):
    """Pause the training run at the next step boundary; hold the loop of a cell after its next
    optimizer step, that of a script no sooner than after its step `at_step`."""

    at_step: int = 0


class StepBackwardSignal(Struct, frozen=True, tag=True):
    """From now on, hold the user's code inside each backward() that it calls, or no longer."""

    on: bool


class HoldWhenSignal(Struct, frozen=True, tag=True):
    """From now on, hold loops of the user's own code when this is seen in a step: `not_finite`,
    `loss_spike` and `gradient_norm`."""

    when: HoldWhen


class StopSignal(Struct, frozen=True, tag=True):
    """End the current job at its next step boundary; its results so far stay. With `command`, an
    id, end only that one, or do not begin it if it waits: whatever else runs, or is held, stays."""

    command: int = 0


class InterruptSignal(Struct, frozen=True, tag=True):
    """Raise KeyboardInterrupt in the engine's main thread, to end user code that does not
    return. With `command`, an id, only in code that this one runs."""

    command: int = 0


class QuitSignal(Struct, frozen=True, tag=True):
    """Stop the current job and end the engine."""


AnySignal = (
    PauseSignal | StepBackwardSignal | HoldWhenSignal | StopSignal | InterruptSignal | QuitSignal
)
