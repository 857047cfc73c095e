"""A training run as the window sees it: snapshots, checkpoints on time, failures in words."""

from __future__ import annotations

import secrets
from collections import deque
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from datetime import datetime
from time import perf_counter

from ..errors import LabError
from ..protocol import ErrorReport, TrainingMemory, TrainingSnapshot, TrainingState
from . import checkpoints
from .checkpoints import Checkpoint
from .failures import explain
from .loop import TrainingLoop
from .memory import training_memory
from .metrics import Diverged

SNAPSHOT_INTERVAL_S = 1 / 30
CHECKPOINT_INTERVAL_S = 2.0
CHECKPOINT_SHARE = 0.05
"""Writing checkpoints takes at most this share of the time."""
SPEED_WINDOW_S = 3.0


class TrainingRun:
    """Drives a `TrainingLoop` (`run.loop`), from `resume` on if that is given; `close` it after.
    The file it was read from is the run's checkpoint until it writes one of its own.

    `failure` says why the run ended early; `warning` what went wrong without ending it. Raises
    LabError when the checkpoint does not fit the loop.
    """

    def __init__(
        self, loop: TrainingLoop, resume: Checkpoint | None = None, resume_path: str = ""
    ) -> None:
        self.loop = loop
        self.id = f"{datetime.now():%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"
        self.failure: ErrorReport | None = None
        self.warning: ErrorReport | None = None
        self.checkpoint_path = resume_path
        self.checkpoint_step = 0
        if resume is not None:
            try:
                loop.restore(resume)
            except LabError:
                loop.close()
                raise
            self.id = resume.run
            self.checkpoint_step = resume.step
        now = perf_counter()
        self._checkpoint_due_s = now + CHECKPOINT_INTERVAL_S
        self._snapshot_due_s = now
        self._speed: deque[tuple[float, int]] = deque()
        self._memory = TrainingMemory()

    @property
    def step(self) -> int:
        return self.loop.step

    def steps(self) -> Generator[bool, None, None]:
        """Train, as `TrainingLoop.steps`; yields whether a snapshot is due.

        Ends early with `failure` set when the model raises or the loss is NaN or infinite.
        """
        try:
            with closing(self.loop.steps()) as steps:
                for _ in steps:
                    now = perf_counter()
                    due = now >= self._snapshot_due_s
                    if due:
                        self._snapshot_due_s = now + SNAPSHOT_INTERVAL_S
                        self._flush()
                    if now >= self._checkpoint_due_s - self._patience_s():
                        self.save()
                    if self.failure is None:
                        yield due
                    if self.failure is not None:  # by a flush here or meanwhile
                        return
        except Exception as error:
            self._fail(error)

    def close(self) -> None:
        """Bring the model back to the CPU. The run cannot go on after it."""
        self._flush()  # before the gradients move as well
        try:
            self.loop.close()
        except RuntimeError as error:  # a CUDA device that failed gives nothing back
            self._fail(error)

    def _flush(self) -> None:
        """Read the figures so far; a loss that is not finite fails the run."""
        if self.failure is None:
            try:
                self.loop.flush()
            except (Diverged, RuntimeError) as error:
                self._fail(error)

    def _fail(self, error: Exception) -> None:
        self.failure = self.failure or explain(error, self.loop.setup, self.loop.learning_rate)

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Whatever else the engine does between two steps is done in this: it may draw random
        numbers and change gradients without disturbing the run."""
        self._flush()  # the figures of the last steps come from their gradients
        with self.loop.random.lent():
            yield

    # -- snapshots -------------------------------------------------------------------------------

    def snapshot(self, state: TrainingState) -> TrainingSnapshot:
        """Return the run as it stands, with the steps and epochs that no snapshot has held yet.

        A run that pauses, stops or finishes writes a checkpoint first. The state turns to
        "failed" when `failure` is set.
        """
        self._flush()
        if self.failure is None and state != "running" and self.step > self.checkpoint_step:
            self.save()
        if self.failure is not None:
            state = "failed"
        loop, setup = self.loop, self.loop.setup
        steps, epoch_rows = loop.recorder.drain(with_cuda=loop.device.type == "cuda")
        if state != "running" or not self._memory.gradient_bytes:
            self._memory = training_memory(loop.model, loop.optimizer)
        steps_per_second = self._steps_per_second(state)
        warning, self.warning = self.warning, None
        return TrainingSnapshot(
            run=self.id,
            state=state,
            step=self.step,
            total_steps=loop.total_steps,
            epoch=min(loop.epoch + 1, setup.epochs),
            epochs=setup.epochs,
            steps_per_second=steps_per_second,
            remaining_s=(
                (loop.total_steps - self.step) / steps_per_second if steps_per_second else None
            ),
            steps=steps,
            epoch_rows=epoch_rows,
            device=setup.device,
            checkpoint=self.checkpoint_path,
            checkpoint_step=self.checkpoint_step,
            error=self.failure or warning,
            memory=self._memory,
        )

    def _steps_per_second(self, state: TrainingState) -> float:
        """Optimizer steps per second of wall clock over the last few seconds: validation and
        checkpoints count, pauses do not. 0 while unknown."""
        now, window = perf_counter(), self._speed
        window.append((now, self.step))
        while now - window[0][0] > SPEED_WINDOW_S and len(window) > 2:
            window.popleft()
        then, earlier = window[0]
        if state != "running":
            window.clear()  # what comes after the pause is timed anew
        return (self.step - earlier) / (now - then) if now > then else 0.0

    # -- checkpoints -----------------------------------------------------------------------------

    def _patience_s(self) -> float:
        """How much earlier than due a checkpoint may be written: at the end of an epoch, where
        it is worth more, by half the interval."""
        return CHECKPOINT_INTERVAL_S / 2 if self.loop.batch == 0 else 0.0

    def save(self) -> None:
        """Write a checkpoint. One that cannot be written is a warning: the run goes on.

        A run that has diverged writes none.
        """
        self._flush()
        if self.failure is not None:
            return
        checkpoint = self.loop.checkpoint(self.id)
        started = perf_counter()
        try:
            self.checkpoint_path = str(checkpoints.save(checkpoint))
            self.checkpoint_step = self.step
        except LabError as error:
            self.warning = explain(error, self.loop.setup, self.loop.learning_rate)
        now = perf_counter()
        cost_s = now - started
        self._checkpoint_due_s = now + max(CHECKPOINT_INTERVAL_S, cost_s / CHECKPOINT_SHARE)
