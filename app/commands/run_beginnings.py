"""The beginning of a run of `tensorlab train`: fresh weights, the project's, or a checkpoint."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal, NamedTuple

from app.commands.conversation import Conversation, failure
from app.commands.failures import CommandFailure
from app.commands.target import Target, show_output
from engine.project import files
from engine.project.document import TrainingSetup
from engine.protocol import (
    CheckpointSnapshot,
    ErrorSnapshot,
    FindCheckpointCommand,
    OpenWeightsCommand,
)

BeginFrom = Literal["weights", "fresh", "checkpoint"]


class Beginning(NamedTuple):
    """`path` is the file of the weights or the checkpoint, `step` that of the checkpoint."""

    kind: BeginFrom
    path: str = ""
    step: int = 0

    def report(self) -> dict[str, str | int | None]:
        path = os.fsencode(self.path).decode(errors="replace")
        return {"from": self.kind, "path": path or None, "step": self.step}

    def __str__(self) -> str:
        name = os.fsencode(Path(self.path).name).decode(errors="replace")
        if self.kind == "checkpoint":
            return f"from step {self.step:,} ({self.path})"
        return f"from the weights in {name}" if self.kind == "weights" else "from fresh weights"


def begin(
    engine: Conversation,
    target: Target,
    setup: TrainingSetup,
    wanted: BeginFrom,
    run: Path | None = None,
) -> Beginning:
    """Find what the run begins from. "weights" are those beside the project, which the engine then
    has; without such a file they are fresh. A checkpoint is that of the folder `run`, if there is
    one. Raises CommandFailure if the weights do not fit, or there is no checkpoint that fits."""
    if wanted == "checkpoint":
        return _checkpoint(engine, target, setup, run)
    beside = files.weights_file(target.path)
    if wanted == "fresh" or target.is_code or not beside.is_file():
        return Beginning("fresh")
    command = OpenWeightsCommand(
        model=target.project.model, training=setup, path=os.fsencode(beside.absolute())
    )
    for snapshot in engine.ask(command):
        if isinstance(snapshot, ErrorSnapshot):
            told = failure(beside, snapshot)
            raise CommandFailure(f"{told}\nTo train without these weights, add --fresh.")
    return Beginning("weights", str(beside))


def _checkpoint(
    engine: Conversation, target: Target, setup: TrainingSetup, run: Path | None
) -> Beginning:
    command = FindCheckpointCommand(
        model=target.project.model,
        training=setup,
        subject=target.subject,
        runs=files.runs_folder(target.path) if target.has_folder else "",
        folder=str(run.absolute()) if run else "",
    )
    for snapshot in engine.ask(command):
        show_output(snapshot)
        if isinstance(snapshot, ErrorSnapshot):
            raise failure(run or target.path, snapshot)
        if isinstance(snapshot, CheckpointSnapshot) and snapshot.path:
            return Beginning("checkpoint", snapshot.path, snapshot.step)
    raise CommandFailure(
        f"{target.path}: --resume: there is no checkpoint of this model with this data, batch size,"
        " seed and optimizer. Train without --resume."
    )
