"""The best epoch of a run with its weights, and when a run stops early."""

from __future__ import annotations

from math import isnan

import msgspec
from torch import Tensor, nn

from ...project.document import Stopping
from ...protocol import EpochRow


class BestEpoch(msgspec.Struct, frozen=True, kw_only=True):
    """The epoch (1-based) with the best `value` of a `figure`, and the state_dict that it ended
    with, on the CPU. The value has not become better than `reference` by more than `min_delta` in
    `waited` epochs."""

    figure: str
    epoch: int
    step: int
    value: float
    reference: float
    waited: int
    weights: dict[str, Tensor]


def with_epoch(
    best: BestEpoch | None, row: EpochRow, stopping: Stopping, model: nn.Module
) -> BestEpoch | None:
    """The best epoch once that of `row` has ended with the weights of `model`. Without validation
    data it is the best one of training. A value of NaN is not better than any."""
    figure, value = figure_of(row, stopping)
    if best is None or best.figure != figure:
        return None if isnan(value) else _best_epoch(row, figure, value, value, 0, model)
    sign = 1.0 if "loss" in figure else -1.0
    gained = sign * value < sign * best.reference - stopping.min_delta
    reference, waited = (value, 0) if gained else (best.reference, best.waited + 1)
    if sign * value < sign * best.value:
        return _best_epoch(row, figure, value, reference, waited, model)
    return msgspec.structs.replace(best, reference=reference, waited=waited)


def figure_of(row: EpochRow, stopping: Stopping) -> tuple[str, float]:
    """The figure by which an epoch is judged, with its value."""
    figure = stopping.figure
    if figure.startswith("validation") and isnan(row.validation_loss):
        figure = figure.replace("validation", "train")
    return figure, getattr(row, figure.replace(" ", "_"))


def is_over(best: BestEpoch | None, stopping: Stopping) -> bool:
    """Whether the run stops early."""
    return best is not None and 0 < stopping.patience <= best.waited


def _best_epoch(
    row: EpochRow, figure: str, value: float, reference: float, waited: int, model: nn.Module
) -> BestEpoch:
    weights = {name: t.detach().to("cpu", copy=True) for name, t in model.state_dict().items()}
    return BestEpoch(
        figure=figure,
        epoch=row.epoch,
        step=row.step,
        value=value,
        reference=reference,
        waited=waited,
        weights=weights,
    )
