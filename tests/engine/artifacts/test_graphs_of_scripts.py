"""The graph of a TorchScript program, against the one that torch has of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from engine.artifacts.opening import open_artifact
from engine.protocol import ProgramGraph
from tests.engine.subjects.eight import CASES, imported

pytestmark = pytest.mark.filterwarnings("ignore")  # TorchScript is deprecated; tracing warns
EIGHT = {case.name: case for case in CASES}


class Dense(nn.Module):
    """Appends to a list and joins it; unpacks a size; makes a tensor of a constant size."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 4, 3, padding=1), nn.Conv2d(7, 2, 3, padding=1)
        self.head = nn.Linear(9 * 16 * 16, 3)

    def forward(self, x: Tensor) -> Tensor:
        features = [x]
        features.append(self.first(x))
        features.append(self.second(torch.cat(features, 1)))
        joined = torch.cat(features, 1)
        n, _, _, _ = joined.size()
        return self.head(joined.view(n, -1)) + torch.zeros(3, dtype=torch.float64).to(x.dtype)


def graph_of(program: Any, folder: Path) -> ProgramGraph:
    torch.jit.save(program, folder / "program.pt")
    graph = open_artifact(folder / "program.pt").graph
    assert graph is not None
    return graph


def operations(program: Any, inputs: list[str]) -> list[tuple[str, tuple[int | str, ...]]]:
    """The operations in torch's own graph of a loaded program, each with where its values come
    from: the number of an operation, an input, or the path of a tensor."""
    graph = program.inlined_graph
    (module, *rest), found = list(graph.inputs()), []
    paths = {module.debugName(): ""}
    sources: dict[str, list[int | str]] = {
        value.debugName(): [name] for value, name in zip(rest, inputs, strict=True)
    }
    for node in graph.nodes():
        given = [value.debugName() for value in node.inputs()]
        if node.kind() == "prim::GetAttr":
            path = f"{paths[given[0]]}.{node.s('name')}".lstrip(".")
            made: list[int | str] = [path]
            paths[node.output().debugName()] = path
        elif node.kind() == "prim::Constant":
            made = ["CONSTANTS"] if node.output().type().kind() == "TensorType" else []
        else:
            made = list(dict.fromkeys(each for value in given for each in sources[value]))
            if not node.kind().endswith(("Construct", "Unpack")):
                op = node.kind().removeprefix("aten::").replace("::", ".")
                found.append((op, tuple(made)))
                made = [len(found) - 1]
        sources |= {value.debugName(): made for value in node.outputs()}
    return found


def operations_of(graph: ProgramGraph) -> list[tuple[str, tuple[int | str, ...]]]:
    """The same of the graph that is read."""
    made = {value.name: at for at, node in enumerate(graph.nodes) for value in node.outputs}

    def source(name: str) -> int | str:
        return "CONSTANTS" if name.startswith("CONSTANTS.") else made.get(name, name)

    return [(node.op, tuple(dict.fromkeys(map(source, node.inputs)))) for node in graph.nodes]


@pytest.mark.parametrize("name", ["resnet", "siamese", "unet", "vae"])
def test_a_traced_program_has_the_operations_of_torchs_own_graph(name: str, tmp_path: Path) -> None:
    case = EIGHT[name]
    with imported(case.path) as file:
        model = case.model(file).eval()
        first = next(iter(case.batches(file)))
        parameters = model.forward.__code__.co_argcount - 1
        inputs = tuple(first[:parameters])
        graph = graph_of(torch.jit.trace(model, inputs, check_trace=False), tmp_path)
    program = torch.jit.load(tmp_path / "program.pt")
    names = [each.name for each in graph.inputs]
    assert operations_of(graph) == operations(program, names)
    values = [*graph.inputs, *graph.outputs, *(v for node in graph.nodes for v in node.outputs)]
    assert {value.shape for value in values} == {None}
    assert graph.note.startswith("A TorchScript file has no shapes")


def test_a_scripted_program_is_followed_through_lists_and_sizes(tmp_path: Path) -> None:
    graph = graph_of(torch.jit.script(Dense()), tmp_path)
    ops = [node.op for node in graph.nodes]
    assert [op for op in ops if op in ("conv2d", "cat", "linear", "zeros", "view", "add")] == [
        "conv2d", "cat", "conv2d", "cat", "view", "linear", "zeros", "add",
    ]  # fmt: skip
    (joined,) = [node for node in graph.nodes if node.op == "cat"][1:]
    assert len(joined.inputs) == 3
