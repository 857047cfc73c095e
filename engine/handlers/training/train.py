"""The training job. The session itself answers pausing, single steps and going on (see
`engine.lab`)."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing, nullcontext, suppress
from pathlib import Path

from ...advice.first_steps import FirstSteps
from ...console.breakpoint_calls import breakpoints_told
from ...lab import Lab
from ...loops.hooks import steps_shown
from ...project.document import Project
from ...project.subject import is_same_subject
from ...protocol import (
    AdjustTrainingCommand,
    CheckpointSnapshot,
    FindCheckpointCommand,
    Finding,
    FindingSnapshot,
    Snapshot,
    TrainCommand,
    TrainingState,
)
from ...restoring.random_states import random_states
from ...runs import folders
from ...runs.record import RunProblem, changed, load
from ...runs.writer import RunWriter
from ...system.current_modules import kept_current
from ...system.errors import LabError
from ...training.checkpoints import checkpoint_files
from ...training.checkpoints.checkpoint_fields import Checkpoint
from ...training.checkpoints.checkpoint_match import check_match
from ...training.distributed.torchrun import Place, join, own_place
from ...training.failures import unordered
from ...training.loop import TrainingLoop
from ...training.optimization.training_step import check_setup
from ...training.run import TrainingRun
from ..subjects.find import subject_of
from ..subjects.subject import Drawn
from .as_rank import begin_as_rank, begin_together, follow
from .code_files import files_that_ran
from .ranks import train_on_ranks
from .repeating import again, is_other_loss, last_run, where_it_diverged
from .run_script import add_script
from .stepping import StepsByHand


def find_checkpoint(lab: Lab, command: FindCheckpointCommand) -> Iterator[Snapshot]:
    """Answer with a CheckpointSnapshot. Raises LabError if the model is not complete, or none of a
    given run's checkpoints can be gone on from."""
    model = subject_of(lab, command).module
    if command.folder:
        paths = folders.checkpoints_of(Path(command.folder))
        if not paths:
            raise LabError(
                f"The run {command.folder} has no checkpoint: it ended before its first one.",
                hint="Train again, into a new folder.",
            )
    else:
        paths = _newest_checkpoints(command)
    why: LabError | None = None
    for path in paths:
        try:
            saved = checkpoint_files.load(path)
            check_match(saved, command.training, command.subject, model)
            written_s = path.stat().st_mtime
        except (LabError, OSError) as error:  # it is damaged, of another model, or gone by now
            why = why or (error if isinstance(error, LabError) else None)
            continue
        yield CheckpointSnapshot(path=str(path), step=saved.step, written_s=written_s)
        return
    if command.folder and why is not None:
        raise why
    yield CheckpointSnapshot()


def _newest_checkpoints(command: FindCheckpointCommand) -> list[Path]:
    """The last checkpoint of each run that this subject may have and that no other process trains,
    the newest first."""
    found: list[tuple[int, Path]] = []
    beside = folders.runs_in(Path(command.runs)) if command.runs else []
    for folder in beside + folders.runs_in(folders.data_runs()):
        try:
            record = load(folder)
            other = record.state == "running" and not record.writer.is_own
            if other and record.writer.is_alive():
                continue
            if record.trial is not None:  # a sweep's trials are opened from the list
                continue
            if not is_same_subject(record.project.subject, command.subject):
                continue
        except RunProblem:
            pass  # the checkpoint itself says whether it fits
        for path in folders.checkpoints_of(folder)[:1]:
            with suppress(OSError):
                found.append((path.stat().st_mtime_ns, path))
    return [path for _, path in sorted(found, reverse=True)]


def train(lab: Lab, command: TrainCommand) -> Iterator[Snapshot | None]:
    """Train the subject.

    The first `next` yields a snapshot before the first step. Each further `next` does one optimizer
    step, or one batch of a validation pass. The last snapshot says how the run ended. Raises
    LabError before the first snapshot if the model, the set-up or the checkpoint cannot be trained
    with.
    """
    place = own_place() if lab.ranks is None else None
    if lab.ranks is None and place is None and command.training.processes > 1:
        yield from train_on_ranks(lab, command)
        return
    try:
        yield from _trained(lab, command) if place is None else _by_torchrun(lab, command, place)
    finally:
        if isinstance(lab.run, TrainingRun):
            lab.run.files.writer.close()


def _by_torchrun(lab: Lab, command: TrainCommand, place: Place) -> Iterator[Snapshot | None]:
    """As one of the ranks that torchrun has started. Only rank 0 tells anything."""
    ranks = lab.ranks = join(place, command.training)
    if place.rank:
        follow(lab, command)
        return
    yield from _trained(lab, command)
    if isinstance(lab.run, TrainingRun) and lab.run.failure is None:
        ranks.end()  # else this process ends, and the others with it


def _trained(lab: Lab, command: TrainCommand) -> Iterator[Snapshot | None]:
    subject = subject_of(lab, command)
    subject.check()
    resume = checkpoint_files.load(command.checkpoint) if command.checkpoint else None
    if command.fresh and not _repeats(command):
        subject.forget_weights()
    before = random_states()
    objective = subject.objective()
    drawn = Drawn(before, random_states())
    if command.find_divergence:
        run = where_it_diverged(last_run(lab, subject.module, command))
    elif command.to_step is not None:
        run = again(lab, subject.module, command, objective)
    else:
        watch, writer, ranks = lab.subjects.watching, _writer(command, resume), lab.ranks
        check_setup(command.training)
        whole = objective
        if ranks is not None:
            objective = begin_as_rank(ranks, subject.module, objective, command)
            begin_together(ranks, resume)
        if resume is None:  # the module has the weights of the first step
            add_script(writer, subject, whole, drawn)
        loop = TrainingLoop(
            subject.module, command.training, objective, watch, command.subject, ranks
        )
        run = TrainingRun(loop, resume, command.checkpoint, writer)
        if resume is not None:
            run.tell_changed(changed(writer.record.code, files_that_ran(lab, command)))
            is_inside = resume.batch not in (0, objective.batches_per_epoch)
            if is_inside and not objective.repeats and run.warning is None:
                run.warning = unordered()
            if writer.trained_before is None or is_other_loss(writer.trained_before, command):
                run.only_from_here()
        else:
            writer.note_code(files_that_ran(lab, command))
    lab.run = run

    def tell(finding: Finding) -> None:
        assert lab.run is not None
        lab.emit(FindingSnapshot(finding=finding, run=lab.run.id))

    runs_code = objective.runs_code
    advises = runs_code and lab.ranks is None and not _repeats(command)
    first = FirstSteps(subject.module, tell) if advises else None
    with lab.output().redirected() if runs_code else nullcontext():
        state = yield from driven(lab, run, first)
        if run.failure is not None and run.loop.setup.hold.not_finite and run.can_find_divergence:
            run.snapshot("failed")  # its folder tells its end; the window hears of the next run
            run.files.writer.close()
            run = lab.run = where_it_diverged(run)
            state = yield from driven(lab, run)
    if first is not None:
        first.end()
    yield run.snapshot(state)


def _repeats(command: TrainCommand) -> bool:
    return command.to_step is not None or command.find_divergence


def driven(
    lab: Lab, run: TrainingRun, first: FirstSteps | None = None
) -> Generator[Snapshot | None, None, TrainingState]:
    """Run to the end, or until it is stopped; returns which of them."""
    updates, runs_code = lab.subjects.updates, run.loop.objective.runs_code
    by_hand, with_modules = StepsByHand(lab, run), kept_current()
    held = breakpoints_told if runs_code else nullcontext
    if lab.attend is not None:
        run.loop.inside = by_hand
        held = by_hand.breakpoints if runs_code else by_hand.told
    with closing(run), closing(run.steps()) as steps:
        yield run.snapshot("running")
        is_one = run.loop.ranks is None  # else the others wait inside the step for its end
        while not lab.control.stop.is_set() or (run.is_in_step and not is_one):
            try:
                with (
                    nullcontext() if first is None else first.looked_over(),
                    steps_shown(updates) if updates.is_asked else nullcontext(),
                    held(),
                    with_modules(),  # other commands may have made others current
                    lab.control.user_code() if runs_code else nullcontext(),
                ):
                    due = next(steps, None)
            except KeyboardInterrupt:  # the user's step took too long to wait for its end
                return "stopped"
            if due is None:
                return "finished"
            if run.hold is not None:
                lab.control.pause.set()
                yield run.snapshot("paused")
            else:
                yield run.snapshot("running") if due else None
    return "stopped"


def _writer(command: TrainCommand, resume: Checkpoint | None) -> RunWriter:
    """The writer of a new run, or of the one that goes on. Raises LabError if another process
    trains it."""
    project = Project(
        model=command.model,
        training=command.training,
        subject=command.subject,
        objective=command.objective,
    )
    runs = Path(command.runs) if command.runs else folders.data_runs()
    if resume is None:
        return RunWriter.new(runs, project, Path(command.folder) if command.folder else None)
    folder = folders.run_of(Path(command.checkpoint)) or runs / resume.run
    return RunWriter.resumed(folder, resume.run, project)


def adjust(lab: Lab, command: AdjustTrainingCommand) -> Iterator[Snapshot]:
    """Change the optimizer's parameters of the run. Raises LabError if it cannot take them now."""
    if lab.run is not None:
        lab.run.adjust(command.training)
    yield from ()
