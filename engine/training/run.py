"""A training run: its snapshots, the states it keeps, and errors in words."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from math import inf
from pathlib import Path
from time import perf_counter

from msgspec.structs import replace

from ..project.document import ADJUSTABLE, TrainingSetup
from ..protocol import (
    ErrorReport,
    Hold,
    StepUnit,
    TrainingMemory,
    TrainingSnapshot,
    TrainingState,
    TrialProgress,
)
from ..runs.writer import RunWriter
from ..system.errors import LabError, as_exception
from .between_steps import kept_between_steps, weight_versions
from .checkpoints.checkpoint_files import Checkpoint
from .checkpoints.run_states import RunStates
from .end_weights import EndWeights
from .failures import code_changed, explain, other_batches
from .figures.memory import training_memory
from .figures.metrics import Diverged
from .figures.pace import SNAPSHOT_INTERVAL_S, Speed
from .loop import TrainingLoop
from .objectives.seen_batches import Place
from .run_files import RunFiles, writer_in_data_folder
from .telling import told_of
from .way_to_step import Way

KEEP_INTERVAL_S = 1.0
KEEP_SHARE = 0.003
"""Keeping states takes at most this share of the time."""


class TrainingRun:
    """Drives a `TrainingLoop` (`run.loop`), from checkpoint `resume` on if given. `close` it at the
    end. The checkpoint's file counts as the run's own until the run writes one. `writer` writes the
    run's folder, by default one in the data folder.

    `failure` says why the run ended early, `diverged_at` in which step (from 1) its numbers were
    not finite any more, if it did for that; `warning` is an error that did not end it. Raises
    LabError if the checkpoint does not fit the loop.
    """

    pass_on = None

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
        self.trial: TrialProgress | None = None
        """Which trial of a sweep it is."""
        self.diverged_at = 0
        try:
            writer = writer or writer_in_data_folder(loop.setup, resume)
            if resume is not None:
                loop.restore(resume)
        except LabError:
            loop.close()
            raise
        self.files = RunFiles(writer, loop.step, resume_path)
        self.weights = EndWeights(loop)
        self._snapshot_due_s = perf_counter()
        self._speed = Speed()
        self._memory = TrainingMemory()
        self._is_resumed = bool(resume_path)
        self.kept = RunStates(self.folder, loop.objective)
        if resume is not None and resume_path:
            self.kept.resume(resume, loop.setup)
        self._way: Way | None = None
        self._postponed: TrainingSetup | None = None
        self._keep_due_s = 0.0
        self._told_other = False

    @property
    def id(self) -> str:
        return self.files.writer.record.id

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
        loop = self.loop
        if not self.diverged_at or loop.holding.looks_for_divergence or loop.ranks is not None:
            return False
        can = loop.setup.optimizer != "optim.LBFGS" and loop.objective.repeats
        return can and self.kept.newest_finite(self.diverged_at - 1) is not None

    @property
    def epoch(self) -> int:
        return self.loop.epoch

    @property
    def stops_in_step(self) -> bool:
        return self.loop.stops_in_step

    @contextmanager
    def by_hand(self, by: StepUnit) -> Iterator[None]:
        """Steps in this context are run one by one, with all their numbers, or by parts of one.
        Raises LabError for parts that they do not have."""
        if by in ("op", "module") and self.loop.is_compiled:
            raise LabError(
                "torch.compile runs the model as one program: nothing stops inside of it.",
                hint="Take the next phase; or turn compile off under More.",
            )
        self.loop.by = by
        try:
            yield
        finally:
            self.loop.by = ""

    def set_out(self, way: Way) -> None:
        """Go to a step, from the state that the run has now."""
        changes = self.kept.past.changes
        self._way = replace(way, changes=tuple(c for c in changes if c.step >= way.start.step))
        self.loop.holding.is_on_way = True

    def steps(self) -> Generator[bool, None, None]:
        """Train, as `TrainingLoop.steps`; yields whether a snapshot is due: at times, and where the
        run is held.

        Ends early, with `failure` set, if the model raises or the loss is NaN or infinite.
        """
        try:
            if self._follow_way():
                self._keep()
                yield True
            with closing(self.loop.steps()) as steps:
                self._keep()
                for _ in steps:
                    if self.loop.is_in_step:
                        yield self.hold is not None
                        continue
                    if self.loop.seen.other is not None:
                        self._tell_other_batch(self.loop.seen.other)
                    if self._way is not None:
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
                        self.files.writer.work()
                    if self.files.save_is_due(now, at_end_of_epoch=self.loop.batch == 0):
                        self.save()
                    if self.failure is None:
                        yield due or self.loop.holding.hold is not None
                    if not self._keep_due_s:
                        self._keep()
                    if self.failure is not None:  # set by `_flush`, here or during the yield
                        return
        except (KeyboardInterrupt, GeneratorExit):  # an interrupt, or `steps` is closed
            raise
        except BaseException as error:
            self._fail(as_exception(error))
        finally:
            self.files.writer.rest()

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
                self.kept.past = self.kept.past.changed(self.step, self.loop.setup)

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
        before = weight_versions(self.loop)
        with kept_between_steps(self.loop):
            yield
        if weight_versions(self.loop) != before:
            self.loop.marks.add(self.step, "weights edited")
            self.kept.past = self.kept.past.broken(self.step)  # no repetition would lead here
            self._keep_due_s = 0.0

    def check_way(self) -> None:
        pass

    # -- going to a step -------------------------------------------------------------------------

    def _keep(self) -> None:
        """Keep the state. A run that has diverged, or is in a step, keeps none; nor does one of
        several processes, which does not go back."""
        if self.loop.ranks is not None:
            self._keep_due_s = inf
            return
        started = perf_counter()
        self._flush()
        if self.failure is None and not self.is_in_step:
            try:
                self.kept.add(self.loop.checkpoint(self.id), self._ready)
            except LabError as error:
                self._warn(error)
        now = perf_counter()
        self._keep_due_s = now + max(KEEP_INTERVAL_S, (now - started) / KEEP_SHARE)

    def folder(self) -> Path:
        return self.files.writer.folder

    def _ready(self) -> bool:
        """Make the folder, for a state that only a file can have. A run that was only opened again
        leaves its folder as it is."""
        if not self.files.writer.begun and not self._is_resumed:
            self.files.begin()
        return self.files.writer.begun

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
        self.kept.objectives.append((self.step, way.objective))
        self.kept.past = self.kept.past.broken(self.step)
        self._keep_due_s = 0.0  # a later way begins here: before, other settings hold
        way.arrived()
        return True

    # -- snapshots -------------------------------------------------------------------------------

    def tell_again(self) -> None:
        self.loop.metrics.tell_again()

    def snapshot(self, state: TrainingState) -> TrainingSnapshot:
        """Return the state of the run, with the steps and epochs that no snapshot has had yet.

        Unless the run is running, it writes a checkpoint first. The state becomes "failed" if
        `failure` is set.
        """
        steps_per_second = self._speed.per_second(self.step, running=state == "running")
        self.loop.metrics.set_speed(steps_per_second)
        self._flush()
        if self.files.writer.taken:
            hint = "Runs shows how it goes on there."
            self._fail(LabError(self.files.writer.taken, hint=hint))
        if self.failure is None and state != "running" and self.step > self.files.checkpoint_step:
            self.save()
        if self.failure is not None:
            state = "failed"
        loop = self.loop
        steps, epoch_rows = loop.metrics.drain(with_cuda=loop.device.type == "cuda")
        message = self.failure.message if self.failure else ""
        if problem := self.files.write(state, steps, epoch_rows, message, loop.looks.drain()):
            self._warn(problem)
        if state != "running" or not self._memory.gradient_bytes:
            self._memory = training_memory(loop.model, loop.optimizer)
        warning, self.warning = self.warning, None
        return told_of(
            loop,
            state,
            steps_per_second,
            run=self.id,
            steps=steps,
            epoch_rows=epoch_rows,
            checkpoint=self.files.checkpoint_path,
            checkpoint_step=self.files.checkpoint_step,
            error=self.failure or warning,
            memory=self._memory,
            folder=str(self.files.writer.folder) if self.files.writer.begun else "",
            can_find_divergence=self.can_find_divergence,
            trial=self.trial,
        )

    def only_from_here(self) -> None:
        """The steps so far were those of another code or loss: they cannot be repeated."""
        self.kept.past = replace(self.kept.past, since=self.step).broken(self.step)

    def tell_changed(self, names: tuple[str, ...]) -> None:
        """The run goes on with files of code that have changed since it began."""
        if names:
            self.loop.marks.add(self.step, f"{', '.join(names)} changed")
            self.only_from_here()
            self.warning = code_changed(names)

    def _tell_other_batch(self, place: Place) -> None:
        """Once: the steps from here on are not those of before."""
        if not self._told_other:
            self._told_other = True
            self.loop.marks.add(self.step, "other batches than before")
            self.warning = other_batches(place.epoch + 1, place.batch + 1)

    def _warn(self, error: LabError) -> None:
        self.warning = explain(error, self.loop.setup, self.loop.learning_rate)

    def save(self) -> None:
        """Write a checkpoint. If it cannot be written, that is a warning, and the run goes on.

        A run that has diverged, or is in a step, writes none.
        """
        self._flush()
        if self.failure is not None or self.is_in_step or self.files.writer.taken:
            return
        checkpoint = replace(self.loop.checkpoint(self.id), past=self.kept.past)
        try:
            self.files.save(checkpoint)
            self.kept.write()
        except LabError as error:
            self._warn(error)
