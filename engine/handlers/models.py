"""What the window asks of a model: a check after every edit, new weights, a pass of one batch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..errors import LabError
from ..models.check import check
from ..models.code import block_places
from ..models.forward import ForwardPass
from ..models.live import LiveModel, live_model
from ..project.document import Model, TrainingSetup
from ..project.edits import loss_block
from ..project.problems import located
from ..protocol import (
    CheckModelCommand,
    ForwardSnapshot,
    InitialiseCommand,
    ModelSnapshot,
    MoveForwardCommand,
    Snapshot,
    StartForwardCommand,
    WeightsSnapshot,
)
from ..training import data
from ..training.components import make_loss

if TYPE_CHECKING:
    from ..lab import Lab


def check_model(lab: Lab, command: CheckModelCommand) -> Iterator[Snapshot]:
    """Answer with a ModelSnapshot; the live model is left alone."""
    yield check(command.model, command.training)


def initialise(lab: Lab, command: InitialiseCommand) -> Iterator[Snapshot]:
    """Forget all weights and answer with a WeightsSnapshot. Raises LabError as LiveModel does."""
    seed = command.training.seed
    if lab.live is None:
        lab.live = LiveModel(command.model, seed)
    else:
        lab.live.reset(command.model, seed)
    yield WeightsSnapshot(origin=f"initialised with seed {seed}", parameters=lab.live.parameters)


def start_forward(lab: Lab, command: StartForwardCommand) -> Iterator[Snapshot]:
    """Stand before the first block with a batch of the training data.

    Raises LabError, with the problems of the blocks, when the model cannot run on it. The pass
    before is over in any case: it was of another model, or of other data.
    """
    lab.forward = None
    if lab.backward is not None and not lab.backward.subject.root:
        lab.end_backward()
    checked = require_runnable(command.model, command.training)
    setup = command.training
    live = live_model(lab, command.model, setup.seed)
    try:
        x, y = data.load(setup.data).train_batch(command.batch, setup.batch_size, setup.seed)
    except (ValueError, IndexError) as error:
        raise LabError(str(error), hint="Choose another batch or data set.") from error
    loss = loss_block(command.model)
    kind, params = (loss.kind, loss.params) if loss else (setup.loss, {})
    lines = block_places(checked.code, checked.lines)
    lab.forward = ForwardPass(live, x, y, make_loss(kind, params), setup.seed, command.batch, lines)
    lab.end_backward()
    yield lab.forward.snapshot()


def move_forward(lab: Lab, command: MoveForwardCommand) -> Iterator[ForwardSnapshot]:
    """Move the pass under way; what backward has done on it is forgotten.

    Raises LabError when there is none, or when a block fails.
    """
    if lab.forward is None:
        raise LabError("No forward pass is under way.", hint="Start one: take a batch.")
    run: ForwardPass = lab.forward
    lab.end_backward()
    match command.move:
        case "step" if not run.done:
            run.step()
        case "back":
            run.back()
        case "to":
            run.run_to(command.target)
        case "end":
            run.end()
        case "reset":
            run.reset()
    yield run.snapshot()


def require_runnable(model: Model, training: TrainingSetup) -> ModelSnapshot:
    """Raise LabError with all problems of a model that cannot run on its data set."""
    checked = check(model, training)
    if checked.runnable:
        return checked
    found = [*checked.problems, *(p for report in checked.blocks for p in report.problems)]
    errors = tuple(problem for problem in found if problem.severity == "error")
    raise LabError(
        f"The model cannot run yet. {located(errors[0], model)}",
        hint="Mend what the Problems list names.",
        problems=errors,
    )
