"""Each check against plain torch, and that a model has its own numbers afterwards."""

from __future__ import annotations

from collections.abc import Callable
from math import log
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.datasets.load import load_dataset
from engine.project.document import DataSetup, TrainingSetup, replace
from engine.protocol import Check, RateCurve
from engine.system.errors import LabError
from engine.training.checks import data_checks, model_checks
from engine.training.checks import rates as rates_room
from engine.training.checks.checking import KINDS, Checking
from engine.training.checks.losses_seen import LossSeen
from engine.training.checks.rates import smoothed, suggestion
from engine.training.objectives.code_objective import CodeObjective
from engine.training.objectives.objective import CatalogueObjective

SETUP = TrainingSetup(batch_size=32, optimizer_params={"lr": 0.01})
Make = Callable[[], nn.Module]


def all_of(model: nn.Module, objective: Any, setup: TrainingSetup = SETUP):
    """The checks by kind, and the curve."""
    found = [each for each in Checking(model, objective, setup).run() if each is not None]
    assert [check.kind for check, _ in found] == list(KINDS)
    return {check.kind: check for check, _ in found}, found[-1][1]


def of_code(model: nn.Module, data: Any, loss: Callable, validation: Any = None):
    def step(batch: Any) -> Tensor:
        *xs, y = batch
        return loss(model(*xs), y)

    return all_of(model, CodeObjective(step, data, validation, 32))[0]


def tensors(*parts: Tensor) -> torch.utils.data.TensorDataset:
    return torch.utils.data.TensorDataset(*parts)


@pytest.fixture(scope="module")
def easy() -> tuple[Tensor, Tensor]:
    torch.manual_seed(0)
    x = torch.randn(128, 4)
    return x, (x[:, 0] > 0).long()


class Net(nn.Module):
    def __init__(self, how: str = "", outputs: int = 2) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.how = how
        self.first, self.last = nn.Linear(4, 32), nn.Linear(32, outputs)
        if how == "lost":
            self.lost = nn.Linear(2, 2)
        if how == "zero":
            nn.init.zeros_(self.last.weight)

    def forward(self, x: Tensor) -> Tensor:
        if self.how == "mixed":
            x = x - x.mean(0)
        if self.how == "random" and self.training:
            x = x + torch.randn_like(x)
        if self.how == "deaf":
            x = x * 0
        return self.last(torch.relu(self.first(x)))


def test_a_model_that_is_fine(easy: tuple[Tensor, Tensor]) -> None:
    x, y = easy
    found = of_code(Net(), tensors(x[:96], y[:96]), F.cross_entropy, tensors(x[96:], y[96:]))
    assert {kind: check.verdict for kind, check in found.items() if kind != "rates"} == {
        "inputs": "good",
        "leaks": "good",
        "labels": "good",
        "first_loss": "good",
        "unreached": "good",
        "modes": "good",
        "one_batch": "good",
    }
    assert found["leaks"].evidence.startswith("0 of 32 validation samples")
    assert f"log(2) = {log(2):.4g}" in found["first_loss"].evidence


def test_the_figures_of_the_inputs(easy: tuple[Tensor, Tensor]) -> None:
    x, y = easy
    shifted = x * 3 + 100
    check = of_code(Net(), tensors(shifted, y), F.cross_entropy)["inputs"]
    mean, std = float(shifted.double().mean()), float(shifted.double().std())
    assert check.verdict == "warning"
    assert f"mean {mean:.4g}, deviation {std:.4g}" in check.evidence
    assert check.fix == f"x = (x - {mean:.4g}) / {std:.4g}"
    uneven = x * torch.tensor([1.0, 1.0, 1.0, 1e4])
    assert "different scales" in of_code(Net(), tensors(uneven, y), F.cross_entropy)["inputs"].text
    bad = x.clone()
    bad[3] = torch.nan
    check = of_code(Net(), tensors(bad, y), F.cross_entropy)["inputs"]
    assert (check.verdict, check.text) == (
        "error",
        "1 of 128 samples have NaN or infinite numbers.",
    )


@pytest.mark.parametrize(
    ("mean", "std", "verdict"),
    [(1.9, 1, "good"), (-2.1, 1, "warning"), (0, 9.9, "good"), (0, 10.1, "warning"),
     (0, 0.11, "good"), (0, 0.09, "warning")],
)  # fmt: skip
def test_inputs_count_as_standardised_within_limits(mean: float, std: float, verdict: str) -> None:
    x = torch.tensor([[-1.0], [1.0]]).repeat(50, 1)
    assert data_checks.inputs([((x / x.std()) * std + mean, None)]).verdict == verdict


def test_the_labels_of_a_loss_are_its_classes_that_count() -> None:
    labels, scores = torch.tensor([0, 2, -100, 1]), torch.zeros(4, 3)
    seen = LossSeen(F.cross_entropy, scores, labels)
    assert seen.labels is not None and seen.labels.tolist() == [0, 2, 1] and seen.classes == 3
    assert LossSeen(F.cross_entropy, scores, torch.rand(4, 3)).labels is None  # shares of classes
    assert LossSeen(F.mse_loss, scores[:, 0], labels).labels is None
    assert LossSeen(F.cross_entropy, torch.zeros(5), torch.tensor(2)).classes == 5


def test_samples_in_both_parts_are_counted(easy: tuple[Tensor, Tensor]) -> None:
    x, y = easy
    other = 1 - y[:5]
    held_out = tensors(torch.cat([x[:5], x[100:]]), torch.cat([other, y[100:]]))
    repeated = tensors(torch.cat([x[:100], x[:7]]), torch.cat([y[:100], y[:7]]))
    check = of_code(Net(), repeated, F.cross_entropy, held_out)["leaks"]
    assert check.verdict == "warning"
    assert check.evidence == (
        "5 of 33 validation samples, 0 with the same target; 7 samples of the training part are"
        " there more than once"
    )


def test_labels_out_of_range_are_told_before_the_loss_refuses_them(easy) -> None:
    x, y = easy
    found = of_code(Net(), tensors(x, y + 1), F.cross_entropy)
    assert found["labels"].verdict == "error"
    assert f"{int((y == 1).sum())} labels are no class" in found["labels"].text
    assert "3 outputs" in found["labels"].fix
    assert found["first_loss"].verdict == "error"
    found = of_code(Net(outputs=5), tensors(x, y), F.cross_entropy)
    assert found["labels"].text == "3 of 5 classes have no sample here."
    found = of_code(Net(outputs=1), tensors(x, y.float()[:, None] * 3),
                    F.binary_cross_entropy_with_logits)  # fmt: skip
    assert f"{int(y.sum())} targets of the binary" in found["labels"].text


def test_a_first_loss_far_above_guessing(easy: tuple[Tensor, Tensor]) -> None:
    x, y = easy
    model = Net()
    with torch.no_grad():
        model.last.weight *= 100
    check = of_code(model, tensors(x, y), F.cross_entropy)["first_loss"]
    assert check.verdict == "warning" and "too sure" in check.text


def test_the_first_loss_of_numbers_is_compared_with_their_variance(easy) -> None:
    x, _ = easy
    target = (x @ torch.tensor([[1.0], [2.0], [0.0], [0.0]])) + 50
    check = of_code(Net(outputs=1), tensors(x, target), F.mse_loss)["first_loss"]
    assert check.verdict == "warning"
    assert f"variance {float(target.double().var(correction=0)):.4g}" in check.evidence


LABELS = LossSeen(F.cross_entropy, torch.zeros(4, 3), torch.tensor([0, 1, 2, 0]))
NUMBERS = LossSeen(F.mse_loss, torch.zeros(4, 1), torch.tensor([[0.0], [4.0], [0.0], [4.0]]))


@pytest.mark.parametrize(
    ("seen", "loss", "verdict"),
    [
        (LABELS, log(3) + 0.69, "good"), (LABELS, log(3) + 0.71, "warning"),
        (LABELS, log(3) - 0.29, "good"), (LABELS, log(3) - 0.31, "note"),
        (NUMBERS, 3 * 4 - 0.01, "good"), (NUMBERS, 3 * 4 + 0.01, "warning"),
        (NUMBERS, 0.7 * 4 + 0.01, "good"), (NUMBERS, 0.7 * 4 - 0.01, "note"),
        (NUMBERS, float("inf"), "error"),
    ],
)  # fmt: skip
def test_how_far_the_first_loss_may_be_from_guessing(seen, loss: float, verdict: str) -> None:
    check = model_checks.first_loss(loss, [seen])
    assert check.verdict == verdict
    if verdict != "error":
        guess = f"log(3) = {log(3):.4g}" if seen is LABELS else "the targets' variance 4"
        assert check.evidence.endswith(f": {guess}")


def test_parameters_without_a_path_to_the_loss(easy: tuple[Tensor, Tensor]) -> None:
    x, y = easy
    check = of_code(Net("lost"), tensors(x, y), F.cross_entropy)["unreached"]
    assert check.verdict == "warning"
    assert "`lost.weight`, `lost.bias`" in check.text
    assert check.evidence == "4 of 6 parameters get a gradient"
    check = of_code(Net("deaf"), tensors(x, y), F.cross_entropy)["unreached"]
    assert "The gradient of `first.weight` is 0" in check.text


def test_modes_and_samples_that_change_each_other(easy: tuple[Tensor, Tensor]) -> None:
    x, y = easy
    assert of_code(Net("mixed"), tensors(x, y), F.cross_entropy)["modes"].verdict == "error"
    check = of_code(Net("random"), tensors(x, y), F.cross_entropy)["modes"]
    assert check.verdict == "note" and "random numbers" in check.fix
    model = nn.Sequential(Net(outputs=8), nn.BatchNorm1d(8), nn.Dropout(0.25), nn.Linear(8, 2))
    check = of_code(model, tensors(x, y), F.cross_entropy)["modes"]
    assert "because of BatchNorm1d, Dropout(p=0.25)" in check.text


@pytest.mark.parametrize("extra", [2, torch.tensor(2.0)])
def test_modes_of_a_model_with_an_argument_that_has_no_rows(easy, extra: Any) -> None:
    class Scaled(Net):
        def forward(self, x: Tensor, scale: Any) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
            return super().forward(x) * scale

    model, (x, y) = Scaled(), easy
    objective = CodeObjective(
        lambda batch: F.cross_entropy(model(batch[0], extra), batch[1]), [(x, y)], None, 8
    )
    assert model_checks.modes(model, objective, (x, y)).verdict == "good"


def test_how_far_outputs_are_apart_is_a_share_of_the_largest(easy: tuple[Tensor, Tensor]) -> None:
    x, y = easy

    def share(a: Tensor, b: Tensor) -> str:
        return f"{float((a - b).double().abs().max()) / float(b.double().abs().max()):.2%}"

    check = of_code(Net("mixed"), [(x[:32], y[:32])], F.cross_entropy)["modes"]
    plain = Net("mixed")
    with torch.no_grad():
        assert check.evidence == f"they differ by {share(plain(x[:32])[:1], plain(x[:1]))}"

    def normed() -> nn.Module:
        return nn.Sequential(Net(), nn.BatchNorm1d(2))

    check = of_code(normed(), [(x[:32], y[:32])], F.cross_entropy)["modes"]
    with torch.no_grad():
        apart = share(normed()(x[:32]), normed().eval()(x[:32]))
    assert check.evidence == f"the outputs of the first batch differ by {apart} of the largest"


def test_a_batch_that_cannot_be_fitted(easy: tuple[Tensor, Tensor]) -> None:
    x, y = easy
    found = of_code(Net("deaf"), tensors(x, y), F.cross_entropy)
    assert found["one_batch"].verdict in ("warning", "error")


def test_the_losses_of_one_batch_are_those_of_a_plain_loop(easy: tuple[Tensor, Tensor]) -> None:
    x, y = easy
    check = of_code(Net(), [(x[:32], y[:32])], F.cross_entropy)["one_batch"]
    model = Net()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)  # SETUP's
    losses: list[float] = []
    while len(losses) < 200 and (not losses or losses[-1] >= 0.01 * losses[0]):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x[:32]), y[:32])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert check.evidence == (
        f"loss {losses[0]:.4g} at first, {losses[-1]:.4g} after {len(losses)} steps on the same"
        " batch"
    )


def test_the_curve_of_rates_is_that_of_a_plain_loop(easy: tuple[Tensor, Tensor]) -> None:
    x, y = easy
    model, plain = Net(), Net()
    data = [(x[:64], y[:64]), (x[64:], y[64:])]
    objective = CodeObjective(
        lambda batch: F.cross_entropy(model(batch[0]), batch[1]), data, None, 8
    )
    _, curve = all_of(model, objective)
    optimizer = torch.optim.Adam(plain.parameters(), lr=0.01)
    losses = []
    for i, rate in enumerate(curve.rates):
        optimizer.param_groups[0]["lr"] = rate
        optimizer.zero_grad()
        batch = data[i % 2]
        loss = F.cross_entropy(plain(batch[0]), batch[1])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert list(curve.losses) == losses
    assert list(curve.smooth) == smoothed(losses)
    assert curve.rates[0] == pytest.approx(rates_room.LOWEST)
    assert 1e-4 < curve.suggestion < 1
    lowest = curve.rates[curve.smooth.index(min(curve.smooth))]
    assert curve.suggestion <= lowest


def test_the_rates_end_where_three_losses_in_a_row_are_too_high(easy) -> None:
    model, (x, y) = Net(), easy
    told = iter([1.0, 4.1, 4.1, 1.0, 4.0, 4.1, 4.1, 4.1, 9.0])
    objective = CodeObjective(lambda batch: model(x).sum() * 0 + next(told), [(x, y)], None, 8)
    *_, last = rates_room.rates(model, objective, SETUP)
    assert last is not None
    assert last[1].losses == pytest.approx((1.0, 4.1, 4.1, 1.0, 4.0, 4.1, 4.1, 4.1))


@pytest.mark.parametrize(
    ("suggestion", "rate", "verdict", "words"),
    [
        (0.0, 0.01, "warning", "No learning rate of the range test lets the loss fall."),
        (0.01, 0.3, "good", "A learning rate of 0.01 suits this model and data."),
        (0.01, 0.31, "warning", "0.01 suits this model and data. It is 0.31 now."),
        (0.3, 0.01, "good", "A learning rate of 0.3 suits this model and data."),
        (0.3, 0.009, "warning", "0.3 suits this model and data. It is 0.009 now."),
    ],
)
def test_a_rate_far_from_the_suggested_one_is_told(suggestion, rate, verdict, words) -> None:
    curve = RateCurve((1e-3, 1e-2, 0.1), (3.0, 2.0, 9.0), (3.0, 2.0, 9.0), suggestion)
    check = rates_room._check(curve, replace(SETUP, optimizer_params={"lr": rate}))
    assert (check.verdict, check.text.endswith(words)) == (verdict, True)
    if suggestion:
        assert check.evidence == f"the loss falls steepest at {suggestion:g}, and is lowest at 0.01"
        assert check.fix == (f"lr={suggestion:g}" if verdict == "warning" else "")


def test_the_suggestion_is_where_the_loss_falls_steepest() -> None:
    tried = [10.0**e for e in range(-6, 1)]
    assert suggestion(tried, [2.0, 2.0, 1.9, 1.0, 0.8, 1.5, 9.0]) == 0.001
    noisy_at_first = [2.6, *[2.0] * 40, *[2.0 - 0.1 * i for i in range(10)], *[1.1] * 20]
    rates = [10 ** (-6 + 0.07 * i) for i in range(len(noisy_at_first))]
    assert rates[41] < suggestion(rates, smoothed(noisy_at_first)) < rates[51]
    assert smoothed([1.0, 2.0, 6.0, 1.0]) == [1.0, 3.0, 3.0, 1.0]
    assert suggestion(tried, [2.0, 2.0, 2.0, 1.99, 1.98, 2.5, 9.0]) == 0.0
    assert suggestion(tried[:2], [2.0, 1.0]) == 0.0


@pytest.mark.parametrize("stopped_after", [None, 3, 60, 300])
def test_the_model_is_bit_for_bit_as_before(make_mlp: Make, moons, stopped_after) -> None:
    model = make_mlp()
    model(torch.randn(8, 2)).sum().backward()
    list(model.modules())[2].eval()  # the BatchNorm
    state = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    grads = [p.grad for p in model.parameters()]
    numbers = [None if g is None else g.clone() for g in grads]
    places = [p.data_ptr() for p in model.parameters()]
    modes = [m.training for m in model.modules()]
    versions = [p._version for p in model.parameters()]
    checks = Checking(model, CatalogueObjective(model, moons), moons).run()
    for i, _ in enumerate(checks):
        if i == stopped_after:
            checks.close()  # type: ignore[attr-defined]
            break
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, state[name]), name
    assert [p.data_ptr() for p in model.parameters()] == places
    assert [m.training for m in model.modules()] == modes
    assert [p._version for p in model.parameters()] == versions
    for p, gradient, number in zip(model.parameters(), grads, numbers, strict=True):
        assert p.grad is gradient
        assert gradient is not None and number is not None and torch.equal(gradient, number)


def test_a_model_of_blocks_on_a_bundled_set() -> None:
    setup = replace(SETUP, data=DataSetup("digits"), batch_size=128)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
    found, curve = all_of(model, CatalogueObjective(model, setup), setup)
    data = load_dataset(setup.data)
    known = {row.numpy().tobytes() for row in data.x_train}
    leaked = sum(row.numpy().tobytes() in known for row in data.x_val)
    assert found["leaks"].evidence.startswith(f"{leaked} of {len(data.x_val)} validation samples")
    assert found["first_loss"].verdict == "good"
    assert isinstance(curve, RateCurve) and curve.suggestion


def test_data_without_a_batch_is_told() -> None:
    objective = CodeObjective(lambda batch: torch.zeros(()), [], None, 8)
    with pytest.raises(LabError, match="The data has no batch"):
        Checking(Net(), objective, SETUP)


def test_an_error_after_the_loss_is_no_label_that_the_loss_refuses(easy) -> None:
    def loss(prediction: Tensor, target: Tensor) -> Tensor:
        nn.functional.cross_entropy(prediction, target)
        raise ValueError("after it")

    found = of_code(Net(), tensors(*easy), loss)
    for kind in ("labels", "first_loss"):
        assert found[kind].text == "This cannot be checked: ValueError: after it", kind


def test_code_that_raises_is_told_for_its_check(easy: tuple[Tensor, Tensor]) -> None:
    x, y = easy

    def loss(prediction: Tensor, target: Tensor) -> Tensor:
        raise ValueError("no")

    found = of_code(Net(), tensors(x, y), loss)
    (line,) = (
        n
        for n, text in enumerate(Path(__file__).read_text().splitlines(), 1)
        if text == '        raise ValueError("no")'
    )
    told = "This cannot be checked: ValueError: no", f'{__file__}:{line}: raise ValueError("no")'
    assert found["labels"] == Check("labels", "error", *told)
    assert found["first_loss"] == Check("first_loss", "error", *told)
    assert found["inputs"].verdict == "good"
