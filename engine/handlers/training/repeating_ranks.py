"""The last run of several processes once more, to one of its steps: from a state in its folder."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace
from torch import nn

from ...errors import LabError
from ...lab import Lab
from ...project.document import Project, TrainingSetup
from ...protocol import TrainCommand, TrainingSnapshot
from ...runs import folders
from ...runs.record import load
from ...runs.writer import RunWriter
from ...training import repeated_run
from ...training.checkpoints.checkpoint_fields import Checkpoint
from ...training.checkpoints.checkpoint_match import check_change
from ...training.checkpoints.run_states import RunStates
from ...training.loop import TrainingLoop
from ...training.objectives.objective import Objective
from ...training.run import TrainingRun
from ...training.way_to_step import Way
from .as_rank import begin_as_rank, begin_together
from .repeating import is_other_loss


def on_the_way(setup: TrainingSetup, told: TrainingSnapshot, command: TrainCommand) -> TrainCommand:
    """What the ranks are told that go to a step of the run with this set-up, of which rank 0 has
    `told` last. A step back is trained in a folder of its own. Raises LabError if they cannot get
    there."""
    step = command.to_step
    assert step is not None
    check_change(setup, command.training)
    for name, words in (("processes", "number of processes"), ("sharding", "sharding")):
        then, now = getattr(setup, name), getattr(command.training, name)
        if then != now:
            raise LabError(
                f"The {words} of a run cannot change between two of its steps: {then}, now {now}.",
                hint="Set it back; or Resume from the last checkpoint.",
            )
    if step < 0 or (told.total_steps and step > told.total_steps):
        raise LabError(f"The run has the steps 0 to {told.total_steps:,}, not {step:,}.")
    if not told.checkpoint:
        raise LabError(
            "The run has written no state yet to which it can go.", hint="Let it do a step first."
        )
    folder = Path(told.folder)
    start = RunStates.newest_in(folder, step)
    if start is None:
        raise LabError(
            f"The run has no state from which step {step:,} can be reached.",
            hint="A model that is divided between the processes (FSDP2) has its last checkpoints"
            " only, and states of more than 4 GB are not kept. Resume goes on from the last one.",
        )
    if start.step != step and is_other_loss(load(folder).project, command):
        raise LabError(
            f"Step {step:,} is reached by repeating steps from {start.step:,} on, which had another"
            " loss.",
            hint="Go there with the loss of then; it can be changed once the run is there.",
        )
    if step < told.step:
        folder = folder.with_name(folders.new_id())
    return replace(command, checkpoint=told.checkpoint, folder=str(folder))


def again_as_rank(
    lab: Lab, module: nn.Module, command: TrainCommand, whole: Objective
) -> TrainingRun:
    """In rank 0: the run of the checkpoint in the command, on its way to a step."""
    ranks, step = lab.ranks, command.to_step
    before = folders.run_of(Path(command.checkpoint))
    assert ranks is not None and step is not None and before is not None
    start: Checkpoint | None = RunStates.newest_in(before, step)
    assert start is not None  # the engine that has started this process found it
    objective = begin_as_rank(ranks, module, whole, command)
    begin_together(ranks, start)
    loop = TrainingLoop(
        module, start.setup, objective, lab.subjects.watching, command.subject, ranks
    )
    project = Project(
        model=command.model,
        training=start.setup,
        subject=command.subject,
        objective=command.objective,
    )
    writer, newest = RunWriter.resumed(before, start.run, project), command.checkpoint
    if Path(command.folder) != before:
        writer, newest = writer.forked(step, Path(command.folder)), ""
    way = Way(start, step, command.training, objective, lab.control.pause.set)
    return repeated_run.of_ranks(loop, way, writer, newest)
