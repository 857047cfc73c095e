"""Steps that compare two inputs or align a sequence, against torch's losses by hand."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from engine.training.objectives.code_objective import compile_step
from engine.training.objectives.usual_steps import write_step

generator = torch.Generator().manual_seed(0)
X1, X2 = (torch.randn(8, 4, generator=generator) for _ in range(2))
SIGNS = torch.tensor([1, -1, 1, 1, -1, -1, 1, -1])


def ran(model: nn.Module, batch: object) -> tuple[str, dict]:
    written = write_step(model, batch)
    return written.task, compile_step(written.source, model, {})(batch)


def test_pairs_with_signs_are_ranked_by_one_score() -> None:
    model = nn.Linear(4, 1)
    task, found = ran(model, (X1, X2, SIGNS))
    first, second = model(X1)[:, 0], model(X2)[:, 0]
    assert task.startswith("ranking")
    assert torch.equal(found["loss"], nn.MarginRankingLoss()(first, second, SIGNS))
    right = ((first > second) == (SIGNS > 0)).float().mean()
    assert torch.equal(found["accuracy"], right)


def test_pairs_with_signs_are_compared_by_their_embeddings() -> None:
    model = nn.Linear(4, 3)
    task, found = ran(model, [X1, X2, SIGNS.float()])
    assert task.startswith("pairs")
    expected = nn.CosineEmbeddingLoss()(model(X1), model(X2), SIGNS.float())
    assert torch.equal(found["loss"], expected)


def test_a_sequence_with_both_lengths_is_aligned_by_ctc() -> None:
    model, x = nn.Linear(4, 6), torch.randn(3, 10, 4, generator=generator)
    y = torch.randint(1, 6, (3, 4), generator=generator)
    lengths, targets = torch.tensor([10, 9, 8]), torch.tensor([4, 3, 2])
    task, found = ran(model, (x, y, lengths, targets))
    assert "CTC" in task
    expected = nn.CTCLoss()(F.log_softmax(model(x), -1).transpose(0, 1), y, lengths, targets)
    assert torch.equal(found["loss"], expected)


def test_a_model_of_two_inputs_keeps_its_step() -> None:
    model = nn.Bilinear(4, 4, 1)
    assert write_step(model, (X1, X2, torch.randn(8, 1))).task == "regression"
