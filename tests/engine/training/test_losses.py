"""Every loss of the catalogue on every kind of target, against torch's own with targets by hand."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from engine.datasets.load import load_dataset
from engine.project import catalogue
from engine.project.document import DataSetup, TrainingSetup, replace
from engine.system.errors import LabError
from engine.training.components.losses import check_numbers, class_scores, make_loss
from engine.training.loop import TrainingLoop
from engine.training.objectives.objective import CatalogueObjective

LABELS = torch.tensor([0, 3, 1, 3])
ROWS = torch.eye(4)[LABELS]
OF_LABELS = {
    "nn.CrossEntropyLoss": LABELS,
    "nn.NLLLoss": LABELS,
    "nn.MultiMarginLoss": LABELS,
    "nn.BCEWithLogitsLoss": ROWS,
    "nn.BCELoss": ROWS,
    "nn.MultiLabelSoftMarginLoss": ROWS,
    "nn.SoftMarginLoss": 2 * ROWS - 1,
    "nn.MultiLabelMarginLoss": torch.tensor(
        [[0, -1, -1, -1], [3, -1, -1, -1], [1, -1, -1, -1], [3, -1, -1, -1]]
    ),
    "nn.MSELoss": ROWS,
    "nn.L1Loss": ROWS,
    "nn.SmoothL1Loss": ROWS,
    "nn.HuberLoss": ROWS,
    "nn.PoissonNLLLoss": ROWS,
    "nn.KLDivLoss": ROWS,
}
MOONS = TrainingSetup(data=DataSetup("moons", {"samples": 100}), batch_size=32, epochs=2, seed=7)


def prediction(*shape: int) -> Tensor:
    return torch.rand(shape, generator=torch.Generator().manual_seed(0))  # probabilities too


def plain(kind: str, **params: object) -> nn.Module:
    return getattr(nn, kind[3:])(**params)


@pytest.mark.parametrize("kind", list(catalogue.losses()))
def test_a_loss_of_class_labels_is_torchs(kind: str) -> None:
    scores = prediction(4, 4)
    first = {"reduction": "batchmean"} if kind == "nn.KLDivLoss" else {}  # torch warns of "mean"
    for params in (first, {"reduction": "sum"}):
        found = make_loss(kind, params)(scores, LABELS)
        assert torch.equal(found, plain(kind, **params)(scores, OF_LABELS[kind]))


@pytest.mark.parametrize("kind", ["nn.SmoothL1Loss", "nn.HuberLoss", "nn.PoissonNLLLoss"])
def test_numbers_stay_as_they_are(kind: str) -> None:
    numbers = prediction(4, 2) * 5
    found = make_loss(kind, {})(prediction(4, 2), numbers)
    assert torch.equal(found, plain(kind)(prediction(4, 2), numbers))


@pytest.mark.parametrize(
    ("kind", "no", "least"),
    [
        ("nn.BCEWithLogitsLoss", 0.0, 0.0),
        ("nn.BCELoss", 0.0, 0.5),
        ("nn.MultiLabelSoftMarginLoss", 0.0, 0.0),
        ("nn.SoftMarginLoss", -1.0, 0.0),
    ],
)
def test_one_score_for_two_classes(kind: str, no: float, least: float) -> None:
    labels, score = torch.tensor([0, 1, 1]), torch.tensor([[0.25], [0.75], [0.4]])
    loss = make_loss(kind, {})
    target = torch.tensor([[no], [1.0], [1.0]])
    assert torch.equal(loss(score, labels), plain(kind)(score, target))
    found = class_scores(loss, score).argmax(1)
    assert torch.equal(found, (score[:, 0] > least).long())


def test_the_accuracy_of_one_score_is_counted() -> None:
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))
    loop = TrainingLoop(model, replace(MOONS, loss="nn.BCEWithLogitsLoss"))
    for _ in loop.steps():
        pass
    loop.close()
    dataset = load_dataset(MOONS.data)
    with torch.no_grad():
        right = (model(dataset.x_val)[:, 0] > 0) == dataset.y_val.bool()
        loss = nn.functional.binary_cross_entropy_with_logits(
            model(dataset.x_val)[:, 0], dataset.y_val.float()
        )
    row = loop.metrics.epochs[-1]
    assert row.validation_accuracy == pytest.approx(right.float().mean().item())
    assert row.validation_loss == pytest.approx(loss.item())


def test_the_arguments_of_the_set_up_are_given_to_the_loss() -> None:
    setup = replace(MOONS, loss="nn.HuberLoss", loss_params={"delta": 0.25})
    loss = CatalogueObjective(nn.Linear(2, 2), setup).loss_fn
    assert isinstance(loss, nn.HuberLoss) and loss.delta == 0.25
    block = CatalogueObjective(nn.Linear(2, 2), setup, "nn.L1Loss", {"reduction": "sum"}).loss_fn
    assert isinstance(block, nn.L1Loss) and block.reduction == "sum"


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("nn.CrossEntropyLoss", "Cross-entropy loss takes classes; the targets are numbers from -"),
        ("nn.MultiLabelMarginLoss", "takes classes"),
        ("nn.BCEWithLogitsLoss", "takes numbers from 0 to 1"),
        ("nn.SoftMarginLoss", "takes numbers 1 or -1"),
        ("nn.PoissonNLLLoss", "Poisson loss takes numbers 0 or more"),
        ("nn.KLDivLoss", "takes numbers 0 or more"),
    ],
)
def test_a_loss_that_cannot_compare_with_the_numbers_is_told_before(kind: str, words: str) -> None:
    setup = TrainingSetup(data=DataSetup("diabetes"), loss=kind)
    with pytest.raises(LabError, match=words) as refused:
        CatalogueObjective(nn.Linear(10, 1), setup)
    assert "mean squared error" in refused.value.hint


@pytest.mark.parametrize(
    ("kind", "least", "most"),
    [
        ("nn.BCEWithLogitsLoss", 0.0, 1.0),
        ("nn.SoftMarginLoss", -1.0, 1.0),
        ("nn.PoissonNLLLoss", 0.0, 9.0),
    ],
)
def test_the_ends_of_what_a_loss_compares_with_are_in(kind: str, least: float, most: float) -> None:
    check_numbers(kind, torch.tensor([least, most]))
    for beyond in (least - 1e-3, most + 1e-3):
        if kind != "nn.PoissonNLLLoss" or beyond < least:
            with pytest.raises(LabError, match="takes numbers"):
                check_numbers(kind, torch.tensor([least, most, beyond]))


@pytest.mark.parametrize("kind", ["nn.MSELoss", "nn.L1Loss", "nn.SmoothL1Loss", "nn.HuberLoss"])
def test_these_compare_with_any_numbers(kind: str) -> None:
    setup = TrainingSetup(data=DataSetup("diabetes"), loss=kind, epochs=1)
    model = nn.Linear(10, 1)
    loop = TrainingLoop(model, setup)
    for _ in loop.steps():
        pass
    loop.close()
    dataset = load_dataset(setup.data)
    with torch.no_grad():
        expected = plain(kind)(model(dataset.x_val), dataset.y_val)
    assert loop.metrics.epochs[-1].validation_loss == pytest.approx(expected.item(), rel=1e-5)


# -- weights of classes ----------------------------------------------------------------------------

UNEQUAL = DataSetup("breast_cancer", {}, 0.25)


def test_weights_of_classes_are_torchs() -> None:
    scores, weights = prediction(4, 4), (1.0, 2.0, 0.5, 4.0)
    for kind in ("nn.CrossEntropyLoss", "nn.NLLLoss", "nn.MultiMarginLoss"):
        expected = plain(kind, weight=torch.tensor(weights))(scores, LABELS)
        assert torch.equal(make_loss(kind, {"weight": weights})(scores, LABELS), expected)
    for weights in ((3.0,), (1.0, 2.0, 0.5, 4.0)):
        expected = nn.BCEWithLogitsLoss(pos_weight=torch.tensor(weights))(scores, ROWS)
        found = make_loss("nn.BCEWithLogitsLoss", {"pos_weight": weights})(scores, ROWS)
        assert torch.equal(found, expected)


def test_balanced_weights_are_those_of_scikit_learn_over_the_training_rows() -> None:
    from sklearn.utils.class_weight import compute_class_weight

    dataset = load_dataset(UNEQUAL)
    y = dataset.y_train.numpy()
    loss = make_loss("nn.CrossEntropyLoss", {"weight": "balanced"}, dataset)
    expected = torch.tensor(compute_class_weight("balanced", classes=np.arange(2), y=y)).float()
    assert isinstance(loss.weight, Tensor)
    assert torch.allclose(loss.weight, expected) and not torch.equal(expected, torch.ones(2))


def test_a_balanced_one_is_worth_zeros_by_ones() -> None:
    dataset = load_dataset(UNEQUAL)
    ones = int(dataset.y_train.sum())
    zeros = len(dataset) - ones
    loss = make_loss("nn.BCEWithLogitsLoss", {"pos_weight": "balanced"}, dataset)
    scores, labels = prediction(8, 1), dataset.y_train[:8]
    weight = torch.tensor([zeros / ones])
    expected = nn.BCEWithLogitsLoss(pos_weight=weight)(scores, labels[:, None].float())
    assert torch.equal(loss(scores, labels), expected)
    two, rows = prediction(8, 2), torch.eye(2)[labels]
    weight = torch.tensor([ones / zeros, zeros / ones])
    assert torch.equal(loss(two, labels), nn.BCEWithLogitsLoss(pos_weight=weight)(two, rows))
    assert loss.pos_weight.shape == (2,)


def test_weights_that_do_not_fit_are_told() -> None:
    dataset = load_dataset(UNEQUAL)
    with pytest.raises(LabError, match="has 3 numbers as its weight, and the data has 2 classes"):
        make_loss("nn.CrossEntropyLoss", {"weight": (1.0, 2.0, 3.0)}, dataset)
    with pytest.raises(LabError, match="need training rows"):
        make_loss("nn.CrossEntropyLoss", {"weight": "balanced"})
    with pytest.raises(LabError, match="no classes to balance"):
        make_loss("nn.NLLLoss", {"weight": "balanced"}, load_dataset(DataSetup("diabetes")))
    points = tuple((i / 10, 0.0, 2 * (i % 2)) for i in range(8))
    painted = load_dataset(DataSetup("painted", points=points))
    with pytest.raises(LabError, match="class 1 has no training row"):
        make_loss("nn.CrossEntropyLoss", {"weight": "balanced"}, painted)


def test_a_run_trains_with_balanced_weights() -> None:
    setup = TrainingSetup(
        data=UNEQUAL, loss_params={"weight": "balanced"}, batch_size=64, epochs=1, seed=1
    )
    dataset = load_dataset(UNEQUAL)
    torch.manual_seed(0)
    model, other = nn.Linear(30, 2), nn.Linear(30, 2)
    other.load_state_dict(model.state_dict())
    loop = TrainingLoop(model, setup)
    for _ in loop.steps():
        pass
    loop.close()
    counts = dataset.y_train.bincount()
    criterion = nn.CrossEntropyLoss(weight=(len(dataset) / (2 * counts)).float())
    optimizer = torch.optim.Adam(other.parameters())
    for index in range(dataset.batches(64)):
        x, y = dataset.train_batch(index, 64, 1)
        optimizer.zero_grad()
        criterion(other(x), y).backward()
        optimizer.step()
    assert torch.allclose(model.weight, other.weight, atol=1e-6)


def test_every_loss_of_torch_is_offered_or_says_why_not() -> None:
    """Of the catalogue are those of a prediction and a target, and those that take more."""
    of_torch = {f"nn.{name}" for name in dir(nn) if name.endswith("Loss")}
    of_torch |= {f"nn.{name}" for name in nn.modules.loss.__all__} - {"nn.NLLLoss2d"}  # deprecated
    offered, others = set(catalogue.losses()), set(catalogue.other_losses())
    assert not offered & others
    assert offered | others == of_torch
    for key, other in catalogue.other_losses().items():
        source = other.source(f"{key}()", "model.loss")
        assert "batch" in other.takes and compile(source, key, "exec")
        names = {param.name for param in other.params}
        cls = getattr(nn, key.removeprefix("nn."))
        known = set(inspect.signature(cls).parameters) - {"size_average", "reduce", "device"}
        assert names in (known, set()) and ("model.loss" in source) == (not names)
