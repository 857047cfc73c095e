"""The training as a script: run without the program, it gives the same weights and losses."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from unittest import mock

import pytest
import torch

from app import templates
from engine.datasets.load import load_dataset
from engine.exporting.code_export import proved
from engine.exporting.script_lines import execution_lines
from engine.exporting.train_script import data_of, script_of, write_script
from engine.handlers.subjects.canvas import example_inputs
from engine.models.check import check
from engine.models.live import LiveModel
from engine.project.document import (
    Averaging,
    BestFigure,
    DataSetup,
    Loading,
    ParamGroup,
    Project,
    Schedule,
    Stopping,
    TrainingSetup,
    Transform,
    replace,
)
from engine.project.edits import loss_call
from engine.system.errors import LabError
from engine.training.execution.compiling import OPTIONS
from engine.training.loop import TrainingLoop
from engine.training.objectives.objective import CatalogueObjective
from tests.engine.handlers.test_export_handlers import chain
from tests.scripts import run_script

TABLE = chain(
    ("Input", "x", {"shape": (10,)}),
    ("nn.Linear", "linear1", {"in_features": 10, "out_features": 1}),
    ("Output", "output", {}),
)
TEMPLATES = ["mlp", "lenet", "residual_mlp", "lstm", "attention"]


def written(project: Project, path: Path) -> LiveModel:
    """Write the script, and return the model with its first weights."""
    live = LiveModel(project.model, project.training.seed)
    dataset = load_dataset(project.training.data)
    loss, params = loss_call(project.model, project.training)
    code = check(project.model, project.training).code
    text = script_of(code, project.training, loss, params, dataset, path, live.module)
    assert proved(text, live.module, example_inputs(live), path) == 0.0
    write_script(text, live.module.state_dict(), data_of(dataset), path)
    return live


def run(path: Path, capsys) -> tuple[dict, list[list[float]]]:
    """The weights that the script wrote, and the losses that it printed, by epoch."""
    out = path.with_name("weights.pt")
    run_script(path, "--out", str(out))
    printed = capsys.readouterr().out
    losses = [[float(n) for n in re.findall(r"\d+\.\d{6}", line)] for line in printed.splitlines()]
    return torch.load(out, weights_only=True), losses


@pytest.mark.parametrize("figure", ["validation accuracy", "train accuracy"])
def test_the_epoch_at_which_an_accuracy_stops_it(
    figure: BestFigure, tmp_path: Path, capsys
) -> None:
    """It ends in the middle, so one figure counted wrong would end it elsewhere."""
    stopping = Stopping(figure, 1, 0.02)
    project = replace(MOONS, training=replace(MOONS.training, epochs=30, stopping=stopping))
    text = check_same(project, tmp_path, capsys)
    assert "accuracy = right / labels" in text


def test_what_has_no_accuracy_does_not_stop_by_one(tmp_path: Path, capsys) -> None:
    data = DataSetup("diabetes")
    setup = replace(
        MOONS.training,
        data=data, loss="nn.MSELoss", epochs=3, stopping=Stopping("train accuracy", 1),
    )  # fmt: skip
    assert "right" not in check_same(Project(model=TABLE, training=setup), tmp_path, capsys)


def test_the_script_writes_the_averaged_weights(tmp_path: Path) -> None:
    project = replace(MOONS, training=replace(MOONS.training, averaging=Averaging("EMA", 0.9)))
    path, out = tmp_path / "train.py", tmp_path / "averaged.pt"
    live = written(project, path)
    run_script(path, "--averaged", str(out))
    loop = TrainingLoop(live.module, project.training)
    for _ in loop.steps():
        pass
    loop.close()
    assert loop.averaged is not None
    state = torch.load(out, weights_only=True)
    assert state.keys() == loop.averaged.weights.keys()
    for name, tensor in loop.averaged.weights.items():
        assert torch.equal(tensor, state[name]), name


def check_same(project: Project, tmp_path: Path, capsys) -> str:
    path = tmp_path / "train.py"
    live = written(project, path)
    state, losses = run(path, capsys)
    loss = loss_call(project.model, project.training)
    objective = CatalogueObjective(live.module, project.training, *loss)
    loop = TrainingLoop(live.module, project.training, objective)
    for _ in loop.steps():
        pass
    loop.close()
    found = live.module.state_dict()
    assert found.keys() == state.keys()
    for name, tensor in found.items():
        assert torch.equal(tensor, state[name]), name
    rows = [[row.train_loss, row.validation_loss] for row in loop.metrics.epochs]
    assert len(losses) == loop.epoch
    for printed, row in zip(losses, rows, strict=True):
        assert printed == pytest.approx(row, abs=2e-6)
    text = path.read_text()
    assert "tensorlab" not in text and "engine" not in text
    return text


@pytest.mark.parametrize("name", TEMPLATES)
def test_each_template(name: str, tmp_path: Path, capsys) -> None:
    project = templates.load_template(name)
    short = replace(project.training, epochs=2, batch_size=256)
    check_same(replace(project, training=short), tmp_path, capsys)


def test_the_templates_are_all_tried() -> None:
    assert sorted(TEMPLATES) == sorted(template.key for template in templates.templates())


MOONS = replace(
    templates.load_template("mlp"),
    training=TrainingSetup(epochs=2, batch_size=400, seed=5),
)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"loss": "nn.MSELoss"}, "nn.functional.one_hot"),
        ({"loss_params": {"weight": "balanced"}}, "weight=torch.tensor((1.0"),
        ({"loss": "nn.BCEWithLogitsLoss", "loss_params": {"pos_weight": "balanced"}},
         "[-prediction.shape[1] :]"),
        ({"loss": "nn.HuberLoss", "loss_params": {"delta": 0.5}}, "nn.HuberLoss(delta=0.5)"),
        ({"loss": "nn.BCEWithLogitsLoss"}, "target.unsqueeze(1) if"),
        ({"loss": "nn.SoftMarginLoss"}, "2 * target - 1"),
        ({"loss": "nn.MultiLabelMarginLoss"}, "nn.functional.pad"),
        ({"loss": "nn.MultiMarginLoss"}, "return nn.MultiMarginLoss()(prediction, target)"),
        ({"optimizer": "optim.SGD", "optimizer_params": {"lr": 0.1, "momentum": 0.9}}, "lr=0.1"),
        ({"optimizer": "optim.NAdam",
          "optimizer_params": {"weight_decay": 0.1, "decoupled_weight_decay": True}},
         "decoupled_weight_decay=True"),
        ({"optimizer": "optim.LBFGS", "optimizer_params": {"max_iter": 3}}, "def closure"),
        ({"optimizer": "optim.LBFGS", "optimizer_params": {"max_iter": 2}, "clip_norm": 0.1,
          "accumulate": 3}, "losses.append"),
        ({"accumulate": 3, "clip_norm": 0.5, "clip_value": 0.01}, "(loss / 3).backward()"),
        ({"precision": "bfloat16"}, "torch.autocast"),
        ({"precision": "float16", "clip_norm": 0.5}, "scaler.unscale_(optimizer)"),
        ({"schedule": Schedule("lr_scheduler.OneCycleLR", {"max_lr": 0.1}, "step")},
         "total_steps=8"),
        ({"schedule": Schedule("lr_scheduler.StepLR", {"step_size": 1})}, "scheduler.step()"),
        ({"schedule": Schedule("lr_scheduler.MultiStepLR", {"milestones": 1})},
         "milestones=(1,)"),
        ({"schedule": Schedule("lr_scheduler.ReduceLROnPlateau", {"patience": 0})},
         "scheduler.step(validation if"),
        ({"groups": (ParamGroup("linear1", {"lr": 0.01}), ParamGroup("linear2", {}, True))},
         "named[name].requires_grad_(False)"),
        ({"decay": "weights", "optimizer_params": {"weight_decay": 0.1}, "clip_norm": 0.1},
         "'weight_decay': 0.0"),
        ({"stopping": Stopping("validation loss", 1, 0.5), "epochs": 4}, "if waited >= 1:"),
        ({"stopping": Stopping("train loss", 2), "epochs": 3}, "training < reference - 0.0"),
        ({"stopping": Stopping("validation accuracy", 1, 0.3), "epochs": 5},
         "accuracy = right / labels"),
        ({"stopping": Stopping("train accuracy", 1, 0.3), "epochs": 5, "accumulate": 2},
         "right += right_in(prediction, y)"),
        ({"stopping": Stopping("train accuracy", 1, 0.3), "epochs": 4,
          "optimizer": "optim.LBFGS", "optimizer_params": {"max_iter": 3}},
         "nonlocal right, labels"),
        ({"schedule": Schedule("lr_scheduler.LambdaLR", {"lr_lambda": "1 / sqrt(1 + step)"},
                               "step")}, "lambda step: 1 / sqrt(1 + step)"),
        ({"schedule": Schedule("lr_scheduler.CosineAnnealingLR", {}, "step", warmup=3)},
         "T_max=5"),
        ({"averaging": Averaging("EMA", 0.9)}, "get_ema_multi_avg_fn(0.9)"),
        ({"averaging": Averaging("SWA", start=1), "epochs": 3}, "update_bn("),
        ({"averaging": Averaging("SWA", start=1, swa_lr=0.05, anneal_epochs=2), "epochs": 4},
         "SWALR(optimizer, 0.05, 2, 'cos')"),
        ({"averaging": Averaging("SWA", start=1, swa_lr=0.05), "epochs": 3,
          "schedule": Schedule("lr_scheduler.StepLR", {"step_size": 1})},
         "else:\n            scheduler.step()"),
        ({"averaging": Averaging("SWA", start=1, swa_lr=0.05), "epochs": 3,
          "schedule": Schedule("lr_scheduler.ExponentialLR", {"gamma": 0.9}, "step")},
         "if epoch < 1:\n                scheduler.step()"),
        ({"deterministic": True}, "use_deterministic_algorithms(True)"),
        ({"recomputed": ("linear1", "linear2"), "averaging": Averaging("SWA", start=1)},
         "module.forward = recomputed(module)"),
        ({"data": DataSetup("digits", {}, 0.5)}, ""),
        ({"order": ("forward", "loss", "backward", "step"), "accumulate": 2, "clip_norm": 0.5},
         "while of_step"),
        ({"order": ("step", "zero_grad", "forward", "loss", "backward"), "precision": "bfloat16"},
         "optimizer.step()\n            optimizer.zero_grad()"),
        ({"order": ("zero_grad", "forward", "step", "loss", "backward")}, "(prediction, y)"),
        ({"order": ("step", "zero_grad", "forward", "loss", "backward"), "clip_value": 0.01},
         "if any(parameter.grad is not None"),
        ({"order": ("zero_grad", "forward", "loss", "step"), "clip_value": 0.01, "clip_norm": 1},
         "    nn.utils.clip_grad_value_(parameters, 0.01)"),
        ({"data": replace(MOONS.training.data, loading=Loading(balanced=True, drop_last=True))},
         "balanced_order(y_train.cpu(), 5, epoch)[:1200]"),
        ({"data": replace(MOONS.training.data, loading=Loading(shuffle=False))}, "torch.arange"),
        ({"data": replace(MOONS.training.data, loading=Loading(workers=0))}, "epoch_order"),
        ({"data": replace(MOONS.training.data, transforms=(
            Transform("GaussianNoise", {"sigma": 0.5}), Transform("Normalize")))},
         "x = gaussian_noise(x, generator, sigma=0.5)"),
    ],
)  # fmt: skip
def test_each_setting(changes: dict, words: str, tmp_path: Path, capsys) -> None:
    project = replace(MOONS, training=replace(MOONS.training, **changes))
    assert words in check_same(project, tmp_path, capsys)
    assert not torch.are_deterministic_algorithms_enabled()  # or other tests would have it


def test_a_compiled_model_has_the_options_of_the_run() -> None:
    """The line alone: to compile takes a compiler of C++."""
    model = mock.Mock()
    lines = execution_lines(replace(MOONS.training, compile=True))
    exec(textwrap.dedent(lines), {"model": model})
    model.compile.assert_called_once_with(options=OPTIONS)


def test_a_script_has_nothing_of_what_is_not_set(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    written(MOONS, path)
    text = path.read_text()
    for word in ("scaler", "scheduler", "clip_", "autocast", " / 1)", "closure", "transformed",
                 "prediction = ", "\nNone"):  # fmt: skip
        assert word not in text, word


def test_an_order_that_the_optimizer_cannot_run_is_refused(tmp_path: Path) -> None:
    setup = replace(
        MOONS.training,
        optimizer="optim.LBFGS",
        optimizer_params={},
        order=("forward", "loss", "backward", "step"),
    )
    with pytest.raises(LabError, match="LBFGS runs zero_grad"):
        written(replace(MOONS, training=setup), tmp_path / "train.py")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="does not exist"):
        written(MOONS, tmp_path / "none" / "train.py")
    assert list(tmp_path.iterdir()) == []


def test_images_are_flipped_and_shifted_as_in_the_run(tmp_path: Path, capsys) -> None:
    project = templates.load_template("lenet")
    flip, crop = Transform("RandomHorizontalFlip"), Transform("RandomCrop", {"padding": 2})
    data = replace(project.training.data, transforms=(flip, crop, flip))
    short = replace(project.training, data=data, epochs=2, batch_size=500)
    text = check_same(replace(project, training=short), tmp_path, capsys)
    assert text.count("def random_horizontal_flip") == text.count("def random_crop") == 1
    assert text.count("x = random_horizontal_flip(x, generator, p=0.5)") == 2
