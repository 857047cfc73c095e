"""The figures of a run, kept per optimizer step and handed on in columns.

Reading a number off a CUDA device stops the host until the device has caught up. So a step only
leaves its figures where they are (`Recorder.add`), and they are read together, once per
snapshot (`flush`): one transfer and one synchronisation for all steps since the last.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import hypot, isfinite
from typing import NamedTuple

import torch
from torch import Tensor

from ..protocol import EpochRow, StepColumns

ROWS_PER_SNAPSHOT = 200
HISTORY_ROWS = 2000
HISTORY_EPOCHS = 500


class StepRow(NamedTuple):
    """One optimizer step; the fields are the columns of `StepColumns`."""

    step: int
    loss: float
    accuracy: float
    gradient_norm: float
    learning_rate: float
    step_ms: float
    rss_bytes: int
    cuda_allocated_bytes: int
    cuda_reserved_bytes: int


class Pending(NamedTuple):
    """A step whose figures may still lie on the device.

    `loss` and `correct` are 0-dim tensors on CUDA and numbers elsewhere; `norms` has one 2-norm
    per gradient. `timing` is (start, end): seconds of the wall clock, or
    on CUDA a pair of events recorded on the stream.
    """

    step: int
    samples: int
    learning_rate: float
    loss: Tensor | float
    correct: Tensor | float
    norms: tuple[Tensor, ...]
    timing: tuple


class Diverged(Exception):
    """The loss of step `step` is `loss`: NaN or infinite."""

    def __init__(self, step: int, loss: float) -> None:
        super().__init__(f"The loss became {loss} at step {step:,}.")
        self.step = step
        self.loss = loss


class Recorder:
    """Collects steps and epochs. `drain` gives those that no snapshot has held yet, `history` and
    `epochs` the whole run, thinned out as it grows.

    `loss_sum`, `correct` and `samples` are totals over the epoch in hand.
    """

    def __init__(self) -> None:
        self.history: list[StepRow] = []
        self.epochs: list[EpochRow] = []
        self.loss_sum = 0.0
        self.correct = 0
        self.samples = 0
        self._pending: list[Pending] = []
        self._unsent: list[StepRow] = []
        self._unsent_epochs: list[EpochRow] = []
        self._resumed = False

    def add(self, step: Pending) -> None:
        self._pending.append(step)

    def flush(self, rss_bytes: int, cuda_bytes: tuple[int, int] = (0, 0)) -> None:
        """Read the pending steps; the memory figures of this moment stand for all of them.

        Raises Diverged when a loss is NaN or infinite; the rows before it are kept.
        """
        pending, self._pending = self._pending, []
        for step, (loss, correct, norms) in zip(pending, _read(pending), strict=True):
            if not isfinite(loss):
                raise Diverged(step.step, loss)
            self.loss_sum += loss * step.samples
            self.correct += int(correct)
            self.samples += step.samples
            row = StepRow(
                step.step,
                loss,
                correct / step.samples,
                hypot(*norms),
                step.learning_rate,
                _elapsed_ms(step.timing),
                rss_bytes,
                *cuda_bytes,
            )
            self._unsent.append(row)
            self.history.append(row)
        if len(self.history) > 2 * HISTORY_ROWS:
            self.history = thin(self.history, HISTORY_ROWS)

    def end_epoch(self, epoch: int, step: int, validation: tuple[float, float]) -> None:
        """Add the row of epoch `epoch` (1-based) with its validation loss and accuracy, and start
        the totals anew. Flush first."""
        row = EpochRow(
            epoch=epoch,
            step=step,
            train_loss=self.loss_sum / self.samples,
            train_accuracy=self.correct / self.samples,
            validation_loss=validation[0],
            validation_accuracy=validation[1],
        )
        self.loss_sum, self.correct, self.samples = 0.0, 0, 0
        self._unsent_epochs.append(row)
        self.epochs.append(row)
        if len(self.epochs) > 2 * HISTORY_EPOCHS:
            self.epochs = spread(self.epochs, HISTORY_EPOCHS)

    def drain(self, with_cuda: bool) -> tuple[StepColumns, tuple[EpochRow, ...]]:
        """Return what is new since the last drain: after `restore`, all there is."""
        steps, self._unsent = self._unsent, []
        epochs, self._unsent_epochs = self._unsent_epochs, []
        limit = HISTORY_ROWS if self._resumed else ROWS_PER_SNAPSHOT
        self._resumed = False
        return columns(thin(steps, limit), with_cuda), tuple(spread(epochs, HISTORY_EPOCHS))

    def restore(self, history: tuple[StepRow, ...], epochs: tuple[EpochRow, ...]) -> None:
        """Take over an earlier run's rows; the next `drain` gives them all."""
        self.history, self.epochs = list(history), list(epochs)
        self._unsent, self._unsent_epochs = list(history), list(epochs)
        self._resumed = True


def columns(rows: list[StepRow], cuda: bool) -> StepColumns:
    """Turn rows into columns; those of CUDA memory stay empty on other devices."""
    if not rows:
        return StepColumns()
    by_name = dict(zip(StepRow._fields, zip(*rows, strict=True), strict=True))
    if not cuda:
        by_name["cuda_allocated_bytes"] = by_name["cuda_reserved_bytes"] = ()
    return StepColumns(**by_name)


def thin(rows: list[StepRow], limit: int) -> list[StepRow]:
    """Return at most `limit` of the rows, in order, so that a plot of the loss looks the same.

    Equal stretches of rows each keep their lowest and their highest loss; the first and the last
    row are always kept. `limit` is at least 4.
    """
    if len(rows) <= limit:
        return rows
    stretches = (limit - 2) // 2
    kept = {0, len(rows) - 1}
    for i in range(stretches):
        stretch = range(i * len(rows) // stretches, (i + 1) * len(rows) // stretches)
        kept.add(min(stretch, key=lambda r: rows[r].loss))
        kept.add(max(stretch, key=lambda r: rows[r].loss))
    return [rows[r] for r in sorted(kept)]


def spread(rows: list[EpochRow], limit: int) -> list[EpochRow]:
    """Return at most `limit` of the rows, evenly spread, the first and the last among them."""
    if len(rows) <= limit:
        return rows
    return [rows[i * (len(rows) - 1) // (limit - 1)] for i in range(limit)]


def _read(pending: list[Pending]) -> Iterator[tuple[float, float, list[float]]]:
    """Yield loss, correct count and norms of each step as numbers."""
    norms = [norm for step in pending for norm in step.norms]
    if pending and isinstance(pending[0].loss, Tensor):
        losses = torch.stack([step.loss for step in pending]).tolist()
        corrects = torch.stack([step.correct for step in pending]).tolist()
        numbers = iter(torch.stack([norm.float() for norm in norms]).tolist() if norms else ())
    else:
        losses = [step.loss for step in pending]
        corrects = [step.correct for step in pending]
        numbers = (norm.item() for norm in norms)
    for step, loss, correct in zip(pending, losses, corrects, strict=True):
        yield loss, correct, [next(numbers) for _ in step.norms]


def _elapsed_ms(timing: tuple) -> float:
    start, end = timing
    if isinstance(start, float):
        return (end - start) * 1e3
    return start.elapsed_time(end)  # the transfer in `_read` has waited for both events
