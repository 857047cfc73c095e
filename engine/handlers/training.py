"""The training job. The session itself answers pausing, single steps and going on (see
`engine.lab`)."""

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
    """Train the live model.

    The first `next` yields a snapshot before the first step. Each further `next` does one optimizer
    step, or one batch of a validation pass. The last snapshot says how the run ended. Raises
    LabError before the first snapshot if the model, the set-up or the checkpoint cannot be trained
    with.
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
