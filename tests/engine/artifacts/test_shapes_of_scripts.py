"""Shapes in the graph of a TorchScript program, against those of the program run by torch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from engine.artifacts.opening import open_artifact
from engine.artifacts.programs.script_inputs import by_batch
from engine.artifacts.programs.script_shapes import UNKNOWN, MisfitError, ShapeRun
from engine.protocol import Dim, ProgramGraph, shape_text
from tests.engine.artifacts.networks import Choosing, net
from tests.engine.subjects.eight import CASES, imported

pytestmark = pytest.mark.filterwarnings("ignore")  # TorchScript is deprecated; tracing warns
BATCH = 5
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


class Growing(nn.Module):
    """After its loop nobody can say the shape from one turn."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        y = self.inner(x)
        for _ in range(3):
            y = torch.cat([y, y])
        return y


class OneSample(nn.Module):
    """Takes batches of one sample only, as a program does that was traced with one."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.head = nn.Conv2d(1, 2, 3), nn.Linear(2 * 26 * 26, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.first(x).view(1, 2 * 26 * 26))


class Recurrent(nn.Module):
    def __init__(self, batch_first: bool = False) -> None:
        super().__init__()
        self.rnn = nn.GRU(5, 6, num_layers=2, batch_first=batch_first)
        self.head = nn.Linear(6, 3)

    def forward(self, x: Tensor) -> Tensor:
        out, last = self.rnn(x)
        return self.head(out[:, -1] if self.rnn.batch_first else out[-1]) + self.head(last[0])


def graph_of(program: Any, folder: Path) -> ProgramGraph:
    torch.jit.save(program, folder / "program.pt")
    graph = open_artifact(folder / "program.pt").graph
    assert graph is not None
    return graph


def sizes(shape: tuple[Dim, ...] | None, batch: int = BATCH) -> tuple[int, ...]:
    """A shape with a number in the place of the batch."""
    assert shape is not None
    return tuple(
        size if isinstance(size, int) else eval(size.replace("N", "*N").lstrip("*"), {"N": batch})
        for size in shape
    )


def assert_as_run(model: nn.Module, graph: ProgramGraph) -> None:
    """Run the model on inputs of the shapes that the graph has: what its modules and itself return
    has the shapes of the graph."""
    inputs = [
        torch.zeros(sizes(each.shape), dtype=getattr(torch, each.dtype)) for each in graph.inputs
    ]
    seen: dict[str, tuple[int, ...]] = {}
    for path, module in model.named_modules():
        if not list(module.children()) and list(module.parameters()):

            def note(_: Any, __: Any, out: Any, path: str = path) -> None:
                seen[path] = tuple((out[0] if isinstance(out, tuple) else out).shape)

            module.register_forward_hook(note)
    with torch.no_grad():
        outputs = model(*inputs)
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    expected = [tuple(each.shape) for each in outputs if isinstance(each, Tensor)]
    assert [sizes(each.shape) for each in graph.outputs] == expected
    compared = 0
    for path, shape in seen.items():
        own = [node for node in graph.nodes if node.module == path]
        if own and not any(node.op in ("if", "lstm", "gru") for node in own):
            assert sizes(own[-1].outputs[0].shape) == shape, path
            compared += 1
    assert compared or not seen
    for value in (*graph.inputs, *(value for node in graph.nodes for value in node.outputs)):
        assert value.shape is not None or value.dtype in (
            "int",
            "float",
            "bool",
            "list",
            "",
            "Tensor",
        )


@pytest.mark.parametrize(
    "model",
    [net(), net().half(), Dense(), Recurrent(), Recurrent().double()],
    ids=["net", "net of float16", "dense", "gru", "gru of float64"],
)
def test_scripts(model: nn.Module, tmp_path: Path) -> None:
    model.eval()
    graph = graph_of(torch.jit.script(model), tmp_path)
    assert_as_run(model, graph)
    told = ", ".join(f"{each.name} {shape_text(each.shape or ())}" for each in graph.inputs)
    assert f"These are for inputs that fit its weights: {told}." in graph.note


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


@pytest.mark.parametrize("name", ["resnet", "gpt", "siamese", "unet", "vae"])
@pytest.mark.parametrize("way", ["script", "trace"])
def test_own_models(name: str, way: str, tmp_path: Path) -> None:
    with imported(EIGHT[name].path) as file:
        model = EIGHT[name].model(file).eval()
        graph = graph_of(torch.jit.script(model), tmp_path)
        if way == "trace":
            inputs = [
                torch.zeros(sizes(each.shape), dtype=getattr(torch, each.dtype))
                for each in graph.inputs
            ]
            graph = graph_of(torch.jit.trace(model, tuple(inputs), check_trace=False), tmp_path)
            if name != "gpt":  # torch leaves some of its operations on sizes out
                program = torch.jit.load(tmp_path / "program.pt")
                names = [each.name for each in graph.inputs]
                assert operations_of(graph) == operations(program, names)
        assert_as_run(model, graph)


def test_batches_of_one_size(tmp_path: Path) -> None:
    graph = graph_of(torch.jit.script(OneSample()), tmp_path)
    assert graph.inputs[0].shape == (1, 1, 28, 28)
    assert graph.outputs[0].shape == (1, 3)


def test_after_a_loop_that_changes_a_shape_none_is_told(tmp_path: Path) -> None:
    model = Growing()
    graph = graph_of(torch.jit.script(model), tmp_path)
    (linear,) = [node for node in graph.nodes if node.op == "linear"]
    assert linear.outputs[0].shape == ("N", 4)
    assert graph.outputs[0].shape is None
    assert model(torch.zeros(2, 4)).shape == (16, 4)


def test_after_a_loop_that_keeps_a_shape_it_is_told(tmp_path: Path) -> None:
    graph = graph_of(torch.jit.script(Choosing()), tmp_path)
    assert graph.outputs[0].shape == ("N", 4)


def test_weights_that_fit_no_usual_input(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Conv2d(1, 1, 3), nn.Flatten(), nn.Linear(4321, 2))
    graph = graph_of(torch.jit.script(model), tmp_path)
    assert graph.inputs[0].shape is None and graph.outputs[0].shape is None
    assert "its weights do not tell those of its inputs" in graph.note
    assert [node.op for node in graph.nodes] == ["conv2d", "flatten", "linear"]


@pytest.mark.parametrize(
    ("two", "three", "expected"),
    [
        ((2, 4), (3, 4), ("N", 4)),
        ((4, 2), (6, 2), ("2N", 2)),
        ((1, 7), (2, 7), ("N-1", 7)),
        ((), (), ()),
        ((2,), (2, 3), None),
        (None, (2,), None),
    ],
)
def test_a_shape_by_the_batch(two, three, expected) -> None:
    assert by_batch(two, three) == expected


X = torch.empty(2, 3, device="meta")
BAD: list[tuple[str, list[Any]]] = [
    ("view", [X, -1]),  # torch would take it for the number of a dtype and divide by its size
    ("log_softmax", [X, 0, 99]),
    ("to", [X, 77]),
    ("to_dense", [X, -1]),  # torch crashes
    ("from_file", ["/etc/passwd", False, 5]),
    ("mul", [[0], 10**12]),
    ("add", ["a", "b"]),
    ("remainder", ["%1000000000d", 5]),
    ("chunk", [torch.empty(2**31, device="meta"), 2**31]),
    ("view", [X, [2**62, 4]]),
    ("relu", [UNKNOWN]),
    ("item", [X]),
    ("nonzero", [X]),
]


@pytest.mark.parametrize(("op", "args"), BAD, ids=[op for op, _ in BAD])
def test_what_no_shape_is_known_of(op: str, args: list[Any]) -> None:
    assert ShapeRun({}, {}, {}, 2).run(op, args, {}) is UNKNOWN


@pytest.mark.parametrize(
    ("op", "args"), [("linear", [X, torch.empty(4, 5, device="meta")]), ("view", [X, [4, 4]])]
)
def test_what_torch_refuses_does_not_fit(op: str, args: list[Any]) -> None:
    with pytest.raises(MisfitError):
        ShapeRun({}, {}, {}, 2).run(op, args, {})


def test_a_tensor_that_is_created_takes_no_memory() -> None:
    made = ShapeRun({}, {}, {}, 2).run("zeros", [[2**20, 2**19]], {"dtype": 7})
    assert (made.device.type, made.dtype, made.shape) == ("meta", torch.float64, (2**20, 2**19))


@pytest.mark.parametrize("batch_first", [False, True])
def test_the_batch_of_a_recurrent_program_is_where_it_takes_it(
    batch_first: bool, tmp_path: Path
) -> None:
    model = Recurrent(batch_first).eval()
    graph = graph_of(torch.jit.script(model), tmp_path)
    assert_as_run(model, graph)
    assert graph.inputs[0].shape == (("N", 16, 5) if batch_first else (16, "N", 5))
    assert graph.outputs[0].shape == ("N", 3)
