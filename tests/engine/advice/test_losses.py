"""Findings about what a loss is given, and correct losses about which nothing is told."""

from __future__ import annotations

import math

import pytest
import torch

from engine.advice.notes import Notes
from engine.protocol import Finding
from tests.engine.advice.desk import Desk

pytestmark = pytest.mark.filterwarnings("ignore:Using a target size")  # torch's own word on it

BEGIN = """
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1))
x, y = torch.randn(16, 3), torch.randn(16)
classes, labels = nn.Linear(3, 4), torch.randint(4, (16,))
"""


@pytest.mark.parametrize(
    "call",
    [
        "F.mse_loss({}, y)",
        "nn.MSELoss()({}, y)",
        "F.l1_loss({}, y)",
        "nn.L1Loss()({}, y)",
        "F.smooth_l1_loss({}, y)",
        "nn.SmoothL1Loss()({}, y)",
        "F.huber_loss({}, y)",
        "nn.HuberLoss()({}, y)",
        "(({} - y) ** 2).mean()",
        "({} - y).pow(2).sum() / 16",
        "(y - {}).abs().mean()",
        "torch.sub({}, y).square().mean().sqrt()",
        "-(({} - y) ** 2).mean() * -1.0",
        "({} - y).abs().sum(0).sum()",
        "torch.subtract({}, y).square().mean()",
        "({} - y).square().mean() + 0.0 * sum(p.square().sum() for p in net.parameters())",
        "F.gaussian_nll_loss({}, var=torch.ones(16, 1), target=y)",
    ],
)
def test_a_prediction_and_a_target_that_are_both_stretched(desk: Desk, call: str) -> None:
    desk.run(BEGIN)
    found = desk.only(f"loss = {call.format('net(x)')}\nloss.backward()")
    assert found.kind == "broadcast"
    assert (found.line, found.file) == (1, "<cell 2>")
    assert found.evidence == (
        "prediction (16, 1)",
        "target (16,)",
        "compared: (16, 16), that is 256 pairs in place of 16",
    )
    if not call.startswith("(y"):
        assert found.fix == f"loss = {call.format('net(x)').replace('y)', 'y.unsqueeze(-1))', 1)}"
    fixed = desk.run(f"{found.fix}\nloss.backward()")
    assert fixed == []
    flat = call.replace("torch.ones(16, 1)", "torch.ones(16)")
    expected = eval(flat.format("net(x)[:, 0]"), desk.variables)
    assert torch.allclose(desk.variables["loss"], expected)


def test_a_difference_from_a_number_is_none_of_these(desk: Desk) -> None:
    found = desk.only(f"{BEGIN}h = net(x) - 1.0\nF.mse_loss(h, y).backward()")
    assert (found.kind, found.line) == ("broadcast", 7)


def test_the_fix_of_a_target_with_a_dimension_too_many(desk: Desk) -> None:
    desk.run(BEGIN)
    found = desk.only("loss = F.mse_loss(target=y[:, None], input=net(x)[:, 0])")
    assert found.fix == "loss = F.mse_loss(target=y[:, None].squeeze(-1), input=net(x)[:, 0])"


@pytest.mark.parametrize(
    ("cell", "fix"),
    [
        ("loss = F.mse_loss(net(x), y * 2)", "loss = F.mse_loss(net(x), (y * 2).unsqueeze(-1))"),
        ("größe = F.mse_loss(net(x), y)", "größe = F.mse_loss(net(x), y.unsqueeze(-1))"),
        ("loss = F.mse_loss(\n    net(x),\n    y,\n)", "y.unsqueeze(-1),"),
        (
            "loss = F.mse_loss(net(x), torch.cat(\n    [y]))",
            "F.mse_loss(prediction, target.unsqueeze(-1))",
        ),
        ("made = y + 0\nF.mse_loss(*(net(x), made))", "F.mse_loss(prediction, made.unsqueeze(-1))"),
    ],
)
def test_the_fix_of_a_target_that_is_no_name_in_the_calls_line(
    desk: Desk, cell: str, fix: str
) -> None:
    desk.run(BEGIN)
    assert desk.only(cell).fix == fix


@pytest.mark.parametrize(
    "cell",
    [
        "F.mse_loss(net(x)[:, 0], y)",
        "F.mse_loss(net(x), torch.zeros(()))",
        "F.mse_loss(net(x), torch.zeros(1, 1))",
        "F.mse_loss(net(x[:1]), y[:, None])",
        "((net(x) - net(x).mean()) ** 2).mean()",
        "((net(x)[:, None] - torch.randn(5, 1)) ** 2).mean()",
        # distances of all pairs, a kernel, and centres as many as points
        "h = classes(x)\n((h[:, None] - h[None]) ** 2).sum(-1).mean()",
        "h = net(x)\n((h - h.T) ** 2).mean()",
        "torch.exp(-(net(x) - torch.randn(16)) ** 2).mean()",
        "with torch.no_grad():\n    (net(x) - y).mean()\nnet(x).mean()",
    ],
)
def test_shapes_that_are_meant_so(desk: Desk, cell: str) -> None:
    *first, last = cell.split("\n")
    assert desk.run("\n".join([BEGIN, *first, f"loss = {last}", "loss.backward()"])) == []


def test_a_difference_before_the_step_of_another_optimizer_is_told_at_its_own_backward(
    desk: Desk,
) -> None:
    """Only the 64th step is looked at by then, and the other optimizer has begun the next one."""
    cell = """
other = nn.Parameter(torch.ones(2))
of_net = torch.optim.SGD(net.parameters(), 0.01)
of_other = torch.optim.SGD([other], 0.01)
for i in range(1, 80):
    target = y if i == {wrong} else y[:, None]
    loss = (net(x) - target).square().mean()
    other.grad = torch.ones(2)
    of_other.step()
    of_other.zero_grad()
    of_net.zero_grad()
    loss.backward()
    of_net.step()
"""
    assert desk.run(BEGIN + cell.format(wrong=66)) == []
    found = desk.only(BEGIN + cell.format(wrong=65))
    assert (found.kind, found.line) == ("broadcast", 12)


def test_a_softmax_before_cross_entropy(desk: Desk) -> None:
    cell = "loss = F.cross_entropy(classes(x).softmax(1), labels)\nloss.backward()"
    found = desk.only(BEGIN + cell)
    assert (found.kind, found.line) == ("softmax", 6)
    least = least_loss(4)
    assert found.evidence == (
        "the input was made by SoftmaxBackward0",
        f"with probabilities of 4 classes the loss is at least {least:.3g}",
    )
    assert found.fix == "loss = F.cross_entropy(scores, target)  # the scores, before softmax"
    one = desk.only("F.cross_entropy(classes(x[0]).softmax(0), labels[0]).backward()")
    assert one.evidence == found.evidence


def least_loss(classes: int) -> float:
    """The loss of probabilities that are all on the right class."""
    right = torch.eye(classes)[:1]
    return torch.nn.functional.cross_entropy(right, torch.tensor([0])).item()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("nn.CrossEntropyLoss()(nn.Sequential(classes, nn.Softmax(1))(x), labels)", "of a softmax"),
        ("F.cross_entropy(F.softmax(classes(x), 1).view(16, 4), labels)", "of a softmax"),
        ("F.cross_entropy(classes(x).log_softmax(1), labels)", "changes nothing"),
        ("nn.BCEWithLogitsLoss()(net(x).sigmoid()[:, 0], y.sigmoid())", "of a sigmoid"),
        ("F.binary_cross_entropy_with_logits(net(x).sigmoid(), y[:, None])", "of a sigmoid"),
        (
            "F.binary_cross_entropy_with_logits(classes(x).softmax(1), torch.eye(4)[labels])",
            "of a softmax",
        ),
    ],
)
def test_a_function_that_the_loss_applies_itself(desk: Desk, call: str, words: str) -> None:
    found = desk.only(f"{BEGIN}loss = {call}\nloss.backward()")
    assert (found.kind, found.line) == ("softmax", 6)
    assert words in found.text
    assert found.evidence[0].startswith("the input was made by ")


def test_a_sigmoid_before_cross_entropy(desk: Desk) -> None:
    found = desk.only(f"{BEGIN}F.cross_entropy(classes(x).sigmoid(), labels).backward()")
    assert (found.kind, found.line) == ("softmax", 6)
    assert found.evidence == (
        "the input was made by SigmoidBackward0",
        f"with scores between 0 and 1 of 4 classes the loss is at least {least_loss(4):.3g}",
    )
    assert found.fix == "loss = F.cross_entropy(scores, target)  # the scores, before sigmoid"


def test_a_relu_before_cross_entropy(desk: Desk) -> None:
    call = "nn.CrossEntropyLoss()(nn.Sequential(classes, nn.ReLU())(x), labels)"
    found = desk.only(f"{BEGIN}{call}.backward()")
    assert found.kind == "softmax" and "is never below 0" in found.text
    assert found.evidence == ("the input was made by ReluBackward0",)


@pytest.mark.parametrize(("dim", "told"), [("0", "dim=0"), ("-2", "dim=0")])
def test_a_log_softmax_over_the_samples(desk: Desk, dim: str, told: str) -> None:
    found = desk.only(f"{BEGIN}F.nll_loss(classes(x).log_softmax({dim}), labels).backward()")
    assert (found.kind, found.line) == ("softmax", 6)
    assert f"over {told}, that is over the samples of the batch" in found.text
    assert found.evidence == (f"the input has shape (16, 4), and was made by log_softmax({told})",)
    assert found.fix == "log_probabilities = F.log_softmax(scores, dim=1)"


def test_a_log_softmax_over_the_last_dimension_of_a_sequence(desk: Desk) -> None:
    scores = "F.log_softmax(classes(x).view(4, 4, 4), {})"
    cell = BEGIN + "F.nll_loss(" + scores + ", labels.view(4, 4)).backward()"
    found = desk.only(cell.format(-1))
    assert "over dim=2, that is over dim 2; the classes are dim 1" in found.text
    assert desk.run(cell.format(1)) == []


def test_scores_given_to_nll_loss(desk: Desk) -> None:
    found = desk.only(BEGIN + "scores = classes(x)\nF.nll_loss(scores, labels).backward()")
    assert found.kind == "softmax"
    most = desk.variables["scores"].max().item()
    assert found.evidence == (f"the largest value of the input is {most:.3g}",)
    assert most > 0


@pytest.mark.parametrize(
    "call",
    [
        "F.cross_entropy(classes(x), labels)",
        "nn.CrossEntropyLoss(label_smoothing=0.1)(classes(x), labels)",
        "F.nll_loss(classes(x).log_softmax(1), labels)",
        "F.nll_loss(classes(x).log_softmax(-1), labels)",
        "F.nll_loss(classes(x[0]).log_softmax(0), labels[0])",
        "F.cross_entropy(nn.Linear(4, 4)(classes(x).relu()), labels)",
        # what the numbers of another class mean is not known
        "F.nll_loss(classes(x).as_subclass(type('Own', (torch.Tensor,), {})), labels)",
        "F.nll_loss(classes(x).softmax(1).log(), labels)",
        "F.nll_loss(-classes(x).relu(), labels)",
        "F.binary_cross_entropy(net(x).sigmoid()[:, 0], y.sigmoid())",
        "nn.BCEWithLogitsLoss()(net(x)[:, 0], y.sigmoid())",
        # attention ends in a softmax, and a linear layer follows
        "F.cross_entropy(nn.Linear(4, 4)(classes(x).softmax(1)), labels)",
        "F.kl_div(classes(x).log_softmax(1), classes(x).softmax(1), reduction='batchmean')",
    ],
)
def test_a_loss_that_gets_what_it_takes(desk: Desk, call: str) -> None:
    assert desk.run(f"{BEGIN}loss = {call}\nloss.backward()") == []
    assert math.isfinite(desk.variables["loss"].item())


def test_without_a_line_of_the_users_the_usual_fix_is_told() -> None:
    found: list[Finding] = []
    notes = Notes(found.append)
    fix = notes.fixed_line(None, (1, 2), 1, "target", lambda text: f"{text}.T", "usual(target)")
    notes.find("broadcast", "It broadcasts.", (), fix)
    assert found == [Finding("broadcast", "It broadcasts.", (), "usual(target)", "", 0)]
