"""A data set as training uses it: whole tensors in two parts, from which batches are indexed.

A DataLoader would cost more than a training step of a small model.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from math import ceil

import torch
from torch import Tensor

from ..project.document import Column, Loading
from .stored.rows import StoredRows
from .transforms import generator_of

_INDEXED = Loading()


@dataclass(frozen=True, eq=False)
class Ragged:
    """The lengths of samples that are padded with `value`, in the two parts: int64, on the CPU. A
    batch of them has the length of its longest."""

    train: Tensor
    val: Tensor
    on_the_left: bool
    value: float

    def cut(self, x: Tensor, lengths: Tensor) -> Tensor:
        """Samples (B, L, ...) of these lengths without the padding that all of them have."""
        longest = int(lengths.max())
        return x[:, x.shape[1] - longest :] if self.on_the_left else x[:, :longest]


@dataclass(frozen=True, eq=False)
class Dataset:
    """Samples and targets, as `samples.Samples` has them, split and made ready.

    `classes` names the classes of labels (y is int64 (N,)) or characters (y is int64 (N, L)); it
    is empty for numbers (y is float32 (N, T)). `target_scale` (T,), float64 and always on the CPU,
    is what numbers were divided by to standardise them, else 1. `columns` names the elements of a
    table's sample, `roles` the columns of its file. `skipped` says what of the source was left
    out. `x_val` may be empty. `drawn` are the transforms that each training batch gets,
    `transform(x, generator)`.

    Samples of different lengths are padded to the longest of all; those that are `ragged`, each
    batch to its own longest. Where the data set `is_stored`, its samples are StoredRows: they stay
    in their files, and all of the data set on the CPU.
    """

    name: str
    x_train: Tensor
    y_train: Tensor
    x_val: Tensor
    y_val: Tensor
    target_scale: Tensor
    classes: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    roles: tuple[tuple[str, Column], ...] = ()
    skipped: tuple[str, ...] = ()
    loading: Loading = _INDEXED
    drawn: tuple[partial[Tensor], ...] = ()
    ragged: Ragged | None = None

    def __len__(self) -> int:
        return len(self.y_train)

    @property
    def is_stored(self) -> bool:
        return isinstance(self.x_train, StoredRows)

    @property
    def sample_shape(self) -> tuple[int, ...]:
        return tuple(self.x_train.shape[1:])

    def batches(self, batch_size: int) -> int:
        """The number of batches in an epoch; the last one may be smaller."""
        if self.loading.drop_last:
            return len(self) // batch_size
        return ceil(len(self) / batch_size)

    def order(self, seed: int, epoch: int) -> Tensor:
        """The rows of the samples of an epoch, in the order in which training takes them: int64
        (N,), on the CPU. It depends only on the arguments, so a resumed run gets the same."""
        if self.loading.balanced:
            return balanced_order(self.y_train.cpu(), seed, epoch)
        if self.loading.shuffle:
            return epoch_order(len(self), seed, epoch)
        return torch.arange(len(self))

    def transformed(self, x: Tensor, seed: int, epoch: int, batch: int) -> Tensor:
        """The samples of a training batch, x (B, *sample_shape), as the model gets them."""
        if self.drawn:
            generator = generator_of(seed, epoch, batch)
            for transform in self.drawn:
                x = transform(x, generator)
        return x

    def train_batch(
        self, index: int, batch_size: int, seed: int, epoch: int = 0
    ) -> tuple[Tensor, Tensor]:
        """Return batch `index` (0-based) of epoch `epoch` (0-based), as the training loop uses it.

        `x` has shape (B, *sample_shape), `y` (B, ...). Raises IndexError after the last batch.
        """
        count = self.batches(batch_size)
        if not 0 <= index < count:
            there = f"batches 0 to {count - 1}" if count else "not one whole batch"
            raise IndexError(
                f"Batch {index} does not exist: {len(self):,} samples in batches of "
                f"{batch_size} are {there}."
            )
        order = self.order(seed, epoch)
        rows = order[index * batch_size : (index + 1) * batch_size]
        here = rows.to(self.x_train.device)
        x = self.x_train[here]
        if self.ragged is not None:
            x = self.ragged.cut(x, self.ragged.train[rows])
        return self.transformed(x, seed, epoch, index), self.y_train[here]

    def to(self, device: torch.device) -> Dataset:
        """Return this data set on `device`; for CUDA it is copied from pinned memory."""
        if self.is_stored or device == self.x_train.device:
            return self

        def move(tensor: Tensor) -> Tensor:
            if device.type == "cuda":
                return tensor.pin_memory().to(device, non_blocking=True)
            return tensor.to(device)

        return replace(
            self,
            x_train=move(self.x_train),
            y_train=move(self.y_train),
            x_val=move(self.x_val),
            y_val=move(self.y_val),
        )


def epoch_order(samples: int, seed: int, epoch: int) -> Tensor:
    """Return the order of the samples in an epoch: an int64 permutation of (samples,), on the CPU.

    It depends only on its arguments, so a resumed run gets the same batches.
    """
    return torch.randperm(samples, generator=generator_of(seed, epoch))


def balanced_order(labels: Tensor, seed: int, epoch: int) -> Tensor:
    """Return as many rows as there are labels (N,), int64, drawn with replacement, where each class
    has the same chance: as torch's WeightedRandomSampler with weights 1 / samples of the class."""
    weights = 1 / labels.bincount().double()
    generator = generator_of(seed, epoch)
    return torch.multinomial(weights[labels], len(labels), replacement=True, generator=generator)
