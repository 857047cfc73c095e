"""The loop against a hand-written one: same weights bit for bit, same figures."""

from __future__ import annotations

import copy
from collections.abc import Callable
from itertools import islice
from math import exp, inf, isnan
from pathlib import Path

import msgspec
import pytest
import torch
from torch import nn
from torch.nn.functional import mse_loss

from engine.datasets.load import load_dataset
from engine.project.document import DataSetup, TrainingSetup, replace
from engine.system.errors import LabError
from engine.training.figures.metrics import Diverged, EpochTotals
from engine.training.figures.pace import ALWAYS_MEASURED_STEPS, MEASURE_INTERVAL_S, Budget
from engine.training.loop import TrainingLoop
from engine.training.objectives import catalogue_data
from engine.training.objectives.objective import CatalogueObjective, Outcome, joined

OPTIMIZERS = {
    "optim.SGD": ({"lr": 0.1, "momentum": 0.9, "nesterov": True}, torch.optim.SGD),
    "optim.Adam": ({"lr": 0.01, "betas": (0.8, 0.99)}, torch.optim.Adam),
    "optim.AdamW": ({"lr": 0.01, "weight_decay": 0.1}, torch.optim.AdamW),
    "optim.RMSprop": ({"lr": 0.01, "centered": True}, torch.optim.RMSprop),
}


class ByHand:
    """Trains as every course does, with a DataLoader's means: what the lab must equal."""

    def __init__(self, model: nn.Module, setup: TrainingSetup) -> None:
        torch.manual_seed(setup.seed)
        self.rows: list[tuple[float, float, float]] = []
        self.epochs: list[tuple[float, float, float, float]] = []
        dataset = load_dataset(setup.data)
        optimizer = OPTIMIZERS[setup.optimizer][1](model.parameters(), **setup.optimizer_params)
        for epoch in range(setup.epochs):
            model.train()
            right, losses = 0, 0.0
            for index in range(dataset.batches(setup.batch_size)):
                x, y = dataset.train_batch(index, setup.batch_size, setup.seed, epoch)
                optimizer.zero_grad()
                prediction = model(x)
                loss = self.loss(setup.loss, prediction, y)
                loss.backward()
                optimizer.step()
                gradients = [p.grad for p in model.parameters() if p.grad is not None]
                norm = torch.nn.utils.get_total_norm(gradients)
                correct = (prediction.argmax(dim=1) == y).sum().item()
                self.rows.append((loss.item(), correct / len(y), norm.item()))
                right, losses = right + correct, losses + loss.item() * len(y)
            model.eval()
            with torch.no_grad():
                prediction = model(dataset.x_val)
                self.epochs.append(
                    (
                        losses / len(dataset),
                        right / len(dataset),
                        self.loss(setup.loss, prediction, dataset.y_val).item(),
                        (prediction.argmax(dim=1) == dataset.y_val).float().mean().item(),
                    )
                )
        model.train()

    def loss(self, kind: str, prediction: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        if kind == "nn.MSELoss":
            return ((prediction - torch.eye(prediction.shape[1])[y]) ** 2).mean()
        return nn.functional.cross_entropy(prediction, y)


def assert_equal_weights(model: nn.Module, expected: nn.Module) -> None:
    found = model.state_dict()
    for name, tensor in expected.state_dict().items():
        assert torch.equal(found[name], tensor), name


def finish(loop: TrainingLoop) -> TrainingLoop:
    for _ in loop.steps():
        pass
    loop.close()
    return loop


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("loss", ["nn.CrossEntropyLoss", "nn.MSELoss"])
def test_weights_and_figures_are_those_of_a_loop_by_hand(
    moons: TrainingSetup, make_mlp: Callable[[], nn.Sequential], optimizer: str, loss: str
) -> None:
    setup = replace(
        moons, loss=loss, optimizer=optimizer, optimizer_params=OPTIMIZERS[optimizer][0]
    )
    expected, model = make_mlp(), make_mlp()
    by_hand = ByHand(expected, setup)
    loop = finish(TrainingLoop(model, setup))
    assert_equal_weights(model, expected)

    rows = loop.metrics.history
    assert [row.step for row in rows] == list(range(1, 10))
    found = [(row.loss, row.accuracy, row.gradient_norm) for row in rows]
    for figures, by in zip(found, by_hand.rows, strict=True):
        assert figures == pytest.approx(by, rel=1e-5)
    assert {row.learning_rate for row in rows} == {setup.optimizer_params["lr"]}

    for epoch, row in enumerate(loop.metrics.epochs):
        assert (row.epoch, row.step) == (epoch + 1, 3 * (epoch + 1))
        assert msgspec.structs.astuple(row)[2:6] == pytest.approx(by_hand.epochs[epoch], rel=1e-5)


def test_numbers_have_r2_and_rmse_and_no_accuracy() -> None:
    """RMSE is told in the unit of the target, though the model learns a standardised one."""
    from sklearn.metrics import r2_score, root_mean_squared_error

    setup = TrainingSetup(
        DataSetup("diabetes"), "nn.MSELoss", "optim.SGD", {"lr": 0.05}, batch_size=64, epochs=3
    )
    torch.manual_seed(0)
    model = nn.Linear(10, 1)
    loop = finish(TrainingLoop(model, setup))
    dataset = load_dataset(setup.data)
    with torch.no_grad():
        prediction = model(dataset.x_val)
    row = loop.metrics.epochs[-1]
    figures = row.validation_figures
    assert figures["R2"] == pytest.approx(r2_score(dataset.y_val, prediction), rel=1e-5)
    deviation = root_mean_squared_error(dataset.y_val, prediction) * dataset.target_scale.item()
    assert figures["RMSE"] == pytest.approx(deviation, rel=1e-5)
    assert row.validation_loss == pytest.approx(mse_loss(prediction, dataset.y_val).item())
    assert set(row.train_figures) == {"R2", "RMSE"}
    assert isnan(row.train_accuracy) and isnan(row.validation_accuracy)
    scores = [step.figures["R2"] for step in loop.metrics.history[-6:]]
    weights = [64] * 5 + [len(dataset) - 5 * 64]
    mean = sum(s * w for s, w in zip(scores, weights, strict=True)) / sum(weights)
    assert row.train_figures["R2"] == pytest.approx(mean, rel=1e-5)


@pytest.mark.parametrize("unit", [1e-34, 1.0, 1e30])
def test_rmse_is_in_the_unit_of_a_target_whose_square_is_beyond_float32(
    unit: float, tmp_path: Path
) -> None:
    rows = "".join(f"{i},{i * i * unit!r}\n" for i in range(40))
    (tmp_path / "a.csv").write_text("x,y\n" + rows)
    data = DataSetup("csv", {}, 0.25, path=str(tmp_path / "a.csv"))
    setup = TrainingSetup(data, "nn.MSELoss", "optim.SGD", {"lr": 0.05}, batch_size=64, epochs=1)
    model = nn.Linear(1, 1)
    loop = finish(TrainingLoop(model, setup))
    dataset = load_dataset(data)
    with torch.no_grad():
        apart = (model(dataset.x_val) - dataset.y_val).double() * dataset.target_scale
    found = loop.metrics.epochs[-1].validation_figures["RMSE"]
    assert found / unit == pytest.approx(float((apart / unit).square().mean().sqrt()), rel=1e-5)


def test_perplexity_of_several_batches_is_that_of_their_mean_loss() -> None:
    losses, samples = torch.tensor([1.0, 4.0]), (3, 1)
    parts = [
        Outcome(loss, n, figures={"perplexity": loss.exp()})
        for loss, n in zip(losses, samples, strict=True)
    ]
    assert joined(parts).figures["perplexity"].item() == pytest.approx(exp(1.75))
    totals = EpochTotals()
    for part in parts:
        totals.add_outcome(part)
    assert totals.means()[2]["perplexity"] == pytest.approx(exp(1.75))
    totals.add(1.0, 1, None, {"perplexity": inf})
    assert totals.means()[2]["perplexity"] == inf
    totals.add(1.0, 1, None, {"perplexity": -1.0})  # it is the user's name for something else
    assert isnan(totals.means()[2]["perplexity"])


def test_the_batches_of_a_large_set_are_those_of_a_small_one(
    moons: TrainingSetup, monkeypatch: pytest.MonkeyPatch
) -> None:
    objective = CatalogueObjective(nn.Linear(2, 2), moons)
    expected = list(objective.batches(epoch=2, first=1))
    monkeypatch.setattr(catalogue_data, "PICKED_BYTES", 0)
    found = list(objective.batches(epoch=2, first=1))
    assert [len(y) for _, y in found] == [32, 16]
    for pair, pair_expected in zip(found, expected, strict=True):
        assert all(map(torch.equal, pair, pair_expected))


def test_rmse_of_several_batches_is_that_of_their_samples() -> None:
    errors = torch.tensor([1.0, 2.0, 5.0])
    parts = [
        Outcome(e.square().mean(), len(e), figures={"RMSE": e.square().mean().sqrt()})
        for e in (errors[:2], errors[2:])
    ]
    assert joined(parts).figures["RMSE"].item() == pytest.approx(10.0**0.5)
    totals = EpochTotals()
    for part in parts:
        totals.add_outcome(part)
    assert totals.means()[2]["RMSE"] == pytest.approx(10.0**0.5)


def test_the_model_is_validated_in_eval_mode_and_without_a_graph(
    moons: TrainingSetup, make_mlp: Callable[[], nn.Sequential]
) -> None:
    model = make_mlp()
    seen = []
    model.register_forward_hook(
        lambda module, args, output: seen.append((module.training, output.requires_grad))
    )
    finish(TrainingLoop(model, replace(moons, epochs=1)))
    assert seen == [(True, True)] * 3 + [(False, False)]
    assert model.training


def test_the_loop_yields_after_every_step(
    moons: TrainingSetup, make_mlp: Callable[[], nn.Sequential]
) -> None:
    loop = TrainingLoop(make_mlp(), replace(moons, epochs=2))
    places = [(loop.step, loop.epoch, loop.batch) for _ in loop.steps()]
    assert places == [
        *((1, 0, 1), (2, 0, 2), (3, 0, 3)),
        *((3, 0, 3), (3, 1, 0)),  # a batch of validation, and the end of the epoch
        *((4, 1, 1), (5, 1, 2), (6, 1, 3)),
        (6, 1, 3),
    ]
    assert (loop.step, loop.epoch, loop.total_steps) == (6, 2, 6)


def test_random_numbers_and_modes_of_others_do_not_disturb_training(
    moons: TrainingSetup, make_mlp: Callable[[], nn.Sequential]
) -> None:
    undisturbed, model = make_mlp(), make_mlp()
    finish(TrainingLoop(undisturbed, moons))
    loop = TrainingLoop(model, moons)
    torch.manual_seed(99)
    expected = torch.rand(20)
    torch.manual_seed(99)
    drawn = []
    for i, _ in enumerate(loop.steps()):
        with loop.random.suspended():
            drawn.append(torch.rand(1))
        model.train(i % 2 == 0)
    assert_equal_weights(model, undisturbed)
    assert torch.equal(torch.cat(drawn), expected[: len(drawn)])
    assert torch.equal(torch.rand(1), expected[len(drawn) : len(drawn) + 1])


def test_a_loss_that_is_nan_stops_before_it_spoils_the_weights(
    moons: TrainingSetup, make_mlp: Callable[[], nn.Sequential]
) -> None:
    model = make_mlp()
    setup = replace(moons, optimizer="optim.SGD", optimizer_params={"lr": 1e30}, epochs=50)
    loop = TrainingLoop(model, setup)
    before: dict[str, torch.Tensor] = {}
    with pytest.raises(Diverged, match=r"The loss became (nan|inf) at step \d+"):
        for _ in loop.steps():
            before = copy.deepcopy({n: p.detach() for n, p in model.named_parameters()})
    assert before
    for name, parameter in model.named_parameters():
        assert torch.equal(parameter, before[name])


def test_without_validation_samples_the_validation_figures_are_nan(
    moons: TrainingSetup, make_mlp: Callable[[], nn.Sequential]
) -> None:
    setup = replace(moons, epochs=1, data=replace(moons.data, validation_fraction=0.0))
    (row,) = finish(TrainingLoop(make_mlp(), setup)).metrics.epochs
    assert row.validation_loss != row.validation_loss
    assert row.validation_accuracy != row.validation_accuracy
    assert 0 <= row.train_accuracy <= 1


def test_a_frozen_block_stays_as_it_is(
    moons: TrainingSetup, make_mlp: Callable[[], nn.Sequential]
) -> None:
    model = make_mlp()
    model[0].requires_grad_(False)
    weight = model.get_parameter("0.weight")
    before = weight.clone()
    finish(TrainingLoop(model, moons))
    assert torch.equal(weight, before)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"batch_size": 0}, "batch_size is 0"),
        ({"epochs": 0}, "epochs is 0"),
        ({"device": "cuda:99"}, "no device"),
        ({"optimizer": "optim.None"}, "no optimizer"),
        ({"loss": "nn.None"}, "no loss"),
        ({"data": TrainingSetup().data.__class__("none")}, "no data set"),
    ],
)
def test_a_set_up_that_cannot_be_trained_is_refused_in_words(
    moons: TrainingSetup, make_mlp: Callable[[], nn.Sequential], change: dict, words: str
) -> None:
    with pytest.raises(LabError, match=words):
        TrainingLoop(make_mlp(), replace(moons, **change))


def test_measuring_a_run_takes_its_share_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr("engine.training.figures.pace.perf_counter", lambda: now)
    budget = Budget.of_run()
    assert budget.takes(ALWAYS_MEASURED_STEPS - 1)
    budget.spend(0.0)
    assert not budget.takes(ALWAYS_MEASURED_STEPS)
    now += MEASURE_INTERVAL_S + 1e-6  # it cost nothing: then one row per interval
    assert budget.takes(ALWAYS_MEASURED_STEPS)
    budget.spend(0.0003)
    now += 0.149  # 0.3 ms of 150
    assert not budget.takes(ALWAYS_MEASURED_STEPS + 1)
    now += 0.002
    assert budget.takes(ALWAYS_MEASURED_STEPS + 1)


def test_a_measured_step_keeps_the_norm_of_its_gradients_and_not_them(
    moons: TrainingSetup, make_mlp: Callable[[], nn.Sequential], monkeypatch: pytest.MonkeyPatch
) -> None:
    spent: list[float] = []
    monkeypatch.setattr(Budget, "spend", lambda budget, seconds: spent.append(seconds))
    model = make_mlp()
    loop = TrainingLoop(model, moons)
    for _ in islice(loop.steps(), 1):
        pass
    assert loop.current is not None
    (norm,) = loop.current.norms
    assert spent == [loop.current.measuring_s] and spent[0] > 0
    plain = nn.utils.get_total_norm([p.grad for p in model.parameters() if p.grad is not None])
    assert norm.ndim == 0 and float(norm) == pytest.approx(float(plain), rel=1e-6)
    loop.flush()
    assert loop.metrics.history[0].gradient_norm == float(norm)
    loop.close()


class Event:
    """Stands for torch.cuda.Event."""

    def elapsed_time(self, end: Event) -> float:
        return 7.0


def test_of_a_step_that_was_left_in_between_the_events_of_cuda_tell_no_time(
    moons: TrainingSetup, make_mlp: Callable[[], nn.Sequential], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.training.loop.now_on", lambda device: Event())
    loop = TrainingLoop(make_mlp(), moons)
    running = loop.steps()
    for by in ("step", "step", "phase"):
        loop.by = by
        next(running)
    while loop.step < 3:
        loop.by = "phase"
        next(running)
    monkeypatch.setattr(loop.looks, "begin", lambda step, by_hand: None)
    while loop.step < 4:
        next(running)
    loop.flush()
    times = [row.step_ms for row in loop.metrics.history]
    assert all(map(isnan, times[:3])) and times[3:] == [7.0]  # looks are in the first three
    running.close()
    loop.close()


def test_after_the_first_thousand_steps_fast_ones_get_no_row_but_count(
    moons: TrainingSetup, make_mlp: Callable[[], nn.Sequential], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.training.figures.pace.ALWAYS_MEASURED_STEPS", 2)
    monkeypatch.setattr("engine.training.figures.pace.MEASURE_INTERVAL_S", 1e9)
    setup = replace(moons, epochs=1)
    loop = finish(TrainingLoop(make_mlp(), setup))
    assert [row.step for row in loop.metrics.history] == [1, 2]
    monkeypatch.undo()
    whole = finish(TrainingLoop(make_mlp(), setup))
    assert [row.step for row in whole.metrics.history] == [1, 2, 3]
    assert loop.metrics.epochs == whole.metrics.epochs
