"""The built-in data sets: scikit-learn's digits and three labelled point clouds in the plane.

They are small enough to be whole tensors, so batches are taken by indexing. A DataLoader would cost
more than a training step of a small model.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from math import ceil, nan, pi

import numpy as np
import torch
from torch import Tensor

from ..project import catalogue
from ..project.document import DataSetup, ParamValue


@dataclass(frozen=True, eq=False)
class Dataset:
    """A labelled data set in two parts.

    `x_train` is float32 of shape (N, *sample_shape); `y_train` is int64 of shape (N,), with the
    labels 0 to `classes` - 1. `x_val` and `y_val` are the same for validation (N may be 0).
    """

    name: str
    x_train: Tensor
    y_train: Tensor
    x_val: Tensor
    y_val: Tensor
    classes: int
    sample_shape: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.y_train)

    @property
    def guess_accuracy(self) -> float:
        """The validation accuracy of always guessing the most frequent class; NaN if N is 0."""
        samples = len(self.y_val)
        return int(self.y_val.bincount().max()) / samples if samples else nan

    def batches(self, batch_size: int) -> int:
        """The number of batches in an epoch; the last one may be smaller."""
        return ceil(len(self) / batch_size)

    def train_batch(
        self, index: int, batch_size: int, seed: int, epoch: int = 0
    ) -> tuple[Tensor, Tensor]:
        """Return batch `index` (0-based) of epoch `epoch` (0-based), as the training loop uses it.

        `x` has shape (B, *sample_shape), `y` (B,). Raises IndexError after the last batch.
        """
        count = self.batches(batch_size)
        if not 0 <= index < count:
            raise IndexError(
                f"Batch {index} does not exist: {len(self):,} samples in batches of "
                f"{batch_size} are batches 0 to {count - 1}."
            )
        order = epoch_order(len(self), seed, epoch)
        rows = order[index * batch_size : (index + 1) * batch_size].to(self.x_train.device)
        return self.x_train[rows], self.y_train[rows]

    def to(self, device: torch.device) -> Dataset:
        """Return this data set on `device`; for CUDA it is copied from pinned memory."""
        if device == self.x_train.device:
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
    mixed = np.random.SeedSequence([seed % 2**64, epoch]).generate_state(1, np.uint64)
    generator = torch.Generator().manual_seed(int(mixed[0]))
    return torch.randperm(samples, generator=generator)


def load(setup: DataSetup) -> Dataset:
    """Return the data set of `setup` on the CPU; an equal set-up returns the same object.

    The split keeps the share of each class, and is drawn with the data set's own `seed`. Raises
    ValueError, in words, for an unknown kind or parameter, or a value out of range.
    """
    return _load(setup.kind, tuple(sorted(setup.params.items())), setup.validation_fraction)


@lru_cache(maxsize=8)
def _load(
    kind: str, params: tuple[tuple[str, ParamValue], ...], validation_fraction: float
) -> Dataset:
    arguments = arguments_of(kind, dict(params))
    seed = int(arguments.get("seed", 0))
    x, y = _MAKERS[kind](**arguments)
    train, val = _split(y, validation_fraction, seed)
    x_all, y_all = torch.from_numpy(x), torch.from_numpy(y)
    return Dataset(
        name=kind,
        x_train=x_all[train],
        y_train=y_all[train],
        x_val=x_all[val],
        y_val=y_all[val],
        classes=int(y.max()) + 1,
        sample_shape=tuple(x.shape[1:]),
    )


def arguments_of(kind: str, params: dict[str, ParamValue]) -> dict:
    """Return the data set's parameters, checked, with the catalogue's defaults filled in.

    Raises ValueError as `load` does.
    """
    kinds = catalogue.datasets()
    if kind not in kinds or kind not in _MAKERS:
        raise ValueError(f"There is no data set {kind!r}; there are {', '.join(kinds)}.")
    schema = {param.name: param for param in kinds[kind].params}
    unknown = [name for name in params if name not in schema]
    if unknown:
        known = ", ".join(schema) or "none"
        raise ValueError(f"Data set {kind} has no parameter {unknown[0]!r}; it has {known}.")
    values = {name: param.default for name, param in schema.items()}
    values.update({name: catalogue.parse_value(schema[name], params[name]) for name in params})
    return values


def _split(y: np.ndarray, validation_fraction: float, seed: int) -> tuple[Tensor, Tensor]:
    """Return the row numbers for training and for validation, with each class in proportion."""
    rows = np.arange(len(y))
    if not 0 <= validation_fraction < 1:
        raise ValueError(
            f"The validation fraction is {validation_fraction:g}; "
            "it must be at least 0 and less than 1, for example 0.2."
        )
    if validation_fraction == 0:
        return torch.from_numpy(rows), torch.from_numpy(rows[:0])

    from sklearn.model_selection import train_test_split

    try:
        train, val = train_test_split(
            rows, test_size=validation_fraction, stratify=y, random_state=seed % 2**32
        )
    except ValueError as error:
        raise ValueError(
            f"{len(y):,} samples cannot be split with a validation fraction of "
            f"{validation_fraction:g}: every class needs samples on both sides. "
            "Use more samples or another fraction."
        ) from error
    return torch.from_numpy(train), torch.from_numpy(val)


# -- the sets: each returns x float32 (N, *sample_shape) and y int64 (N,) -------------------------


def _digits(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """1,797 handwritten digits of 8 x 8 pixels, scaled from 0..16 to 0..1: x (1797, 1, 8, 8).

    Source: Alpaydin & Kaynak, Optical Recognition of Handwritten Digits (UCI), bundled with
    scikit-learn. `seed` only decides the split.
    """
    from sklearn.datasets import load_digits

    pixels, labels = load_digits(return_X_y=True)
    x = np.asarray(pixels, np.float32).reshape(-1, 1, 8, 8) / 16
    return x, np.asarray(labels, np.int64)


def _moons(samples: int, noise: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Two interleaved half circles: (cos t, sin t) and (1 - cos t, 1/2 - sin t), t in 0..pi,
    plus normal noise of standard deviation `noise`."""
    from sklearn.datasets import make_moons

    x, y = make_moons(samples, noise=noise, random_state=seed % 2**32)
    return np.asarray(x, np.float32), np.asarray(y, np.int64)


def _circles(
    samples: int, noise: float, seed: int, factor: float = 0.5
) -> tuple[np.ndarray, np.ndarray]:
    """Two circles about the origin, of radius 1 (class 0) and `factor` (class 1), plus normal
    noise of standard deviation `noise`."""
    from sklearn.datasets import make_circles

    x, y = make_circles(samples, noise=noise, factor=factor, random_state=seed % 2**32)
    return np.asarray(x, np.float32), np.asarray(y, np.int64)


def _spirals(samples: int, noise: float, turns: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Two Archimedean spirals, class k in {0, 1}: r (cos a, sin a) with the radius r uniform in
    0..1 and the angle a = 2 pi turns r + pi k, plus normal noise of standard deviation `noise`."""
    random = np.random.default_rng(seed % 2**64)
    y = np.arange(samples) % 2
    radius = random.uniform(0, 1, samples)
    angle = 2 * pi * turns * radius + pi * y
    x = radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    x += random.normal(0, noise, x.shape)
    return np.asarray(x, np.float32), np.asarray(y, np.int64)


_MAKERS: dict[str, Callable[..., tuple[np.ndarray, np.ndarray]]] = {
    "digits": _digits,
    "moons": _moons,
    "circles": _circles,
    "spirals": _spirals,
}
