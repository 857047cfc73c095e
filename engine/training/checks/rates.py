"""The learning-rate range test (L. Smith, "Cyclical learning rates for training neural networks",
2017): one step at each of many rising rates."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, count
from math import isfinite, log10
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ...project.document import TrainingSetup
from ...protocol import Check, RateCurve
from ..components.optimizers import make_optimizer
from ..objectives.objective import Objective
from .untouched import untouched

STEPS = 100
LOWEST, HIGHEST = 1e-6, 10.0
NEIGHBORS = 4
"""The smoothed loss of a rate is the mean of its own loss and of this many losses on either side,
fewer at the ends. (A mean of the past only would show each fall too late.)"""
TOO_HIGH = 4.0
"""The test ends where the loss of three steps in a row is this many times the first."""
FAR = 30
"""The set-up's rate is called unsuitable if it is more than this many times the suggested one, or
less than 1 / FAR of it."""
FALLS = 0.95
"""A rate is suggested if the smoothed loss falls below this share of its first value."""


def rates(
    model: nn.Module, objective: Objective, setup: TrainingSetup
) -> Iterator[tuple[Check, RateCurve] | None]:
    """Yields None after each step, then the check with its curve."""
    tried: list[float] = []
    losses: list[float] = []
    with untouched(model):
        optimizer = make_optimizer(setup.optimizer, setup.optimizer_params, model.parameters())
        batches = chain.from_iterable(objective.batches(epoch, 0) for epoch in count())
        for rate in np.geomspace(LOWEST, HIGHEST, STEPS):
            for group in optimizer.param_groups:
                group["lr"] = float(rate)
            loss = _step(optimizer, objective, next(batches))
            if not isfinite(loss):
                break
            tried.append(float(rate))
            losses.append(loss)
            yield None
            if min(losses[-3:]) > TOO_HIGH * losses[0]:
                break
    smooth = smoothed(losses)
    found = suggestion(tried, smooth)
    curve = RateCurve(tuple(tried), tuple(losses), tuple(smooth), found)
    yield _check(curve, setup), curve


def smoothed(losses: list[float]) -> list[float]:
    """The mean around each loss (see NEIGHBORS)."""
    found = []
    for i in range(len(losses)):
        beside = min(NEIGHBORS, i, len(losses) - 1 - i)
        part = losses[i - beside : i + beside + 1]
        found.append(sum(part) / len(part))
    return found


def suggestion(tried: list[float], smooth: list[float]) -> float:
    """The rate, to one digit, around which the smoothed loss falls steepest over the logarithm of
    the rate, before its lowest value; 0 if the loss hardly falls. The first ones are left out: they
    are means of few."""
    beside = min(NEIGHBORS, len(tried) // 4)
    if not beside or min(smooth) > FALLS * smooth[beside]:
        return 0.0
    lowest = max(int(np.argmin(smooth)), beside + 1)
    places = range(beside, min(lowest + 1, len(tried) - beside))
    steepest = min(places, key=lambda i: smooth[i + beside] - smooth[i - beside])
    rate = tried[steepest]
    digits = 10.0 ** np.floor(log10(rate))
    return float(f"{round(rate / digits) * digits:.1g}")


def _step(optimizer: torch.optim.Optimizer, objective: Objective, batch: Any) -> float:
    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = objective.outcome(batch).loss
        loss.backward()
        return loss.detach()

    return float(optimizer.step(closure))  # type: ignore[arg-type]


def _check(curve: RateCurve, setup: TrainingSetup) -> Check:
    if not curve.suggestion:
        return Check(
            "rates",
            "warning",
            "No learning rate of the range test lets the loss fall.",
            f"{len(curve.rates)} rates from {LOWEST:g} to {HIGHEST:g}",
            "Look at the other checks first.",
        )
    now = setup.optimizer_params.get("lr")
    evidence = (
        f"the loss falls steepest at {curve.suggestion:g}, and is lowest at"
        f" {curve.rates[int(np.argmin(curve.smooth))]:.2g}"
    )
    text = f"A learning rate of {curve.suggestion:g} suits this model and data."
    if isinstance(now, int | float) and not 1 / FAR <= now / curve.suggestion <= FAR:
        text += f" It is {now:g} now."
        return Check("rates", "warning", text, evidence, f"lr={curve.suggestion:g}")
    return Check("rates", "good", text, evidence)
