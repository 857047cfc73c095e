"""A model beside a data set: what does not fit, and the edit that cures it."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.models.check import check
from engine.project import edits
from engine.project.document import DataSetup, Project, TrainingSetup
from engine.project.problems import Problem
from tests.engine.models.strategies import chain

NUMBERS = TrainingSetup(DataSetup("diabetes"), loss="nn.MSELoss")


def problems(setup: TrainingSetup, *steps: tuple[str, dict]) -> list[Problem]:
    snapshot = check(chain(*steps), setup)
    return [*snapshot.problems, *(p for block in snapshot.blocks for p in block.problems)]


def linear(inputs: int, outputs: int) -> tuple[str, dict]:
    return "nn.Linear", {"in_features": inputs, "out_features": outputs}


def test_a_model_of_one_number_fits_numbers() -> None:
    assert problems(NUMBERS, ("Input", {"shape": (10,)}), linear(10, 1), ("Output", {})) == []


def test_a_model_with_another_width_gets_that_of_the_numbers() -> None:
    steps = [("Input", {"shape": (10,)}), linear(10, 3), ("Output", {})]
    (problem,) = problems(NUMBERS, *steps)
    assert problem.message == (
        "Each target of Diabetes is 1 number, but the model returns (B, 3): it should be (B, 1)."
    )
    fix = problem.fix
    assert fix is not None
    model = edits.set_param(Project(model=chain(*steps)), fix.block, fix.param, fix.value).model
    assert check(model, NUMBERS).runnable


@pytest.mark.parametrize("end", ["Output", "nn.CrossEntropyLoss"])
def test_numbers_need_a_loss_of_numbers(end: str) -> None:
    setup = TrainingSetup(DataSetup("diabetes"), loss="nn.CrossEntropyLoss")
    (problem,) = problems(setup, ("Input", {"shape": (10,)}), linear(10, 1), (end, {}))
    assert "are numbers" in problem.message and "mean squared error" in problem.message


def test_the_input_gets_the_shape_of_a_sample() -> None:
    setup = TrainingSetup(DataSetup("wine"))
    steps = [("Input", {"shape": (1, 8, 8)}), ("nn.Flatten", {}), linear(64, 3), ("Output", {})]
    (problem,) = problems(setup, *steps)
    assert problem.message.startswith("A sample of Wine has shape (13,)")
    assert problem.fix is not None and problem.fix.value == (13,)


def test_an_unknown_data_set_is_a_problem() -> None:
    setup = TrainingSetup(DataSetup("nothing"))
    (problem,) = problems(setup, ("Input", {"shape": (2,)}), linear(2, 2), ("Output", {}))
    assert problem.message == "There is no data set “nothing”. Choose another."


MOONS = DataSetup("moons")


def test_one_score_for_two_classes_fits_binary_cross_entropy() -> None:
    steps = [("Input", {"shape": (2,)}), linear(2, 1), ("Output", {})]
    assert problems(TrainingSetup(MOONS, loss="nn.BCEWithLogitsLoss"), *steps) == []
    assert problems(TrainingSetup(MOONS, loss="nn.SoftMarginLoss"), *steps) == []
    (problem,) = problems(TrainingSetup(MOONS), *steps)
    assert "takes one score for two classes" in problem.message


@pytest.mark.parametrize("end", ["Output", "nn.CrossEntropyLoss"])
def test_a_loss_that_does_not_fit_numbers_can_be_changed(end: str) -> None:
    setup = TrainingSetup(DataSetup("diabetes"))
    model = chain(("Input", {"shape": (10,)}), linear(10, 1), (end, {}))
    project = Project(model=model, training=setup)
    fixes = [p.fix for block in check(model, setup).blocks for p in block.problems if p.fix]
    changed = edits.apply_fix(project, fixes[0])
    assert edits.loss_of(changed) == "nn.MSELoss"
    assert check(changed.model, changed.training).runnable


@pytest.mark.parametrize(
    ("loss", "last", "words"),
    [
        ("nn.NLLLoss", "nn.LogSoftmax", ""),
        ("nn.NLLLoss", "nn.ReLU", "expects the output of LogSoftmax"),
        ("nn.BCELoss", "nn.Sigmoid", ""),
        ("nn.BCELoss", "nn.Tanh", "expects the output of Sigmoid"),
        ("nn.BCEWithLogitsLoss", "nn.Sigmoid", "applies sigmoid itself"),
        ("nn.CrossEntropyLoss", "nn.Softmax", "applies softmax itself"),
    ],
)
def test_the_end_that_a_loss_expects(loss: str, last: str, words: str) -> None:
    options = {"dim": 1} if "oftmax" in last else {}
    steps = [("Input", {"shape": (2,)}), linear(2, 2), (last, options), ("Output", {})]
    found = problems(TrainingSetup(MOONS, loss=loss), *steps)
    assert [p.severity for p in found] == (["warning"] if words else [])
    assert not words or words in found[0].message


def test_scores_of_characters_have_the_classes_along_dim_1(tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("abcd" * 9)
    data = DataSetup("text", {"length": 8}, path=str(tmp_path / "words.txt"))
    begin = [("Input", {"shape": (8,), "dtype": "int64"}), ("nn.Embedding", {"num_embeddings": 4})]
    scores = [*begin, linear(16, 4)]
    permute = ("torch.permute", {"dims": (0, 2, 1)})
    assert problems(TrainingSetup(data), *scores, permute, ("Output", {})) == []
    (problem,) = problems(TrainingSetup(data), *scores, ("Output", {}))
    assert "(B, 8, 4): scores of characters are (B, 4, 8)" in problem.message
