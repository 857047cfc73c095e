"""Training by several processes: the engine starts them and passes on what rank 0 tells."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path

from msgspec.structs import replace
from torch import nn

from ...console.elsewhere.handing import handed, names_of
from ...lab import Lab
from ...project.atomic import private_folder
from ...project.document import ADJUSTABLE, TrainingSetup
from ...project.subject import split_reference
from ...protocol import (
    AdjustTrainingCommand,
    Command,
    ErrorReport,
    ErrorSnapshot,
    Hold,
    PauseSignal,
    RunFileCommand,
    Snapshot,
    StepColumns,
    StepTrainingCommand,
    StepUnit,
    StopSignal,
    TrainCommand,
    TrainingSnapshot,
    TrainingState,
)
from ...runs import folders
from ...runs.record import RunProblem, RunState, load, save
from ...system.errors import LabError
from ...training.checkpoints import checkpoint_files
from ...training.distributed.launch import BEGINS_RUN, Handover, Launched
from ...training.distributed.rank_files import RANKS, last_lines, log_of
from ...training.distributed.ranks import check_order, check_setup
from ..subjects.find import subject_of
from ..subjects.subject import Subject
from .code_files import data_of_console, files_needed

LINES_OF_LOST = 5
"""The last lines of a rank that ended which its error has."""


class RanksRun:
    """A run that other processes train, as the session and other commands see it: `last` is rank
    0's newest snapshot, without its figures. `send` gives rank 0 a command."""

    is_on_way = stops_in_step = False

    def __init__(self, setup: TrainingSetup, folder: Path, send: Callable[[Command], None]) -> None:
        self._setup, self._send = setup, send
        self.last = TrainingSnapshot(
            run="",
            state="running",
            step=0,
            total_steps=0,
            epoch=1,
            epochs=setup.epochs,
            device=setup.device,
            steps_per_second=0.0,
            steps=StepColumns(),
            folder=str(folder),
            processes=setup.processes,
        )

    @property
    def id(self) -> str:
        return self.last.run

    @property
    def step(self) -> int:
        return self.last.step

    @property
    def epoch(self) -> int:
        return self.last.epoch - 1

    @property
    def is_in_step(self) -> bool:
        return self.last.is_in_step

    @property
    def hold(self) -> Hold | None:
        return self.last.hold

    def pass_on(self, command: Command) -> None:
        if isinstance(command, StepTrainingCommand) and command.by in ("op", "module", "batch"):
            raise LabError(
                "Several processes go on by phases: what is inside one runs in all of them.",
                hint="Take the next phase; or train in one process.",
            )
        self._send(command)

    def hear(self, snapshot: TrainingSnapshot) -> None:
        self.last = replace(snapshot, steps=StepColumns(), epoch_rows=())

    def check_way(self) -> None:
        raise no_way()

    def snapshot(self, state: TrainingState) -> TrainingSnapshot:
        return replace(self.last, state=state)

    def tell_again(self) -> None:
        """Nothing is sent again: the earlier steps are in the run's folder only."""

    def by_hand(self, by: StepUnit) -> AbstractContextManager[None]:
        return nullcontext()

    def adjust(self, setup: TrainingSetup) -> None:
        """Let rank 0, and through it the other ranks, take over the settings that a run can
        change."""
        taken = (*ADJUSTABLE, "hold")
        if any(getattr(setup, name) != getattr(self._setup, name) for name in taken):
            self._setup = setup
            self._send(AdjustTrainingCommand(training=setup))

    def between_steps(self) -> AbstractContextManager[None]:
        return nullcontext()


def train_on_ranks(lab: Lab, command: TrainCommand) -> Iterator[Snapshot | None]:
    """As `train`, by several processes of this machine. While it is paused, and afterwards, the
    live model has the weights of the last checkpoint. Raises LabError for what they cannot do."""
    subject = subject_of(lab, command)
    inner = _check(lab, subject, command)
    if command.fresh:
        subject.forget_weights()
    module = subject.module
    files: list[Command] = [RunFileCommand(path=name) for name in files_needed(command)]
    given = Handover(files, module.state_dict(), console_for(subject))
    folder = Path(inner.folder)
    try:
        private_folder(folder)
        private_folder(folder / RANKS)
        processes = command.training.processes
        launched = Launched(folder / RANKS, processes, inner, given)
    except OSError as error:
        raise LabError(f"The processes could not be started: {error}.") from error
    run = lab.run = RanksRun(command.training, folder, launched.send)
    try:
        yield from _heard(lab, run, launched, folder, module)
    finally:
        launched.close()
        if not folders.is_run(folder):  # there was no step
            shutil.rmtree(folder, ignore_errors=True)
        elif run.last.state in ("running", "paused"):  # it is left for another one
            _record(folder, "stopped")
    _take_weights(module, run.last)


def _check(lab: Lab, subject: Subject, command: TrainCommand) -> TrainCommand:
    """The command for the ranks. Raises LabError for what they cannot do."""
    check_setup(command.training)
    check_order(command.training.data.loading.repeats)
    subject.check()
    if command.find_divergence:
        raise LabError(
            "Only a run of one process is held where it diverged.",
            hint="Set processes to 1, Resume from the checkpoint before, and let it diverge again.",
        )
    if command.to_step is not None:
        raise no_way()
    return replace(command, fresh=False, folder=str(_folder(command)))


def no_way() -> LabError:
    """The error where a run of several processes is to go to one of its steps."""
    return LabError(
        "A run of several processes does not go to one of its steps.",
        hint="Resume goes on from its last checkpoint; a run of one process goes to any step.",
    )


def console_for(subject: Subject) -> bytes:
    """The values of the console that another process needs to train the subject; empty without
    any. Raises LabError that tells why it cannot have one of them."""
    own, source = subject.console_names()
    found = [*data_of_console(subject.reference, subject.written, subject.training), *own]
    expressions = [text for text in found if split_reference(text) is None]
    names = names_of(expressions, source)
    return handed(subject.lab.console.namespace, names) if expressions else b""


def _folder(command: TrainCommand) -> Path:
    runs = Path(command.runs) if command.runs else folders.data_runs()
    if not command.checkpoint:
        return Path(command.folder) if command.folder else runs / folders.new_id()
    resume = checkpoint_files.load(command.checkpoint)
    return folders.run_of(Path(command.checkpoint)) or runs / resume.run


def _take_weights(module: nn.Module, told: TrainingSnapshot) -> None:
    if told.checkpoint:
        module.load_state_dict(checkpoint_files.load(told.checkpoint).model)


def _heard(
    lab: Lab, run: RanksRun, launched: Launched, folder: Path, module: nn.Module
) -> Iterator[Snapshot | None]:
    """Yield rank 0's snapshots to the end of the run. If a rank is lost, the last snapshot says
    why."""
    is_stopping = is_pausing = False
    yield run.snapshot("running")
    while True:
        if lab.control.stop.is_set() and not is_stopping:
            is_stopping = True
            if not launched.has_begun:
                yield run.snapshot("stopped")
                return
            launched.send(StopSignal())
        if lab.control.pause.is_set() != is_pausing:
            is_pausing = not is_pausing
            if is_pausing:  # to go on is a command, which the run has passed on
                launched.send(PauseSignal())
        try:
            snapshot = launched.next()
        except EOFError:
            break
        if isinstance(snapshot, TrainingSnapshot):
            run.hear(snapshot)
            if snapshot.state == "failed":
                continue  # it may be for another rank
            if snapshot.state == "paused" and snapshot.checkpoint_step == snapshot.step:
                _take_weights(module, snapshot)
        yield snapshot
        if isinstance(snapshot, ErrorSnapshot) and snapshot.command in BEGINS_RUN:
            return
    failure = launched.failure()
    if run.last.state in ("finished", "stopped"):
        return
    if failure is not None and (failure.rank or run.last.state != "failed"):
        error = _in_words(str(failure), folder, failure.rank)
    elif run.last.error is not None:
        error = run.last.error
    else:
        error = _in_words("The processes of the run have ended.", folder, 0)
    run.last = replace(run.last, state="failed", error=error)
    _record(folder, "failed", error.message)
    yield run.last


def _in_words(what: str, folder: Path, rank: int) -> ErrorReport:
    log = log_of(folder / RANKS, rank)
    lines = last_lines(log, LINES_OF_LOST)
    printed = "\n".join(["It printed last:", *lines, f"All of it: {log}", ""]) if lines else ""
    way_on = "Train again: the run had written no checkpoint yet."
    for path in folders.checkpoints_of(folder)[:1]:
        step = folders.step_of(path)
        way = f"Resume, or `tensorlab train --run {folder} --resume`"
        way_on = f"The run's last checkpoint is step {step:,}. Go on from it with {way}."
    return ErrorReport(type="RankLost", message=what, hint=f"{printed}{way_on}")


def _record(folder: Path, state: RunState, error: str = "") -> None:
    """Let the run's folder tell how it ended: rank 0 may have had no time for it."""
    with suppress(RunProblem, OSError):  # it has no folder yet
        save(folder, replace(load(folder), state=state, error=error))
