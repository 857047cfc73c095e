"""Models and state_dicts whose files the tests read, and what they compare."""

from __future__ import annotations

import math

import onnx
import onnx.numpy_helper
import torch
from onnx import TensorProto, helper
from torch import Tensor, nn
from torch._higher_order_ops import while_loop

from engine.artifacts.contents.artifact import Artifact
from engine.protocol import ProgramGraph


class Net(nn.Module):
    """Nested modules, buffers, a plain tensor, and batch norm, which has statistics."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU())
        self.head = nn.Linear(8, 2)
        self.register_buffer("scale", torch.full((3,), 0.5))

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.body(x)) * self.scale.sum()


class Choosing(nn.Module):
    """Its code has a loop, and a branch that depends on the data."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        for _ in range(x.size(0)):
            x = self.inner(x)
        return torch.relu(x) if bool(x.sum() > 0) else torch.tanh(x)


class Branching(nn.Module):
    """A branch and a loop that torch.export keeps, as graphs inside a node."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        y = torch.cond(
            x.sum() > 0,
            lambda v: torch.relu(self.a(v)),
            lambda v: torch.tanh(self.b(v)),
            (x,),
        )
        start = torch.zeros((), dtype=torch.int64)
        _, z = while_loop(lambda i, z: i < 3, lambda i, z: (i + 1, z * 2), (start, y))
        return z


def branching_onnx() -> onnx.ModelProto:
    """If, with equal names in both branches, and Loop."""

    def number(value: Tensor, name: str) -> onnx.TensorProto:
        return onnx.numpy_helper.from_array(value.numpy(), name)

    def floats(name: str) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 4])

    def branch(op: str) -> onnx.GraphProto:
        nodes = [helper.make_node(op, ["x"], ["t"]), helper.make_node("Add", ["t", "w"], ["out"])]
        return helper.make_graph(nodes, op, [], [floats("out")], [number(torch.ones(4), "w")])

    count = helper.make_tensor_value_info("i", TensorProto.INT64, [])
    goes_on = helper.make_tensor_value_info("c", TensorProto.BOOL, [])
    goes_on_after = helper.make_tensor_value_info("co", TensorProto.BOOL, [])
    nodes = [
        helper.make_node("Mul", ["v", "two"], ["vo"]),
        helper.make_node("Identity", ["c"], ["co"]),
    ]
    body = helper.make_graph(
        nodes, "body", [count, goes_on, floats("v")], [goes_on_after, floats("vo")],
        [number(torch.tensor(2.0), "two")],
    )  # fmt: skip
    choose = helper.make_node(
        "If", ["p"], ["y"], name="choose", then_branch=branch("Relu"), else_branch=branch("Tanh")
    )
    again = helper.make_node("Loop", ["n", "p", "y"], ["z"], name="again", body=body)
    which = helper.make_tensor_value_info("p", TensorProto.BOOL, [])
    graph = helper.make_graph(
        [choose, again], "nested", [floats("x"), which], [floats("z")],
        [number(torch.tensor(3), "n")],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    onnx.checker.check_model(model)
    return model


def scanning_onnx() -> onnx.ModelProto:
    """Scan, which sums up rows, and a sparse initializer."""

    def floats(name: str, *shape: int) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)

    nodes = [
        helper.make_node("Add", ["sum", "row"], ["next"]),
        helper.make_node("Identity", ["next"], ["each"]),
    ]
    body = helper.make_graph(
        nodes, "body", [floats("sum", 4), floats("row", 4)], [floats("next", 4), floats("each", 4)]
    )
    scan = helper.make_node(
        "Scan", ["start", "x"], ["last", "all"], name="scan", body=body, num_scan_inputs=1
    )
    times = helper.make_node("MatMul", ["all", "w"], ["y"], name="times")
    sparse = helper.make_sparse_tensor(
        helper.make_tensor("w", TensorProto.FLOAT, [3], [1.0, 2.0, 3.0]),
        helper.make_tensor("w_at", TensorProto.INT64, [3], [0, 5, 10]),
        [4, 4],
    )
    graph = helper.make_graph(
        [scan, times], "scanning", [floats("start", 4), floats("x", 3, 4)],
        [floats("last", 4), floats("y", 3, 4)], sparse_initializer=[sparse],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    onnx.checker.check_model(model)
    return model


def deep_onnx(depth: int) -> bytes:
    """A model whose graph is in a node of a graph in a node, and so on, byte by byte: onnx's own
    writer has a bound."""

    def field(number: int, data: bytes) -> bytes:
        size, head = len(data), bytes([number << 3 | 2])
        while size > 127:
            head, size = head + bytes([size & 127 | 128]), size >> 7
        return head + bytes([size]) + data

    graph = b""
    for _ in range(depth):
        attribute = field(1, b"body") + field(6, graph)
        graph = field(1, field(4, b"Loop") + field(5, attribute))
    return bytes([8, 8]) + field(7, graph)


def net() -> Net:
    torch.manual_seed(0)
    return Net().eval()


def odd_state() -> dict[str, Tensor]:
    """Tensors of all kinds that a state_dict can have."""
    torch.manual_seed(1)
    whole = torch.randn(4, 6)
    return {
        "plain.weight": torch.randn(3, 5),
        "transposed": torch.randn(5, 2).t(),
        "view": torch.arange(1000.0)[10:34].view(4, 6)[:, 1::2],
        "row": whole[1],
        "shared": whole,
        "scalar": torch.tensor(2.5, dtype=torch.float64),
        "empty": torch.empty(0, 3),
        "half": torch.randn(3).half(),
        "brain": torch.randn(3, dtype=torch.bfloat16),
        "float8": torch.randn(4).to(torch.float8_e4m3fn),
        "complex": torch.randn(3, dtype=torch.complex64),
        "bool": torch.tensor([True, False, True]),
        "unsigned": torch.tensor([1, 65535], dtype=torch.uint16),
        "int8": torch.tensor([-128, 127], dtype=torch.int8),
        "strange": torch.tensor([math.nan, math.inf, -0.0]),
        "parameter": nn.Parameter(torch.ones(2)),
    }


def program(artifact: Artifact) -> ProgramGraph:
    assert artifact.graph is not None
    return artifact.graph


def assert_same_weights(artifact: Artifact, model: onnx.ModelProto) -> None:
    assert {e.key for e in artifact.tensors} == {t.name for t in model.graph.initializer}
    for tensor in model.graph.initializer:
        expected = torch.from_numpy(onnx.numpy_helper.to_array(tensor).copy())
        assert torch.equal(artifact.tensor(tensor.name), expected), tensor.name
