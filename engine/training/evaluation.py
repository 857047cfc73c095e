"""The passes at the end of an epoch, in which the model learns nothing: validation, and the
statistics of BatchNorm for averaged weights."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import torch
from torch import nn

from ..restoring.randomness import RandomStream
from .figures.metrics import EpochTotals
from .objectives.objective import Objective
from .optimization.averaging import AveragedWeights
from .optimization.optimization import Optimization


@dataclass(frozen=True)
class Evaluation:
    """Each pass draws random numbers from a stream of its own, which begins at `seed`; that of
    training is not used."""

    model: nn.Module
    objective: Objective
    optimization: Optimization
    averaged: AveragedWeights | None
    seed: int
    device: torch.device

    def judged(self) -> AbstractContextManager[None]:
        """In this context the model has the weights that are validated: the averaged ones, if there
        are any yet."""
        averaged = self.averaged
        return averaged.in_use() if averaged is not None and averaged.has_begun else nullcontext()

    def validated(self) -> Generator[None, None, EpochTotals]:
        """Validate under eval() and no_grad. Yields after every batch."""
        totals = EpochTotals()
        random = self._random()
        with random:
            batches = self.objective.validation_batches()
        while True:
            if self.model.training:
                self.model.eval()
            with random, torch.no_grad(), self.optimization.forward, self.judged():
                batch = next(batches, None)
                if batch is None:
                    return totals
                totals.add_outcome(self.objective.outcome(batch))
            yield

    def norms_of_average(self, averaged: AveragedWeights, epoch: int) -> Iterator[None]:
        """Compute the statistics of BatchNorm of the averaged weights over the training set, as
        torch's update_bn. Yields after every batch."""
        random = self._random()
        with random:
            batches = self.objective.batches(epoch, 0)
        with averaged.norms_reset():
            while True:
                with random, torch.no_grad(), self.optimization.forward, averaged.in_use():
                    if (batch := next(batches, None)) is None:
                        return
                    self.model.train()
                    self.objective.outcome(batch)
                yield

    def _random(self) -> RandomStream:
        return RandomStream(self.seed, self.device, self.objective.generators)
