"""Steps whose loss compares two predictions, or aligns one with a shorter sequence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

Predict = Callable[[Any], Any]
"""The model's prediction on an input, or the exception that it raised."""


def compared(batch: Any, predict: Predict) -> tuple[str, list[str]] | None:
    """The task and the lines of a step for a batch of pairs (x1, x2, y), y being 1 or -1, or of
    (x, y, lengths of x, lengths of y); None for any other. The model takes one input."""
    if not isinstance(batch, tuple | list) or not all(isinstance(part, Tensor) for part in batch):
        return None
    if len(batch) == 3 and _are_pairs(*batch):
        return _of_pairs(predict(batch[0]))
    if len(batch) == 4 and _are_sequences(*batch):
        return _of_sequences(predict(batch[0]))
    return None


def _are_pairs(first: Tensor, second: Tensor, y: Tensor) -> bool:
    alike = first.ndim > 1 and first.shape == second.shape and first.dtype == second.dtype
    return alike and y.shape == first.shape[:1] and bool((y.abs() == 1).all())


def _of_pairs(prediction: Any) -> tuple[str, list[str]] | None:
    if not isinstance(prediction, Tensor):
        return None
    lines = ["x1, x2, y = batch", "first, second = model(x1), model(x2)"]
    if prediction.ndim == 1 or prediction.shape[1:] == (1,):
        called = "F.margin_ranking_loss(first.flatten(), second.flatten(), y)"
        right = "((first - second).flatten().sign() == y).float().mean()"
        figures = f'return {{"loss": {called}, "accuracy": {right}}}'
        return "ranking: y is 1 where x1 comes before x2", [*lines, figures]
    if prediction.ndim == 2:
        loss = 'return {"loss": F.cosine_embedding_loss(first, second, y)}'
        return "pairs: y is 1 where both are alike", [*lines, loss]
    return None


def _are_sequences(x: Tensor, y: Tensor, x_lengths: Tensor, y_lengths: Tensor) -> bool:
    integers = (y, x_lengths, y_lengths)
    lengths = x_lengths.shape == y_lengths.shape == x.shape[:1]
    plain = all(not t.is_floating_point() and t.dtype != torch.bool for t in integers)
    return plain and lengths and x.ndim > 1 and y.ndim == 2 and len(y) == len(x)


def _of_sequences(prediction: Any) -> tuple[str, list[str]] | None:
    """CTC over scores (B, T, C), class 0 being the blank."""
    if not isinstance(prediction, Tensor) or prediction.ndim != 3:
        return None
    return "alignment by CTC: class 0 is the blank", [
        "x, y, x_lengths, y_lengths = batch",
        "steps = model(x).log_softmax(-1).transpose(0, 1)",
        'return {"loss": F.ctc_loss(steps, y, x_lengths, y_lengths)}',
    ]
