"""What a run trains for: where its batches come from, and what one of them costs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor, nn

from ...project.document import ParamValue, TrainingSetup
from ..components.losses import check_numbers, class_scores, make_loss
from .catalogue_data import CatalogueData
from .epoch_metrics import EpochMetrics
from .guessing import Guess
from .loaders import NOTHING_GIVEN, Given
from .seen_batches import SeenBatches

RMSE = "RMSE"
"""A figure of this name is the root of a mean of squares, also over an epoch."""
PERPLEXITY = "perplexity"
"""A figure of this name is e to the power of a mean, also over an epoch."""
FIGURE_MEANS = {RMSE: (Tensor.square, Tensor.sqrt), PERPLEXITY: (Tensor.log, Tensor.exp)}
R2 = "R2"


class Outcome(NamedTuple):
    """What one batch gives: the loss, a scalar with a graph; the number of its samples, or of its
    labels; class scores (B, C, ...) with labels (B, ...), from which accuracy is counted; and named
    figures, 0-dim."""

    loss: Tensor
    samples: int
    scores: tuple[Tensor, Tensor] | None = None
    figures: Mapping[str, Tensor] = {}


def joined(outcomes: Sequence[Outcome]) -> Outcome:
    """One outcome for the batches of one optimizer step: means over the samples, scores and labels
    one after the other. That of several batches has no graph."""
    if len(outcomes) == 1:
        return outcomes[0]

    def mean(values: Iterable[Tensor], of: Sequence[Outcome]) -> Tensor:
        samples = sum(outcome.samples for outcome in of)
        weights = [outcome.samples / samples for outcome in of]
        parts = [v.detach() * w for v, w in zip(values, weights, strict=True)]
        return torch.stack(parts).sum(0)

    def mean_of(name: str) -> Tensor:
        """Over the batches that have the figure."""
        having = [outcome for outcome in outcomes if name in outcome.figures]
        figures = [outcome.figures[name] for outcome in having]
        if name not in FIGURE_MEANS:
            return mean(figures, having)
        into, back = FIGURE_MEANS[name]
        return back(mean((into(figure) for figure in figures), having))

    scores = [outcome.scores for outcome in outcomes if outcome.scores is not None]
    names = dict.fromkeys(name for outcome in outcomes for name in outcome.figures)
    return Outcome(
        mean((outcome.loss for outcome in outcomes), outcomes),
        sum(outcome.samples for outcome in outcomes),
        (torch.cat([s.detach() for s, _ in scores]), torch.cat([y for _, y in scores]))
        if scores
        else None,
        {name: mean_of(name) for name in names},
    )


class Objective(Protocol):
    """`validation_samples` is 0 without validation data. `guess` is of the part by which a run is
    judged: the validation data, or the training data where there is none.
    `generators` are those of the data's own, from which batches draw besides the global ones.
    `metrics` count over a whole epoch. `runs_code`: batches or loss are had by code of the user's,
    which may print, raise and take long."""

    metrics: EpochMetrics
    validation_samples: int
    runs_code: bool
    generators: tuple[torch.Generator, ...]

    @property
    def guess(self) -> Guess: ...

    @property
    def batches_per_epoch(self) -> int | None:
        """None if the data does not say."""
        ...

    @property
    def repeats(self) -> bool:
        """Whether another pass from the same random numbers has the same batches in the same
        order."""
        ...

    @property
    def draws_by_code(self) -> bool:
        """Whether code of the user's makes the batches: it may draw from any generator."""
        ...

    def to(self, device: torch.device) -> None:
        """Let batches be on the device from now on."""
        ...

    def batches(self, epoch: int, first: int, seen: SeenBatches | None = None) -> Iterator[Any]:
        """The batches of an epoch (0-based) from batch `first` (0-based) on. Those before it are
        skipped before this returns. Data that is shuffled draws from torch's global generator. Data
        that may give others each time lets them be `seen`."""
        ...

    def validation_batches(self) -> Iterator[Any]: ...

    def close(self) -> None:
        """End the processes of workers that the data has started. `batches` may be called again
        after that."""
        ...

    def predict(self, batch: Any) -> Any:
        """The model's prediction on a batch; None where the loss cannot be had apart from it."""
        ...

    def judged(self, batch: Any, prediction: Any) -> Outcome:
        """What a batch gives with its prediction, or, without one, with the model's."""
        ...

    def outcome(self, batch: Any) -> Outcome:
        """Run the model and the loss on a batch."""
        ...


class CatalogueObjective(CatalogueData):
    """The data and the loss of a set-up. `loss` replaces the one of the set-up, if a loss block is
    on the canvas. Raises LabError as CatalogueData does, and for an unknown loss, or bad
    parameters."""

    def __init__(
        self,
        model: nn.Module,
        setup: TrainingSetup,
        loss: str = "",
        loss_params: Mapping[str, ParamValue] | None = None,
        given: Given = NOTHING_GIVEN,
    ) -> None:
        super().__init__(setup, given)
        self.metrics, self.runs_code = EpochMetrics(), bool(given)
        kind, params = (loss, loss_params or {}) if loss else (setup.loss, setup.loss_params)
        self.loss_fn = make_loss(kind, params, self.dataset)
        check_numbers(kind, self.dataset.y_train)
        self._model = model
        self._variance: Tensor | None = None
        # The square of a scale may be beyond float32; that of its share of the largest is not.
        scales = self.dataset.target_scale
        self._largest_scale = float(scales.max())
        self._scales = (scales / self._largest_scale).float()

    def to(self, device: torch.device) -> None:
        super().to(device)
        self._scales = self._scales.to(device)
        self.loss_fn.to(device)

    def batches(
        self, epoch: int, first: int, seen: SeenBatches | None = None
    ) -> Iterator[tuple[Tensor, Tensor]]:
        variance = _variance_of(self.dataset.y_train, self._device)
        return self._counted(super().batches(epoch, first, seen), variance)

    def validation_batches(self) -> Iterator[tuple[Tensor, Tensor]]:
        variance = _variance_of(self.dataset.y_val, self._device)
        return self._counted(super().validation_batches(), variance)

    def predict(self, batch: tuple[Tensor, Tensor]) -> Tensor:
        return self._model(batch[0])

    def outcome(self, batch: tuple[Tensor, Tensor]) -> Outcome:
        return self.judged(batch, self.predict(batch))

    def judged(self, batch: tuple[Tensor, Tensor], prediction: Tensor) -> Outcome:
        _, y = batch
        loss = self.loss_fn(prediction, y)
        if self._variance is None and y.is_floating_point():  # of a collate_fn: shares of classes
            return Outcome(loss, len(y))
        if self._variance is None:
            return Outcome(loss, y.numel(), (class_scores(self.loss_fn, prediction), y))
        figures = self._fit(prediction.detach(), y, self._variance)
        return Outcome(loss, len(y), figures=figures)

    def _fit(self, prediction: Tensor, y: Tensor, variance: Tensor) -> dict[str, Tensor]:
        """How far predicted numbers are from the targets (B, T): the root of the mean squared
        error in the targets' unit, and R2. As `variance` (T,) is that of the whole part, the mean
        of R2 over the samples of an epoch is scikit-learn's r2_score."""
        squared = (prediction - y).square().mean(0)
        r2 = torch.where(variance > 0, 1 - squared / variance, squared == 0)
        mean = (squared * self._scales**2).mean()
        return {RMSE: mean.sqrt() * self._largest_scale, R2: r2.mean()}

    def _counted(
        self, batches: Iterator[tuple[Tensor, Tensor]], variance: Tensor | None
    ) -> Iterator[tuple[Tensor, Tensor]]:
        """The batches of a part of the data whose targets have this variance."""
        for batch in batches:
            self._variance = variance  # the other part has another
            yield batch


def _variance_of(y: Tensor, device: torch.device) -> Tensor | None:
    """The variance of targets (N, T) that are numbers, (T,); None for labels."""
    return y.var(0, correction=0).to(device) if y.is_floating_point() else None
