"""Which batches are compared or aligned, by shapes and dtypes, and the lines for them."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from engine.training.objectives.compared_steps import compared

SIGNS = torch.tensor([1, -1, 1, -1])
ONE, TWO = torch.zeros(4, 3), torch.ones(4, 3)
TAKEN = ("x1, x2, y = batch", "first, second = model(x1), model(x2)")
RANKED = (
    *TAKEN,
    'return {"loss": F.margin_ranking_loss(first.flatten(), second.flatten(), y),'
    ' "accuracy": ((first - second).flatten().sign() == y).float().mean()}',
)
ALIKE = (*TAKEN, 'return {"loss": F.cosine_embedding_loss(first, second, y)}')
ALIGNED = (
    "x, y, x_lengths, y_lengths = batch",
    "steps = model(x).log_softmax(-1).transpose(0, 1)",
    'return {"loss": F.ctc_loss(steps, y, x_lengths, y_lengths)}',
)


def lines(batch: Any, prediction: Any) -> tuple[str, ...] | None:
    asked: list[Any] = []
    found = compared(batch, lambda x: asked.append(x) or prediction)
    assert all(x is batch[0] for x in asked) and len(asked) < 2
    return None if found is None else tuple(found[1])


@pytest.mark.parametrize(
    ("prediction", "expected"),
    [
        (torch.zeros(4), RANKED),
        (torch.zeros(4, 1), RANKED),
        (torch.zeros(4, 2), ALIKE),
        (torch.zeros(4, 1, 1), None),
        (torch.zeros(4, 2, 1), None),
        (RuntimeError("refused"), None),
    ],
)
def test_pairs_are_ranked_by_a_score_or_compared_by_embeddings(
    prediction: Any, expected: tuple[str, ...] | None
) -> None:
    assert lines((ONE, TWO, SIGNS), prediction) == expected


@pytest.mark.parametrize(
    "batch",
    [
        (ONE[:, 0], TWO[:, 0], SIGNS),
        (ONE, TWO[:, :2], SIGNS),
        (ONE, TWO.double(), SIGNS),
        (ONE, TWO, SIGNS[:3]),
        (ONE, TWO, torch.tensor([1, -1, 0, 1])),
        (ONE, TWO, "signs"),
        (ONE, TWO),
        {"x1": ONE, "x2": TWO, "y": SIGNS},
    ],
)
def test_what_are_no_pairs_is_left_alone(batch: Any) -> None:
    assert lines(batch, torch.zeros(4, 1)) is None


X, Y = torch.zeros(2, 6, 3), torch.ones(2, 4, dtype=torch.int64)
LONG, SHORT = torch.tensor([6, 5]), torch.tensor([4, 2])


@pytest.mark.parametrize(
    ("prediction", "expected"),
    [
        (torch.zeros(2, 6, 5), ALIGNED),
        (torch.zeros(2, 6), None),
        (torch.zeros(2, 6, 5, 1), None),
        (RuntimeError("refused"), None),
    ],
)
def test_scores_of_each_step_are_aligned(prediction: Any, expected: Any) -> None:
    assert lines([X, Y, LONG, SHORT], prediction) == expected


def changed(place: int, value: Tensor) -> tuple[Tensor, ...]:
    batch = [X, Y, LONG, SHORT]
    batch[place] = value
    return tuple(batch)


@pytest.mark.parametrize(
    "batch",
    [
        changed(0, X[0, 0, :2]),
        changed(0, X[:1]),
        changed(1, Y[0]),
        changed(1, Y[:, 0]),
        changed(1, Y[..., None]),
        changed(0, X[:, 0, 0]),
        changed(1, Y[:1]),
        changed(1, Y.float()),
        changed(1, Y.bool()),
        changed(2, LONG[:1]),
        changed(2, LONG.float()),
        changed(3, SHORT[:1]),
        changed(3, SHORT > 3),
        (X, Y, LONG),
        (X, Y, LONG, SHORT, SHORT),
    ],
)
def test_what_are_no_sequences_with_lengths_is_left_alone(batch: Any) -> None:
    assert lines(batch, torch.zeros(2, 6, 5)) is None
