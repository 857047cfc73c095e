"""Answers about the model: a check after every edit, new weights, the forward pass of one batch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from ..datasets.facts import facts_of
from ..datasets.load import load_dataset
from ..datasets.samples import DataProblem
from ..lab import Lab
from ..models.check import check, require_runnable
from ..models.code import block_places
from ..models.forward import ForwardPass
from ..project.edits import loss_call
from ..project.subject import CanvasSubject
from ..protocol import (
    CheckModelCommand,
    ForwardSnapshot,
    InitialiseCommand,
    MoveForwardCommand,
    Snapshot,
    StartForwardCommand,
    WeightsSnapshot,
)
from ..system.errors import LabError
from ..training.components.losses import make_loss
from .subjects.find import find_subject
from .subjects.subject import first_batch

CHECK_S = 10.0
"""The longest check of a model: it follows each edit, and other commands wait for it."""


def check_model(lab: Lab, command: CheckModelCommand) -> Iterator[Snapshot]:
    """Answer with a ModelSnapshot; the live model is not changed. Raises LabError after CHECK_S."""
    lab.canvas.show(command.model, command.training)
    with suppress(DataProblem):  # the check tells it
        facts_of(command.training.data)  # a file may take longer to read than a check may
    try:
        with lab.control.time_limit(CHECK_S):
            snapshot = check(command.model, command.training)
    except TimeoutError as error:
        raise LabError(
            f"The check of the model was ended: {error}.",
            hint="Make a number of layers or repetitions smaller.",
        ) from error
    yield snapshot


def initialise(lab: Lab, command: InitialiseCommand) -> Iterator[Snapshot]:
    """Forget all weights and answer with a WeightsSnapshot. Raises LabError as LiveModel does."""
    seed = command.training.seed
    live = lab.models.live_model(command.model, seed)
    live.reset(command.model, seed)
    yield WeightsSnapshot(origin=f"initialised with seed {seed}", parameters=live.parameters)


def start_forward(lab: Lab, command: StartForwardCommand) -> Iterator[Snapshot]:
    """Start a forward pass before the first block, with a batch of the training data.

    Raises LabError, with the problems of the blocks, if the model cannot run on the batch. The
    previous pass ends in any case, since it was of another model or other data.
    """
    lab.models.forward = None
    backward = lab.backward.under_way
    if backward is not None and not backward.subject.root:
        lab.backward.close()
    checked = require_runnable(command.model, command.training)
    setup = command.training
    live = lab.models.live_model(command.model, setup.seed)
    try:
        dataset = load_dataset(setup.data)
        if setup.data.loading.given:
            x, y = _given_batch(lab, command)
        else:
            x, y = dataset.train_batch(command.batch, setup.batch_size, setup.seed)
    except IndexError as error:
        raise LabError(str(error), hint="Choose another batch.") from error
    loss = make_loss(*loss_call(command.model, setup), dataset).to(live.device)
    lines = block_places(checked.code, checked.lines)
    forward = lab.models.forward = ForwardPass(live, x, y, loss, setup.seed, command.batch, lines)
    lab.backward.close()
    yield forward.snapshot()


def _given_batch(lab: Lab, command: StartForwardCommand) -> Any:
    """A batch of the DataLoader that has objects of the user's code."""
    subject = find_subject(lab, CanvasSubject(), command.model, command.training)
    data = subject.data()
    with subject.running(data.generators):
        return first_batch(data.batches(0, command.batch))


def move_forward(lab: Lab, command: MoveForwardCommand) -> Iterator[ForwardSnapshot]:
    """Move the forward pass; the backward pass over its graph ends.

    Raises LabError if there is no pass, or a block fails.
    """
    run = lab.models.require_forward()
    lab.backward.close()
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
