"""What guessing reaches is counted from the targets of the batches that a run sees."""

from __future__ import annotations

from collections import Counter
from math import isnan
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.project.document import DataSetup, TrainingSetup
from engine.training.loop import TrainingLoop
from engine.training.objectives.catalogue_data import CatalogueData
from engine.training.objectives.code_objective import CodeObjective
from engine.training.objectives.guessing import Guess
from engine.training.run import TrainingRun

Y = torch.arange(50) ** 2 % 7
HELD = torch.arange(30) ** 2 % 5


def most_frequent(y: Tensor) -> Guess:
    ((_, count),) = Counter(y.flatten().tolist()).most_common(1)
    return Guess(count / y.numel(), y.numel())


@pytest.mark.parametrize(("held", "judged"), [(HELD, HELD), (None, Y)])
def test_a_run_of_code_tells_what_guessing_reaches(held: Tensor | None, judged: Tensor) -> None:
    model = nn.Linear(3, 7)

    def step(batch: Any) -> dict[str, Tensor]:
        x, y = batch
        scores = model(x)
        return {
            "loss": F.cross_entropy(scores, y),
            "accuracy": (scores.argmax(1) == y).float().mean(),
        }

    validation = None if held is None else (torch.randn(len(held), 3), held)
    objective = CodeObjective(step, (torch.randn(50, 3), Y), validation, 8)
    run = TrainingRun(TrainingLoop(model, TrainingSetup(batch_size=8, epochs=2), objective))
    assert isnan(run.snapshot("running").guess_accuracy)  # no target was seen yet
    for _ in run.steps():
        pass
    end = run.snapshot("finished")
    assert Guess(end.guess_accuracy, end.guess_labels) == most_frequent(judged)


def guess_in(batches: list[Any]) -> Guess:
    objective = CodeObjective(lambda batch: batch, batches)
    list(objective.batches(0, 0))
    return objective.guess


def test_targets_of_all_shapes_are_counted_and_what_is_no_class_is_not() -> None:
    x, ids = torch.randn(4, 2), torch.tensor([[1, 1, 2], [-100, 4, 1]])
    assert guess_in([(x, Y[:4]), (x, x, Y[4:8])]) == most_frequent(Y[:8])
    assert guess_in([{"x": x, "labels": Y[:4]}]) == most_frequent(Y[:4])
    assert guess_in([(x, ids)]) == Guess(3 / 5, 5)  # -100 is ignored by losses
    both = torch.tensor([[1.0], [0.0], [1.0], [1.0]])
    assert guess_in([(x, both), (x, both[:, 0] > 0)]) == Guess(3 / 4, 8)
    for target in (x, x > 0, torch.tensor([1, 1 << 40]), torch.tensor(1), ["a", "b"]):
        found = guess_in([(x, Y[:4]), (x, target)])
        assert isnan(found.accuracy) and not found.labels
    assert isnan(guess_in([x]).accuracy) and isnan(guess_in([]).accuracy)


def test_a_part_of_a_pass_does_not_count() -> None:
    objective = CodeObjective(lambda batch: batch, (torch.randn(50, 3), Y), (HELD, HELD), 8)
    list(objective.batches(0, 0))
    next(objective.validation_batches())
    assert isnan(objective.guess.accuracy)
    list(objective.validation_batches())
    assert objective.guess == most_frequent(HELD)


def test_a_data_set_says_it_before() -> None:
    def data(fraction: float, kind: str = "wine") -> CatalogueData:
        return CatalogueData(TrainingSetup(data=DataSetup(kind, validation_fraction=fraction)))

    assert data(0.2).guess == most_frequent(data(0.2).dataset.y_val)
    assert data(0.0).guess == most_frequent(data(0.0).dataset.y_train)
    assert isnan(data(0.2, "diabetes").guess.accuracy)
