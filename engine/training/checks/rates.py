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
SMOOTHING = 0.9
"""Weight of the past in the moving average of the loss, which is divided by its weights' sum."""
TOO_HIGH = 4.0
"""The test ends where the smoothed loss is so many times its lowest."""
FALLS = 0.95
"""A rate is suggested if the smoothed loss falls below this share of its first value."""


def rates(
    model: nn.Module, objective: Objective, setup: TrainingSetup
) -> Iterator[tuple[Check, RateCurve] | None]:
    """Yields None after each step, then the check with its curve."""
    tried: list[float] = []
    losses: list[float] = []
    smooth: list[float] = []
    average = 0.0
    with untouched(model):
        optimizer = make_optimizer(setup.optimizer, setup.optimizer_params, model.parameters())
        batches = chain.from_iterable(objective.batches(epoch, 0) for epoch in count())
        for step, rate in enumerate(np.geomspace(LOWEST, HIGHEST, STEPS), 1):
            for group in optimizer.param_groups:
                group["lr"] = float(rate)
            loss = _step(optimizer, objective, next(batches))
            if not isfinite(loss):
                break
            tried.append(float(rate))
            losses.append(loss)
            average = SMOOTHING * average + (1 - SMOOTHING) * loss
            smooth.append(average / (1 - SMOOTHING**step))
            yield None
            if smooth[-1] > TOO_HIGH * min(smooth):
                break
    found = suggestion(tried, smooth)
    curve = RateCurve(tuple(tried), tuple(losses), tuple(smooth), found)
    yield _check(curve, setup), curve


def suggestion(tried: list[float], smooth: list[float]) -> float:
    """The rate, to one digit, at which the smoothed loss falls steepest over the logarithm of the
    rate, before its lowest value; 0 if the loss hardly falls."""
    if len(tried) < 3 or min(smooth) > FALLS * smooth[0]:
        return 0.0
    lowest = int(np.argmin(smooth))
    slopes = np.gradient(np.array(smooth), np.log10(tried))[: lowest + 1]
    rate = tried[int(np.argmin(slopes))]
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
    if isinstance(now, int | float) and not 0.1 <= now / curve.suggestion <= 10:
        text += f" It is {now:g} now."
        return Check("rates", "warning", text, evidence, f"lr={curve.suggestion:g}")
    return Check("rates", "good", text, evidence)
