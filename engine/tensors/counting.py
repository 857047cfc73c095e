"""Counts and moments of numbers that come in pieces: one way of counting for every view."""

from __future__ import annotations

import math

import torch
from torch import Tensor


class Counts:
    """Zeros, NaNs and infinities, and minimum, maximum, mean and deviation of the finite numbers.

    Everything is computed in float64. Mean and squares are merged piece by piece (T. Chan,
    G. Golub, R. LeVeque, "Updating formulae and a pairwise algorithm for computing sample
    variances", 1979), so that large sums do not lose small terms.
    """

    def __init__(self) -> None:
        self.finite = 0
        self.zeros = self.nans = self.positive_infs = self.negative_infs = 0
        self.minimum: float | None = None
        self.maximum: float | None = None
        self._mean = 0.0
        self._squares = 0.0  # the sum of the squared distances from the mean

    def count(self, x: Tensor, times: int = 1) -> tuple[Tensor, float, float] | None:
        """Count the numbers of a float64 vector, each as if it came `times` times. Returns the
        finite ones, their minimum and maximum; None if there are none."""
        if not x.numel():
            return None
        low, high = (float(end) for end in torch.aminmax(x))
        if not (math.isfinite(low) and math.isfinite(high)):  # one NaN makes both NaN
            self.nans += int(x.isnan().sum()) * times
            self.positive_infs += int((x == math.inf).sum()) * times
            self.negative_infs += int((x == -math.inf).sum()) * times
            return self.count(x[torch.isfinite(x)], times)
        self.zeros += (x.numel() - int(torch.count_nonzero(x))) * times
        mean = float(x.mean())
        apart = x - mean
        self._merge(x.numel() * times, mean, float(torch.dot(apart, apart)) * times, low, high)
        return x, low, high

    def count_zeros(self, count: int) -> None:
        """Count zeros that are not stored, as those of a sparse tensor."""
        if count:
            self.zeros += count
            self._merge(count, 0.0, 0.0, 0.0, 0.0)

    @property
    def mean(self) -> float | None:
        return self._mean if self.finite else None

    @property
    def std(self) -> float | None:
        """The sample standard deviation (torch.std's default, N - 1)."""
        return math.sqrt(self._squares / (self.finite - 1)) if self.finite > 1 else None

    @property
    def norm(self) -> float | None:
        """The 2-norm."""
        if not self.finite:
            return None
        return math.hypot(math.sqrt(self._squares), math.sqrt(self.finite) * self._mean)

    def _merge(self, count: int, mean: float, squares: float, low: float, high: float) -> None:
        together = self.finite + count
        apart = mean - self._mean
        self._mean += apart * (count / together)
        self._squares += squares + apart * apart * (self.finite * count / together)
        self.finite = together
        self.minimum = low if self.minimum is None else min(self.minimum, low)
        self.maximum = high if self.maximum is None else max(self.maximum, high)
