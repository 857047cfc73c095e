"""The batches of a set-up's data: a data set of the catalogue, a file, or data of the console."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data import Dataset as TorchDataset

from ...datasets.dataset import Ragged
from ...datasets.load import load_dataset
from ...datasets.stored.rows import StoredRows
from ...project.document import TrainingSetup, replace
from ...system.errors import LabError
from .batches import generators_of, length_of, placed, skipped
from .guessing import Guess, guess_of
from .loaders import NOTHING_GIVEN, Given, arguments_of, end_workers, loader_of
from .seen_batches import SeenBatches

PICKED_BYTES = 1 << 20
"""The bytes of samples that are picked at once, in whole batches: to pick each small batch by
itself would take longer than a small model's step."""


class CatalogueData:
    """Pairs (x, y) of the `dataset` that a set-up names, split and transformed as it says. With
    objects `given`, torch's DataLoader takes the training samples, in an order drawn from the
    global generator. Raises LabError for data that cannot be used, or makes no batch."""

    def __init__(self, setup: TrainingSetup, given: Given = NOTHING_GIVEN) -> None:
        self.dataset = load_dataset(setup.data)
        self._loader: DataLoader | None = None
        self._orders: list[list[int]] = []
        self._size, self._seed = setup.batch_size, setup.seed
        self._device = torch.device("cpu")
        if self._size > 0 and not self.dataset.batches(self._size):
            raise LabError(
                f"{len(self.dataset):,} samples make no batch of {self._size:,}.",
                hint="Make batch_size smaller, or turn drop_last off.",
            )
        self.given = given
        self._given_loader = self._loader_with(given) if given else None
        self.generators = generators_of(self._given_loader)
        self.validation_samples = len(self.dataset.y_val)
        self.guess = Guess()
        if self.dataset.classes:
            judged = self.dataset.y_val if self.validation_samples else self.dataset.y_train
            self.guess = guess_of(judged.flatten().bincount())

    @property
    def batches_per_epoch(self) -> int | None:
        if self._given_loader is not None:
            return length_of(self._given_loader)
        return self.dataset.batches(self._size)

    @property
    def repeats(self) -> bool:
        return self.dataset.loading.repeats

    @property
    def draws_by_code(self) -> bool:
        return bool(self.given)

    def to(self, device: torch.device) -> None:
        self._device = device
        if self.dataset.loading.workers is None and self._given_loader is None:
            self.dataset = self.dataset.to(device)

    def batches(
        self, epoch: int, first: int, seen: SeenBatches | None = None
    ) -> Iterator[tuple[Tensor, Tensor]]:
        """As `Dataset.train_batch` has them; the order is not drawn from the global generator.

        The next few batches are picked together, or read if they are stored: there is never a
        second copy of the whole set.
        """
        dataset = self.dataset
        if self._given_loader is not None:
            loaded: Iterable[Any] = self._given_loader
            if seen is not None and self.repeats:
                loaded = seen.noted(loaded, epoch, dataset)
            return self._training(map(self._pair, skipped(loaded, first)), epoch, first)
        rows = dataset.order(self._seed, epoch)[: dataset.batches(self._size) * self._size]
        x, y, order = dataset.x_train, dataset.y_train, rows.to(dataset.x_train.device)
        if dataset.loading.workers is not None:
            found = self._loaded(x, y, order, first)
        elif isinstance(x, StoredRows):
            found = self._read(x, y, order.split(self._size)[first:])
        else:
            found = self._picked(x, y, order[first * self._size :])
        if dataset.ragged is not None:
            found = self._cut(found, dataset.ragged, dataset.ragged.train[rows], first)
        return self._training(found, epoch, first)

    def close(self) -> None:
        end_workers(self._loader, self._given_loader)

    def validation_batches(self) -> Iterator[tuple[Tensor, Tensor]]:
        for x, y in self.in_order(is_validation=True):
            yield x.to(self._device), y.to(self._device)

    def in_order(self, is_validation: bool) -> Iterator[tuple[Tensor, Tensor]]:
        """The batches of a part in the order of its samples, where they lie."""
        dataset, ragged = self.dataset, self.dataset.ragged
        x, y = (
            (dataset.x_val, dataset.y_val) if is_validation else (dataset.x_train, dataset.y_train)
        )
        found = self._slices(x, y)
        if ragged is None:
            return found
        return self._cut(found, ragged, ragged.val if is_validation else ragged.train, 0)

    def _training(
        self, batches: Iterable[tuple[Tensor, Tensor]], epoch: int, first: int
    ) -> Iterator[tuple[Tensor, Tensor]]:
        """The batches as the model gets them; number `first` comes first."""
        for number, (x, y) in enumerate(batches, first):
            yield self.dataset.transformed(x, self._seed, epoch, number), y

    def _cut(
        self, batches: Iterable[tuple[Tensor, Tensor]], ragged: Ragged, lengths: Tensor, first: int
    ) -> Iterator[tuple[Tensor, Tensor]]:
        """The batches, from number `first` on, each as long as its longest sample."""
        for (x, y), own in zip(batches, lengths.split(self._size)[first:], strict=True):
            yield ragged.cut(x, own), y

    def _loader_with(self, given: Given) -> DataLoader:
        dataset, loading = self.dataset, self.dataset.loading
        if loading.balanced:
            raise LabError(
                "balanced says itself which samples come, without a DataLoader.",
                hint="Turn balanced off, and name a WeightedRandomSampler as the sampler.",
            )
        samples: TorchDataset = TensorDataset(dataset.x_train, dataset.y_train)
        if dataset.ragged is not None:
            samples = _Unpadded(samples, dataset.ragged)
            side = "left" if dataset.ragged.on_the_left else "right"
            loading = replace(loading, padding=side, padding_value=dataset.ragged.value)
        arguments = (loading.shuffle, loading.drop_last, given)
        return loader_of(samples, self._size, loading, *arguments)

    def _pair(self, batch: Any) -> tuple[Tensor, Tensor]:
        """A batch of the DataLoader with the user's objects. Raises LabError if it is no pair."""
        is_pair = isinstance(batch, tuple | list) and len(batch) == 2
        if not is_pair or not all(isinstance(part, Tensor) for part in batch):
            raise LabError(
                "The collate_fn gives no pair of tensors (x, y), and data of Train is such pairs.",
                hint="Let it return (x, y).",
            )
        x, y = (placed(part, self._device) for part in batch)
        return x, y

    def _read(
        self, x: StoredRows, y: Tensor, batches: Iterable[Tensor]
    ) -> Iterator[tuple[Tensor, Tensor]]:
        for rows in batches:
            found = x.index_select(0, rows), y.index_select(0, rows)
            yield placed(found[0], self._device), placed(found[1], self._device)

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
            yield placed(x, self._device), placed(y, self._device)

    def _picked(self, x: Tensor, y: Tensor, order: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        of_batch = max(1, x[: self._size].nbytes)
        at_once = max(1, PICKED_BYTES // of_batch) * self._size
        for rows in order.split(at_once):  # index_select: a quarter of indexing's time
            yield from self._slices(x.index_select(0, rows), y.index_select(0, rows))

    def _slices(self, x: Tensor, y: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        for start in range(0, len(y), self._size):
            yield x[start : start + self._size], y[start : start + self._size]


class _Unpadded(TorchDataset):
    """Pairs (x, y), each x as long as it is."""

    def __init__(self, samples: TensorDataset, ragged: Ragged) -> None:
        self._samples, self._ragged = samples, ragged

    def __len__(self) -> int:
        return len(self._samples)

    def __getitem__(self, row: int) -> tuple[Tensor, Tensor]:
        x, y = self._samples[row]
        return self._ragged.cut(x[None], self._ragged.train[row])[0], y
