"""The generated Python: it runs by itself, and is the live model."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from torch import Tensor, nn

from engine.models.check import check
from engine.models.live import LiveModel
from engine.project.document import Block, Model, ParamValue, TrainingSetup, Wire
from tests.engine.models.strategies import KINDS, batch_for, chain, models, new_block, one_of
from tests.examples import examples


def code_of(model: Model) -> str:
    return check(model, TrainingSetup()).code


def generated(code: str) -> nn.Module:
    """An instance of the file's class Model, made without arguments."""
    namespace: dict = {"__name__": "generated"}
    exec(compile(code, "model.py", "exec"), namespace)
    return namespace["Model"]()


def output(module: nn.Module, x: Tensor) -> Tensor:
    torch.manual_seed(0)
    return module(x)


def compare(model: Model) -> None:
    live, other = LiveModel(model, seed=3).module, generated(code_of(model))
    assert list(other.state_dict()) == list(live.state_dict())
    other.load_state_dict(live.state_dict())
    x = batch_for(model)
    for mode in (True, False):
        assert torch.equal(output(live.train(mode), x), output(other.train(mode), x))
    buffers = dict(other.named_buffers())
    assert all(torch.equal(buffers[name], value) for name, value in live.named_buffers())


@settings(max_examples=examples(15))
@given(models())
def test_code_of_random_models_is_the_live_model(model: Model):
    compare(model)


@pytest.mark.parametrize("kind", KINDS)
def test_code_of_every_kind_is_the_live_model(kind: str, capsys: pytest.CaptureFixture[str]):
    model = one_of(kind)
    compare(model)
    exec(compile(code_of(model), "model.py", "exec"), {"__name__": "__main__"})
    assert "output: (4," in capsys.readouterr().out


@pytest.mark.parametrize(
    ("kind", "params", "line"),
    [
        ("nn.Linear", {"bias": True}, "nn.Linear(64, 64)"),
        ("nn.Linear", {"bias": False}, "nn.Linear(64, 64, bias=False)"),
        ("nn.Conv2d", {"padding": "same"}, 'nn.Conv2d(1, 8, kernel_size=3, padding="same")'),
        ("nn.Conv2d", {"kernel_size": (3, 5)}, "nn.Conv2d(1, 8, kernel_size=(3, 5))"),
        ("nn.Softmax", {}, "nn.Softmax(dim=-1)"),
        ("nn.Dropout", {"p": 0.5}, "nn.Dropout()"),
        ("nn.LSTM", {}, "nn.LSTM(8, 32, batch_first=True)"),
        ("nn.BatchNorm2d", {"momentum": None}, "nn.BatchNorm2d(8, momentum=None)"),
        ("torch.select", {}, "x = x[:, -1]  # (B, 8)"),
        ("torch.permute", {}, "x = x.permute(0, 2, 1)  # (B, 5, 3)"),
        ("torch.mean", {}, "x = x.mean(dim=1)  # (B, 8)"),
        ("Tensor.reshape", {}, "x = x.reshape(x.shape[0], 8, 8)  # (B, 8, 8)"),
        ("torch.add", {}, "x = x + x"),
        ("torch.add", {"alpha": 2.0}, "x = torch.add(x, x, alpha=2.0)"),
        ("torch.cat", {"inputs": 3}, "x = torch.cat((x, x, x), dim=1)"),
        ("nn.GRU", {}, "x, _ = self.gru_b1(x)  # (B, 5, 32)"),
    ],
)  # fmt: skip
def test_code_reads_as_people_write_it(kind: str, params: dict[str, ParamValue], line: str):
    start, block, _ = one_of(kind).blocks
    model = chain(("Input", start.params), (kind, {**block.params, **params}), ("Output", {}))
    assert line in code_of(model)


def residual() -> Model:
    return Model(
        (
            new_block("i", "Input", {"shape": (64,)}, "x"),
            new_block("f", "nn.Linear", {"out_features": 10}, "fc1"),
            new_block("g", "nn.Linear", {"in_features": 10, "out_features": 10}, "fc2"),
            new_block("r", "residual", {}, "sum1"),
            new_block("o", "nn.CrossEntropyLoss", {}, "loss1"),
        ),
        (
            Wire("i", "x", "f", "input"),
            Wire("f", "output", "g", "input"),
            Wire("g", "output", "r", "x"),
            Wire("f", "output", "r", "skip"),
            Wire("r", "output", "o", "input"),
        ),
    )


def test_a_branch_has_its_own_name_and_every_block_its_lines():
    snapshot = check(residual(), TrainingSetup())
    lines = snapshot.code.splitlines()
    assert "        h = self.fc2(x)  # (B, 10)" in lines
    assert "        x = h + x  # (B, 10)" in lines
    at = {block: [lines[n - 1].strip() for n in snapshot.lines[block]] for block in snapshot.lines}
    assert at["f"] == ["self.fc1 = nn.Linear(64, 10)", "x = self.fc1(x)  # (B, 10)"]
    assert at["r"] == ["x = h + x  # (B, 10)"]
    assert at["i"][0] == "def forward(self, x: torch.Tensor) -> torch.Tensor:"
    assert "return x" in at["o"] and "criterion = nn.CrossEntropyLoss()" in at["o"]
    compare(residual())


def test_unfinished_models_are_written_as_far_as_they_go():
    model = residual()
    open_wire = Model(model.blocks, tuple(w for w in model.wires if w.target != "g"))
    code = code_of(open_wire)
    assert "# fc2: nothing is wired to input yet" in code
    assert "# sum1: what comes before it is not complete" in code
    with pytest.raises(NotImplementedError):
        generated(code)(torch.zeros(2, 64))
    bare = Model((Block("l", "nn.Linear", "fc1", {"in_features": 2}),))
    assert "# self.fc1: its arguments are not complete" in code_of(bare)
    assert generated(code_of(Model())).state_dict() == {}


def test_the_file_runs_without_this_program(tmp_path: Path):
    path = tmp_path / "model.py"
    path.write_text(code_of(residual()), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-I", "-W", "error", path.name],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "output: (4, 10)"
