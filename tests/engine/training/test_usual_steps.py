"""The steps that the program writes, against plain torch."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.subjects.function import FunctionModule
from engine.system.errors import LabError
from engine.training.objectives.code_objective import compile_step, outcome_of
from engine.training.objectives.usual_steps import (
    _is_triplet,
    described,
    usual_call,
    write_step,
)

G = torch.Generator().manual_seed(3)
X, IMAGE = torch.randn(6, 4, generator=G), torch.randn(2, 3, 5, 5, generator=G)
LABELS = torch.tensor([0, 1, 2, 2, 1, 0])
TOKENS = torch.randint(9, (2, 5), generator=G)
MASK = torch.randint(3, (2, 5, 5), generator=G)
BITS = torch.randint(2, (6, 3), generator=G).float()


class Encoder(nn.Module):
    """Gives (reconstruction, mean, log_variance)."""

    def __init__(self, reconstructed: int = 4, means: int = 2) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.reconstructed, self.means = reconstructed, means

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        h = self.layer(x)
        return h[:, : self.reconstructed], h[:, : self.means], h[:, 2:]


class Twin(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 3)

    def forward(self, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
        return self.layer(a), self.layer(b)


class Added(nn.Module):
    """Takes two inputs by name."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 3)

    def forward(self, left: Tensor, right: Tensor) -> Tensor:
        return self.layer(left + right)


class OwnLoss(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 1)

    def forward(self, x: Tensor):
        return namedtuple("Out", "loss")(self.layer(x).square().mean())


class OwnTarget(nn.Module):
    """Takes the target too, and returns its loss."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 3)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return F.cross_entropy(self.layer(x), y)


def language_model() -> nn.Module:
    return nn.Sequential(nn.Embedding(9, 4), nn.Linear(4, 9))


def mean_iou(found: Tensor, y: Tensor) -> Tensor:
    """By counting: of the 3 classes, those that are in either."""
    right = torch.bincount(y[found == y], minlength=3)
    either = torch.bincount(found.flatten(), minlength=3) + torch.bincount(y.flatten(), minlength=3)
    union = either - right
    return (right[union > 0] / union[union > 0]).mean()


SAME = torch.tensor([1, 0, 1, 1, 0, 0])

CASES = {
    "classification": (
        lambda: nn.Linear(4, 3),
        (X, LABELS),
        lambda m: F.cross_entropy(m(X), LABELS),
        lambda m: {"accuracy": (m(X).argmax(1) == LABELS).float().mean()},
    ),
    "segmentation": (
        lambda: nn.Conv2d(3, 3, 1),
        (IMAGE, MASK),
        lambda m: F.cross_entropy(m(IMAGE), MASK),
        lambda m: {
            "accuracy": (m(IMAGE).argmax(1) == MASK).float().mean(),
            "mean IoU": mean_iou(m(IMAGE).argmax(1), MASK),
        },
    ),
    "classification of 12": (
        lambda: nn.Linear(4, 12),
        (X, LABELS),
        lambda m: F.cross_entropy(m(X), LABELS),
        lambda m: {
            "accuracy": (m(X).argmax(1) == LABELS).float().mean(),
            "top-5 accuracy": torch.stack(
                [(row > row[y]).sum() < 5 for row, y in zip(m(X), LABELS, strict=True)]
            ).float().mean(),
        },
    ),
    "language model": (
        language_model,
        (TOKENS, TOKENS),
        lambda m: F.cross_entropy(m(TOKENS).flatten(0, 1), TOKENS.flatten()),
        lambda m: {
            "perplexity": F.cross_entropy(m(TOKENS).flatten(0, 1), TOKENS.flatten()).exp(),
            "accuracy": (m(TOKENS).argmax(-1) == TOKENS).float().mean(),
        },
    ),
    "binary classification": (
        lambda: nn.Linear(4, 1),
        (X, SAME),
        lambda m: F.binary_cross_entropy_with_logits(m(X)[:, 0], SAME.float()),
        lambda m: {"accuracy": ((m(X)[:, 0] > 0) == SAME).float().mean()},
    ),
    "multi-label classification": (
        lambda: nn.Linear(4, 3),
        (X, BITS),
        lambda m: F.binary_cross_entropy_with_logits(m(X), BITS),
        lambda m: {"accuracy": ((m(X) > 0) == BITS).float().mean()},
    ),
    "regression": (
        lambda: nn.Linear(4, 1),
        (X, X.sum(1)),  # (6,) beside a prediction (6, 1): subtracted, they would broadcast
        lambda m: F.mse_loss(m(X)[:, 0], X.sum(1)),
        lambda m: {"RMSE": F.mse_loss(m(X)[:, 0], X.sum(1)).sqrt()},
    ),
    "autoencoder": (
        lambda: nn.Linear(4, 4),
        (X,),
        lambda m: F.mse_loss(m(X), X),
        lambda m: {},
    ),
    "variational autoencoder": (
        Encoder,
        (X, LABELS),
        lambda m: F.mse_loss(m(X)[0], X, reduction="sum") / 6
        + torch.distributions.kl_divergence(
            torch.distributions.Normal(m(X)[1], (m(X)[2] / 2).exp()),
            torch.distributions.Normal(0.0, 1.0),
        ).sum() / 6,
        lambda m: {
            "error": F.mse_loss(m(X)[0], X, reduction="sum") / 6,
            "divergence": torch.distributions.kl_divergence(
                torch.distributions.Normal(m(X)[1], (m(X)[2] / 2).exp()),
                torch.distributions.Normal(0.0, 1.0),
            ).sum() / 6,
        },
    ),
    "pairs": (
        Twin,
        (X, X.flip(0), SAME),
        lambda m: F.cosine_embedding_loss(*m(X, X.flip(0)), 2 * SAME - 1),
        lambda m: {},
    ),
    "triplets": (
        lambda: nn.Linear(4, 3),
        (X, X.flip(0), -X),
        lambda m: F.triplet_margin_loss(m(X), m(X.flip(0)), m(-X)),
        lambda m: {},
    ),
    "a model with its own loss": (OwnLoss, X, lambda m: m(X).loss, lambda m: {}),
    "a model that returns its loss": (
        OwnTarget,
        (X, LABELS),
        lambda m: F.cross_entropy(m.layer(X), LABELS),
        lambda m: {},
    ),
}  # fmt: skip


@pytest.mark.parametrize("task", CASES)
def test_the_step_of_a_usual_task_is_that_of_plain_torch(task: str) -> None:
    make, batch, loss, figures = CASES[task]
    torch.manual_seed(0)
    model = make()
    written = write_step(model, batch)
    assert written.task == task.removesuffix(" of 12")
    got = outcome_of(compile_step(written.source, model, {})(batch), 1)
    torch.testing.assert_close(got.loss, loss(model))
    expected = figures(model)
    assert got.figures.keys() == expected.keys()
    for name, value in expected.items():
        torch.testing.assert_close(got.figures[name], value.detach())


def test_a_batch_by_name_calls_the_model_by_name() -> None:
    model = Added()
    batch = {"left": X, "right": X + 1, "labels": LABELS}
    written = write_step(model, batch)
    assert 'model(left=batch["left"], right=batch["right"])' in written.source
    got = compile_step(written.source, model, {})(batch)
    assert torch.equal(got["loss"], F.cross_entropy(model(X, X + 1), LABELS))


def test_the_usual_call_of_a_model_is_that_of_its_step() -> None:
    model, added = nn.Linear(4, 3), Added()
    one: Any = usual_call(model, (X, LABELS))()
    assert torch.equal(one, model(X))
    three: Any = usual_call(model, (X, X + 1, X + 2))()
    assert all(map(torch.equal, three, [model(X), model(X + 1), model(X + 2)]))
    named = {"left": X, "right": X + 1, "labels": LABELS}
    by_name: Any = usual_call(added, named)()
    assert torch.equal(by_name, added(X, X + 1))


def test_three_vectors_are_two_inputs_and_their_targets_not_a_triplet() -> None:
    class Sum(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x * 2

    a, b, c = X[:, 0], X[:, 1], X[:, 2]
    assert not _is_triplet((a, b, c)) and _is_triplet((X, X, X)) and _is_triplet([X, X, X])
    for batch in ((X, X), (X, X, X[:2]), (X, X, X.long()), (X, X, "x"), X[:3], (X, X[:2], X)):
        assert not _is_triplet(batch)
    assert write_step(Sum(), (a, b)).task == "regression"


def test_a_function_takes_what_its_own_arguments_say() -> None:
    linear = nn.Linear(4, 3)
    one = FunctionModule(lambda x: linear(x))
    assert write_step(one, (X, X + 1, X + 2)).task == "triplets"
    two = FunctionModule(lambda left, right: linear(left + right))
    written = write_step(two, (X, X + 1, LABELS))
    got = compile_step(written.source, two, {})((X, X + 1, LABELS))
    assert torch.equal(got["loss"], F.cross_entropy(linear(2 * X + 1), LABELS))


@pytest.mark.parametrize(
    ("classes", "figures"), [(10, {"accuracy"}), (11, {"accuracy", "top-5 accuracy"})]
)
def test_the_first_five_count_with_more_than_ten_classes(classes: int, figures: set[str]) -> None:
    model = nn.Linear(4, classes)
    got = compile_step(write_step(model, (X, LABELS)).source, model, {})((X, LABELS))
    assert got.keys() - {"loss"} == figures


def test_the_model_is_left_as_it_was() -> None:
    model = nn.Sequential(nn.BatchNorm1d(4), nn.Dropout(), nn.Linear(4, 3))
    model[1].eval()
    before = {key: value.clone() for key, value in model.state_dict().items()}
    random = torch.get_rng_state()
    write_step(model, (X, LABELS))
    assert torch.equal(torch.get_rng_state(), random)
    assert [part.training for part in model] == [True, False, True]
    assert all(torch.equal(value, before[key]) for key, value in model.state_dict().items())


@pytest.mark.parametrize(
    ("model", "batch", "words"),
    [
        (nn.Linear(3, 2), (X, LABELS), r"`model\(x\)` raised RuntimeError: mat1 .* int64 \(6,\)\)"),
        (nn.Linear(4, 2), (X, torch.zeros(5)), r"No usual task fits.*is float32 \(6, 2\)\."),
        (nn.Linear(4, 3), (X, BITS.cfloat()), "No usual task fits"),
        (nn.Linear(4, 3), (X, "labels"), "No usual task fits.*, str"),
        (nn.Linear(4, 3), X, "No usual task fits: the batch is float32"),
        (Twin(), (X, X, torch.tensor([1, 2, 1, 0, 0, 0])), "No usual task fits"),
        (Encoder(reconstructed=3), (X, LABELS), "No usual task fits"),
        (Encoder(means=1), (X, LABELS), "No usual task fits"),
    ],
)  # fmt: skip
def test_a_batch_that_fits_no_task_is_told_with_its_shapes(model, batch, words: str) -> None:
    with pytest.raises(LabError, match=words) as caught:
        write_step(model, batch)
    assert caught.value.hint == "Write the step yourself: def step(batch): ... return loss."


def test_values_are_described_by_dtype_and_shape() -> None:
    assert described({"x": [X, (LABELS,)], "n": 3}) == "{x: (float32 (6, 4), (int64 (6,))), n: int}"


def test_classes_that_a_batch_lacks_do_not_count_for_the_overlap() -> None:
    model = nn.Conv2d(3, 3, 1)
    with torch.no_grad():
        model.bias.copy_(torch.tensor([-100.0, 0.0, 0.0]))  # class 0 is never found
    batch = IMAGE, MASK.clamp(min=1)
    got = compile_step(write_step(model, batch).source, model, {})(batch)
    assert torch.equal(got["mean IoU"], mean_iou(model(IMAGE).argmax(1), batch[1]))


def test_figures_of_torchmetrics_are_figures_of_a_step() -> None:
    reason = "torchmetrics is optional: pip install torchmetrics"
    metrics = pytest.importorskip("torchmetrics.functional", reason=reason)
    source = (
        "import torchmetrics.functional as metrics\n"
        "def step(batch):\n"
        "    x, y = batch\n"
        "    prediction = model(x)\n"
        "    f1 = metrics.f1_score(prediction, y, task='multiclass', num_classes=3)\n"
        "    return {'loss': F.cross_entropy(prediction, y), 'F1': f1}\n"
    )
    model = nn.Linear(4, 3)
    got = outcome_of(compile_step(source, model, {})((X, LABELS)), 6)
    expected = metrics.f1_score(model(X), LABELS, task="multiclass", num_classes=3)
    assert torch.equal(got.figures["F1"], expected)
    overlap = metrics.jaccard_index(MASK, MASK.flip(0), task="multiclass", num_classes=3)
    torch.testing.assert_close(mean_iou(MASK, MASK.flip(0)), overlap)
