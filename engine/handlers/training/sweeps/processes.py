"""The trials of a sweep, several at once: each in a process of its own, from fresh weights."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec
import torch
from msgspec.structs import replace
from torch import Tensor

from ....errors import LabError
from ....lab import Lab
from ....process import EngineLost, SpawnedEngine
from ....project.document import TrainingSetup
from ....protocol import (
    AnySignal,
    Command,
    DoneSnapshot,
    ErrorReport,
    ErrorSnapshot,
    PauseSignal,
    Snapshot,
    StepColumns,
    StopSignal,
    SweepCommand,
    TakeConsoleCommand,
    TrainingSnapshot,
    TrialCommand,
)
from ....runs import folders
from ....runs.record import RunProblem, load, save
from ....sweeps.study import Study
from ....temporary import make_folder
from ...subjects.find import subject_of
from ..code_files import run_again
from ..ranks import RanksRun, console_for
from .trial import figure_of

LOOK_UP_S = 0.05
MAX_KEPT = 2000
"""The most snapshots that are kept of a trial, to draw its curves once it is shown. Its folder has
all figures."""


def sweep_in_processes(
    lab: Lab, command: SweepCommand, study: Study, sweep_id: str, first: dict[str, Tensor]
) -> Iterator[Snapshot | None]:
    """As `sweep`. The snapshots of the trial that began first are sent as they come; those of every
    other trial are sent when it ends. Raises LabError if the processes cannot have what the user's
    code made."""
    console = console_for(subject_of(lab, command))
    with make_folder() as kept:
        before: list[Command] = [*run_again(lab, command)]
        if console:
            path = Path(kept) / "console.bin"
            path.write_bytes(console)
            before.append(TakeConsoleCommand(path=str(path)))
        weights = str(Path(kept) / "weights.pt")
        torch.save(first, weights)
        trials = _Trials(command, study, sweep_id, weights, before)
        lab.run = trials.run
        try:
            yield from trials.run_all(lab)
        finally:
            trials.close()


class _SweepRun(RanksRun):
    """Trials in other processes, as the session sees them. A setting that changes meanwhile is for
    the next sweep."""

    def adjust(self, setup: TrainingSetup) -> None:
        pass


class _Trial:
    """A trial, in the process that trains it; `snapshots` are those that it has sent so far."""

    def __init__(self, command: TrialCommand, engine: SpawnedEngine) -> None:
        self.command, self.engine = command, engine
        self.snapshots: deque[TrainingSnapshot] = deque(maxlen=MAX_KEPT)
        self.id = engine.send(command)
        self.epoch = 0
        self.pruned_at: float | None = None

    @property
    def number(self) -> int:
        return self.command.number


class _Trials:
    """The trials that are running, and those still to come. `close` ends their processes."""

    def __init__(
        self,
        command: SweepCommand,
        study: Study,
        sweep_id: str,
        weights: str,
        before: Sequence[Command],
    ) -> None:
        self._command, self._study = command, study
        self._sweep_id, self._weights, self._before = sweep_id, weights, before
        self._runs = Path(command.runs) if command.runs else folders.data_runs()
        self._threads = max(1, torch.get_num_threads() // command.sweep.jobs)
        self._idle: list[SpawnedEngine] = []
        self._going: list[_Trial] = []
        self._shown: _Trial | None = None
        self._begun = self._best = 0
        self._value = math.nan
        self._failed: ErrorReport | None = None
        self.run = _SweepRun(command.training, self._runs, self._send)
        self.run.last = replace(self.run.last, folder="")  # each trial has its own

    def run_all(self, lab: Lab) -> Iterator[Snapshot | None]:
        """Run the trials to the end of the sweep, and yield their snapshots; None between them.
        Raises LabError if no trial could be trained."""
        is_stopping = is_pausing = False
        wanted = self._command.sweep
        yield self.run.snapshot("running")
        while True:
            if lab.control.stop.is_set() and not is_stopping:
                is_stopping = True
                self._signal(StopSignal())
            if lab.control.pause.is_set() != is_pausing:
                is_pausing = not is_pausing
                if is_pausing:  # to go on is a command, which the run has passed on
                    self._signal(PauseSignal())
            while len(self._going) < wanted.jobs and self._begun < wanted.trials:
                if is_stopping:
                    break
                self._begin(is_pausing)
            if not self._going:
                break
            for trial in list(self._going):
                yield from self._receive(trial, is_stopping)
            yield None
        if not self._best and self._failed is not None and not is_stopping:
            raise LabError(
                f"No trial could be trained. {self._failed.message}", hint=self._failed.hint
            )

    def close(self) -> None:
        for engine in [*self._idle, *(trial.engine for trial in self._going)]:
            engine.close()

    def _begin(self, is_paused: bool) -> None:
        self._begun = number = self._begun + 1
        fields = {name: getattr(self._command, name) for name in SweepCommand.__struct_fields__}
        fields |= {
            "folder": str(self._runs / f"{self._sweep_id}{folders.TRIAL}{number:04}"),
            "paused": is_paused,
            "number": number,
            "sweep_id": self._sweep_id,
            "values": self._study.ask(number),
            "weights": self._weights,
            "threads": self._threads,
        }
        engine = self._idle.pop() if self._idle else self._started()
        self._going.append(_Trial(TrialCommand(**fields), engine))

    def _started(self) -> SpawnedEngine:
        engine = SpawnedEngine()
        try:
            engine.start()
        except OSError as error:
            raise LabError(f"A process for a trial could not be started: {error}.") from error
        for command in self._before:
            engine.send(command)
        return engine

    def _receive(self, trial: _Trial, is_stopping: bool) -> Iterator[Snapshot]:
        """Wait a moment for messages of a trial's process, and yield the snapshots to send. Raises
        LabError if the process cannot have what the user's code made."""
        try:
            snapshot = trial.engine.receive(LOOK_UP_S / len(self._going))
            while snapshot is not None:
                if isinstance(snapshot, DoneSnapshot) and snapshot.reply_to == trial.id:
                    self._idle.append(trial.engine)
                    yield from self._ended(trial, is_stopping)
                    return
                yield from self._take(trial, snapshot)
                snapshot = trial.engine.receive(0)
        except EngineLost:
            words = f"The process of trial {trial.number} has ended: {_exit_words(trial.engine)}"
            trial.engine.close()
            error = self._failed = ErrorReport(type="TrialLost", message=words)
            if trial.snapshots:
                nothing_new = {"steps": StepColumns(), "epoch_rows": ()}
                last = replace(trial.snapshots[-1], state="failed", error=error, **nothing_new)
                trial.snapshots.append(last)
            with suppress(RunProblem, OSError):  # it has no folder yet
                folder = Path(trial.command.folder)
                save(folder, replace(load(folder), state="failed", error=words))
            yield from self._ended(trial, is_stopping)

    def _take(self, trial: _Trial, snapshot: Snapshot) -> Iterator[Snapshot]:
        if isinstance(snapshot, ErrorSnapshot):
            if snapshot.reply_to != trial.id:  # it is of the user's files, or of the console
                raise LabError(snapshot.error.message, hint=snapshot.error.hint)
            self._failed = snapshot.error
        elif not isinstance(snapshot, TrainingSnapshot):
            if snapshot.reply_to:  # what code prints
                yield snapshot
        else:
            trial.snapshots.append(snapshot)
            for row in snapshot.epoch_rows:
                self._report(trial, row.epoch, figure_of(row, self._command.sweep.figure))
            if snapshot.state not in ("running", "paused"):
                return  # `_ended` tells it
            if self._shown is None and trial is self._going[0]:
                self._shown = trial
                yield from map(self._with_progress, trial.snapshots)
            elif self._shown is trial:
                yield self._with_progress(snapshot)

    def _report(self, trial: _Trial, epoch: int, value: float | None) -> None:
        """Ends a trial that is worse than the median."""
        if epoch <= trial.epoch or value is None or trial.pruned_at is not None:
            return
        trial.epoch = epoch
        is_over = epoch == trial.snapshots[-1].epochs
        if self._study.report(trial.number, epoch, value) and not is_over:
            trial.pruned_at = value
            with suppress(EngineLost):  # the next look at it tells
                trial.engine.signal(StopSignal())

    def _ended(self, trial: _Trial, is_stopping: bool) -> Iterator[Snapshot]:
        self._going.remove(trial)
        last, wanted = trial.snapshots[-1] if trial.snapshots else None, self._command.sweep
        state = "failed" if last is None else last.state
        is_pruned = trial.pruned_at is not None and state == "stopped"
        value = self._figure(trial) if state == "finished" else None
        value = trial.pruned_at if is_pruned else value
        if state != "stopped" or is_pruned:
            self._study.tell(trial.number, value, is_pruned)
        if is_pruned:
            _tag_pruned(Path(trial.command.folder), value)
        if state == "finished" and wanted.is_better(value, self._value):
            self._best, self._value = trial.number, value or 0.0
        if last is None:
            return
        has_ended = not self._going and (is_stopping or self._begun == wanted.trials)
        if self._shown is not trial:
            yield from map(self._with_progress, list(trial.snapshots)[:-1])
        self._shown = None
        shown = self._with_progress(last, "pruned" if is_pruned else state, has_ended)
        self.run.hear(shown)
        yield shown

    def _figure(self, trial: _Trial) -> float | None:
        rows = [row for snapshot in trial.snapshots for row in snapshot.epoch_rows]
        return figure_of(rows[-1], self._command.sweep.figure) if rows else None

    def _with_progress(
        self, snapshot: TrainingSnapshot, state: str = "running", has_ended: bool = False
    ) -> TrainingSnapshot:
        """The snapshot with the progress of the sweep. While the sweep goes on, the state is never
        that of a run that has ended."""
        trial = snapshot.trial
        assert trial is not None
        progress = msgspec.structs.replace(
            trial, best=self._best, value=self._value, state=state, has_ended=has_ended
        )
        state_shown = snapshot.state
        if not has_ended and state_shown not in ("running", "paused"):
            state_shown = "running"
        shown = replace(snapshot, trial=progress, state=state_shown)
        self.run.hear(shown)
        return shown

    # -- to the processes ------------------------------------------------------------------------

    def _send(self, command: Command) -> None:
        for trial in self._going:
            with suppress(EngineLost, BufferError):  # the next look at it tells
                trial.engine.send(command)

    def _signal(self, signal: AnySignal) -> None:
        for trial in self._going:
            with suppress(EngineLost):
                trial.engine.signal(signal)


def _exit_words(engine: SpawnedEngine) -> str:
    end = engine.exit()
    return f"signal {-end.code}." if end.code < 0 else f"exit code {end.code}."


def _tag_pruned(folder: Path, value: float | None) -> None:
    with suppress(RunProblem, OSError):  # another has removed it
        record = load(folder)
        if record.trial is not None:
            save(folder, replace(record, trial=replace(record.trial, value=value, is_pruned=True)))
