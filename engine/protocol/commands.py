"""What the window asks of the engine: one struct a request, which names its handler.

`id` is set by the link and comes back as `reply_to`; `revision` is the document's, so that an
answer about an older document can be told and dropped.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from msgspec import Struct

from ..project.document import Model, TrainingSetup


class Command(Struct, frozen=True, kw_only=True, tag=True):
    """`handler` is `module:function` in `engine.handlers`, imported at its first use; "" is the
    session itself. A struct that derives from this one can be sent: nothing else lists it."""

    handler: ClassVar[str] = ""
    id: int = 0
    revision: int = 0


class HelloCommand(Command, frozen=True, kw_only=True):
    """Ask for a ReadySnapshot (also sent unasked once torch has loaded)."""

    handler = "engine:hello"


# -- model ---------------------------------------------------------------------------------------


class CheckModelCommand(Command, frozen=True, kw_only=True):
    """Work out shapes, parameter counts, problems and Python code -> ModelSnapshot."""

    handler = "models:check_model"
    model: Model
    training: TrainingSetup


class InitialiseCommand(Command, frozen=True, kw_only=True):
    """Forget all trained weights: build the live model anew from `training.seed`
    -> WeightsSnapshot."""

    handler = "models:initialise"
    model: Model
    training: TrainingSetup


# -- training ------------------------------------------------------------------------------------


class TrainCommand(Command, frozen=True, kw_only=True):
    """Train. Streams TrainingSnapshots, at most 30 a second, until finished, stopped or failed.

    With `checkpoint`, go on from that file (a path) instead of the live weights. With `paused`,
    stand before the first step and wait for `StepTrainingCommand` or `ContinueTrainingCommand`.
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
    """Write the live model's state_dict (or its Python) to `path`, load it back, compare
    -> ExportSnapshot. `weights` (a path) exports that file's state_dict instead of the live one."""

    handler = "exporting:export"
    model: Model
    training: TrainingSetup
    format: Literal["pt", "safetensors", "py"]
    path: str
    weights: str = ""


class RunCellCommand(Command, frozen=True, kw_only=True):
    """Run Python in the console's namespace -> OutputSnapshots as it prints, then the tensors it
    leaves as TensorsSnapshots, then one CellSnapshot. `filename` is what its traceback calls it;
    a file that exists becomes its `__file__` and its folder is importable."""

    handler = "console:run_cell"
    source: str
    filename: str = "<cell>"


class NewNamespaceCommand(Command, frozen=True, kw_only=True):
    """Forget all that cells have made and begin with a fresh namespace -> VariablesSnapshot."""

    handler = "console:begin_namespace"


class ReadVariablesCommand(Command, frozen=True, kw_only=True):
    """List the console's variables -> VariablesSnapshot (which also follows every cell)."""

    handler = "console:read_variables"


class CompleteCommand(Command, frozen=True, kw_only=True):
    """What could stand at `cursor` (an offset into `source`, in characters), from live objects
    -> CompletionsSnapshot."""

    handler = "console:complete_source"
    source: str
    cursor: int


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
