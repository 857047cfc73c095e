"""The figures of a run: one row for an optimizer step, one for an epoch; sent as columns.

A step only adds its tensors here (`Metrics.add`). On the CPU, the figures of many steps are
computed together, which saves most of the calls of torch. They are read once per snapshot
(`flush`): on CUDA this is one synchronisation for all steps since the last snapshot.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import accumulate, islice
from math import exp, hypot, inf, isfinite, isnan, log, nan, sqrt
from typing import NamedTuple

import torch
from torch import Tensor

from ...protocol import EpochRow, StepColumns
from ...system.private_torch import foreach_norm
from ..objectives.objective import PERPLEXITY, RMSE, Outcome

ACCURACY = "accuracy"
"""A figure of this name has the place of the accuracy that is counted from scores and labels."""

ROWS_PER_SNAPSHOT = 200
MAX_UNREDUCED_BYTES = 1 << 20
"""The tensors of steps are kept until they take this much memory, or until `flush`."""
HISTORY_ROWS = 2000
HISTORY_EPOCHS = 500
MAX_EXPONENT = 709.0
"""e to a larger power is no float."""


class StepRow(NamedTuple):
    """One optimizer step; the fields are the columns of `StepColumns`. `accuracy` is NaN for a task
    without one, `samples_per_second` and `gpu_percent` are NaN while they are not known; `figures`
    are all other named figures."""

    step: int
    loss: float | None
    accuracy: float
    gradient_norm: float | None
    learning_rate: float
    step_ms: float
    rss_bytes: int
    cuda_allocated_bytes: int
    cuda_reserved_bytes: int
    samples_per_second: float = nan
    gpu_percent: float = nan
    figures: Mapping[str, float] = {}


class Measured(NamedTuple):
    """What a row has besides loss and accuracy.

    `timing` is (start, end): seconds of the wall clock, or on CUDA two events on the stream; NaN
    twice for a step that was left between two of its phases.
    `gradients` are the norms of the gradients, None where they are not known.
    `figures` are named figures that are numbers already, `watched` those that are 0-dim tensors.
    """

    learning_rate: float
    timing: tuple
    gradients: list[Tensor] | None
    figures: Mapping[str, float] = {}
    watched: Mapping[str, Tensor] = {}
    has_loss: bool = True


class UnreducedStep(NamedTuple):
    """The tensors of a step, not reduced yet. `loss` is a number where it was read already."""

    step: int
    loss: Tensor | float
    samples: int
    scores: tuple[Tensor, Tensor] | None
    figures: Mapping[str, Tensor]
    measured: Measured | None


class ReducedSteps(NamedTuple):
    """Some steps without their tensors: (step, samples, names of its figures, how many of them
    count for the epoch, measured, number of gradients) each.

    `numbers` is a float32 vector on the device: first the loss of each step, then, if `counted`,
    the number of correct samples up to and including each step, then the named figures of each
    step, then the norm of each gradient.
    """

    steps: list[tuple[int, int, tuple[str, ...], int, Measured | None, int]]
    counted: bool
    numbers: Tensor


@dataclass
class EpochTotals:
    """Sums over the samples of an epoch; `figure_sums` those of named figures, of RMSE its squares
    and of perplexity its logarithms, and `figure_samples` how many samples had them. `correct`
    counts right predictions where there are scores and labels (`counted`)."""

    loss_sum: float = 0.0
    correct: int = 0
    samples: int = 0
    figure_sums: dict[str, float] = field(default_factory=dict)
    figure_samples: dict[str, int] = field(default_factory=dict)
    counted: bool = False

    def add(
        self, loss: float, samples: int, correct: int | None, figures: Mapping[str, float]
    ) -> None:
        self.loss_sum += loss * samples
        self.samples += samples
        if correct is not None:
            self.correct += correct
            self.counted = True
        for name, value in figures.items():
            term = _INTO[name](value) if name in _INTO else value
            self.figure_sums[name] = self.figure_sums.get(name, 0.0) + term * samples
            self.figure_samples[name] = self.figure_samples.get(name, 0) + samples

    def add_outcome(self, outcome: Outcome) -> None:
        """Add a batch, and wait for its numbers."""
        correct = None
        if outcome.scores is not None:
            prediction, labels = outcome.scores
            correct = int((prediction.argmax(1) == labels).sum())
        figures = {name: float(value) for name, value in outcome.figures.items()}
        self.add(outcome.loss.item(), outcome.samples, correct, figures)

    def copied(self) -> EpochTotals:
        return replace(
            self, figure_sums=dict(self.figure_sums), figure_samples=dict(self.figure_samples)
        )

    def means(self) -> tuple[float, float, dict[str, float]]:
        """Loss, accuracy and figures; NaN for what there is none of."""
        if not self.samples:
            return nan, nan, {}
        figures = {
            name: total / self.figure_samples[name] for name, total in self.figure_sums.items()
        }
        figures.update((name, _BACK[name](figures[name])) for name in _BACK if name in figures)
        counted = self.correct / self.samples if self.counted else nan
        return self.loss_sum / self.samples, figures.pop(ACCURACY, counted), figures


_INTO = {RMSE: lambda value: value**2, PERPLEXITY: lambda value: log(value) if value > 0 else nan}
_BACK = {RMSE: sqrt, PERPLEXITY: lambda mean: inf if mean > MAX_EXPONENT else exp(mean)}
"""For a figure that is no mean over samples: from its value to a number whose mean over samples is
meant (of RMSE the square), and from that mean back to the figure."""


class Diverged(Exception):
    """The loss of step `step` is `loss`: NaN or infinite; or another number is, named by `what`."""

    def __init__(self, step: int, loss: float, what: str = "The loss") -> None:
        super().__init__(f"{what} became {loss} at step {step:,}.")
        self.step = step


class Metrics:
    """Collects steps and epochs. `drain` returns those that no snapshot has had yet. `history` and
    `epochs` cover the whole run, and are thinned out as they grow. `totals` are of the current
    epoch. A loss that is not finite ends a run, but not if `may_diverge`. Steps that are read get
    the speed `samples_per_second`; NaN while it is not known.
    """

    def __init__(self, may_diverge: bool = False) -> None:
        self._may_diverge = may_diverge
        self.history: list[StepRow] = []
        self.epochs: list[EpochRow] = []
        self.totals = EpochTotals()
        self._unreduced: list[UnreducedStep] = []
        self._unreduced_bytes = 0
        self._reduced: list[ReducedSteps] = []
        self._unsent: list[StepRow] = []
        self._unsent_epochs: list[EpochRow] = []
        self._resumed = False
        self.samples_per_second = nan
        self._samples = self._steps = 0

    @property
    def samples_per_step(self) -> float:
        """The mean over the steps that were added; 0 before the first."""
        return self._samples / self._steps if self._steps else 0.0

    def set_speed(self, steps_per_second: float) -> None:
        """The speed of the steps that are read next; 0 if it is not known."""
        self.samples_per_second = steps_per_second * self.samples_per_step or nan

    def add(
        self, step: int, outcome: Outcome, measured: Measured | None, loss: float | None = None
    ) -> None:
        """Add a step. Without `measured` it counts for its epoch but gets no row. `loss` is that of
        the outcome, if it was read."""
        self._steps += 1
        tensor, samples, scores, figures = outcome
        self._samples += samples
        if scores is not None:
            prediction, labels = scores
            scores = prediction.detach(), labels
            self._unreduced_bytes += prediction.nbytes
        known = tensor.detach() if loss is None else loss
        self._unreduced.append(UnreducedStep(step, known, samples, scores, figures, measured))
        if measured is not None:
            self._unreduced_bytes += sum(each.nbytes for each in measured.gradients or ())
        if self._unreduced_bytes > MAX_UNREDUCED_BYTES:
            self._reduce()

    @property
    def has_new(self) -> bool:
        """Whether there are steps that `flush` would read."""
        return bool(self._unreduced or self._reduced)

    def flush(
        self, rss_bytes: int, cuda_bytes: tuple[int, int] = (0, 0), gpu_percent: float = nan
    ) -> None:
        """Read the figures of the steps that were added. They all get the memory, the speed and the
        use of the GPU of now.

        Raises Diverged if a loss is NaN or infinite and ends the run; the rows before it are kept.
        """
        self._reduce()
        reduced, self._reduced = self._reduced, []
        for steps, counted, numbers in reduced:
            values = iter(numbers.tolist())
            losses = list(islice(values, len(steps)))
            totals = [int(t) for t in islice(values, len(steps))] if counted else []
            figures = [
                dict(zip(names, islice(values, len(names)), strict=True))
                for _, _, names, *_ in steps
            ]
            for i, (step, samples, names, of_epoch, measured, gradients) in enumerate(steps):
                norm = hypot(*islice(values, gradients))
                if not self._may_diverge and not isfinite(losses[i]):
                    raise Diverged(step, losses[i])
                correct = totals[i] - (totals[i - 1] if i else 0) if counted else None
                counted_figures = {name: figures[i][name] for name in names[:of_epoch]}
                self.totals.add(losses[i], samples, correct, counted_figures)
                if measured is None:
                    continue
                accuracy = nan if correct is None else correct / samples
                row = StepRow(
                    step,
                    losses[i] if measured.has_loss else None,
                    figures[i].pop(ACCURACY, accuracy),
                    norm if measured.gradients is not None else None,
                    measured.learning_rate,
                    _elapsed_ms(measured.timing),
                    rss_bytes,
                    *cuda_bytes,
                    self.samples_per_second,
                    gpu_percent,
                    {**figures[i], **measured.figures},
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
        parts = [_stacked([step.loss for step in waiting])]
        scores = [step.scores for step in waiting if step.scores is not None]
        if scores:  # then every step of the run has them
            right = torch.cat([prediction for prediction, _ in scores]).argmax(1)
            right = (right == torch.cat([labels for _, labels in scores])).flatten()
            ends = [end - 1 for end in accumulate(labels.numel() for _, labels in scores)]
            parts.append(right.cumsum(0)[torch.tensor(ends, device=right.device)].float())
        named = [
            {**step.figures, **(step.measured.watched if step.measured else {})} for step in waiting
        ]
        figures = [value for of_step in named for value in of_step.values()]
        if figures:
            parts.append(torch.stack([value.float() for value in figures]))
        steps, gradients = [], []
        for step, of_step in zip(waiting, named, strict=True):
            before = len(gradients)
            measured = step.measured
            if measured is not None:
                gradients += measured.gradients or ()
                known = None if measured.gradients is None else []
                measured = measured._replace(gradients=known, watched={})
            count = len(gradients) - before
            of_epoch = len(step.figures)
            row = step.step, step.samples, tuple(of_step), of_epoch, measured, count
            steps.append(row)
        if gradients:
            parts.append(torch.stack(foreach_norm(gradients)).float())
        self._reduced.append(ReducedSteps(steps, bool(scores), torch.cat(parts)))

    def end_epoch(
        self,
        epoch: int,
        step: int,
        validation: EpochTotals,
        of_epoch: Mapping[str, float] = {},
        of_validation: Mapping[str, float] = {},
    ) -> EpochRow:
        """Add the row of epoch `epoch` (1-based), and reset the totals. `of_epoch` and
        `of_validation` are figures of the whole epoch. `flush` must be called before."""
        loss, accuracy, figures = self.totals.means()
        validation_loss, validation_accuracy, validation_figures = validation.means()
        figures |= of_epoch
        validation_figures |= of_validation
        row = EpochRow(
            epoch=epoch,
            step=step,
            train_loss=loss,
            train_accuracy=figures.pop(ACCURACY, accuracy),
            validation_loss=validation_loss,
            validation_accuracy=validation_figures.pop(ACCURACY, validation_accuracy),
            train_figures=figures,
            validation_figures=validation_figures,
        )
        self.totals = EpochTotals()
        self._unsent_epochs.append(row)
        self.epochs.append(row)
        if len(self.epochs) > 2 * HISTORY_EPOCHS:
            self.epochs = spread(self.epochs, HISTORY_EPOCHS)
        return row

    def drain(self, with_cuda: bool) -> tuple[StepColumns, tuple[EpochRow, ...]]:
        """Return the rows since the last drain; after `restore`, all rows."""
        steps, self._unsent = self._unsent, []
        epochs, self._unsent_epochs = self._unsent_epochs, []
        limit = HISTORY_ROWS if self._resumed else ROWS_PER_SNAPSHOT
        self._resumed = False
        return columns(thin(steps, limit), with_cuda), tuple(spread(epochs, HISTORY_EPOCHS))

    def restore(
        self, history: tuple[StepRow, ...], epochs: tuple[EpochRow, ...], totals: EpochTotals
    ) -> None:
        """Take over an earlier run's rows; the next `drain` returns them all."""
        self.totals = totals.copied()
        self.history, self.epochs = list(history), list(epochs)
        self.tell_again()

    def tell_again(self) -> None:
        """Let the next `drain` return the rows of the whole run."""
        self._unsent, self._unsent_epochs = list(self.history), list(self.epochs)
        self._resumed = True


def _stacked(losses: list[Tensor | float]) -> Tensor:
    """Losses as float32 (N,). Those that were read are on the CPU."""
    tensors = [loss for loss in losses if isinstance(loss, Tensor)]
    if len(tensors) == len(losses):
        return torch.stack(tensors).float()
    return torch.tensor(list(map(float, losses)), dtype=torch.float32, device="cpu")


def columns(rows: list[StepRow], cuda: bool) -> StepColumns:
    """Turn rows into columns. Those of CUDA's memory are empty on other devices, those of the speed
    and of the GPU's use where no row has any."""
    if not rows:
        return StepColumns()
    *numbers, figures = zip(*rows, strict=True)
    by_name = dict(zip(StepRow._fields[:-1], numbers, strict=True))
    if not cuda:
        by_name["cuda_allocated_bytes"] = by_name["cuda_reserved_bytes"] = ()
    for name in ("samples_per_second", "gpu_percent"):
        if all(map(isnan, by_name[name])):
            by_name[name] = ()
    names = dict.fromkeys(name for named in figures for name in named)
    named = {name: tuple(step.get(name, nan) for step in figures) for name in names}
    return StepColumns(**by_name, figures=named)


def thin(rows: list[StepRow], limit: int) -> list[StepRow]:
    """Return at most `limit` of the rows, in order, so that a plot of the loss looks the same.

    The rows are divided into equal stretches; each keeps its lowest and its highest loss, of those
    that are numbers. The first and the last row are always kept. `limit` is at least 4.
    """

    def finite(row: int) -> float | None:
        loss = rows[row].loss
        return loss if loss is not None and isfinite(loss) else None

    if len(rows) <= limit:
        return rows
    stretches = (limit - 2) // 2
    kept = {0, len(rows) - 1}
    for i in range(stretches):
        stretch = range(i * len(rows) // stretches, (i + 1) * len(rows) // stretches)
        known = [(loss, row) for row in stretch if (loss := finite(row)) is not None]
        low, high = min(known, default=(0.0, stretch[0])), max(known, default=(0.0, stretch[-1]))
        kept |= {low[1], high[1]}
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
