"""Predictions sample by sample, beside plain torch and scikit-learn."""

from __future__ import annotations

import math

import pytest
import sklearn.metrics
import torch
from torch import nn
from torch.nn import functional as F

from app import templates
from engine.datasets.load import load_dataset
from engine.handlers.training.pictures.predictions import read_predictions
from engine.lab import Lab
from engine.project import edits
from engine.project.document import DataSetup, Project, TrainingSetup, Wire, replace
from engine.protocol import PredictionsSnapshot, ReadPredictionsCommand, encode_snapshot
from engine.system.errors import LabError
from engine.training.predictions.plane import SIDE, bounds_of, predict_plane
from engine.training.predictions.predictions import MAX_SAMPLES, predictions_of

DIGITS = templates.load_template("mlp")


def read(lab: Lab, project: Project, **fields) -> PredictionsSnapshot:
    command = ReadPredictionsCommand(model=project.model, training=project.training, **fields)
    (snapshot,) = read_predictions(lab, command)
    assert len(encode_snapshot(snapshot)) < 2**18
    return snapshot


@pytest.fixture
def lab() -> Lab:
    return Lab(emit=lambda snapshot: None)


def flat(classes: int = 2, inputs: int = 2, data: str = "moons") -> Project:
    """A Linear from the plane to scores, on moons; or from more numbers."""
    project, source = edits.add_block(Project(), "Input", 0, 0)
    project = edits.set_param(project, source, "shape", (inputs,))
    project, linear = edits.add_block(project, "nn.Linear", 0, 0)
    project = edits.set_param(project, linear, "in_features", inputs)
    project = edits.set_param(project, linear, "out_features", classes)
    project, end = edits.add_block(project, "Output", 0, 0)
    for a, b in ((source, linear), (linear, end)):
        ports = {"Input": "x", "nn.Linear": "output", "Output": "x"}
        kinds = {block.id: block.kind for block in project.model.blocks}
        target = "input" if kinds[b] == "nn.Linear" else "x"
        project = edits.connect(project, Wire(a, ports[kinds[a]], b, target))
    return edits.set_training(project, TrainingSetup(data=DataSetup(data)))


def test_the_matrix_accuracy_and_loss_are_those_of_the_validation_part(lab: Lab) -> None:
    found = read(lab, DIGITS)
    data = load_dataset(DIGITS.training.data)
    model = lab.models.live_model(DIGITS.model, DIGITS.training.seed).module.eval()
    with torch.no_grad():
        scores = model(data.x_val)
    predicted = scores.argmax(1)
    expected = sklearn.metrics.confusion_matrix(data.y_val, predicted, labels=range(10))
    assert [list(row) for row in found.counts] == expected.tolist()
    assert found.accuracy == pytest.approx((predicted == data.y_val).double().mean().item())
    assert found.loss == pytest.approx(F.cross_entropy(scores, data.y_val).item(), rel=1e-6)
    assert (found.samples, found.total, found.matching) == (360, 360, 360)
    assert found.classes == tuple("0123456789")
    losses = F.cross_entropy(scores, data.y_val, reduction="none")
    worst = losses.sort(descending=True)
    assert [s.loss for s in found.shown] == pytest.approx(worst.values[:24].tolist(), rel=1e-5)
    first = found.shown[0]
    row = worst.indices[0]
    assert (first.number, first.target) == (int(row), str(int(data.y_val[row])))
    assert first.predicted == str(int(predicted[row])) and not first.is_right
    chances = scores.softmax(1).amax(1)
    assert first.chance == pytest.approx(chances[row].item(), rel=1e-6)
    assert first.image is not None and first.text == ""


def test_a_cell_of_the_matrix_has_its_samples_page_by_page(lab: Lab) -> None:
    whole = read(lab, DIGITS, part="training")
    counts = torch.tensor(whole.counts)
    actual, predicted = divmod(int(counts.argmax()), 10)
    found = read(lab, DIGITS, part="training", actual=actual, predicted=predicted, first=24)
    assert found.matching == counts.max() > 48 and len(found.shown) == 24
    assert {(s.target, s.predicted) for s in found.shown} == {(str(actual), str(predicted))}
    before = read(lab, DIGITS, part="training", actual=actual, predicted=predicted).shown
    assert before[-1].loss >= found.shown[0].loss
    assert not {s.number for s in before} & {s.number for s in found.shown}
    assert found.counts == whole.counts


def test_classes_and_predictions_have_their_names(lab: Lab) -> None:
    project = flat(4, 4, "iris")
    found = read(lab, project)
    data = load_dataset(project.training.data)
    model = lab.models.live_model(project.model, 0).module
    assert found.classes == (*data.classes, "3") == ("setosa", "versicolor", "virginica", "3")
    for sample in found.shown:
        label = int(data.y_val[sample.number])
        assert sample.target == data.classes[label]
        with torch.no_grad():
            predicted = int(model(data.x_val[sample.number : sample.number + 1]).argmax())
        assert sample.predicted == found.classes[predicted]
        assert sample.is_right == (predicted == label)
        numbers = [f"{value:.4g}" for value in data.x_val[sample.number].tolist()]
        assert sample.text == ", ".join(numbers)


def test_numbers_have_pairs_and_r2(lab: Lab) -> None:
    project = templates.load_template("mlp")
    blocks = {block.kind: block.id for block in project.model.blocks}
    project = edits.set_param(project, blocks["Input"], "shape", (10,))
    linears = [b.id for b in project.model.blocks if b.kind == "nn.Linear"]
    project = edits.set_param(project, linears[0], "in_features", 10)
    project = edits.set_param(project, linears[-1], "out_features", 1)
    setup = replace(project.training, data=DataSetup("diabetes"), loss="nn.MSELoss")
    project = edits.set_training(project, setup)
    found = read(lab, project)
    data = load_dataset(setup.data)
    with torch.no_grad():
        predicted = lab.models.live_model(project.model, 0).module.eval()(data.x_val)
    assert found.r2 == pytest.approx(sklearn.metrics.r2_score(data.y_val, predicted), rel=1e-5)
    assert found.pairs[0] == pytest.approx((data.y_val[0, 0].item(), predicted[0, 0].item()))
    assert found.counts == () and math.isnan(found.accuracy) and found.classes == ()
    assert found.shown[0].loss == pytest.approx((data.y_val - predicted).square().max().item())
    assert found.shown[0].chance is None and found.shown[0].image is None
    assert found.shown[0].text.endswith(", …")


def test_the_plane_is_predicted_in_rows_from_the_top(lab: Lab) -> None:
    project = flat(3)
    found = read(lab, project)
    plane = found.plane
    assert plane is not None and plane.side == SIDE
    data = load_dataset(project.training.data)
    model = lab.models.live_model(project.model, 0).module
    span = data.x_train.amax(0) - data.x_train.amin(0)
    left, bottom = (data.x_train.amin(0) - 0.15 * span).tolist()
    assert (plane.left, plane.bottom) == pytest.approx((left, bottom))
    for row, column in ((0, 0), (0, SIDE - 1), (SIDE - 1, 3), (40, 50)):
        x = plane.left + (plane.right - plane.left) * column / (SIDE - 1)
        y = plane.top + (plane.bottom - plane.top) * row / (SIDE - 1)
        with torch.no_grad():
            chance, label = model(torch.tensor([[x, y]])).softmax(1).max(1)
        assert plane.classes[row * SIDE + column] == int(label)
        assert plane.chances[row * SIDE + column] == pytest.approx(chance.item() * 255, abs=0.6)
    assert len(plane.points) == found.samples
    assert found.classes == (*data.classes, "2") and len(found.counts) == 3
    assert len(plane.wrong) == found.samples - round(found.accuracy * found.samples)
    assert read(lab, DIGITS).plane is None


def test_one_number_over_the_plane_is_itself() -> None:
    model = nn.Linear(2, 1)
    bounds = bounds_of(torch.tensor([[0.0, 0.0], [1.0, 0.0]]))
    assert bounds == pytest.approx((-0.15, 1.15, -0.001, 0.001), rel=1e-5)
    with torch.no_grad():
        assert torch.allclose(
            predict_plane(model, bounds)[-1, 0], model(torch.tensor([[-0.15, -0.001]]))
        )


class Noisy(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.drop = nn.BatchNorm1d(2), nn.Dropout()
        self.head = nn.Linear(2, 2)

    def forward(self, x):
        return self.head(self.drop(self.norm(x)))


def test_modes_gradients_and_buffers_stay() -> None:
    model = Noisy()
    model.norm.eval()
    model.head.weight.grad = torch.ones(2, 2)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    x, y = torch.randn(20, 2), torch.randint(2, (20,))
    found = predictions_of(model, [(x, y)], None)
    assert model.training and model.drop.training and not model.norm.training
    assert torch.equal(model.head.weight.grad, torch.ones(2, 2))
    assert all(torch.equal(before[n], t) for n, t in model.state_dict().items())
    with torch.no_grad():
        assert torch.equal(found.predicted, model.eval()(x).argmax(1))


@pytest.mark.parametrize(
    "loss",
    [
        nn.CrossEntropyLoss(label_smoothing=0.2),
        nn.CrossEntropyLoss(weight=torch.tensor([0.2, 1.0, 3.0])),
        nn.CrossEntropyLoss(reduction="sum"),
        nn.MultiMarginLoss(),
    ],
)
def test_the_loss_of_a_sample_is_the_loss_of_that_sample_alone(loss: nn.Module) -> None:
    model, x, y = nn.Linear(4, 3), torch.randn(7, 4), torch.randint(3, (7,))
    found = predictions_of(model, [(x[:5], y[:5]), (x[5:], y[5:])], loss)
    with torch.no_grad():
        expected = [loss(model(x[i : i + 1]), y[i : i + 1]).item() for i in range(7)]
    assert found.losses.tolist() == pytest.approx(expected, rel=1e-6)
    assert found.worst.tolist() == sorted(range(7), key=lambda i: -found.losses[i])


@pytest.mark.parametrize(
    ("loss", "plain"),
    [(None, F.mse_loss), (nn.MSELoss(), F.mse_loss), (nn.L1Loss(), F.l1_loss)],
)
def test_the_loss_of_numbers_is_the_one_that_is_given_or_the_squared_error(loss, plain) -> None:
    model, x, y = nn.Linear(3, 2), torch.randn(5, 3), torch.randn(5, 2)
    found = predictions_of(model, [(x, y)], loss)
    with torch.no_grad():
        each = plain(model(x), y, reduction="none").mean(1)
    assert found.losses.tolist() == pytest.approx(each.tolist(), rel=1e-6)


def test_labels_in_sequences_count_each(lab: Lab) -> None:
    model = nn.Conv1d(4, 3, 1)
    x, y = torch.randn(6, 4, 5), torch.randint(3, (6, 5))
    found = predictions_of(model, [(x, y)], None)
    with torch.no_grad():
        each = F.cross_entropy(model(x), y, reduction="none").mean(1)
    assert found.losses.tolist() == pytest.approx(each.tolist())
    expected = sklearn.metrics.confusion_matrix(y.flatten(), found.predicted.flatten())
    assert found.confusion(3).tolist() == expected.tolist()


def test_no_more_samples_than_can_be_looked_at() -> None:
    x, y = torch.randn(6_000, 2), torch.zeros(6_000, dtype=torch.int64)
    found = predictions_of(nn.Linear(2, 2), iter([(x, y)] * 9), None)
    assert len(found.y) == len(found.losses) == MAX_SAMPLES


@pytest.mark.parametrize(
    ("batch", "words"),
    [
        ({"x": torch.ones(2, 2)}, "pairs of tensors"),
        ((torch.ones(2, 2), torch.ones(2, 2), torch.ones(2)), "pairs of tensors"),
        ((torch.ones(2, 2), torch.ones(2, 3)), r"Predictions of \(2, 2\).*\(2, 3\), float32"),
        ((torch.ones(2, 2), torch.ones(2, 2, dtype=torch.int64)), "int64"),
    ],
)
def test_what_cannot_be_set_side_by_side_is_told(batch, words: str) -> None:
    with pytest.raises(LabError, match=words):
        predictions_of(nn.Linear(2, 2), [batch], None)


def test_nothing_held_out_is_told(lab: Lab) -> None:
    with pytest.raises(LabError, match="no sample to predict"):
        predictions_of(nn.Linear(2, 2), [], None)
