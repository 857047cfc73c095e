"""The numbers of an ONNX model, wherever they are in it: against onnx.numpy_helper."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnx
import onnx.numpy_helper
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import GraphProto, NodeProto, TensorProto, helper

from engine.artifacts.contents.artifact import Artifact
from engine.artifacts.contents.shared_memory import memory_of
from engine.artifacts.opening import open_artifact
from tests.engine.artifacts.networks import program
from tests.examples import examples

KINDS = [
    kind
    for kind in TensorProto.DataType.values()
    if kind not in (TensorProto.UNDEFINED, TensorProto.STRING) and kind <= TensorProto.INT2
]
"""Without those of 6 bits, which are said to be unread."""


def expected_of(tensor: TensorProto) -> np.ndarray:
    """What onnx reads, with numbers of fewer than 8 bits as torch can have them."""
    found = onnx.numpy_helper.to_array(tensor)
    narrow: dict[int, type] = {
        TensorProto.INT4: np.int8, TensorProto.UINT4: np.uint8, TensorProto.INT2: np.int8,
        TensorProto.UINT2: np.uint8, TensorProto.FLOAT4E2M1: np.float32,
    }  # fmt: skip
    return found.astype(narrow.get(tensor.data_type, found.dtype))


def bytes_of(array: np.ndarray) -> bytes:
    return np.ascontiguousarray(array).tobytes()


def torch_bytes(tensor: torch.Tensor) -> bytes:
    return tensor.contiguous().view(-1).view(torch.uint8).numpy().tobytes()


def node(op: str, inputs: list[str], outputs: list[str], **attributes: Any) -> NodeProto:
    return helper.make_node(op, inputs, outputs, **attributes)


def model(nodes: list[NodeProto], **more: Any) -> onnx.ModelProto:
    functions = more.pop("functions", [])
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("my", 1)]
    graph = helper.make_graph(nodes, "net", [value("x")], [value("y")], **more)
    return helper.make_model(graph, opset_imports=opsets, functions=functions)


def value(name: str) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, None)


def opened(whole: onnx.ModelProto, folder: Path, name: str = "net.onnx") -> Artifact:
    path = folder / name
    path.write_bytes(whole.SerializeToString())
    return open_artifact(path)


@st.composite
def numbers(draw) -> TensorProto:
    """A tensor of any kind and shape, its numbers as raw bytes or in fields of their own."""
    kind = draw(st.sampled_from(KINDS))
    shape = draw(st.lists(st.integers(0, 3), max_size=3))
    count = int(np.prod(shape))
    dtype = helper.tensor_dtype_to_np_dtype(kind)
    values = draw(st.lists(st.integers(-128, 127), min_size=count, max_size=count))
    whole = np.array(values, np.int64)
    if kind == TensorProto.BOOL:
        whole %= 2
    array = (whole.astype(np.float32) / 8).astype(dtype) if is_float(kind) else whole.astype(dtype)
    array = array.reshape(shape)
    if is_packed(kind) or draw(st.booleans()):
        made = onnx.numpy_helper.from_array(array, "w")
    else:
        made = helper.make_tensor("w", kind, shape, array.flatten().tolist())
    if is_packed(kind) and draw(st.booleans()):
        typed = TensorProto(name="w", data_type=kind, dims=shape)
        typed.int32_data.extend(made.raw_data)
        made = typed
    return made


def is_float(kind: int) -> bool:
    name = TensorProto.DataType.Name(kind)
    return "FLOAT" in name or name in ("DOUBLE", "COMPLEX64", "COMPLEX128")


def is_packed(kind: int) -> bool:
    return TensorProto.DataType.Name(kind).endswith(("INT4", "INT2", "FLOAT4E2M1"))


@settings(max_examples=examples(300), deadline=None)
@given(numbers(), st.sampled_from(["initializer", "Constant", "attribute", "in a function"]))
def test_any_tensor_anywhere(tensor: TensorProto, where: str) -> None:
    constant = node("Constant", [], ["w"], value=tensor)
    whole = {
        "initializer": lambda: model([], initializer=[tensor]),
        "Constant": lambda: model([constant]),
        "attribute": lambda: model([node("ConstantOfShape", ["x"], ["y"], value=tensor)]),
        "in a function": lambda: model([], functions=[
            helper.make_function("my", "F", [], ["w"], [constant], [helper.make_opsetid("", 21)])
        ]),
    }[where]()  # fmt: skip
    key = {"attribute": "y.value", "in a function": "my::F.w"}.get(where, "w")
    with TemporaryDirectory() as folder:
        artifact = opened(whole, Path(folder))
        (entry,) = artifact.tensors
        expected = expected_of(tensor)
        assert (entry.key, entry.shape) == (key, expected.shape)
        assert entry.role == ("" if where == "initializer" else "constant")
        found = artifact.tensor(key)
        assert tuple(found.shape) == expected.shape
        assert torch_bytes(found) == bytes_of(expected)
        size = len(onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(tensor)).raw_data)
        assert memory_of(artifact.entries)[key].added_bytes == size


VALUES: list[tuple[str, Any]] = [
    ("value_float", 0.1), ("value_float", 0.0), ("value_int", 2**62 + 1), ("value_int", 0),
    ("value_floats", [0.1, -3.0, 1e30]), ("value_ints", [-1, 0, 2**60]), ("value_floats", []),
]  # fmt: skip


@pytest.mark.parametrize(("name", "told"), VALUES)
def test_numbers_of_a_constant_in_its_attributes(name: str, told: Any, tmp_path: Path) -> None:
    dtype = torch.float32 if "float" in name else torch.int64
    constant = NodeProto(op_type="Constant", output=["w"])
    kind = {"value_float": 1, "value_int": 2, "value_floats": 6, "value_ints": 7}[name]
    constant.attribute.append(helper.make_attribute(name, told, attr_type=kind))
    artifact = opened(model([constant]), tmp_path)
    assert torch.equal(artifact.tensor("w"), torch.tensor(told, dtype=dtype))
    (entry,) = artifact.tensors
    assert (entry.role, entry.value) == ("constant", "w")


def test_texts_are_values(tmp_path: Path) -> None:
    texts = onnx.numpy_helper.from_array(np.array(["a", "b"], object), "t")
    nodes = [
        node("Constant", [], ["one"], value_string="red"),
        node("Constant", [], ["two"], value_strings=["red", "x" * 3000]),
        node("Constant", [], ["three"], value=texts),
    ]
    artifact = opened(model(nodes, initializer=[texts]), tmp_path)
    told = {entry.key: entry.text for entry in artifact.entries}
    assert told["one"] == "() “red”" and told["three"] == told["t"] == "(2,) “a”, “b”"
    assert told["two"].startswith("(2,) “red”, “xxx") and "#" in told["two"]
    assert not artifact.tensors


def sparse(values: list[float]) -> onnx.SparseTensorProto:
    return helper.make_sparse_tensor(
        helper.make_tensor("", TensorProto.FLOAT, [len(values)], values),
        helper.make_tensor("", TensorProto.INT64, [len(values)], list(range(len(values)))),
        [4, 4],
    )


def test_sparse_constants(tmp_path: Path) -> None:
    artifact = opened(
        model([node("Constant", [], ["w"], sparse_value=sparse([1.0, 2.0]))]), tmp_path
    )
    assert [entry.key for entry in artifact.tensors] == ["w", "w/values", "w/indices"]
    assert torch.equal(artifact.tensor("w/values"), torch.tensor([1.0, 2.0]))
    assert artifact.tensors[0].in_parts


def graphs_in(graph: GraphProto, box: str) -> Iterator[tuple[str, GraphProto]]:
    yield box, graph
    for each in graph.node:
        for attribute in each.attribute:
            if attribute.HasField("g"):
                inner = ".".join(filter(None, (box, each.name, attribute.name)))
                yield from graphs_in(attribute.g, inner)


def constant_in(graph_of: str, number: float) -> NodeProto:
    """A node with a graph in which there is a constant."""
    own = helper.make_tensor("", TensorProto.FLOAT, [1], [number])
    body = [node("Constant", [], ["w"], value=own), node("Add", ["v", "w"], ["out"])]
    if graph_of == "If":
        outside = [node("Constant", [], ["w"], value=own), node("Add", ["x", "w"], ["out"])]
        branch = helper.make_graph(outside, "branch", [], [value("out")])
        return node("If", ["x"], ["y"], name="n", then_branch=branch, else_branch=branch)
    if graph_of == "Loop":
        inputs = [value(each) for each in "icv"]
        body.append(node("Identity", ["c"], ["go"]))
        loop = helper.make_graph(body, "body", inputs, [value("go"), value("out")])
        return node("Loop", ["x", "x", "x"], ["y"], name="n", body=loop)
    scan = helper.make_graph(body, "body", [value("v")], [value("out")])
    return node("Scan", ["x"], ["y"], name="n", body=scan, num_scan_inputs=1)


@pytest.mark.parametrize("op", ["If", "Loop", "Scan"])
def test_constants_in_graphs_inside_a_node(op: str, tmp_path: Path) -> None:
    whole = model([constant_in(op, 2.5)])
    artifact = opened(whole, tmp_path)
    expected = {
        f"{box}.w": onnx.numpy_helper.to_array(each.attribute[0].t)
        for box, graph in graphs_in(whole.graph, "")
        for each in graph.node
        if each.op_type == "Constant"
    }
    assert {entry.key for entry in artifact.tensors} == expected.keys()
    for key, numbers_ in expected.items():
        assert torch.equal(artifact.tensor(key), torch.from_numpy(numbers_.copy())), key
    takers = [each for each in program(artifact).nodes if each.op == "Add"]
    assert {name for each in takers for name in each.inputs} >= expected.keys()
