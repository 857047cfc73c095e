"""A run of a Python file goes on: silently with the same code, told with another, and from its copy
in the run's folder when the file is gone."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch

from app import cli
from engine.runs import record

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
    """A copy of the run of one epoch, which only its code's folder ties to its place."""
    capsys.readouterr()
    return shutil.copytree(made / "begun", tmp_path / "run")


@pytest.fixture
def gone(made: Path, tmp_path: Path):
    """The code is gone for this test."""
    aside = tmp_path / "aside"
    aside.mkdir()
    for name in ("net.py", "parts.py"):
        shutil.move(made / name, aside / name)
    yield
    for name in ("net.py", "parts.py"):
        shutil.copyfile(aside / name, made / name)


def resume(folder: Path) -> int:
    return run("train", "--run", folder, "--resume", "--run-cells", "--epochs", 2)


def test_the_folder_has_the_code_that_ran(made: Path) -> None:
    code = made / "begun" / "code"
    assert {path.name: path.read_text() for path in code.iterdir()} == {
        "net.py": NET,
        "parts.py": PARTS,
    }
    files = record.load(made / "begun").code
    assert [(Path(file.path), file.copy, file.imported) for file in files] == [
        (made / "net.py", "net.py", False),
        (made / "parts.py", "parts.py", True),
    ]


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
    assert (begun / "code" / "parts.py").read_text() == PARTS


def test_the_folder_alone_is_enough(made: Path, begun: Path, gone: None, capsys) -> None:
    assert resume(begun) == 0
    said = capsys.readouterr().err
    assert f"{made / 'net.py'} is gone: its copy runs, {begun / 'code' / 'net.py'}." in said
    assert "changed" not in said
    assert same(last(begun), last(made / "whole"))
    assert record.load(begun).project.subject.path == str(made / "net.py")  # pyright: ignore


def test_a_copy_of_another_content_never_runs(made: Path, begun: Path, gone: None, capsys) -> None:
    before = last(begun)
    for name, text in (("net.py", NET + "\n"), ("parts.py", TANH)):
        own = begun / "code" / name
        whole = own.read_text()
        own.write_text(text)
        assert resume(begun) == 1
        said = capsys.readouterr().err
        assert f"the copy of {name} in" in said and "not what the run began with" in said
        assert "net.py runs" not in said
        own.write_text(whole)
    document = json.loads((begun / "run.json").read_text())
    document["code"][0]["copy"] = "../net.py"  # a file outside the copies is none
    (begun / "run.json").write_text(json.dumps(document))
    (begun / "net.py").write_text(NET)
    assert resume(begun) == 1
    assert "net.py runs" not in capsys.readouterr().err
    assert same(last(begun), before)
