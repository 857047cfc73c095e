"""The figures of a run: one row for an optimizer step, one for an epoch; sent as columns.

A step only adds its tensors here (`Metrics.add`). On the CPU, the figures of many steps are
computed together, which saves most of the calls of torch. They are read once per snapshot
(`flush`): on CUDA this is one synchronisation for all steps since the last snapshot.
"""

from __future__ import annotations

from itertools import accumulate, islice
from math import hypot, isfinite
from typing import NamedTuple

import torch
from torch import Tensor

from ..protocol import EpochRow, StepColumns

ROWS_PER_SNAPSHOT = 200
MAX_UNREDUCED_BYTES = 1 << 20
"""The tensors of steps are kept until they take this much memory, or until `flush`."""
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


class Measured(NamedTuple):
    """What a row has besides loss and accuracy.

    `timing` is (start, end): seconds of the wall clock, or on CUDA two events on the stream.
    """

    learning_rate: float
    timing: tuple
    gradients: list[Tensor]


class UnreducedStep(NamedTuple):
    """The tensors of a step, not reduced yet. Without `measured` the step counts for its epoch but
    gets no row."""

    step: int
    loss: Tensor
    prediction_BC: Tensor
    labels_B: Tensor
    measured: Measured | None


class ReducedSteps(NamedTuple):
    """Some steps without their tensors: (step, samples, measured, number of gradients) each.

    `figures` is a float32 vector on the device: first the loss of each step, then the number of
    correct samples up to and including each step, then the norm of each gradient.
    """

    steps: list[tuple[int, int, Measured | None, int]]
    figures: Tensor


class Diverged(Exception):
    """The loss of step `step` is `loss`: NaN or infinite."""

    def __init__(self, step: int, loss: float) -> None:
        super().__init__(f"The loss became {loss} at step {step:,}.")


class Metrics:
    """Collects steps and epochs. `drain` returns those that no snapshot has had yet. `history` and
    `epochs` cover the whole run, and are thinned out as they grow.

    `loss_sum`, `correct` and `samples` are totals over the current epoch.
    """

    def __init__(self) -> None:
        self.history: list[StepRow] = []
        self.epochs: list[EpochRow] = []
        self.loss_sum = 0.0
        self.correct = 0
        self.samples = 0
        self._unreduced: list[UnreducedStep] = []
        self._unreduced_bytes = 0
        self._reduced: list[ReducedSteps] = []
        self._unsent: list[StepRow] = []
        self._unsent_epochs: list[EpochRow] = []
        self._resumed = False

    def add(self, step: UnreducedStep) -> None:
        self._unreduced.append(step)
        self._unreduced_bytes += step.prediction_BC.nbytes
        if step.measured is not None:
            self._unreduced_bytes += sum(gradient.nbytes for gradient in step.measured.gradients)
        if self._unreduced_bytes > MAX_UNREDUCED_BYTES:
            self._reduce()

    def flush(self, rss_bytes: int, cuda_bytes: tuple[int, int] = (0, 0)) -> None:
        """Read the figures of the steps that were added. They all get the memory figures of now.

        Raises Diverged if a loss is NaN or infinite; the rows before it are kept.
        """
        self._reduce()
        reduced, self._reduced = self._reduced, []
        for steps, figures in reduced:
            numbers = figures.tolist()
            losses, totals = numbers[: len(steps)], numbers[len(steps) : 2 * len(steps)]
            norms = iter(numbers[2 * len(steps) :])
            before = 0
            for (step, samples, measured, gradients), loss, total in zip(
                steps, losses, totals, strict=True
            ):
                if not isfinite(loss):
                    raise Diverged(step, loss)
                correct, before = int(total) - before, int(total)
                self.loss_sum += loss * samples
                self.correct += correct
                self.samples += samples
                if measured is None:
                    continue
                row = StepRow(
                    step,
                    loss,
                    correct / samples,
                    hypot(*islice(norms, gradients)),
                    measured.learning_rate,
                    _elapsed_ms(measured.timing),
                    rss_bytes,
                    *cuda_bytes,
                )
                self._unsent.append(row)
                self.history.append(row)
        if len(self.history) > 2 * HISTORY_ROWS:
            self.history = thin(self.history, HISTORY_ROWS)

    def _reduce(self) -> None:
        """Compute the figures of the steps that were added, without reading them, and free their
        tensors."""
        if not self._unreduced:
            return
        waiting, self._unreduced, self._unreduced_bytes = self._unreduced, [], 0
        right = torch.cat([step.prediction_BC for step in waiting]).argmax(1)
        right = right == torch.cat([step.labels_B for step in waiting])
        ends = [end - 1 for end in accumulate(len(step.labels_B) for step in waiting)]
        parts = [
            torch.stack([step.loss for step in waiting]).float(),
            right.cumsum(0)[torch.tensor(ends, device=right.device)].float(),
        ]
        steps, gradients = [], []
        for step in waiting:
            before = len(gradients)
            measured = step.measured
            if measured is not None:
                gradients += measured.gradients
                measured = measured._replace(gradients=[])
            steps.append((step.step, len(step.labels_B), measured, len(gradients) - before))
        if gradients:
            parts.append(torch.stack(torch._foreach_norm(gradients)).float())
        self._reduced.append(ReducedSteps(steps, torch.cat(parts)))

    def end_epoch(self, epoch: int, step: int, validation: tuple[float, float]) -> None:
        """Add the row of epoch `epoch` (1-based) with its validation loss and accuracy, and reset
        the totals. `flush` must be called before."""
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
        """Return the rows since the last drain; after `restore`, all rows."""
        steps, self._unsent = self._unsent, []
        epochs, self._unsent_epochs = self._unsent_epochs, []
        limit = HISTORY_ROWS if self._resumed else ROWS_PER_SNAPSHOT
        self._resumed = False
        return columns(thin(steps, limit), with_cuda), tuple(spread(epochs, HISTORY_EPOCHS))

    def restore(self, history: tuple[StepRow, ...], epochs: tuple[EpochRow, ...]) -> None:
        """Take over an earlier run's rows; the next `drain` returns them all."""
        self.history, self.epochs = list(history), list(epochs)
        self._unsent, self._unsent_epochs = list(history), list(epochs)
        self._resumed = True


def columns(rows: list[StepRow], cuda: bool) -> StepColumns:
    """Turn rows into columns. On other devices than CUDA the columns of CUDA memory are empty."""
    if not rows:
        return StepColumns()
    by_name = dict(zip(StepRow._fields, zip(*rows, strict=True), strict=True))
    if not cuda:
        by_name["cuda_allocated_bytes"] = by_name["cuda_reserved_bytes"] = ()
    return StepColumns(**by_name)


def thin(rows: list[StepRow], limit: int) -> list[StepRow]:
    """Return at most `limit` of the rows, in order, so that a plot of the loss looks the same.

    The rows are divided into equal stretches; each keeps its lowest and its highest loss. The first
    and the last row are always kept. `limit` is at least 4.
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
    """Return at most `limit` of the rows, evenly spread, with the first and the last."""
    if len(rows) <= limit:
        return rows
    return [rows[i * (len(rows) - 1) // (limit - 1)] for i in range(limit)]


def _elapsed_ms(timing: tuple) -> float:
    start, end = timing
    if isinstance(start, float):
        return (end - start) * 1e3
    return start.elapsed_time(end)  # `flush` has synchronised, so both events have passed
