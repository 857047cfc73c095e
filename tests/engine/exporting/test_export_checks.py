"""What is written is checked: what differs from the live model is refused, by name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from engine.exporting import code_export, load_weights, save_weights, weights
from engine.system.errors import LabError

State = dict[str, Tensor]

SOURCE = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.one = nn.Linear({size}, 3)

    def forward(self, x):
        return {result}
"""


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.one = nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.one(x)


def export(path: Path, size: int = 4, result: str = "self.one(x)") -> code_export.Written:
    source = SOURCE.format(size=size, result=result)
    return code_export.save_code(source, Model(), [torch.ones(2, 4)], path)


def test_the_written_model_runs_with_the_live_weights(tmp_path: Path) -> None:
    written = export(tmp_path / "m.py")
    assert written.max_error == 0.0 and written.keys == ("one.weight", "one.bias")
    assert export(tmp_path / "m.py", result="self.one(x) + 0.5").max_error == pytest.approx(0.5)


def test_python_with_other_weights_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(LabError, match=r"one\.weight is \(3, 4\).*has \(3, 5\)"):
        export(tmp_path / "m.py", size=5)
    assert not (tmp_path / "m.py").exists()


@pytest.mark.parametrize(
    ("result", "words"),
    [("self.one(x)[0]", r"shape \(3,\), the model itself \(2, 3\)"), ("x.gone", "does not run")],
)
def test_python_with_another_result_is_refused(tmp_path: Path, result: str, words: str) -> None:
    with pytest.raises(LabError, match=words):
        export(tmp_path / "m.py", result=result)
    assert not (tmp_path / "m.py").exists()


def doubled(state: State) -> State:
    return {**state, "bias": state["bias"] * 2}


def without_one(state: State) -> State:
    return {"weight": state["weight"]}


def with_one_more(state: State) -> State:
    return {**state, "more": state["bias"]}


@pytest.mark.parametrize("change", [doubled, without_one, with_one_more])
def test_a_file_that_reads_back_differently_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[State], State]
) -> None:
    read = weights._load_pt
    monkeypatch.setattr(weights, "_load_pt", lambda path, **given: change(read(path, **given)))
    with pytest.raises(LabError, match="what was read back differs"):
        save_weights(nn.Linear(2, 2), tmp_path / "w.pt", "pt")


def test_a_file_of_the_older_format_is_read(tmp_path: Path) -> None:
    state = nn.Linear(2, 2).state_dict()
    torch.save(state, tmp_path / "w.pt", _use_new_zipfile_serialization=False)
    loaded = load_weights(tmp_path / "w.pt")
    assert all(torch.equal(loaded[key], state[key]) for key in state)
