"""A run of a Python file goes on: silently with the same code, told with another, and refused when
the file is gone."""

from __future__ import annotations

import json
import shutil
from hashlib import sha256
from pathlib import Path

import pytest
import torch

from app import cli
from engine.runs import record
from engine.runs.record import CodeFile

pytestmark = pytest.mark.usefixtures("forked_processes")

NET = """
import torch
from torch import nn
from parts import act

print("net.py runs")

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.drop, self.b = nn.Linear(3, 4), nn.Dropout(0.2), nn.Linear(4, 1)

    def forward(self, x):
        return self.b(self.drop(act(self.a(x))))

g = torch.Generator().manual_seed(1)
x = torch.randn(96, 3, generator=g)
data = x, x.sum(1, keepdim=True)
"""
PARTS = "import torch\n\ndef act(x):\n    return torch.relu(x)\n"
TANH = (
    PARTS.replace("relu", "tanh")
    + "# longer: of one length, Python may take the bytecode of the same second\n"
)


def run(*arguments: object) -> int:
    return cli.main([str(argument) for argument in arguments])


def last(folder: Path) -> dict[str, torch.Tensor]:
    path = max((folder / "checkpoints").iterdir(), key=lambda each: each.stat().st_mtime_ns)
    return torch.load(path, weights_only=True)["model"]


def same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return all(torch.equal(one[name], other[name]) for name in (*one, *other))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, forked_processes: None) -> Path:
    """A folder with the code, a run of one epoch, `begun`, and one of two, `whole`."""
    place = tmp_path_factory.mktemp("own")
    (place / "net.py").write_text(NET)
    (place / "parts.py").write_text(PARTS)
    for name, epochs in (("begun", 1), ("whole", 2)):
        train = ("train", f"{place / 'net.py'}:Net()", "--data", "data", "--epochs", epochs)
        assert run(*train, "--run", place / name) == 0
    return place


@pytest.fixture
def begun(made: Path, tmp_path: Path, capsys) -> Path:
    """A copy of the run of one epoch."""
    capsys.readouterr()
    return shutil.copytree(made / "begun", tmp_path / "run")


def resume(folder: Path) -> int:
    return run("train", "--run", folder, "--resume", "--run-cells", "--epochs", 2)


def test_the_record_names_the_code_that_ran(made: Path) -> None:
    assert not (made / "begun" / "code").exists()
    assert record.load(made / "begun").code == tuple(
        CodeFile(str(made / name), sha256(text.encode()).hexdigest())
        for name, text in (("net.py", NET), ("parts.py", PARTS))
    )


def test_the_same_code_goes_on_without_a_word(made: Path, begun: Path, capsys) -> None:
    assert resume(begun) == 0
    said = capsys.readouterr().err
    assert "changed" not in said and "gone" not in said and "net.py runs" in said
    assert same(last(begun), last(made / "whole"))


def test_code_that_has_changed_is_told_and_used(made: Path, begun: Path, capsys) -> None:
    (made / "parts.py").write_text(TANH)
    try:
        assert resume(begun) == 0
    finally:
        (made / "parts.py").write_text(PARTS)
    words = "warning: parts.py has changed since the run began. It goes on with the code of now."
    assert words in capsys.readouterr().err
    assert not same(last(begun), last(made / "whole"))


def test_code_that_is_gone_is_told_until_it_is_back(made: Path, begun: Path, capsys) -> None:
    """Also in a run of an earlier version, which has copies of its code."""
    document = json.loads((begun / "run.json").read_text())
    for file in document["code"]:
        file |= {"copy": Path(file["path"]).name, "imported": False}
    (begun / "run.json").write_text(json.dumps(document))
    shutil.copytree(made, begun / "code", ignore=shutil.ignore_patterns("begun", "whole"))
    aside = shutil.move(made / "net.py", made / "net.txt")
    try:
        assert resume(begun) == 1
    finally:
        shutil.move(aside, made / "net.py")
    said = capsys.readouterr().err
    assert f"{made / 'net.py'} cannot be read: No such file" in said and "Put it back" in said
    assert "net.py runs" not in said
    assert resume(begun) == 0
    assert same(last(begun), last(made / "whole"))
