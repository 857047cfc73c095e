"""`tensorlab inspect FILE` and `tensorlab diff A B`."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import torch

from app.commands.target import is_file_to_read
from tests.app.commands.test_cli import run

pytestmark = pytest.mark.usefixtures("forked_processes")


@pytest.fixture
def state(tmp_path: Path) -> Path:
    path = tmp_path / "state.pt"
    torch.save({"fc.weight": torch.ones(3, 2), "fc.bias": torch.zeros(3), "epoch": 4}, path)
    return path


def test_inspect_tells_the_tensors_of_a_file(state: Path, capsys) -> None:
    assert run("inspect", state, "--json") == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["kind"], report["file"]) == ("torch", str(state))
    assert report["bytes"] == state.stat().st_size
    weight, bias = report["tensors"]
    assert (weight["key"], weight["shape"], weight["dtype"]) == ("fc.weight", [3, 2], "float32")
    assert weight["bytes"] == 24 and bias["bytes"] == 12
    data = state.read_bytes()[weight["offset"] :][:24]
    assert data == torch.ones(6).numpy().tobytes()
    assert report["values"] == [{"key": "epoch", "type": "int", "text": "4"}]
    assert report["totals"] == {
        "tensors": 2, "elements": 9, "tensor_bytes": 36, "values": 1, "nodes": 0
    }  # fmt: skip
    assert run("inspect", state) == 0
    told = capsys.readouterr().out
    assert "fc.weight  (3, 2)           float32 · 24 bytes" in told and "epoch  4" in told


def test_inspect_tells_the_graph_of_a_program(tmp_path: Path, capsys) -> None:
    path = tmp_path / "net.pt2"
    torch.export.save(torch.export.export(torch.nn.Linear(2, 3), (torch.ones(1, 2),)), path)
    assert run("inspect", path, "--json") == 0
    report = json.loads(capsys.readouterr().out)
    (node,) = report["nodes"]
    assert node["op"] == "aten.linear"
    assert node["outputs"] == [{"name": "linear", "shape": [1, 3], "dtype": "float32"}]
    assert [value["name"] for value in report["inputs"]] == ["input"]
    assert report["outputs"] == node["outputs"]
    assert run("inspect", path) == 0
    assert "aten.linear  linear (1, 3) float32" in capsys.readouterr().out
    torch.export.save(torch.export.export(torch.nn.Linear(2, 3), (torch.ones(2),)), path)
    assert run("inspect", path) == 0
    assert "aten.linear  linear (3,) float32" in capsys.readouterr().out


def test_diff_tells_each_key(state: Path, tmp_path: Path, capsys) -> None:
    other = tmp_path / "other.pt"
    torch.save({"fc.weight": torch.full((3, 2), 3.0), "fc.bias": torch.zeros(3), "new": 1}, other)
    assert run("diff", state, other, "--json") == 0
    report = json.loads(capsys.readouterr().out)
    assert not report["equal"] and report["totals"] == {"keys": 4, "different": 3}
    rows = {row["key"]: row for row in report["keys"]}
    assert rows["fc.weight"]["max_absolute"] == 2.0
    assert rows["fc.weight"]["max_relative"] == pytest.approx(2 / 3)
    assert rows["fc.bias"]["verdict"] == "equal"
    assert rows["epoch"]["verdict"] == "only in a" and rows["new"]["verdict"] == "only in b"
    assert run("diff", state, other) == 0
    told = capsys.readouterr().out
    assert "4 keys: 1 equal, 3 different" in told
    assert "fc.weight  different · max |a − b| 2 · relative 0.666667" in told


def test_the_guide_names_every_field(state: Path, tmp_path: Path, capsys) -> None:
    """Scripts read these: a field that is renamed, added or left out is told there."""
    path, other = tmp_path / "net.pt2", tmp_path / "other.pt"
    torch.export.save(torch.export.export(torch.nn.Linear(2, 3), (torch.ones(1, 2),)), path)
    torch.save({"fc.weight": torch.zeros(2)}, other)
    guide = Path(__file__).parents[3] / "assets" / "guide" / "command-line.md"
    text = guide.read_text(encoding="utf-8")
    inspected, _, rest = text.partition("| `inspect` | |")[2].partition("| `diff` | |")
    compared = rest.partition("\n\n")[0]

    def fields(*arguments: object) -> set[str]:
        assert run(*arguments, "--json") == 0
        found: set[str] = set()
        waiting = [json.loads(capsys.readouterr().out)]
        while waiting:
            each = waiting.pop()
            if isinstance(each, list):
                waiting += each
            elif isinstance(each, dict):
                found |= each.keys()
                free = ("metadata", "attributes", "modules")  # names of the file's own
                waiting += [value for name, value in each.items() if name not in free]
        return found

    optional = {"part", "shares", "added_bytes", "note"}
    named = set(re.findall(r"`(\w+)`", inspected))
    assert named - optional == (fields("inspect", path) | fields("inspect", state)) - optional
    named = set(re.findall(r"`(\w+)`", compared))
    assert named - optional == fields("diff", state, other) - optional


def test_exit_codes(state: Path, tmp_path: Path, capsys) -> None:
    whole = tmp_path / "whole.pt"
    torch.save(torch.nn.Linear(1, 1), whole)
    assert run("inspect", whole) == 1
    assert "asks for torch.nn.modules.linear.Linear" in capsys.readouterr().err
    assert run("diff", state, whole) == 1
    assert "whole.pt" in capsys.readouterr().err
    assert run("inspect", tmp_path / "none.pt") == 2
    assert run("diff", state, tmp_path / "none.pt") == 2
    assert run("inspect", tmp_path) == 1  # a folder of no known kind


def test_what_is_read_and_what_is_run(tmp_path: Path) -> None:
    assert is_file_to_read("net.PT", None) and is_file_to_read("model.safetensors.index.json", None)
    assert is_file_to_read(str(tmp_path), None)
    assert not is_file_to_read("net.pt2", "data.py:loader")
    assert not is_file_to_read("net.py:Net()", None) and not is_file_to_read("net.tlab", None)
