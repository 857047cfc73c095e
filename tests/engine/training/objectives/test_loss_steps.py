"""Steps that are written with a chosen loss, each against plain torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.datasets.load import load_dataset
from engine.project import catalogue
from engine.project.document import DataSetup, ParamValue
from engine.system.errors import LabError
from engine.training.objectives.code_objective import compile_step, outcome_of
from engine.training.objectives.loss_steps import loss_step
from engine.training.objectives.usual_steps import write_step


class Two(nn.Module):
    """Returns a mean and a variance."""

    def __init__(self) -> None:
        super().__init__()
        self.mean, self.spread = nn.Linear(4, 1), nn.Linear(4, 1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return self.mean(x), self.spread(x).exp()


class WithLoss(nn.Module):
    def __init__(self, loss: nn.Module) -> None:
        super().__init__()
        self.first = nn.Linear(4, 6)
        self.losses = nn.ModuleList([loss])

    def forward(self, x: Tensor) -> Tensor:
        return self.first(x)


def linear(outputs: int = 3) -> nn.Linear:
    return nn.Linear(4, outputs)


def rows(*shape: int) -> Tensor:
    return torch.rand(*shape)


X, OTHER, THIRD = rows(8, 4), rows(8, 4), rows(8, 4)
LABELS, BITS = torch.arange(8) % 3, torch.arange(8) % 2
SIGNS = 2 * BITS - 1
SEQUENCES = (rows(2, 9, 4), torch.tensor([[1, 2], [2, 1]]), torch.tensor([9, 7]), torch.tensor([2]))
Expect = Callable[[Any], Tensor]
CASES: list[tuple[str, dict[str, ParamValue], nn.Module, Any, Expect]] = [
    ("nn.CTCLoss", {"zero_infinity": True}, linear(),
     (SEQUENCES[0], SEQUENCES[1], SEQUENCES[2], torch.tensor([2, 1])),
     lambda m: F.ctc_loss(m(SEQUENCES[0]).log_softmax(-1).transpose(0, 1), SEQUENCES[1],
                          SEQUENCES[2], torch.tensor([2, 1]), zero_infinity=True)),
    ("nn.CosineEmbeddingLoss", {"margin": 0.3}, linear(), (X, OTHER, SIGNS),
     lambda m: F.cosine_embedding_loss(m(X), m(OTHER), SIGNS, margin=0.3)),
    ("nn.MarginRankingLoss", {"margin": 0.1, "reduction": "sum"}, linear(1), (X, OTHER, SIGNS),
     lambda m: F.margin_ranking_loss(m(X)[:, 0], m(OTHER)[:, 0], SIGNS, 0.1, reduction="sum")),
    ("nn.TripletMarginLoss", {"p": 1.0, "swap": True}, linear(), (X, OTHER, THIRD),
     lambda m: F.triplet_margin_loss(m(X), m(OTHER), m(THIRD), p=1.0, swap=True)),
    ("nn.TripletMarginWithDistanceLoss",
     {"distance_function": "lambda a, b: 1 - F.cosine_similarity(a, b)", "margin": 0.5}, linear(),
     (X, OTHER, THIRD),
     lambda m: F.triplet_margin_with_distance_loss(
         m(X), m(OTHER), m(THIRD), distance_function=lambda a, b: 1 - F.cosine_similarity(a, b),
         margin=0.5)),
    ("nn.TripletMarginWithDistanceLoss", {}, linear(), (X, OTHER, THIRD),
     lambda m: F.triplet_margin_with_distance_loss(m(X), m(OTHER), m(THIRD))),
    ("nn.HingeEmbeddingLoss", {"margin": 2.0}, linear(), (X, OTHER, SIGNS),
     lambda m: F.hinge_embedding_loss(F.pairwise_distance(m(X), m(OTHER)), SIGNS, 2.0)),
    ("nn.GaussianNLLLoss", {"full": True}, Two(), (X, rows(8, 1)), lambda m: torch.tensor(0.0)),
    ("nn.LinearCrossEntropyLoss", {}, WithLoss(nn.LinearCrossEntropyLoss(6, 3)), (X, LABELS),
     lambda m: m.losses[0](m(X), LABELS)),
    ("nn.AdaptiveLogSoftmaxWithLoss", {}, WithLoss(nn.AdaptiveLogSoftmaxWithLoss(6, 3, [1])),
     (X, LABELS), lambda m: m.losses[0](m(X), LABELS).loss),
    ("nn.CrossEntropyLoss", {"label_smoothing": 0.1, "weight": (1.0, 2.0, 3.0)}, linear(),
     (X, LABELS.float()[:, None]),
     lambda m: F.cross_entropy(m(X), LABELS, torch.tensor([1.0, 2, 3]), label_smoothing=0.1)),
    ("nn.CrossEntropyLoss", {}, linear(), (SEQUENCES[0], torch.arange(18).view(2, 9) % 3),
     lambda m: F.cross_entropy(m(SEQUENCES[0]).flatten(0, 1), torch.arange(18) % 3)),
    ("nn.NLLLoss", {}, nn.Sequential(linear(), nn.LogSoftmax(1)), {"x": X, "y": LABELS.int()},
     lambda m: F.nll_loss(m(X), LABELS)),
    ("nn.MultiMarginLoss", {"margin": 0.5}, linear(), (X, LABELS),
     lambda m: F.multi_margin_loss(m(X), LABELS, margin=0.5)),
    ("nn.BCEWithLogitsLoss", {"pos_weight": (2.0,)}, linear(1), (X, BITS),
     lambda m: F.binary_cross_entropy_with_logits(
         m(X)[:, 0], BITS.float(), pos_weight=torch.tensor([2.0]))),
    ("nn.BCELoss", {}, nn.Sequential(linear(), nn.Sigmoid()), (X, LABELS),
     lambda m: F.binary_cross_entropy(m(X), F.one_hot(LABELS).float())),
    ("nn.MultiLabelSoftMarginLoss", {}, linear(), (X, F.one_hot(LABELS)),
     lambda m: F.multilabel_soft_margin_loss(m(X), F.one_hot(LABELS).float())),
    ("nn.SoftMarginLoss", {}, linear(1), (X, BITS),
     lambda m: F.soft_margin_loss(m(X)[:, 0], SIGNS.float())),
    ("nn.SoftMarginLoss", {}, linear(1), (X, SIGNS),
     lambda m: F.soft_margin_loss(m(X)[:, 0], SIGNS.float())),
    ("nn.MultiLabelMarginLoss", {}, linear(), (X, LABELS),
     lambda m: F.multilabel_margin_loss(m(X), F.pad(LABELS[:, None], (0, 2), value=-1))),
    ("nn.MSELoss", {"reduction": "sum"}, linear(1), (X, LABELS),
     lambda m: F.mse_loss(m(X)[:, 0], LABELS.float(), reduction="sum")),
    ("nn.MSELoss", {}, linear(), (X, LABELS),
     lambda m: F.mse_loss(m(X), F.one_hot(LABELS).float())),
    ("nn.L1Loss", {}, linear(), (X, rows(8, 3).double()), lambda m: torch.tensor(0.0)),
    ("nn.SmoothL1Loss", {"beta": 0.5}, linear(1), (X, X[:, 0]),
     lambda m: F.smooth_l1_loss(m(X)[:, 0], X[:, 0], beta=0.5)),
    ("nn.HuberLoss", {"delta": 0.1}, linear(4), (X, X),
     lambda m: F.huber_loss(m(X), X, delta=0.1)),
    ("nn.PoissonNLLLoss", {"full": True}, linear(1), (X, LABELS),
     lambda m: F.poisson_nll_loss(m(X)[:, 0], LABELS.float(), full=True)),
    ("nn.KLDivLoss", {"reduction": "batchmean"}, nn.Sequential(linear(), nn.LogSoftmax(1)),
     (X, OTHER[:, :3].softmax(1)),
     lambda m: F.kl_div(m(X), OTHER[:, :3].softmax(1), reduction="batchmean")),
]  # fmt: skip
_GAUSSIAN = next(case for case in CASES if case[0] == "nn.GaussianNLLLoss")
_L1 = next(case for case in CASES if case[0] == "nn.L1Loss")
CASES[CASES.index(_GAUSSIAN)] = (
    *_GAUSSIAN[:4],
    lambda m: F.gaussian_nll_loss(m(X)[0], _GAUSSIAN[3][1], m(X)[1], full=True),
)
CASES[CASES.index(_L1)] = (*_L1[:4], lambda m: F.l1_loss(m(X), _L1[3][1].float()))


@pytest.mark.parametrize(
    ("kind", "params", "model", "batch", "expected"), CASES,
    ids=[f"{number} {case[0]}" for number, case in enumerate(CASES)],
)  # fmt: skip
def test_the_loss_of_the_step_is_torchs(
    kind: str, params: dict, model: nn.Module, batch: Any, expected: Expect
) -> None:
    before = torch.get_rng_state()
    step = loss_step(model, batch, kind, params, {})
    assert torch.equal(torch.get_rng_state(), before) and model.training
    found = outcome_of(compile_step(step.source, model, {})(batch), len(X))
    wanted = expected(model)
    assert found.loss.item() == pytest.approx(wanted.item(), rel=1e-6)
    found.loss.backward()
    gradients = [p.grad.clone() for p in model.parameters() if p.grad is not None]
    model.zero_grad()
    expected(model).backward()
    others = [p.grad for p in model.parameters() if p.grad is not None]
    assert len(gradients) == len(others) > 0
    for gradient, other in zip(gradients, others, strict=True):
        assert torch.allclose(gradient, other, rtol=1e-5, atol=1e-7)
    if "accuracy" in found.figures:
        right = (model(X).argmax(1) == LABELS).float().mean()
        assert found.figures["accuracy"].item() == pytest.approx(right.item())


def test_each_loss_of_torch_is_tried() -> None:
    assert {case[0] for case in CASES} == {*catalogue.losses(), *catalogue.other_losses()}


def test_balanced_weights_are_those_of_the_data_set() -> None:
    dataset, model = load_dataset(DataSetup("breast_cancer")), nn.Linear(30, 2)
    batch = (dataset.x_train, dataset.y_train)
    step = loss_step(model, batch, "nn.CrossEntropyLoss", {"weight": "balanced"}, {}, dataset)
    weight = len(dataset) / (2 * dataset.y_train.bincount())
    found = compile_step(step.source, model, {})(batch)["loss"]
    assert found.item() == pytest.approx(F.cross_entropy(model(batch[0]), batch[1], weight).item())
    with pytest.raises(LabError, match="need training rows"):
        loss_step(model, batch, "nn.CrossEntropyLoss", {"weight": "balanced"}, {})


@pytest.mark.parametrize(
    ("kind", "params", "model", "batch", "words"),
    [
        ("nn.Nope", {}, linear(), (X, LABELS), "no loss “nn.Nope”"),
        ("nn.CosineEmbeddingLoss", {}, linear(), (X, LABELS), r"takes the embeddings of two.*"
         r"The batch is \(float32 \(8, 4\), int64 \(8,\)\), and the step raised ValueError"),
        ("nn.CosineEmbeddingLoss", {"margin": 3.0}, linear(), (X, OTHER, SIGNS), "margin"),
        ("nn.GaussianNLLLoss", {}, linear(), (X, rows(8, 1)), "takes a mean and a variance"),
        ("nn.LinearCrossEntropyLoss", {}, linear(), (X, LABELS), "has no nn.LinearCross"),
        ("nn.TripletMarginWithDistanceLoss", {"distance_function": "lambda a b"}, linear(),
         (X, OTHER, THIRD), "is not an expression"),
        ("nn.CrossEntropyLoss", {}, linear(), X, "compares a prediction with a target"),
        ("nn.CrossEntropyLoss", {}, linear(2), (X, LABELS), "compares a pred.*Target 2 is out"),
        ("nn.MSELoss", {}, linear(), (X, rows(5, 2)), "compares a prediction with a target"),
    ],
)  # fmt: skip
def test_what_the_loss_cannot_take_is_told(
    kind: str, params: dict, model: nn.Module, batch: Any, words: str
) -> None:
    with pytest.raises(LabError, match=f"(?s){words}"):
        loss_step(model, batch, kind, params, {})


def test_the_usual_step_is_another_one() -> None:
    assert write_step(linear(), (X, LABELS)).task == "classification"
    assert loss_step(linear(), (X, LABELS), "nn.MultiMarginLoss", {}, {}).task == "MultiMarginLoss"
