"""Lines of a training script by themselves, run beside what the loop of the program does."""

from __future__ import annotations

import textwrap
from itertools import islice
from math import nan
from typing import Any

import pytest
import torch
from torch import nn

from engine.exporting.script_lines import (
    BatchLines,
    after_epoch,
    averaging_parts,
    counted_part,
    execution_lines,
    groups_of,
    lbfgs_lines,
    right_lines,
    scheduler_source,
    step_lines,
    stopping_lines,
)
from engine.project.document import (
    Averaging,
    ParamGroup,
    Schedule,
    SchedulePart,
    Stopping,
    TrainingSetup,
    replace,
)
from engine.protocol import EpochRow
from engine.training.checkpoints.best_epoch import is_over, with_epoch
from engine.training.components.losses import class_scores
from engine.training.components.schedulers import make_scheduler

SETUP = TrainingSetup(optimizer_params={"lr": 0.1})
PLAIN = BatchLines(
    "x, y", "prediction = model(x)", "loss = of(prediction)", "loss = both", "len(y)"
)


def plain(lines: str) -> list[str]:
    return textwrap.dedent(lines).splitlines()


@pytest.mark.parametrize("loss", [nn.BCELoss(), nn.BCEWithLogitsLoss(), nn.CrossEntropyLoss()])
def test_right_predictions_are_those_of_the_loop(loss: nn.Module) -> None:
    names: dict[str, Any] = {"torch": torch}
    exec(right_lines(f"nn.{type(loss).__name__}"), names)
    one = torch.tensor([[0.2], [0.5], [0.7], [-0.1], [0.0], [1.4]])
    images = torch.randn(6, 3, 2, generator=torch.Generator().manual_seed(1))
    for prediction in (one, torch.cat([one, 0.3 - one, one**2], 1), images):
        scores = class_scores(loss, prediction)
        y = torch.arange(scores.argmax(1).numel()).view(scores.argmax(1).shape) % 2
        expected = (scores.argmax(1) == y).sum().item()
        assert names["right_in"](prediction, y) == expected


@pytest.mark.parametrize(
    ("figure", "validates"),
    [("validation loss", True), ("validation loss", False), ("train loss", True),
     ("validation accuracy", True), ("validation accuracy", False), ("train accuracy", True)],
)  # fmt: skip
@pytest.mark.parametrize(("patience", "least"), [(1, 0.0), (2, 0.0), (2, 0.25), (3, 0.25), (0, 0)])
def test_a_script_stops_in_the_epoch_of_the_run(
    figure: Any, validates: bool, patience: int, least: float
) -> None:
    """With figures that fall, rise, stay, and change by just as much as is asked for."""
    stopping = Stopping(figure, patience, least)
    setup = replace(SETUP, stopping=stopping)
    lines = stopping_lines(setup, validates, counts=True)
    assert bool(lines) == bool(patience)
    counted = counted_part(setup, validates)
    is_accuracy = patience and "accuracy" in figure
    of_validation = figure.startswith("validation") and validates
    assert counted == (("validation" if of_validation else "train") if is_accuracy else "")
    source = "for number, (training, validation, right, labels) in enumerate(rows, 1):\n    pass\n"
    source += textwrap.indent(textwrap.dedent(lines), "    ")
    series = ([8, 6, 6, 7, 4, 4, 3, 3, 3, 3], [4, 4, 4], [8, 7, 6, 5, 4, 3], [2, 1, 2, 1, 2, 0],
              [8, 7, 7, 7, 8, 1])  # fmt: skip
    for train, other in zip(series, reversed(series), strict=True):
        rows, best, epoch = [], None, 0
        for epoch, (a, b) in enumerate(zip(train, other, strict=False), 1):
            losses = a / 4, b / 4 if validates else nan
            shares = [1 - a / 8, 1 - b / 8 if validates else nan]
            rows.append((*losses, 8 * (shares[of_validation]), 8))
            row = EpochRow(epoch, epoch, losses[0], shares[0], losses[1], shares[1])
            best = with_epoch(best, row, stopping, nn.ReLU())
            if is_over(best, stopping):
                break
        ended: dict[str, Any] = {"rows": [*rows, *rows], "reference": None, "waited": 0}
        exec(source, ended)
        if is_over(best, stopping):
            assert ended["number"] == epoch
        elif not patience:
            assert ended["number"] == 2 * len(rows)


def test_without_an_accuracy_no_script_stops_by_one() -> None:
    for figure in ("train accuracy", "validation accuracy"):
        setup = replace(SETUP, stopping=Stopping(figure, 2))
        assert stopping_lines(setup, True, counts=False) == ""
    loss = replace(SETUP, stopping=Stopping("train loss", 2))
    assert counted_part(loss, True) == "" and stopping_lines(loss, True, counts=False)
    lines = stopping_lines(setup, True, counts=True)  # an epoch without labels has no accuracy
    names: dict[str, Any] = {"labels": 0, "reference": None, "waited": 5}
    exec("for _ in (1,):\n" + textwrap.indent(textwrap.dedent(lines), "    "), names)
    assert names["reference"] is None


@pytest.mark.parametrize(
    "schedule",
    [
        Schedule("lr_scheduler.StepLR", {"step_size": 2, "gamma": 0.5}, warmup=2),
        Schedule("lr_scheduler.LambdaLR", {"lr_lambda": "1 / (1 + step)"}, "step"),
        Schedule("lr_scheduler.CyclicLR", {"base_lr": 0.01, "max_lr": 0.5, "step_size_up": 1,
                                           "scale_fn": "1 / x"}, "step"),
        Schedule(
            "lr_scheduler.SequentialLR", {"milestones": (2,)},
            parts=(SchedulePart("lr_scheduler.ConstantLR", {"factor": 0.5}),
                   SchedulePart("lr_scheduler.ExponentialLR", {"gamma": 0.9})),
        ),
        Schedule(
            "lr_scheduler.ChainedScheduler", {},
            parts=(SchedulePart("lr_scheduler.StepLR", {"step_size": 1}),
                   SchedulePart("lr_scheduler.LambdaLR", {"lr_lambda": "0.5 ** step"})),
        ),
    ],
    ids=lambda schedule: schedule.kind,
)  # fmt: skip
def test_the_line_of_a_scheduler_gives_the_rates_of_the_run(schedule: Schedule) -> None:
    setup = replace(SETUP, schedule=schedule)
    rates = []
    for is_ours in (True, False):
        optimizer = torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=0.1)
        if is_ours:
            scheduler = make_scheduler(setup, optimizer, 8)
        else:
            line = scheduler_source(setup, 8)
            scheduler = eval(line, {"torch": torch, "optimizer": optimizer})
        rates.append([])
        for _ in range(6):
            rates[-1].append(optimizer.param_groups[0]["lr"])
            optimizer.step()
            scheduler.step()
    assert rates[0] == rates[1] and len(set(rates[0])) > 2


def test_groups_name_the_parameters_that_they_have() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.Linear(3, 1))
    assert groups_of(SETUP, model) == ""
    setup = replace(
        SETUP, decay="weights", optimizer_params={"weight_decay": 0.1},
        groups=(ParamGroup("2", {"lr": 0.5}, True),),
    )  # fmt: skip
    names: dict[str, Any] = {"model": model}
    exec(textwrap.dedent(groups_of(setup, model)), names)
    own = {id(p): name for name, p in model.named_parameters()}
    told = [([own[id(p)] for p in group.pop("params")], group) for group in names["groups"]]
    assert told == [
        (["0.weight"], {}),
        (["0.bias", "1.weight", "1.bias"], {"weight_decay": 0.0}),
        (["2.weight"], {"lr": 0.5}),
        (["2.bias"], {"lr": 0.5, "weight_decay": 0.0}),
    ]
    assert [p.requires_grad for p in model.parameters()] == [True] * 4 + [False] * 2
    thawed = replace(setup, groups=(ParamGroup("2", {"lr": 0.5}),))
    assert "requires_grad" not in groups_of(thawed, model)
    assert groups_of(replace(SETUP, decay="weights"), model) != ""


def test_how_torch_runs_the_model_is_what_is_set() -> None:
    assert execution_lines(SETUP) == ""
    lines = execution_lines(replace(SETUP, recomputed=("0", "0.1", "2")))
    assert plain(lines)[0] == "for path in ('0', '2'):  # only their inputs are kept"
    assert execution_lines(replace(SETUP, deterministic=True)).count("\n") == 2


@pytest.mark.parametrize(
    ("changes", "batch", "expected"),
    [
        ({}, PLAIN, ["optimizer.zero_grad()", "for x, y in of_step:", "    loss = both",
                     "    total += loss.item() * len(y)", "    loss.backward()",
                     "optimizer.step()"]),
        ({"accumulate": 2, "precision": "float16", "clip_norm": 0.5, "clip_value": 2.0}, PLAIN,
         ["optimizer.zero_grad()", "for x, y in of_step:",
          "    with torch.autocast(device.type, torch.float16):", "        loss = both",
          "    total += loss.item() * len(y)", "    scaler.scale(loss / 2).backward()",
          "scaler.unscale_(optimizer)", "nn.utils.clip_grad_norm_(parameters, 0.5)",
          "nn.utils.clip_grad_value_(parameters, 2.0)", "scaler.step(optimizer)",
          "scaler.update()"]),
        ({"accumulate": 2, "averaging": Averaging("EMA", start=3),
          "schedule": Schedule("lr_scheduler.ExponentialLR", {"gamma": 0.9}, "step")},
         BatchLines("batch", "", "loss = f(batch)", "loss = f(batch)", "size(batch)",
                    then=("after()",), counted=("count()",), before=("first()",), tally="seen"),
         ["first()", "optimizer.zero_grad()", "for batch in of_step:", "    loss = f(batch)",
          "    after()", "    total += loss.item() * size(batch)", "    seen += size(batch)",
          "    count()", "    (loss / 2).backward()", "optimizer.step()", "scheduler.step()",
          "if epoch >= 3:", "    averaged.update_parameters(model)"]),
        ({"order": ("zero_grad", "forward", "step", "loss", "backward")}, PLAIN,
         ["optimizer.zero_grad()", "for x, y in of_step:", "    prediction = model(x)",
          "    optimizer.step()", "    loss = of(prediction)", "    total += loss.item() * len(y)",
          "    loss.backward()"]),
    ],
)  # fmt: skip
def test_the_lines_of_a_step(changes: dict[str, Any], batch: BatchLines, expected: list) -> None:
    setup = replace(SETUP, **changes)
    first, *rest = plain(step_lines(setup, batch))
    assert first == f"while of_step := list(islice(batches, {setup.accumulate})):"
    assert plain("\n".join(rest)) == expected


def test_lbfgs_steps_on_the_mean_of_its_batches() -> None:
    """Beside torch's own with one closure over both batches."""
    batches = [
        (torch.tensor([[1.0], [2.0], [4.0]]), torch.tensor([[2.0], [3.0], [9.0]])),
        (torch.tensor([[3.0], [5.0], [6.0]]), torch.tensor([[1.0], [4.0], [7.0]])),
    ]
    setup = replace(
        SETUP, optimizer="optim.LBFGS", accumulate=2, clip_value=0.5,
        schedule=Schedule("lr_scheduler.StepLR", {"step_size": 1}, "step"),
    )  # fmt: skip
    batch = BatchLines(
        "x, y", "prediction = model(x)", "loss = of(prediction, y)", "loss = of(model(x), y)",
        "len(y)", then=("seen.append(len(y))",), counted=("right += 1", "labels += len(y)"),
        before=("begun()",), tally="samples",
    )  # fmt: skip
    told: list[str] = []
    model, optimizer = lbfgs()
    names: dict[str, Any] = {
        "of": nn.functional.mse_loss, "model": model, "torch": torch, "islice": islice, "nn": nn,
        "optimizer": optimizer, "batches": iter(batches), "parameters": list(model.parameters()),
        "scheduler": torch.optim.lr_scheduler.StepLR(optimizer, 1), "seen": [],
        "begun": lambda: told.append("begun"),
    }  # fmt: skip
    body = textwrap.indent(textwrap.dedent(lbfgs_lines(setup, batch)), "    ")
    source = (
        "def run():\n    total, samples, right, labels = 0.0, 0, 0, 0\n"
        f"{body}\n    return total, samples, right, labels\n"
    )
    exec(source, names)
    total, *counted = names["run"]()
    assert optimizer.param_groups[0]["lr"] == pytest.approx(0.01) and told == ["begun"]
    plain, torchs = lbfgs()

    def closure() -> float:
        torchs.zero_grad()
        losses = [nn.functional.mse_loss(plain(x), y) for x, y in batches]
        for loss in losses:
            (loss / 2).backward()
        nn.utils.clip_grad_value_(plain.parameters(), 0.5)
        return sum(loss.item() for loss in losses) / 2

    with torch.no_grad():
        first = sum(nn.functional.mse_loss(plain(x), y).item() * 3 for x, y in batches)
    torchs.step(closure)
    assert total == pytest.approx(first) and counted == [6, 2, 6]
    for found, expected in zip(model.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(found, expected)


def lbfgs() -> tuple[nn.Linear, torch.optim.LBFGS]:
    torch.manual_seed(0)
    model = nn.Linear(1, 1)
    return model, torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=3)


@pytest.mark.parametrize(
    ("kind", "each", "swa_lr", "expected"),
    [
        ("", "epoch", 0.0, []),
        ("lr_scheduler.StepLR", "step", 0.0, []),
        ("lr_scheduler.StepLR", "epoch", 0.0, ["scheduler.step()"]),
        ("lr_scheduler.ReduceLROnPlateau", "epoch", 0.0,
         ["scheduler.step(validation if losses else training)"]),
        ("", "epoch", 0.1, ["if epoch >= 2:", "    swalr.step()"]),
        ("lr_scheduler.StepLR", "step", 0.1, ["if epoch >= 2:", "    swalr.step()"]),
        ("lr_scheduler.StepLR", "epoch", 0.1,
         ["if epoch >= 2:", "    swalr.step()", "else:", "    scheduler.step()"]),
    ],
)  # fmt: skip
def test_what_steps_at_the_end_of_an_epoch(
    kind: str, each: Any, swa_lr: float, expected: list[str]
) -> None:
    averaging = Averaging("SWA", start=2, swa_lr=swa_lr)
    setup = replace(SETUP, schedule=Schedule(kind, {}, each), averaging=averaging)
    assert plain(after_epoch(setup)) == expected
    other = replace(setup, averaging=Averaging("EMA", start=2, swa_lr=swa_lr))
    assert "swalr" not in after_epoch(other)


def test_the_lines_that_average() -> None:
    assert set(averaging_parts(SETUP, ["update()"]).values()) == {""}
    parts = averaging_parts(replace(SETUP, averaging=Averaging("EMA", 0.5)), ["update()"])
    assert parts["average"] == "" and "get_ema_multi_avg_fn(0.5)" in parts["averaged"]
    parts = averaging_parts(replace(SETUP, averaging=Averaging("SWA", start=4)), ["update()"])
    assert plain(parts["average"]) == [
        "if epoch >= 4:", "    averaged.update_parameters(model)", "    update()",
    ]  # fmt: skip
    assert "AveragedModel(model, avg_fn=None)" in parts["averaged"]
