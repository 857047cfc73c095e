"""Metrics that a step returns as objects: updated per batch, computed and reset per epoch."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from sklearn.metrics import r2_score
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from engine.project.document import TrainingSetup
from engine.restoring.held_objects import reached
from engine.system.errors import LabError
from engine.training.checkpoints import checkpoint_files
from engine.training.loop import TrainingLoop
from engine.training.objectives.code_objective import CodeObjective, compile_step
from engine.training.objectives.epoch_metrics import EpochMetrics, is_metric
from engine.training.objectives.usual_steps import write_step
from engine.training.run import TrainingRun

SETUP = TrainingSetup(optimizer_params={"lr": 0.05}, batch_size=4, epochs=2, seed=3)


@pytest.fixture(autouse=True)
def data_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("TENSORLAB_DATA_DIR", str(tmp_path / "data"))


class Largest:
    """The largest error of an epoch, and in how many batches."""

    def __init__(self) -> None:
        self.errors, self.batches, self.title = [], 99, "largest"  # as if used before

    def reset(self) -> None:
        self.errors, self.batches = [], 0

    def update(self, error) -> None:
        self.errors.append(error.detach().abs().max())
        self.batches += 1

    def compute(self):
        return {"largest": max(self.errors), "batches": self.batches}


def data(targets: int = 1):
    made = torch.Generator().manual_seed(1)
    x = torch.randn(22, 3, generator=made)
    y = 1000 + x[:, :targets] * 3 + torch.randn(22, targets, generator=made)
    return x, y


def regression(targets: int = 1):
    torch.manual_seed(0)
    return nn.Linear(3, targets)


def objective(model, source: str, targets: int = 1, **variables) -> CodeObjective:
    step = compile_step(source, model, variables)
    x, y = data(targets)
    return CodeObjective(step, (x, y), (x[:7], y[:7]), SETUP.batch_size, reached=reached(step))


def by_hand(targets: int = 1):
    """Per epoch: predictions and targets of its batches, and of the validation data."""
    model, told = regression(targets), []
    x, y = data(targets)
    torch.manual_seed(SETUP.seed)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    loader = DataLoader(TensorDataset(x, y), SETUP.batch_size, shuffle=True)
    for _ in range(SETUP.epochs):
        seen = []
        for xs, ys in loader:
            optimizer.zero_grad()
            prediction = model(xs)
            F.mse_loss(prediction, ys).backward()
            optimizer.step()
            seen.append((prediction.detach(), ys))
        told.append((seen, (model(x[:7]).detach(), y[:7])))
    return told


STEP = """
def step(batch):
    x, y = batch
    error = model(x) - y
    largest.update(error)
    return {"loss": error.square().mean(), "error": largest}
"""


@pytest.mark.parametrize("targets", [1, 2])
def test_the_written_regression_has_r2_of_the_whole_epoch(targets: int) -> None:
    model = regression(targets)
    source = write_step(model, tuple(part[:4] for part in data(targets))).source
    made = objective(model, source, targets)
    loop = TrainingLoop(model, SETUP, made)
    list(loop.steps())
    for row, (seen, validation) in zip(loop.metrics.epochs, by_hand(targets), strict=True):
        predictions, ys = (torch.cat(parts) for parts in zip(*seen, strict=True))
        assert row.train_figures["R2"] == pytest.approx(r2_score(ys, predictions), rel=1e-5)
        expected = r2_score(validation[1], validation[0])
        assert row.validation_figures["R2"] == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("found", [2.0, 3.0])
def test_the_r2_of_targets_that_do_not_vary_is_that_of_scikit_learn(found: float) -> None:
    model = regression()
    names: dict[str, Any] = {"torch": torch, "F": F, "model": model}
    exec(write_step(model, tuple(part[:4] for part in data(1))).source, names)
    y, prediction = torch.full((4,), 2.0), torch.full((4,), found)
    names["r2"].update(prediction, y)
    assert names["r2"].compute() == r2_score(y, prediction)


def test_a_metric_is_reset_for_each_epoch_and_validation_counts_for_itself() -> None:
    model = regression()
    loop = TrainingLoop(model, SETUP, objective(model, STEP, largest=Largest()))
    list(loop.steps())
    for row, (seen, (p, y)) in zip(loop.metrics.epochs, by_hand(), strict=True):
        largest = max(float((p - y).abs().max()) for p, y in seen)
        assert row.train_figures == {"largest": pytest.approx(largest, rel=1e-6), "batches": 6}
        expected = pytest.approx(float((p - y).abs().max()), rel=1e-6)
        assert row.validation_figures == {"largest": expected, "batches": 2}
    assert not loop.metrics.history[0].figures  # it has no value for one step


@pytest.mark.parametrize("done", [3, 6], ids=["in the middle", "before its end is told"])
def test_a_run_resumed_within_an_epoch_counts_on(done: int) -> None:
    model = regression()
    whole = TrainingLoop(model, SETUP, objective(model, STEP, largest=Largest()))
    list(whole.steps())
    model = regression()
    first = TrainingLoop(model, SETUP, objective(model, STEP, largest=Largest()))
    steps = first.steps()
    for _ in range(done):
        next(steps)
    path = checkpoint_files.save(first.checkpoint("run"))
    model = regression()
    again = TrainingLoop(model, SETUP, objective(model, STEP, largest=Largest()))
    again.restore(checkpoint_files.load(path))
    list(again.steps())
    assert again.metrics.epochs == whole.metrics.epochs
    other = TrainingLoop(model, SETUP, objective(model, STEP.replace(', "error": largest', "")))
    with pytest.raises(LabError, match="The step has other metrics than before"):
        other.restore(checkpoint_files.load(path))


def test_states_of_other_metrics_are_refused() -> None:
    metrics = EpochMetrics([Largest()])
    own = metrics.states()
    metrics.restore(own._replace(names={"error": 0}))
    assert metrics.states().names == {"error": 0}
    for wrong in (
        own._replace(names={"error": 1}),
        own._replace(values=[*own.values, {}]),
        own._replace(values=[{"wings": 2}]),
    ):
        with pytest.raises(LabError, match="The step has other metrics than before"):
            metrics.restore(wrong)


def test_a_checkpoint_in_the_midst_of_validation_has_what_training_has_counted() -> None:
    model = regression()
    loop = TrainingLoop(model, SETUP, objective(model, STEP, largest=Largest()))
    steps = loop.steps()
    for _ in range(7):  # six steps and one batch of validation
        next(steps)
    assert loop.checkpoint("run").metrics.values[0]["batches"] == 6
    steps.close()
    list(loop.steps())
    assert [row.train_figures["batches"] for row in loop.metrics.epochs] == [6, 6]
    assert [row.validation_figures["batches"] for row in loop.metrics.epochs] == [2, 2]


def test_other_work_between_two_steps_counts_nothing() -> None:
    model, largest = regression(), Largest()
    run = TrainingRun(TrainingLoop(model, SETUP, objective(model, STEP, largest=largest)))
    steps = run.steps()
    next(steps)
    counted = largest.batches
    with run.between_steps():
        run.loop.objective.outcome(data())
        assert largest.batches == counted + 1
    assert largest.batches == counted == len(largest.errors)
    steps.close()


def test_an_optimizer_that_asks_several_times_counts_a_batch_once() -> None:
    setup = TrainingSetup(
        optimizer="optim.LBFGS", optimizer_params={"lr": 0.1}, batch_size=4, epochs=1, seed=3
    )
    model = regression()
    loop = TrainingLoop(model, setup, objective(model, STEP, largest=Largest()))
    list(loop.steps())
    assert loop.metrics.epochs[0].train_figures["batches"] == 6


def test_metrics_are_found_in_what_a_step_reaches() -> None:
    class Trainer:
        def __init__(self) -> None:
            self.seen = {"largest": Largest()}

        def step(self, batch):
            return self.seen

    inner, outer = Largest(), Largest()

    def helper():
        return inner

    def step(batch, given=(outer,)):
        return helper()

    assert {v for v in reached(step) if is_metric(v)} == {outer, inner}
    trainer = Trainer()
    assert trainer.seen["largest"] in list(reached(trainer.step))
    assert not is_metric({}) and not is_metric(Largest) and is_metric(inner)


def fails(self):
    raise ZeroDivisionError("no batch")


@pytest.mark.parametrize(
    ("compute", "words"),
    [
        (fails, "“error” has no value: ZeroDivisionError: no batch"),
        (lambda self: torch.ones(3), r"“error” gives \(3,\); a figure is one number"),
        (lambda self: "much", "“error” gives str"),
    ],
)
def test_a_metric_without_one_number_is_told(monkeypatch, compute, words: str) -> None:
    monkeypatch.setattr(Largest, "compute", compute)
    model = regression()
    loop = TrainingLoop(model, SETUP, objective(model, STEP, largest=Largest()))
    with pytest.raises(LabError, match=words):
        list(loop.steps())


def test_a_metric_made_in_the_step_is_told() -> None:
    model = regression()
    source = STEP.replace("    largest.update", "    largest = Made()\n    largest.update")
    loop = TrainingLoop(model, SETUP, objective(model, source, Made=Largest))
    with pytest.raises(LabError, match=r"“error” was not found .* reads") as caught:
        list(loop.steps())
    assert "outside the step" in caught.value.hint


def test_an_accuracy_of_the_epoch_stands_in_its_place() -> None:
    model = regression()
    source = STEP.replace('"error"', '"accuracy"')

    class Half(Largest):
        def compute(self):
            return 0.5

    loop = TrainingLoop(model, SETUP, objective(model, source, largest=Half()))
    list(loop.steps())
    row = loop.metrics.epochs[0]
    assert (row.train_accuracy, row.validation_accuracy) == (0.5, 0.5)
    assert not row.train_figures and math.isnan(loop.metrics.history[0].accuracy)


def test_metrics_of_torchmetrics_are_those_of_the_whole_epoch() -> None:
    reason = "torchmetrics is optional: pip install torchmetrics"
    torchmetrics = pytest.importorskip("torchmetrics", reason=reason)
    classification = torchmetrics.classification
    kinds = {
        "macro": classification.MulticlassAccuracy(3),
        "AUROC": classification.MulticlassAUROC(3),  # keeps lists
    }
    both = torchmetrics.MetricCollection(kinds)
    source = """
def step(batch):
    x, y = batch
    prediction = model(x)
    both.update(prediction, y)
    return {"loss": F.cross_entropy(prediction, y), "both": both}
"""
    x, y = torch.randn(22, 3, generator=torch.Generator().manual_seed(4)), torch.arange(22) % 3

    def loop_of() -> TrainingLoop:
        torch.manual_seed(0)
        model = nn.Linear(3, 3)
        step = compile_step(source, model, {"both": both})
        made = CodeObjective(step, (x, y), (x[:7], y[:7]), 4, reached=reached(step))
        return TrainingLoop(model, SETUP, made)

    loop = loop_of()
    list(loop.steps())
    torch.manual_seed(0)
    model = nn.Linear(3, 3)
    torch.manual_seed(SETUP.seed)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    for row in loop.metrics.epochs:
        seen = []
        for xs, ys in DataLoader(TensorDataset(x, y), 4, shuffle=True):
            optimizer.zero_grad()
            seen.append((model(xs), ys))
            F.cross_entropy(*seen[-1]).backward()
            optimizer.step()
        for figures, (p, t) in (
            (row.train_figures, [torch.cat(parts).detach() for parts in zip(*seen, strict=True)]),
            (row.validation_figures, (model(x[:7]).detach(), y[:7])),
        ):
            macro = torchmetrics.functional.accuracy(
                p, t, task="multiclass", num_classes=3, average="macro"
            )
            area = torchmetrics.functional.auroc(p, t, task="multiclass", num_classes=3)
            assert figures["macro"] == pytest.approx(float(macro), abs=1e-6)
            assert figures["AUROC"] == pytest.approx(float(area), abs=1e-6)
    first = loop_of()
    steps = first.steps()
    for _ in range(3):
        next(steps)
    path = checkpoint_files.save(first.checkpoint("run"))
    again = loop_of()
    again.restore(checkpoint_files.load(path))
    list(again.steps())
    assert again.metrics.epochs == loop.metrics.epochs


def test_without_metrics_nothing_is_kept() -> None:
    metrics = EpochMetrics([1, {}, nn.Linear(1, 1)])
    metrics.begin()
    metrics.take(torch.ones(()))
    assert metrics.figures() == {} and metrics.states() == ({}, [])
