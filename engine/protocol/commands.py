"""Commands and signals from the window to the engine: one struct each. A command names its handler.

The link sets a command's `id`; its answers carry it as `reply_to`. `revision` is that of the
document, so that answers about an older document can be recognised and dropped.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from msgspec import Struct

from ..project.document import Model, TrainingSetup


class Command(Struct, frozen=True, kw_only=True, tag=True):
    """`handler` is `module:function` in `engine.handlers`, imported at its first use; "" means that
    the session itself answers. Every struct that derives from this one is a command; there is no
    other list of them."""

    handler: ClassVar[str] = ""
    id: int = 0
    revision: int = 0


class HelloCommand(Command, frozen=True, kw_only=True):
    """Ask for a ReadySnapshot. The engine also sends one by itself when torch has loaded."""

    handler = "engine:hello"


# -- model ---------------------------------------------------------------------------------------


class CheckModelCommand(Command, frozen=True, kw_only=True):
    """Compute the model's shapes, parameter counts, problems and Python code -> ModelSnapshot."""

    handler = "models:check_model"
    model: Model
    training: TrainingSetup


class InitialiseCommand(Command, frozen=True, kw_only=True):
    """Replace the live model by a new one with weights from `training.seed` -> WeightsSnapshot."""

    handler = "models:initialise"
    model: Model
    training: TrainingSetup


# -- training ------------------------------------------------------------------------------------


class TrainCommand(Command, frozen=True, kw_only=True):
    """Train: answered with TrainingSnapshots, at most 30 a second, until the run has finished,
    failed or been stopped.

    With `checkpoint` (a path), the run goes on from that file, not from the live weights. With
    `paused`, it waits before the first step for `StepTrainingCommand` or `ContinueTrainingCommand`.
    """

    handler = "training:train"
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
    """Write the live model's state_dict (or its Python) to `path`, load it back and compare ->
    ExportSnapshot. With `weights` (a path), that file's state_dict is written, not the live one."""

    handler = "exporting:export"
    model: Model
    training: TrainingSetup
    format: Literal["pt", "safetensors", "py"]
    path: str
    weights: str = ""


class RunCellCommand(Command, frozen=True, kw_only=True):
    """Run Python in the console's namespace -> OutputSnapshots as it prints, then TensorsSnapshots,
    a VariablesSnapshot and one CellSnapshot. `filename` is the cell's name in tracebacks; if the
    file exists, it becomes `__file__`, and the modules in its folder can be imported."""

    handler = "console:run_cell"
    source: str
    filename: str = "<cell>"


class NewNamespaceCommand(Command, frozen=True, kw_only=True):
    """Replace the console's namespace by a new one -> VariablesSnapshot."""

    handler = "console:begin_namespace"


class ReadVariablesCommand(Command, frozen=True, kw_only=True):
    """List the console's variables -> VariablesSnapshot (also sent after every cell)."""

    handler = "console:read_variables"


class CompleteCommand(Command, frozen=True, kw_only=True):
    """Complete the word at `cursor` (an offset into `source`, in characters) ->
    CompletionsSnapshot."""

    handler = "console:complete_source"
    source: str
    cursor: int


# -- out of band ---------------------------------------------------------------------------------
#
# A signal acts at once, whatever the engine is doing. It is meant for the commands sent before it.


class PauseSignal(Struct, frozen=True, tag=True):
    """Pause the training run at the next step boundary."""


class StopSignal(Struct, frozen=True, tag=True):
    """End the current job at its next step boundary; its results so far stay."""


class InterruptSignal(Struct, frozen=True, tag=True):
    """Raise KeyboardInterrupt in the engine's main thread, to end user code that does not
    return."""


class QuitSignal(Struct, frozen=True, tag=True):
    """Stop the current job and end the engine."""


AnySignal = PauseSignal | StopSignal | InterruptSignal | QuitSignal
