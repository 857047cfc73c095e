"""The training job. Pausing, single steps and going on are the session's (see `engine.lab`)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

from ..lab import Lab
from ..project.edits import loss_block
from ..protocol import Snapshot, TrainCommand
from ..training import checkpoints
from ..training.loop import TrainingLoop
from ..training.run import TrainingRun
from .models import require_runnable


def train(lab: Lab, command: TrainCommand) -> Iterator[Snapshot | None]:
    """Train the live model: a snapshot before the first step, then one optimizer step (or one
    batch of a validation pass) for each `next`, and a last snapshot that says how it ended.

    Raises LabError before the first snapshot when the model, the set-up or the checkpoint is not
    fit for training.
    """
    require_runnable(command.model, command.training)
    resume = checkpoints.load(command.checkpoint) if command.checkpoint else None
    live = lab.models.live_model(command.model, command.training.seed)
    block = loss_block(command.model)
    loop = TrainingLoop(
        live.module,
        command.training,
        loss=block.kind if block else command.training.loss,
        loss_params=block.params if block else {},
    )
    run = TrainingRun(loop, resume, command.checkpoint)
    lab.run = run
    yield run.snapshot("running")
    state = "stopped"
    with closing(run), closing(run.steps()) as steps:
        while not lab.control.stop.is_set():
            due = next(steps, None)
            if due is None:
                state = "finished"
                break
            yield run.snapshot("running") if due else None
    yield run.snapshot(state)
