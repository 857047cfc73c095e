"""Export from the document: what lies on the disk runs without this program."""

from __future__ import annotations

import itertools
import json
import os
import site
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from torch import nn

from engine.errors import LabError
from engine.exporting import load_weights
from engine.handlers.exporting.export import export
from engine.handlers.exporting.weights import open_project_weights, save_project_weights
from engine.lab import Lab
from engine.project.document import Block, Model, TrainingSetup, Wire
from engine.protocol import (
    ConsoleSubject,
    ExportCommand,
    ExportPlanSnapshot,
    ExportSnapshot,
    OpenWeightsCommand,
    PlanExportCommand,
    RunCellCommand,
    SavedWeightsSnapshot,
    SaveWeightsCommand,
    Snapshot,
    WeightsSnapshot,
)
from engine.session import Session

SETUP = TrainingSetup(seed=3)


def chain(*blocks: tuple[str, str, dict[str, Any]]) -> Model:
    """Blocks (kind, name, params) in a row, their first ports wired."""
    made = tuple(Block(id=name, kind=kind, name=name, params=p) for kind, name, p in blocks)
    ports = {"Input": "x", "Output": "x"}
    wires = tuple(
        Wire(a.id, ports.get(a.kind, "output"), b.id, ports.get(b.kind, "input"))
        for a, b in itertools.pairwise(made)
    )
    return Model(blocks=made, wires=wires)


CNN = chain(
    ("Input", "x", {"shape": (1, 8, 8)}),
    ("nn.Conv2d", "conv1", {"in_channels": 1, "out_channels": 4, "kernel_size": 3}),
    ("nn.BatchNorm2d", "norm1", {"num_features": 4}),
    ("nn.ReLU", "relu1", {}),
    ("nn.Flatten", "flatten1", {}),
    ("nn.Dropout", "dropout1", {"p": 0.5}),
    ("nn.Linear", "linear1", {"in_features": 144, "out_features": 10}),
    ("Output", "output", {}),
)


@pytest.fixture
def lab() -> Lab:
    sent: list[Snapshot] = []
    lab = Lab(emit=sent.append)
    module = lab.models.live_model(CNN, SETUP.seed).module
    with torch.no_grad():  # as if it had been trained
        for parameter in module.parameters():
            parameter.add_(0.25)
        module(torch.randn(16, 1, 8, 8))
    return lab


def run(lab: Lab, path: Path, format: Any, model: Model = CNN, weights: str = "") -> ExportSnapshot:
    command = ExportCommand(
        model=model, training=SETUP, format=format, path=str(path), weights=weights, verify=False
    )
    *_, snapshot = export(lab, command)
    assert isinstance(snapshot, ExportSnapshot)
    return snapshot


BARE = """
import json, sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("engine", "app", "widgets", "tensorlab"):
            raise ImportError(f"{name} is not installed")

sys.meta_path.insert(0, Refuse())
sys.path += [*SITE, "here"]
import torch
from model import Model

model = Model()
model.load_state_dict(torch.load("weights.pt"))
x = torch.linspace(-1, 1, 2 * 64).reshape(2, 1, 8, 8)
print(json.dumps(model.eval()(x).tolist()))
"""


def test_model_and_weights_load_in_a_bare_script(lab: Lab, tmp_path: Path) -> None:
    """In an isolated interpreter that has torch but cannot import this program."""
    (tmp_path / "here").mkdir()
    run(lab, tmp_path / "here" / "model.py", "py")
    run(lab, tmp_path / "weights.pt", "pt")
    # -S: no .pth file is read, so that a development install is not on the path either.
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"SITE = {site.getsitepackages()!r}" + BARE],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert lab.models.live is not None
    x = torch.linspace(-1, 1, 2 * 64).reshape(2, 1, 8, 8)
    expected = lab.models.live.module.eval()(x)
    assert torch.equal(torch.tensor(json.loads(done.stdout)), expected)


@pytest.mark.parametrize("format", ["pt", "safetensors", "py"])
def test_the_snapshot_tells_what_was_written(lab: Lab, tmp_path: Path, format: str) -> None:
    path = tmp_path / f"model.{format}"
    snapshot = run(lab, path, format)
    assert lab.models.live is not None
    assert (snapshot.path, snapshot.format) == (str(path), format)
    assert snapshot.size_bytes == path.stat().st_size and len(snapshot.sha256) == 64
    assert snapshot.max_abs_error == 0.0
    assert snapshot.keys == tuple(lab.models.live.module.state_dict())
    assert "conv1.weight" in snapshot.keys and "norm1.running_mean" in snapshot.keys


@pytest.mark.parametrize("format", ["pt", "safetensors", "py"])
def test_export_disturbs_neither_weights_nor_buffers_nor_rng(
    lab: Lab, tmp_path: Path, format: str
) -> None:
    assert lab.models.live is not None
    module = lab.models.live.module
    before = {k: t.clone() for k, t in module.state_dict().items()}
    rng, training = torch.get_rng_state(), module.training
    run(lab, tmp_path / "m", format)
    assert lab.models.live.module is module and module.training == training
    assert torch.equal(torch.get_rng_state(), rng)
    assert all(torch.equal(t, before[k]) for k, t in module.state_dict().items())


@pytest.mark.parametrize("format", ["pt", "safetensors"])
def test_weights_of_a_file_are_exported_without_touching_the_live_ones(
    lab: Lab, tmp_path: Path, format: str
) -> None:
    assert lab.models.live is not None
    run(lab, tmp_path / "old", "safetensors" if format == "pt" else "pt")
    (tmp_path / "old").rename(tmp_path / ("old.safetensors" if format == "pt" else "old.pt"))
    old = {k: t.clone() for k, t in lab.models.live.module.state_dict().items()}
    with torch.no_grad():
        lab.models.live.module.get_parameter("linear1.bias").fill_(7.0)
    source = tmp_path / ("old.safetensors" if format == "pt" else "old.pt")
    run(lab, tmp_path / f"new.{format}", format, weights=str(source))
    new = load_weights(tmp_path / f"new.{format}")
    assert all(torch.equal(new[k], old[k]) for k in old)
    assert lab.models.live.module.get_parameter("linear1.bias")[0] == 7.0


def test_weights_of_another_model_are_refused_by_name(lab: Lab, tmp_path: Path) -> None:
    torch.save(nn.Linear(3, 2).state_dict(), tmp_path / "other.pt")
    with pytest.raises(LabError, match=r"missing: conv1\.weight.*not in the model: weight, bias"):
        run(lab, tmp_path / "out.pt", "pt", weights=str(tmp_path / "other.pt"))
    assert not (tmp_path / "out.pt").exists()


def test_a_model_that_cannot_run_is_not_exported_as_python(lab: Lab, tmp_path: Path) -> None:
    broken = chain(
        ("Input", "x", {"shape": (1, 8, 8)}),
        ("nn.Linear", "linear1", {"in_features": 5, "out_features": 2}),
        ("Output", "output", {}),
    )
    with pytest.raises(LabError, match="does not run"):
        run(lab, tmp_path / "model.py", "py", model=broken)
    assert not (tmp_path / "model.py").exists()
    with pytest.raises(LabError, match="cannot run"):
        run(lab, tmp_path / "model.pt", "pt", model=Model(blocks=CNN.blocks))


# -- weights beside a project ------------------------------------------------------------------


def test_weights_saved_beside_a_project_come_back_bit_for_bit(tmp_path: Path) -> None:
    lab = Lab(emit=lambda snapshot: None)
    live = lab.models.live_model(CNN, SETUP.seed)
    nn.init.constant_(live.module.get_parameter("conv1.weight"), 0.25)
    before = {key: tensor.clone() for key, tensor in live.module.state_dict().items()}
    path = os.fsencode(tmp_path / "net.safetensors")
    (saved,) = save_project_weights(lab, SaveWeightsCommand(model=CNN, training=SETUP, path=path))
    assert saved == SavedWeightsSnapshot()
    other = Lab(emit=lambda snapshot: None)
    command = OpenWeightsCommand(model=CNN, training=SETUP, path=path)
    (opened,) = open_project_weights(other, command)
    assert isinstance(opened, WeightsSnapshot)
    assert opened.origin == "The weights of net.safetensors are loaded."
    state = other.models.live_model(CNN, SETUP.seed).module.state_dict()
    assert all(torch.equal(state[key], before[key]) for key in before)


def test_a_project_without_a_weight_file_forgets_the_weights_before_it() -> None:
    lab = Lab(emit=lambda snapshot: None)
    first = lab.models.live_model(CNN, SETUP.seed)
    nn.init.constant_(first.module.get_parameter("conv1.weight"), 0.25)
    list(open_project_weights(lab, OpenWeightsCommand(model=CNN, training=SETUP)))
    second = lab.models.live_model(CNN, SETUP.seed).module.get_parameter("conv1.weight")
    assert not (second == 0.25).any()


def test_a_file_that_does_not_fit_leaves_the_model_with_new_weights(tmp_path: Path) -> None:
    lab = Lab(emit=lambda snapshot: None)
    path = tmp_path / "net.safetensors"
    safetensors.torch.save_file({"stranger": torch.ones(1)}, path)
    command = OpenWeightsCommand(model=CNN, training=SETUP, path=os.fsencode(path))
    with pytest.raises(LabError, match=r"net.safetensors does not fit the model. missing: conv1"):
        list(open_project_weights(lab, command))
    assert lab.models.live is None


def test_a_plan_tells_the_bytes_of_each_storage_once() -> None:
    sent: list[Snapshot] = []
    session = Session(sent.append)
    cell = """
net = nn.Sequential(nn.Linear(3, 5), nn.BatchNorm1d(5), nn.Linear(5, 2).double())
net.tied = net[0]
net.register_buffer("seen", torch.zeros(7, dtype=torch.bool))
"""
    session.handle(RunCellCommand(source=cell))
    net: nn.Module = session.lab.console.namespace.variables["net"]
    sent.clear()
    command = PlanExportCommand(model=Model(), training=SETUP, subject=ConsoleSubject("net"))
    session.handle(command)
    (plan,) = sent
    assert isinstance(plan, ExportPlanSnapshot)
    assert plan.tensors == len(net.state_dict()) == 12
    assert plan.float_bytes == {4: 4 * (15 + 5 + 4 * 5), 8: 8 * (10 + 2)}
    assert plan.other_bytes == 8 + 7  # num_batches_tracked, and `seen`
    assert plan.run_step == -1
    no_data = "There is no data to take a batch from. Name it under Train."
    assert {key for key, why in plan.refusals.items() if why == no_data} >= {"checkpoint", "onnx"}
    assert "safetensors" not in plan.refusals and "pt" not in plan.refusals
