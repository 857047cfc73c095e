"""What a run trains for: where its batches come from, and what one of them costs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from ...datasets.load import load_dataset
from ...errors import LabError
from ...project.document import ParamValue, TrainingSetup
from ..components.losses import check_numbers, class_scores, make_loss
from .batches import generators_of, length_of, moved, skipped
from .epoch_metrics import EpochMetrics
from .loaders import NOTHING_GIVEN, Given, arguments_of, end_workers, loader_of

RMSE = "RMSE"
"""A figure of this name is the root of a mean of squares, also over an epoch."""
PERPLEXITY = "perplexity"
"""A figure of this name is e to the power of a mean, also over an epoch."""
FIGURE_MEANS = {RMSE: (Tensor.square, Tensor.sqrt), PERPLEXITY: (Tensor.log, Tensor.exp)}
R2 = "R2"
SHUFFLED_BYTES = 1 << 26
"""The samples of a larger set are not copied for an epoch."""


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
    """`validation_samples` is 0 without validation data. `guess_accuracy` is the validation
    accuracy of always guessing the most frequent class; NaN for a task without classes.
    `generators` are those of the data's own, from which batches draw besides the global ones.
    `metrics` count over a whole epoch."""

    metrics: EpochMetrics
    validation_samples: int
    guess_accuracy: float
    generators: tuple[torch.Generator, ...]

    @property
    def batches_per_epoch(self) -> int | None:
        """None if the data does not say."""
        ...

    def to(self, device: torch.device) -> None:
        """Let batches be on the device from now on."""
        ...

    def batches(self, epoch: int, first: int) -> Iterator[Any]:
        """The batches of an epoch (0-based) from batch `first` (0-based) on. Those before it are
        skipped before this returns. Data that is shuffled draws from torch's global generator."""
        ...

    def validation_batches(self) -> Iterator[Any]: ...

    def close(self) -> None:
        """End what the data has begun: processes of workers. Batches can be had again."""
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


class CatalogueObjective:
    """A data set and a loss of the catalogue. `loss` replaces the one of the set-up, if a loss
    block is on the canvas. With objects `given`, torch's DataLoader takes the training samples,
    in an order drawn from the global generator. Raises LabError for an unknown loss, or bad
    parameters."""

    def __init__(
        self,
        model: nn.Module,
        setup: TrainingSetup,
        loss: str = "",
        loss_params: Mapping[str, ParamValue] | None = None,
        given: Given = NOTHING_GIVEN,
    ) -> None:
        self.metrics = EpochMetrics()
        kind, params = (loss, loss_params or {}) if loss else (setup.loss, setup.loss_params)
        self.dataset = load_dataset(setup.data)
        self.loss_fn = make_loss(kind, params, self.dataset)
        check_numbers(kind, self.dataset.y_train)
        self.validation_samples = len(self.dataset.y_val)
        self.guess_accuracy = self.dataset.guess_accuracy
        self._model = model
        self._variance: Tensor | None = None
        self._orders: list[list[int]] = []
        self._loader: DataLoader | None = None
        self._size, self._seed = setup.batch_size, setup.seed
        self._device = torch.device("cpu")
        if self._size > 0 and not self.dataset.batches(self._size):
            raise LabError(
                f"{len(self.dataset):,} samples make no batch of {self._size:,}.",
                hint="Make batch_size smaller, or turn drop_last off.",
            )
        self._given = self._given_loader(given) if given else None
        self.generators = generators_of(self._given)

    @property
    def batches_per_epoch(self) -> int | None:
        if self._given is not None:
            return length_of(self._given)
        return self.dataset.batches(self._size)

    def to(self, device: torch.device) -> None:
        self._device = device
        self.loss_fn.to(device)
        if self.dataset.loading.workers is None and self._given is None:
            self.dataset = self.dataset.to(device)

    def batches(self, epoch: int, first: int) -> Iterator[tuple[Tensor, Tensor]]:
        """As `Dataset.train_batch` has them; the order is not drawn from the global generator.

        A small set is shuffled once an epoch, so that each batch is a slice without a copy. Of a
        large one, each batch is picked, so that there is no second copy of the whole.
        """
        dataset = self.dataset
        if self._given is not None:
            return self._training(map(self._pair, skipped(self._given, first)), epoch, first)
        order = dataset.order(self._seed, epoch)[: dataset.batches(self._size) * self._size]
        x, y, order = dataset.x_train, dataset.y_train, order.to(dataset.x_train.device)
        if dataset.loading.workers is not None:
            found = self._loaded(x, y, order, first)
        elif x.nbytes > SHUFFLED_BYTES:
            picked = order.split(self._size)[
                first:
            ]  # index_select takes a quarter of indexing's time
            found = ((x.index_select(0, rows), y.index_select(0, rows)) for rows in picked)
        else:
            found = self._slices(x.index_select(0, order), y.index_select(0, order), first)
        return self._training(found, epoch, first)

    def close(self) -> None:
        end_workers(self._loader, self._given)

    def validation_batches(self) -> Iterator[tuple[Tensor, Tensor]]:
        self._variance = _variance_of(self.dataset.y_val)
        for x, y in self._slices(self.dataset.x_val, self.dataset.y_val, 0):
            yield x.to(self._device), y.to(self._device)

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
        mean = (squared * self.dataset.target_scale**2).mean()
        return {RMSE: mean.sqrt(), R2: r2.mean()}

    def _training(
        self, batches: Iterable[tuple[Tensor, Tensor]], epoch: int, first: int
    ) -> Iterator[tuple[Tensor, Tensor]]:
        """The batches as the model gets them; number `first` comes first."""
        variance = _variance_of(self.dataset.y_train)
        for number, (x, y) in enumerate(batches, first):
            self._variance = variance  # validation has another
            yield self.dataset.transformed(x, self._seed, epoch, number), y

    def _given_loader(self, given: Given) -> DataLoader:
        dataset, loading = self.dataset, self.dataset.loading
        if loading.balanced:
            raise LabError(
                "balanced says itself which samples come, without a DataLoader.",
                hint="Turn balanced off, and name a WeightedRandomSampler as the sampler.",
            )
        samples = TensorDataset(dataset.x_train, dataset.y_train)
        arguments = (loading.shuffle, loading.drop_last, given)
        return loader_of(samples, self._size, loading, *arguments)

    def _pair(self, batch: Any) -> tuple[Tensor, Tensor]:
        """A batch of the DataLoader with the user's objects. Raises LabError if it is no pair."""
        is_pair = isinstance(batch, tuple | list) and len(batch) == 2
        if not is_pair or not all(isinstance(part, Tensor) for part in batch):
            raise LabError(
                "The collate_fn gives no pair of tensors (x, y), and a model of blocks learns from"
                " such pairs.",
                hint="Let it return (x, y).",
            )
        x, y = (moved(part, self._device) for part in batch)
        return x, y

    def _loaded(
        self, x: Tensor, y: Tensor, order: Tensor, first: int
    ) -> Iterator[tuple[Tensor, Tensor]]:
        """The same batches by torch's DataLoader. It draws its workers' seed from a generator of
        its own."""
        self._orders[:] = [rows.tolist() for rows in order.split(self._size)[first:]]
        if self._loader is None:
            self._loader = DataLoader(
                TensorDataset(x, y),
                batch_sampler=self._orders,
                generator=torch.Generator(),
                **arguments_of(self.dataset.loading),
            )
        self._loader.generator.manual_seed(self._seed)  # pyright: ignore[reportOptionalMemberAccess]
        for x, y in self._loader:
            yield moved(x, self._device), moved(y, self._device)

    def _slices(self, x: Tensor, y: Tensor, first: int) -> Iterator[tuple[Tensor, Tensor]]:
        for start in range(first * self._size, len(y), self._size):
            yield x[start : start + self._size], y[start : start + self._size]


def _variance_of(y: Tensor) -> Tensor | None:
    """The variance of targets (N, T) that are numbers, (T,); None for labels."""
    return y.var(0, correction=0) if y.is_floating_point() else None
