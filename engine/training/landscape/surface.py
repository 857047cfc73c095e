"""The loss on a grid around the weights."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice, product
from typing import Any

import torch
from torch import nn

from ...system.errors import LabError
from ..checks.untouched import untouched
from ..objectives.batches import moved
from ..objectives.objective import Objective
from .directions import directions, moving


class Surface:
    """The mean loss of some fixed batches of the training part, in eval mode, at the weights plus
    each multiple `along` of one direction, or of each pair of multiples of two.

    `losses` has the points so far, of two directions in rows: the first direction changes from row
    to row. Raises LabError for a model without weights or data without a batch.
    """

    def __init__(
        self,
        model: nn.Module,
        objective: Objective,
        along: Sequence[float],
        is_plane: bool,
        batches: int,
        seed: int,
    ) -> None:
        self._model, self._objective = model, objective
        self._weights = moving(model)
        device = self._weights[0].device
        objective.to(device)
        self._batches: list[Any] = [
            moved(batch, device) for batch in islice(objective.batches(0, 0), batches)
        ]
        if not self._batches:
            raise LabError("The data has no batch.", hint="Give data with samples.")
        self._places = list(product(along, repeat=2 if is_plane else 1))
        self._directions = directions(
            [w.detach() for w in self._weights], 2 if is_plane else 1, seed
        )
        self.samples = 0
        self.losses: list[float] = []

    @property
    def total(self) -> int:
        return len(self._places)

    def points(self) -> Iterator[None]:
        """Compute one point after the other. The model has its own weights, gradients, buffers and
        modes afterwards, bit for bit."""
        own = [weight.data for weight in self._weights]
        with untouched(self._model, training=False), torch.no_grad():
            for place in self._places:
                for number, weight in enumerate(self._weights):
                    weight.data.copy_(own[number])
                    for multiple, direction in zip(place, self._directions, strict=True):
                        weight.data.add_(direction[number], alpha=multiple)
                self.losses.append(self._loss())
                yield

    def _loss(self) -> float:
        total, self.samples = 0.0, 0
        with self._objective.metrics.aside():
            for batch in self._batches:
                outcome = self._objective.outcome(batch)
                total += float(outcome.loss) * outcome.samples
                self.samples += outcome.samples
        return total / self.samples


def multiples(points: int, span: float) -> tuple[float, ...]:
    """`points` multiples of a direction from -span to span; an odd number of them has 0, the
    weights themselves, in the middle."""
    middle = (points - 1) / 2
    return tuple(span * (place - middle) / middle for place in range(points))
