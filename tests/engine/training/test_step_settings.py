"""Optimizers, schedulers, accumulation, clipping and autocast against loops written by hand."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from itertools import islice
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.optim import lr_scheduler

from engine.datasets.load import load_dataset
from engine.project import catalogue
from engine.project.document import (
    CHAINED,
    COMPOSED,
    SEQUENTIAL,
    DataSetup,
    Loading,
    Schedule,
    SchedulePart,
    TrainingSetup,
    Transform,
    replace,
)
from engine.project.edits.schedule import new_part, part_kinds
from engine.system.errors import LabError
from engine.training.checkpoints import checkpoint_files
from engine.training.loop import TrainingLoop
from engine.training.objectives.objective import Outcome, joined
from engine.training.run import TrainingRun

MOONS = TrainingSetup(data=DataSetup("moons", {"samples": 100}), batch_size=32, epochs=3, seed=7)
SGD = replace(MOONS, optimizer="optim.SGD", optimizer_params={"lr": 0.1, "momentum": 0.9})
WHOLE_MATRICES = ["optim.Muon"]
"""Optimizers that take no biases."""
SCHEDULES = {
    "StepLR": {"step_size": 2, "gamma": 0.5},
    "MultiStepLR": {"milestones": (1, 4)},
    "ConstantLR": {"total_iters": 2},
    "LinearLR": {"start_factor": 0.25, "total_iters": 3},
    "ExponentialLR": {"gamma": 0.75},
    "PolynomialLR": {"total_iters": 7, "power": 2.0},
    "LambdaLR": {"lr_lambda": "1 / sqrt(1 + step) if step < 4 else max(0.1, 0.5 - 0.1 * step)"},
    "MultiplicativeLR": {"lr_lambda": "0.5 if step == 3 else 1 / sqrt(1.0625)"},
    "CosineAnnealingLR": {"T_max": 4},
    "CosineAnnealingWarmRestarts": {"T_0": 2},
    "OneCycleLR": {"max_lr": 0.5},
    "CyclicLR": {"base_lr": 0.01, "max_lr": 0.5, "step_size_up": 2},
    "ReduceLROnPlateau": {"patience": 0, "threshold": 1.0, "factor": 0.5},
}


def mlp(bias: bool = True) -> nn.Sequential:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(2, 16, bias), nn.ReLU(), nn.Linear(16, 2, bias))


def with_functions(params: Mapping[str, Any]) -> dict[str, Any]:
    functions = {
        name: eval(f"lambda {variable}: {params[name]}", {"sqrt": math.sqrt})
        for name, variable in (("lr_lambda", "step"), ("scale_fn", "x"))
        if name in params
    }
    return {**params, **functions}


def by_hand(model: nn.Module, setup: TrainingSetup) -> tuple[list[float], list[float]]:
    """Trains `model`; returns the learning rate and the norm of the gradients of each step."""
    torch.manual_seed(setup.seed)
    dataset = load_dataset(setup.data)
    optimizer = getattr(torch.optim, setup.optimizer[6:])(
        model.parameters(), **setup.optimizer_params
    )
    schedule, scheduler = setup.schedule, None
    per_epoch = -(-dataset.batches(setup.batch_size) // setup.accumulate)
    if schedule.kind:
        params = with_functions(schedule.params)
        if schedule.kind.endswith("OneCycleLR"):
            params["total_steps"] = setup.epochs * (1 if schedule.each == "epoch" else per_epoch)
        times = setup.epochs * (1 if schedule.each == "epoch" else per_epoch)
        if schedule.kind.endswith("CosineAnnealingLR"):
            params = {"T_max": times - schedule.warmup, **params}
        rises = []
        if schedule.warmup:
            start, total = schedule.warmup_from, schedule.warmup
            rises = [lr_scheduler.LinearLR(optimizer, start, total_iters=total)]
        if schedule.parts:
            params["schedulers"] = composed(schedule, optimizer, times)
            params["optimizer"] = optimizer
        if isinstance(params.get("milestones"), int):
            params["milestones"] = [params["milestones"]]
        arguments = () if schedule.parts else (optimizer,)
        scheduler = getattr(lr_scheduler, schedule.kind.split(".")[1])(*arguments, **params)
        if rises:
            both = [*rises, scheduler]
            scheduler = lr_scheduler.SequentialLR(optimizer, both, [schedule.warmup])
    half = setup.precision != "float32"
    context = torch.autocast("cpu", getattr(torch, setup.precision)) if half else nullcontext()
    scaler = torch.amp.GradScaler("cpu", enabled=setup.precision == "float16")
    rates, norms = [], []
    for epoch in range(setup.epochs):
        model.train()
        numbers = iter(range(dataset.batches(setup.batch_size)))
        losses = 0.0
        while group := list(islice(numbers, setup.accumulate)):
            batches = [dataset.train_batch(i, setup.batch_size, setup.seed, epoch) for i in group]
            rates.append(optimizer.param_groups[0]["lr"])
            if isinstance(optimizer, torch.optim.LBFGS):
                asked: list[float] = []

                def closure(x=batches[0][0], y=batches[0][1], asked=asked):
                    optimizer.zero_grad()
                    loss = cross_entropy(model(x), y)
                    loss.backward()
                    grads = [p.grad for p in model.parameters() if p.grad is not None]
                    asked.append(torch.nn.utils.get_total_norm(grads).item())
                    return loss

                optimizer.step(closure)
                norms.append(asked[0])
                continue
            optimizer.zero_grad()
            for x, y in batches:
                with context:
                    loss = cross_entropy(model(x), y)
                losses += loss.item() * len(y)
                scaler.scale(loss / setup.accumulate).backward()
            scaler.unscale_(optimizer)
            norm = torch.nn.utils.get_total_norm(
                [p.grad for p in model.parameters() if p.grad is not None]
            )
            norms.append(norm.item())
            if setup.clip_norm:
                torch.nn.utils.clip_grad_norm_(model.parameters(), setup.clip_norm)
            if setup.clip_value:
                torch.nn.utils.clip_grad_value_(model.parameters(), setup.clip_value)
            scaler.step(optimizer)
            scaler.update()
            if scheduler is not None and schedule.each == "step":
                scheduler.step()
        if scheduler is not None and schedule.each == "epoch":
            if isinstance(scheduler, lr_scheduler.ReduceLROnPlateau):
                model.eval()
                with torch.no_grad(), context:
                    scheduler.step(cross_entropy(model(dataset.x_val), dataset.y_val).item())
            else:
                scheduler.step()
    return rates, norms


def composed(schedule: Schedule, optimizer: torch.optim.Optimizer, times: int) -> list:
    """The schedulers of a SequentialLR or a ChainedScheduler."""
    made = []
    for part in schedule.parts:
        params = with_functions(part.params)
        if part.kind.endswith("CosineAnnealingLR"):  # the last one
            params["T_max"] = max(1, times - (schedule.milestones or (0,))[-1])
        made.append(getattr(lr_scheduler, part.kind.split(".")[1])(optimizer, **params))
    return made


def finish(loop: TrainingLoop) -> TrainingLoop:
    for _ in loop.steps():
        pass
    loop.close()
    return loop


def check_as_by_hand(setup: TrainingSetup, bias: bool = True) -> TrainingLoop:
    expected = mlp(bias)
    rates, norms = by_hand(expected, setup)
    loop = finish(TrainingLoop(mlp(bias), setup))
    for found, wanted in zip(loop.model.parameters(), expected.parameters(), strict=True):
        assert torch.equal(found, wanted)
    rows = loop.metrics.history
    assert [row.learning_rate for row in rows] == rates
    if norms:
        assert [row.gradient_norm for row in rows] == pytest.approx(norms, rel=1e-5)
    return loop


@pytest.mark.parametrize("optimizer", sorted({*catalogue.optimizers()} - {"optim.SparseAdam"}))
def test_every_optimizer(optimizer: str) -> None:
    setup = replace(MOONS, optimizer=optimizer, optimizer_params={})
    check_as_by_hand(setup, bias=optimizer not in WHOLE_MATRICES)


def test_sparse_gradients() -> None:
    """SparseAdam, on a model whose gradients are all sparse."""

    def table() -> nn.EmbeddingBag:
        torch.manual_seed(1)
        return nn.EmbeddingBag(8, 2, sparse=True)

    class Indexed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = table()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.table((x > 0).long())

    setup = replace(MOONS, optimizer="optim.SparseAdam", optimizer_params={"lr": 0.1})
    expected, found = Indexed(), Indexed()
    dataset = load_dataset(setup.data)
    optimizer = torch.optim.SparseAdam(expected.parameters(), lr=0.1)
    for epoch in range(3):
        for i in range(3):
            x, y = dataset.train_batch(i, 32, 7, epoch)
            optimizer.zero_grad()
            cross_entropy(expected(x), y).backward()
            optimizer.step()
    finish(TrainingLoop(found, setup))
    assert torch.equal(found.table.weight, expected.table.weight)


@pytest.mark.parametrize("each", ["epoch", "step"])
@pytest.mark.parametrize("kind", SCHEDULES)
def test_every_scheduler(kind: str, each) -> None:
    if kind == "ReduceLROnPlateau" and each == "step":
        return  # refused, below
    schedule = Schedule(f"lr_scheduler.{kind}", SCHEDULES[kind], each)
    loop = check_as_by_hand(replace(SGD, schedule=schedule))
    assert len({row.learning_rate for row in loop.metrics.history}) > 1


@pytest.mark.parametrize(
    "function", [{"scale_fn": "1 / x"}, {"scale_fn": "0.5 ** x", "scale_mode": "iterations"}]
)
def test_the_cycles_of_a_rate_get_smaller_as_an_expression_says(function: dict[str, str]) -> None:
    params = {**SCHEDULES["CyclicLR"], **function}
    schedule = Schedule("lr_scheduler.CyclicLR", params, "step")
    loop = check_as_by_hand(replace(SGD, schedule=schedule))
    assert len({row.learning_rate for row in loop.metrics.history}) >= 4


WARMED = sorted(SCHEDULES.keys() - {"OneCycleLR", "ReduceLROnPlateau", "CyclicLR"})


@pytest.mark.parametrize("each", ["epoch", "step"])
@pytest.mark.parametrize("kind", WARMED)
def test_every_scheduler_after_a_warm_up(kind: str, each) -> None:
    warmup = 1 if each == "epoch" else 4
    schedule = Schedule(f"lr_scheduler.{kind}", SCHEDULES[kind], each, warmup, 0.1)
    setup = replace(SGD, schedule=schedule)
    loop = check_as_by_hand(setup)
    assert loop.metrics.history[0].learning_rate == pytest.approx(0.01)
    for pieces in (3, 6, 11):  # before, at and after the end of the warm-up
        check_resumed(setup, pieces)


PARTS = [
    Schedule(SEQUENTIAL, {"milestones": (1, 2)}, parts=(
        SchedulePart("lr_scheduler.LinearLR", {"start_factor": 0.25, "total_iters": 4}),
        SchedulePart("lr_scheduler.MultiplicativeLR", {"lr_lambda": "0.9 ** step"}),
        SchedulePart("lr_scheduler.CosineAnnealingLR"),
    )),
    Schedule(SEQUENTIAL, {"milestones": 2}, "step", parts=(
        SchedulePart("lr_scheduler.ConstantLR", {"factor": 0.1, "total_iters": 9}),
        SchedulePart("lr_scheduler.MultiStepLR", {"milestones": (1, 3)}),
    )),
    Schedule(CHAINED, {}, "step", parts=(
        SchedulePart("lr_scheduler.LinearLR", {"start_factor": 0.25, "total_iters": 3}),
        SchedulePart("lr_scheduler.CosineAnnealingLR"),
        SchedulePart("lr_scheduler.LambdaLR", {"lr_lambda": "1 / (1 + step)"}),
    )),
    Schedule(CHAINED, {}, parts=(
        SchedulePart("lr_scheduler.StepLR", {"step_size": 1, "gamma": 0.5}),
        SchedulePart("lr_scheduler.MultiplicativeLR", {"lr_lambda": "0.9"}),
    )),
]  # fmt: skip


@pytest.mark.parametrize("schedule", PARTS, ids=lambda s: f"{s.kind[13:]} {s.each}")
def test_schedulers_that_run_others(schedule: Schedule) -> None:
    setup = replace(SGD, schedule=schedule)
    loop = check_as_by_hand(setup)
    assert len({row.learning_rate for row in loop.metrics.history}) > 1
    for pieces in (1, 3, 6, 11):
        check_resumed(setup, pieces)


def test_every_scheduler_can_be_run_by_another_one_or_says_why_not() -> None:
    for kind in catalogue.schedulers():
        parts = (SchedulePart("lr_scheduler.StepLR", {"step_size": 1}), new_part(kind))
        for schedule in (Schedule(SEQUENTIAL, {"milestones": 2}), Schedule(CHAINED)):
            setup = replace(SGD, schedule=replace(schedule, parts=parts))
            if kind in part_kinds():
                finish(TrainingLoop(mlp(), setup))
            else:
                with pytest.raises(LabError, match=f"cannot run {kind[13:]}, which"):
                    TrainingLoop(mlp(), setup)


@pytest.mark.parametrize(("each", "last"), [("step", 8), ("epoch", 2)])
def test_a_cosine_without_a_length_ends_with_the_run(each, last: int) -> None:
    schedule = Schedule("lr_scheduler.CosineAnnealingLR", {}, each, warmup=1)
    loop = check_as_by_hand(replace(SGD, schedule=schedule))
    rates = [row.learning_rate for row in loop.metrics.history]
    assert loop.learning_rate == pytest.approx(0.0, abs=1e-12) and rates[-1] > 0
    assert max(rates) == pytest.approx(0.1)


@pytest.mark.parametrize(
    "expression",
    ["step.real", "__import__('os')", "[step]", "'x'", "open(step)", "(lambda: 1)()", "1 +", "x"],
)
def test_an_expression_can_compute_with_the_step_only(expression: str) -> None:
    schedule = Schedule("lr_scheduler.LambdaLR", {"lr_lambda": expression})
    with pytest.raises(LabError, match="lr_lambda"):
        TrainingLoop(mlp(), replace(SGD, schedule=schedule))


def test_an_expression_of_cycles_has_the_variable_x() -> None:
    schedule = Schedule("lr_scheduler.CyclicLR", {**SCHEDULES["CyclicLR"], "scale_fn": "1 / step"})
    with pytest.raises(LabError, match="scale_fn cannot have 'step'") as raised:
        TrainingLoop(mlp(), replace(SGD, schedule=schedule))
    assert raised.value.hint.startswith("Use x, numbers, and sqrt")


def test_every_scheduler_of_the_catalogue_is_tried() -> None:
    known = {f"lr_scheduler.{kind}" for kind in SCHEDULES} | {*COMPOSED}
    of_torch = {f"lr_scheduler.{name}" for name in lr_scheduler.__all__} - {
        "lr_scheduler.LRScheduler"
    }
    assert known == {*catalogue.schedulers()} == of_torch


def test_every_optimizer_of_torch_is_offered() -> None:
    of_torch = {f"optim.{name}" for name, cls in vars(torch.optim).items() if is_optimizer(cls)}
    assert {*catalogue.optimizers()} == of_torch


def is_optimizer(found: object) -> bool:
    is_class = isinstance(found, type) and issubclass(found, torch.optim.Optimizer)
    return is_class and found is not torch.optim.Optimizer


@pytest.mark.parametrize(
    "changes",
    [
        {"accumulate": 2},  # 3 batches: a step of 2, then one of 1
        {"accumulate": 5},
        {"clip_norm": 0.05},
        {"clip_value": 0.01},
        {"clip_norm": 0.05, "clip_value": 0.01, "accumulate": 2},
        {"precision": "bfloat16"},
        {"precision": "float16"},
        {"precision": "float16", "clip_norm": 0.05, "accumulate": 2},
    ],
)
def test_accumulation_clipping_and_precision(changes: dict) -> None:
    plain = finish(TrainingLoop(mlp(), SGD))
    loop = check_as_by_hand(replace(SGD, **changes))
    assert loop.total_steps == loop.step == 3 * -(-3 // loop.setup.accumulate)
    first, second = (each.model.get_parameter("0.weight") for each in (plain, loop))
    assert not torch.equal(first, second)


@pytest.mark.parametrize(
    "changes",
    [
        {"loading": Loading(balanced=True, drop_last=True)},
        {"loading": Loading(shuffle=False)},
        {"loading": Loading(workers=0)},
        {"loading": Loading(workers=2, prefetch_factor=1)},
        {"transforms": (Transform("GaussianNoise", {"sigma": 0.2}), Transform("Normalize"))},
    ],
)
def test_batches_and_transforms(changes: dict) -> None:
    setup = replace(SGD, data=replace(SGD.data, **changes))
    loop = check_as_by_hand(setup)
    batches = 2 if setup.data.loading.drop_last else 3  # of 80 samples
    assert loop.total_steps == loop.step == 3 * batches
    check_resumed(setup, 5)


def test_the_loader_draws_no_number_of_the_run() -> None:
    loaded = replace(SGD, data=replace(SGD.data, loading=Loading(workers=1)))
    torch.manual_seed(3)
    finish(TrainingLoop(mlp(), SGD))
    expected = torch.rand(3)
    torch.manual_seed(3)
    finish(TrainingLoop(mlp(), loaded))
    assert torch.equal(torch.rand(3), expected)


def test_a_set_without_one_whole_batch_is_refused() -> None:
    data = replace(SGD.data, loading=Loading(drop_last=True))
    finish(TrainingLoop(mlp(), replace(SGD, data=data, batch_size=80)))
    with pytest.raises(LabError, match="80 samples make no batch of 81"):
        TrainingLoop(mlp(), replace(SGD, data=data, batch_size=81))


def test_the_figures_of_a_step_are_means_over_its_samples() -> None:
    def outcome(loss: float, right: list[bool]) -> Outcome:
        scores = torch.tensor([[0.0, 1.0] if is_right else [1.0, 0.0] for is_right in right])
        figures = {"f1": torch.tensor(loss + 1)}
        labels = torch.ones(len(right), dtype=torch.int64)
        loss_of_batch = torch.tensor(loss, requires_grad=True)
        return Outcome(loss_of_batch, len(right), (scores, labels), figures)

    of_both = joined([outcome(0.5, [True, False, True]), outcome(2.5, [True])])
    assert (of_both.loss.item(), of_both.samples) == (1.0, 4)
    assert not of_both.loss.requires_grad
    assert of_both.figures["f1"].item() == 2.0
    assert of_both.scores is not None
    assert of_both.scores[0].argmax(1).tolist() == [1, 0, 1, 1]
    assert of_both.scores[1].tolist() == [1, 1, 1, 1]


# -- resumed --------------------------------------------------------------------------------------


def check_resumed(setup: TrainingSetup, pieces: int, bias: bool = True) -> None:
    straight = finish(TrainingLoop(mlp(bias), setup))
    killed = TrainingLoop(mlp(bias), setup)
    steps = killed.steps()
    for _ in range(pieces):
        next(steps)
    steps.close()
    path = checkpoint_files.save(killed.checkpoint("run"))
    resumed = TrainingLoop(mlp(bias), setup)
    resumed.restore(checkpoint_files.load(path))
    finish(resumed)
    assert resumed.step == straight.step
    for found, wanted in zip(resumed.model.parameters(), straight.model.parameters(), strict=True):
        assert torch.equal(found, wanted)
    rates, expected = (
        [row.learning_rate for row in loop.metrics.history] for loop in (resumed, straight)
    )
    assert rates == expected


@pytest.mark.parametrize("optimizer", sorted({*catalogue.optimizers()} - {"optim.SparseAdam"}))
def test_every_optimizer_is_resumed_bit_for_bit(optimizer: str) -> None:
    setup = replace(MOONS, optimizer=optimizer, optimizer_params={})
    check_resumed(setup, 5, bias=optimizer not in WHOLE_MATRICES)


@pytest.mark.parametrize("pieces", [3, 6])  # before the end of an epoch, and in the next one
@pytest.mark.parametrize("each", ["epoch", "step"])
@pytest.mark.parametrize("kind", sorted(SCHEDULES.keys() - {"ReduceLROnPlateau"}))
def test_every_scheduler_is_resumed_bit_for_bit(kind: str, each, pieces: int) -> None:
    check_resumed(
        replace(SGD, schedule=Schedule(f"lr_scheduler.{kind}", SCHEDULES[kind], each)), pieces
    )


@pytest.mark.parametrize("pieces", [1, 3, 4, 6, 9])
def test_a_plateau_is_resumed_bit_for_bit(pieces: int) -> None:
    schedule = Schedule("lr_scheduler.ReduceLROnPlateau", SCHEDULES["ReduceLROnPlateau"])
    check_resumed(replace(SGD, schedule=schedule), pieces)


@pytest.mark.parametrize("pieces", [1, 2, 3, 7])
def test_the_other_settings_are_resumed_bit_for_bit(pieces: int) -> None:
    check_resumed(replace(SGD, accumulate=2, clip_norm=0.1, precision="float16"), pieces)


# -- changed while it runs ------------------------------------------------------------------------


def test_a_new_rate_keeps_what_the_schedule_has_done() -> None:
    schedule = Schedule("lr_scheduler.StepLR", {"step_size": 1, "gamma": 0.5})
    loop = TrainingLoop(mlp(), replace(SGD, schedule=schedule))
    steps = loop.steps()
    for _ in range(5):  # an epoch: 3 steps, a batch of validation, the end
        next(steps)
    assert loop.learning_rate == 0.05
    loop.adjust(replace(loop.setup, optimizer_params={"lr": 0.4, "momentum": 0.5}))
    assert (loop.learning_rate, loop.optimizer.param_groups[0]["momentum"]) == (0.2, 0.5)
    for _ in range(5):
        next(steps)
    assert loop.learning_rate == 0.1
    steps.close()
    later = replace(SGD, schedule=schedule, optimizer_params={"lr": 0.8, "momentum": 0.5})
    resumed = TrainingLoop(mlp(), later)
    resumed.restore(loop.checkpoint("run"))
    assert resumed.learning_rate == 0.2


def test_a_cosine_goes_on_from_a_new_rate() -> None:
    """CosineAnnealingLR computes a rate from the one before and from the first."""
    schedule = Schedule("lr_scheduler.CosineAnnealingLR", {"T_max": 3})
    changed = TrainingLoop(mlp(), replace(SGD, schedule=schedule))
    steps = changed.steps()
    for _ in range(5):
        next(steps)
    changed.adjust(replace(SGD, optimizer_params={"lr": 0.4, "momentum": 0.9}))
    for _ in steps:
        pass
    whole = finish(
        TrainingLoop(mlp(), replace(SGD, schedule=schedule, optimizer_params={"lr": 0.4}))
    )
    rates, expected = (
        [row.learning_rate for row in loop.metrics.history] for loop in (changed, whole)
    )
    assert rates[:3] == [0.1] * 3
    assert rates[3:] == pytest.approx(expected[3:])


# -- refused --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"schedule": Schedule("lr_scheduler.New")}, r"no scheduler 'lr_scheduler\.New'"),
        ({"schedule": Schedule("lr_scheduler.StepLR")}, "step_size"),
        (
            {"schedule": Schedule("lr_scheduler.ReduceLROnPlateau", {}, "step")},
            "ReduceLROnPlateau looks at the loss of an epoch",
        ),
        (
            {
                "schedule": Schedule(
                    "lr_scheduler.OneCycleLR", {"max_lr": 1.0, "total_steps": 8}, "step"
                )
            },
            "ends after 8 steps, and the run takes 9",
        ),
        (
            {"schedule": Schedule("lr_scheduler.MultiStepLR", {"milestones": "early"})},
            "milestones",
        ),
        (
            {"schedule": Schedule("lr_scheduler.OneCycleLR", {"max_lr": 1.0}, "step", 2)},
            "OneCycleLR cannot have a warm-up",
        ),
        (
            {"schedule": Schedule("lr_scheduler.LambdaLR", {"lr_lambda": "1 / step"})},
            "lr_lambda at step 0: ",
        ),
        ({"optimizer": "optim.LBFGS", "precision": "float16"}, "LBFGS cannot train with float16"),
        ({"optimizer": "optim.Muon"}, "Muon"),
        ({"accumulate": 0}, "accumulate is 0"),
    ],
)
def test_what_cannot_be_is_refused_before_a_step(changes: dict, words: str) -> None:
    model = mlp()
    with pytest.raises(LabError, match=words):
        TrainingLoop(model, replace(MOONS, **changes))


def test_a_cycle_needs_the_length_of_the_run() -> None:
    class Endless:
        batches_per_epoch = None
        generators = ()

    setup = replace(MOONS, schedule=Schedule("lr_scheduler.OneCycleLR", {"max_lr": 1.0}, "step"))
    with pytest.raises(LabError, match="the data does not say how many batches"):
        TrainingLoop(mlp(), setup, Endless())  # pyright: ignore[reportArgumentType]


STEP = Schedule("lr_scheduler.StepLR", {"step_size": 2})


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"schedule": Schedule()}, "another schedule of the learning rate"),
        ({"accumulate": 2}, "another number of batches a step: 1, now 2"),
        ({"precision": "bfloat16"}, "another precision: float32, now bfloat16"),
    ],
)
def test_a_checkpoint_of_other_settings_is_refused(changes: dict, words: str) -> None:
    setup = replace(SGD, schedule=STEP)
    saved = TrainingLoop(mlp(), setup).checkpoint("run")
    with pytest.raises(LabError, match=words):
        TrainingRun(TrainingLoop(mlp(), replace(setup, **changes)), saved)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda fields: fields.update(scheduler=3), "scheduler: numbers by name are expected"),
        (lambda fields: fields["scheduler"].update(gamma="x"), "scheduler.gamma: a number is"),
        (lambda fields: fields["scheduler"].update({1: 2}), "scheduler: the name of an entry is 1"),
        (lambda fields: fields["scheduler"].pop("last_epoch"), "scheduler: it has "),
        (lambda fields: fields["scheduler"].update(base_lrs=1.0), "base_lrs: it has another type"),
        (lambda fields: fields["scaler"].update(scale=2.0), "scaler: its entries are not those"),
        (
            lambda fields: fields["optimizer"]["param_groups"][0].update(lr="high"),
            r"param_groups\[0\].lr: it is 'high'",
        ),
        (
            lambda fields: fields["optimizer"].update(param_groups=[]),
            "param_groups: one group is expected",
        ),
    ],
)
def test_a_damaged_state_is_named_and_the_model_stays(
    change: Callable[[dict], object], words: str
) -> None:
    setup = replace(SGD, schedule=STEP)
    loop = TrainingLoop(mlp(), setup)
    next(steps := loop.steps())
    steps.close()
    path = checkpoint_files.save(loop.checkpoint("run"))
    fields = torch.load(path, weights_only=True)
    change(fields)
    torch.save(fields, path)
    model = mlp()
    with pytest.raises(LabError, match=words):
        TrainingRun(TrainingLoop(model, setup), checkpoint_files.load(path))
    assert torch.equal(model.get_parameter("0.weight"), mlp().get_parameter("0.weight"))


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ({"d": torch.zeros(3)}, "d: 82 numbers are expected"),
        ({"old_dirs": 5}, "old_dirs: 82 numbers are expected"),
        ({"old_stps": [None]}, "old_stps: 82 numbers are expected"),
    ],
)
def test_a_damaged_state_of_lbfgs_is_named(entries: dict, words: str) -> None:
    setup = replace(MOONS, optimizer="optim.LBFGS")
    loop = TrainingLoop(mlp(), setup)
    next(steps := loop.steps())
    steps.close()
    saved = loop.checkpoint("run")
    saved.optimizer["state"][0].update(entries)
    with pytest.raises(LabError, match=words):
        TrainingLoop(mlp(), setup).restore(saved)
