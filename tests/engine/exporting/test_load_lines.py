"""The lines of Python that each export shows: they are run as they stand, and load what was
written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from engine.exporting.examples import example_of
from engine.exporting.programs import exported, scripted, traced
from engine.exporting.state import own_state
from engine.exporting.weight_folders import save_distributed, save_hugging_face
from engine.exporting.weights import save_state
from engine.protocol.exporting.formats import Format, row_of
from engine.tensors.compare import same_bits


class Tied(nn.Module):
    """Tied weights, thrice, whose first name is not the first in the alphabet, and buffers."""

    def __init__(self) -> None:
        super().__init__()
        self.out = nn.Linear(4, 7, bias=False)
        self.embedding = nn.Embedding(7, 4)
        self.again = nn.Linear(4, 7)
        self.again.weight = self.embedding.weight = self.out.weight
        self.norm = nn.BatchNorm1d(4)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(self.norm(x)) + self.again(x)


def run_lines(format: Format, name: str, parts: bool = False, **variables: Any) -> dict[str, Any]:
    """Run them in the folder of the file; a model that stands there as `...` is given."""
    lines = row_of(format, parts).load_lines(name).replace("model = ...", "pass  #")
    exec(lines, variables)
    return variables


@pytest.fixture(autouse=True)
def in_the_folder(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)


def write(format: Format, state: dict[str, Tensor], parts: bool) -> None:
    if format == "hf":
        save_hugging_face(state, "Tied", Path("net"), 60 if parts else 10**9)
        assert (len(list(Path("net").glob("*.safetensors"))) > 1) == parts
    elif format == "dcp":
        save_distributed(state, Path("net"))
    else:
        assert format in ("pt", "safetensors")
        save_state(state, Path("net"), format)


@pytest.mark.filterwarnings("ignore:torch.distributed is")
@pytest.mark.parametrize(
    ("format", "parts"),
    [("pt", False), ("safetensors", False), ("dcp", False), ("hf", False), ("hf", True)],
)
def test_the_lines_of_weights_load_every_tensor(format: Format, parts: bool) -> None:
    state = own_state(Tied())
    write(format, state, parts)
    model = Tied()
    assert not same_bits(model.out.weight, state["out.weight"])
    model = run_lines(format, "net", parts, model=model)["model"]
    assert all(same_bits(tensor, state[key]) for key, tensor in own_state(model).items())
    assert model.embedding.weight is model.out.weight is model.again.weight  # tied as before


@pytest.mark.parametrize("format", ["pt", "safetensors", "hf"])
def test_the_lines_refuse_another_model(format: Format) -> None:
    write(format, own_state(Tied()), False)
    model = Tied()
    model.more = nn.Linear(2, 2)
    with pytest.raises(RuntimeError, match=r"[Mm]issing.*more\.weight"):
        run_lines(format, "net", model=model)


@pytest.mark.filterwarnings("ignore:`torch.jit.load` is deprecated")
@pytest.mark.parametrize("format", ["pt2", "torchscript-trace", "torchscript-script"])
def test_the_lines_of_programs_run_them(format: Format) -> None:
    model, x = Tied().eval(), torch.randn(3, 4)
    call = example_of((x,), {})
    program = {
        "pt2": lambda: exported(model, call),
        "torchscript-trace": lambda: traced(model, call),
        "torchscript-script": lambda: scripted(model),
    }[format]()
    with Path("net").open("wb") as file:
        program.save(file)
    output = run_lines(format, "net", x=x)["output"]
    assert torch.allclose(output, model(x), atol=1e-6)
