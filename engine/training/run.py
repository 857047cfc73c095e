"""A training run: its snapshots, timed checkpoints, and errors in words."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

import msgspec
from torch import Tensor, nn

from ..errors import LabError
from ..project.document import ADJUSTABLE, Project, TrainingSetup
from ..project.steps.order import keeps_gradients
from ..protocol import (
    BestSoFar,
    EpochRow,
    ErrorReport,
    Hold,
    StepColumns,
    StepNumbers,
    TrainingMemory,
    TrainingSnapshot,
    TrainingState,
    WhichWeights,
)
from ..runs import folders
from ..runs.writer import RunWriter
from .checkpoints import checkpoint_files
from .checkpoints.checkpoint_files import Checkpoint
from .checkpoints.kept_states import KeptStates
from .failures import explain
from .figures.memory import training_memory
from .figures.metrics import Diverged
from .figures.pace import SNAPSHOT_INTERVAL_S, Speed
from .loop import TrainingLoop
from .objectives.objective import Objective

CHECKPOINT_INTERVAL_S = 2.0
CHECKPOINT_SHARE = 0.05
"""Writing checkpoints takes at most this share of the time."""
KEEP_INTERVAL_S = 0.5
KEEP_SHARE = 0.01
"""Keeping states in memory takes at most this share of the time."""


class Change(NamedTuple):
    """Another set-up, from after this step on."""

    step: int
    setup: TrainingSetup


class Way(msgspec.Struct, frozen=True):
    """From a state that was kept to a step, by repetition. From there on the run has the set-up and
    the objective; `arrived` is called there. `changes` are those on the way."""

    start: Checkpoint
    step: int
    setup: TrainingSetup
    objective: Objective
    arrived: Callable[[], None]
    changes: tuple[Change, ...] = ()


class TrainingRun:
    """Drives a `TrainingLoop` (`run.loop`), from checkpoint `resume` on if given. `close` it at the
    end. The checkpoint's file counts as the run's own until the run writes one. `writer` writes the
    run's folder, by default one in the data folder.

    `failure` says why the run ended early, `diverged_at` in which step (from 1) its numbers were
    not finite any more, if it did for that; `warning` is an error that did not end it. Raises
    LabError if the checkpoint does not fit the loop.
    """

    def __init__(
        self,
        loop: TrainingLoop,
        resume: Checkpoint | None = None,
        resume_path: str = "",
        writer: RunWriter | None = None,
    ) -> None:
        self.loop = loop
        self.failure: ErrorReport | None = None
        self.warning: ErrorReport | None = None
        self.diverged_at = 0
        self.checkpoint_path = resume_path
        self.checkpoint_step = 0
        try:
            self.writer = writer or _default_writer(loop, resume)
            if resume is not None:
                loop.restore(resume)
                self.checkpoint_step = resume.step
        except LabError:
            loop.close()
            raise
        self._begun_at = loop.step
        now = perf_counter()
        self._checkpoint_due_s = now + CHECKPOINT_INTERVAL_S
        self._snapshot_due_s = now
        self._speed = Speed()
        self._memory = TrainingMemory()
        self.kept = KeptStates()
        self.changes: list[Change] = []
        self._way: Way | None = None
        self._postponed: TrainingSetup | None = None
        self._last: dict[str, Tensor] | None = None
        self._keep_due_s = 0.0

    @property
    def id(self) -> str:
        return self.writer.record.id

    @property
    def step(self) -> int:
        return self.loop.step

    @property
    def is_in_step(self) -> bool:
        return self.loop.is_in_step

    @property
    def hold(self) -> Hold | None:
        return self.loop.holding.hold

    @property
    def is_on_way(self) -> bool:
        return self._way is not None

    @property
    def can_find_divergence(self) -> bool:
        """Whether `where_it_diverged` can be had; not of such a run itself."""
        if not self.diverged_at or self.loop.holding.looks_for_divergence:
            return False
        has_phases = self.loop.setup.optimizer != "optim.LBFGS"
        return has_phases and self.kept.newest_finite(self.diverged_at - 1) is not None

    @contextmanager
    def by_hand(self, by_phase: bool) -> Iterator[None]:
        """Steps in this context are run one by one, with all their numbers, or phase by phase."""
        self.loop.by_hand, self.loop.by_phase = True, by_phase
        try:
            yield
        finally:
            self.loop.by_hand = self.loop.by_phase = False

    @classmethod
    def again(
        cls, before: TrainingRun, loop: TrainingLoop, way: Way, is_new: bool = False
    ) -> TrainingRun:
        """A run that goes to a step of the run before it. A step back gives it a new id, so that
        the checkpoints of the other one stay; so does `is_new`."""
        is_back = is_new or way.step < before.step
        writer = before.writer.forked(way.step) if is_back else before.writer
        run = cls(loop, way.start, writer=writer)
        if is_back:
            run.checkpoint_step = 0
        else:
            run.checkpoint_path = before.checkpoint_path
            run.checkpoint_step = before.checkpoint_step
        run.kept = before.kept.until(way.step)
        run.changes = [change for change in before.changes if change.step < way.step]
        run._way = msgspec.structs.replace(
            way, changes=tuple(c for c in run.changes if c.step >= way.start.step)
        )
        loop.holding.is_on_way = True
        return run

    def steps(self) -> Generator[bool, None, None]:
        """Train, as `TrainingLoop.steps`; yields whether a snapshot is due: at times, and where the
        run is held.

        Ends early, with `failure` set, if the model raises or the loss is NaN or infinite.
        """
        try:
            if self._follow_way():
                yield True
            with closing(self.loop.steps()) as steps:
                self._keep()
                for _ in steps:
                    if self.loop.is_in_step:
                        yield self.hold is not None
                        continue
                    self._follow_way()
                    if self._postponed is not None:
                        self._adjust_now()
                    now = perf_counter()
                    if now >= self._keep_due_s:
                        self._keep()
                    due = now >= self._snapshot_due_s
                    if due:
                        self._snapshot_due_s = now + SNAPSHOT_INTERVAL_S
                        self._flush()
                        self.writer.work()
                    if now >= self._checkpoint_due_s - self._early_s():
                        self.save()
                    if self.failure is None:
                        yield due or self.hold is not None
                    if not self._keep_due_s:
                        self._keep()
                    if self.failure is not None:  # set by `_flush`, here or during the yield
                        return
        except Exception as error:
            self._fail(error)
        finally:
            self.writer.rest()

    def close(self) -> None:
        """Move the model back to the CPU. The run cannot go on afterwards."""
        self._flush()  # figures are computed from gradients, which `close` moves
        try:
            self._keep()
            self.loop.close()
        except RuntimeError as error:  # a failed CUDA device gives nothing back
            self._fail(error)

    def _flush(self) -> None:
        """Read the figures so far; a loss that is not finite ends the run."""
        if self.failure is None:
            try:
                self.loop.flush()
            except (Diverged, RuntimeError) as error:
                self._fail(error)

    def _fail(self, error: Exception) -> None:
        if isinstance(error, Diverged):
            self.diverged_at = error.step
        self.failure = self.failure or explain(error, self.loop.setup, self.loop.learning_rate)

    def adjust(self, setup: TrainingSetup) -> None:
        """Take what holds the run, and what else a run can take, of another set-up of the same
        optimizer; in the middle of a step once that is done. Raises LabError."""
        self.loop.hold_when(setup.hold)
        if all(getattr(setup, name) == getattr(self.loop.setup, name) for name in ADJUSTABLE):
            self._postponed = None
            return
        if self._way is None and setup.optimizer == self.loop.setup.optimizer:
            if self.is_in_step:
                self._postponed = setup
            else:
                self.loop.adjust(setup)
                self._postponed = None
                self.changes.append(Change(self.step, self.loop.setup))

    def _adjust_now(self) -> None:
        """Take over what came in the middle of the step. What cannot be is a warning."""
        try:
            self.adjust(self._postponed or self.loop.setup)
        except LabError as error:
            self._postponed = None
            self._warn(error)

    @contextmanager
    def between_steps(self) -> Iterator[None]:
        """The engine does its other work between two steps in this context: it may draw random
        numbers and change gradients without changing the run."""
        self._flush()  # the figures of the last steps are computed from their gradients
        before = self._versions()
        gradients = self._gradients_in_use()
        with self.loop.random.suspended(), self.loop.objective.metrics.aside():
            yield
        for parameter, gradient in gradients:
            parameter.grad = gradient
        if self._versions() != before:
            self.loop.marks.add(self.step, "weights edited")
            self._keep_due_s = 0.0  # no repetition would lead here

    def _gradients_in_use(self) -> list[tuple[nn.Parameter, Tensor | None]]:
        """Copies of the gradients that the rest of this step, or the next one, uses."""
        if not (self.is_in_step or keeps_gradients(self.loop.setup.order)):
            return []
        parameters = self.loop.parameters
        return [(p, None if p.grad is None else p.grad.clone()) for p in parameters]

    def _versions(self) -> list[int]:
        return [tensor._version for tensor in self.loop.model.state_dict().values()]

    def choose_weights(self, which: WhichWeights) -> str:
        """Load other weights of this run, which has ended, into its model; returns words for them.
        Raises LabError if the run has none."""
        model, best = self.loop.model, self.loop.best
        averaged = self.loop.averaged
        if which == "averaged" and (averaged is None or not averaged.has_begun):
            raise LabError("The run has averaged no weights.", hint="Choose an averaging first.")
        if which == "best" and best is None:
            raise LabError("The run has no best epoch.", hint="It must end one epoch at least.")
        if self._last is None:
            self._last = {n: t.detach().clone() for n, t in model.state_dict().items()}
        if which == "averaged" and averaged is not None:
            model.load_state_dict(averaged.weights)
            return f"The model has the averaged weights ({self.loop.setup.averaging.kind})."
        if which == "last" or best is None:
            model.load_state_dict(self._last)
            return f"The model has the weights with which the run ended, at step {self.step:,}."
        model.load_state_dict(best.weights)
        return f"The model has the weights of epoch {best.epoch:,}, the best by {best.figure}."

    # -- going to a step -------------------------------------------------------------------------

    def _keep(self) -> None:
        """Keep the state in memory. A run that has diverged, or is in a step, keeps none."""
        started = perf_counter()
        self._flush()
        if self.failure is None and not self.is_in_step:
            self.kept.add(self.loop.checkpoint(self.id))
        now = perf_counter()
        self._keep_due_s = now + max(KEEP_INTERVAL_S, (now - started) / KEEP_SHARE)

    def _follow_way(self) -> bool:
        """Make the changes that were made at this step before. At the end of the way, make the new
        ones and return True."""
        way = self._way
        if way is None:
            return False
        for change in way.changes:
            if change.step == self.step:
                self.loop.adjust(change.setup)
        if self.step < way.step:
            return False
        self._way = None
        self.loop.holding.is_on_way = False
        self.loop.become(way.setup, way.objective)
        self._keep_due_s = 0.0  # a later way begins here: before, other settings hold
        way.arrived()
        return True

    # -- snapshots -------------------------------------------------------------------------------

    def snapshot(self, state: TrainingState) -> TrainingSnapshot:
        """Return the state of the run, with the steps and epochs that no snapshot has had yet.

        Unless the run is running, it writes a checkpoint first. The state becomes "failed" if
        `failure` is set.
        """
        self._flush()
        if self.failure is None and state != "running" and self.step > self.checkpoint_step:
            self.save()
        if self.failure is not None:
            state = "failed"
        loop, setup = self.loop, self.loop.setup
        steps, epoch_rows = loop.metrics.drain(with_cuda=loop.device.type == "cuda")
        self._write(state, steps, epoch_rows)
        if state != "running" or not self._memory.gradient_bytes:
            self._memory = training_memory(loop.model, loop.optimizer)
        steps_per_second = self._speed.per_second(self.step, running=state == "running")
        warning, self.warning = self.warning, None
        return TrainingSnapshot(
            run=self.id,
            state=state,
            step=self.step,
            total_steps=loop.total_steps or 0,
            epoch=min(loop.epoch + 1, setup.epochs),
            epochs=setup.epochs,
            steps_per_second=steps_per_second,
            remaining_s=(
                (loop.total_steps - self.step) / steps_per_second
                if steps_per_second and loop.total_steps is not None
                else None
            ),
            steps=steps,
            epoch_rows=epoch_rows,
            device=setup.device,
            checkpoint=self.checkpoint_path,
            checkpoint_step=self.checkpoint_step,
            error=self.failure or warning,
            memory=self._memory,
            folder=str(self.writer.folder) if self.writer.begun else "",
            marks=loop.marks.all,
            best=loop.best and BestSoFar(loop.best.figure, loop.best.epoch, loop.best.value),
            stopped_early=loop.stopped_early,
            averaged=loop.averaged is not None and loop.averaged.has_begun,
            guess_accuracy=loop.objective.guess_accuracy,
            validation_samples=loop.objective.validation_samples,
            step_numbers=self._step_numbers(state),
            is_in_step=loop.is_in_step,
            hold=self.hold,
            can_find_divergence=self.can_find_divergence,
        )

    def _step_numbers(self, state: TrainingState) -> StepNumbers | None:
        step = self.loop.current
        if step is None or state != "paused" or step.number != self.step + self.is_in_step:
            return None
        return step.numbers()

    # -- the run's folder ------------------------------------------------------------------------

    def _write(
        self, state: TrainingState, steps: StepColumns, epoch_rows: tuple[EpochRow, ...]
    ) -> None:
        """Give the figures of a snapshot to the run's folder, and tell it the end. What cannot be
        written is a warning; a run without a step leaves no folder."""
        writer = self.writer
        if writer.begun or steps.step:
            try:
                writer.begin(self._begun_at)
                writer.add(steps, epoch_rows)
                if state in ("finished", "stopped", "failed"):
                    writer.end(state, self.failure.message if self.failure else "")
            except LabError as error:
                self._warn(error)
        if writer.problem:
            self._warn(LabError(writer.problem, hint="The run goes on without them."))
            writer.problem = ""

    def move(self, folder: Path) -> None:
        """Move the run's folder. Raises LabError."""
        before = self.writer.folder
        self.writer.move(folder)
        path = Path(self.checkpoint_path)
        if self.checkpoint_path and path.is_relative_to(before):
            self.checkpoint_path = str(folder / path.relative_to(before))

    def _warn(self, error: LabError) -> None:
        self.warning = explain(error, self.loop.setup, self.loop.learning_rate)

    # -- checkpoints -----------------------------------------------------------------------------

    def _early_s(self) -> float:
        """How much earlier than due a checkpoint may be written, in seconds: half an interval at
        the end of an epoch, where a checkpoint is worth more."""
        return CHECKPOINT_INTERVAL_S / 2 if self.loop.batch == 0 else 0.0

    def save(self) -> None:
        """Write a checkpoint. If it cannot be written, that is a warning, and the run goes on.

        A run that has diverged, or is in a step, writes none.
        """
        self._flush()
        if self.failure is not None or self.is_in_step:
            return
        checkpoint = self.loop.checkpoint(self.id)
        started = perf_counter()
        try:
            self.checkpoint_path = str(checkpoint_files.save(checkpoint, self.writer.folder))
            self.checkpoint_step = self.step
            self.writer.settle(checkpoint.setup)
        except LabError as error:
            self._warn(error)
        now = perf_counter()
        cost_s = now - started
        self._checkpoint_due_s = now + max(CHECKPOINT_INTERVAL_S, cost_s / CHECKPOINT_SHARE)


def _default_writer(loop: TrainingLoop, resume: Checkpoint | None) -> RunWriter:
    runs, project = folders.data_runs(), Project(training=loop.setup)
    if resume is None:
        return RunWriter.new(runs, project)
    return RunWriter.resumed(runs / resume.run, resume.run, project)
