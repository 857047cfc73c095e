"""Models of ONNX: numbers, attributes and graphs inside a node, against the onnx package."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnx.numpy_helper
import pytest
import torch
from onnx import TensorProto, helper

from engine.artifacts.opening import open_artifact
from engine.system.errors import LabError
from engine.tensors.compare import same_bits
from tests.engine.artifacts.networks import (
    assert_same_weights,
    branching_onnx,
    deep_onnx,
    program,
    scanning_onnx,
)


def test_what_an_onnx_model_says_of_itself_and_its_attributes(tmp_path: Path) -> None:
    one = onnx.numpy_helper.from_array(torch.ones(1).numpy(), "one")
    given = {
        "f": 0.5, "i": -3, "s": "text", "t": one, "fs": [1.5, -0.25], "is": [1, -2],
        "ss": ["a", "b"],
    }  # fmt: skip
    own = helper.make_node("Own", ["x"], ["y"], domain="its.own", **given)
    usual = helper.make_node("Relu", ["y"], ["z"], name="last")
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT16, ["rows", 4, None])
    words = helper.make_tensor_sequence_value_info("z", TensorProto.FLOAT, None)
    model = helper.make_model(
        helper.make_graph([own, usual], "the graph", [x], [words]),
        producer_name="maker", producer_version="1.2", domain="of it", model_version=7,
        doc_string="what it is", opset_imports=[helper.make_opsetid("its.own", 3)],
    )  # fmt: skip
    helper.set_model_props(model, {"author": "somebody"})
    onnx.save(model, tmp_path / "own.onnx")
    artifact = open_artifact(tmp_path / "own.onnx")
    assert artifact.metadata == {
        "ir_version": str(model.ir_version), "producer_name": "maker", "producer_version": "1.2",
        "domain": "of it", "model_version": "7", "doc_string": "what it is",
        "opset": "its.own 3", "author": "somebody",
    }  # fmt: skip
    assert "the graph" in artifact.title
    graph = program(artifact)
    assert (graph.inputs[0].shape, graph.inputs[0].dtype) == (("rows", 4, "?"), "float16")
    assert (graph.outputs[0].shape, graph.outputs[0].dtype) == (None, "sequence")
    assert [(node.name, node.op) for node in graph.nodes] == [
        ("", "its.own::Own"),
        ("last", "Relu"),
    ]
    texts = dict(graph.nodes[0].attributes)
    assert texts.keys() == given.keys() and "tensor" in texts["t"]
    assert (float(texts["f"]), int(texts["i"])) == (0.5, -3)
    for name, kind in (("fs", float), ("is", int)):
        assert [kind(each) for each in texts[name].split(",")] == given[name]
    assert all(word in texts[name] for name in ("s", "ss") for word in given[name])


TYPED = [
    (TensorProto.FLOAT, [1.5, -2.0]),
    (TensorProto.DOUBLE, [1e300, 2.0]),
    (TensorProto.INT32, [-3, 4]),
    (TensorProto.INT64, [-(2**60), 7]),
    (TensorProto.INT8, [-128, 127]),
    (TensorProto.UINT8, [0, 255]),
    (TensorProto.UINT64, [2**63 + 1, 5]),
    (TensorProto.BOOL, [1, 0]),
    (TensorProto.FLOAT16, [1.5, -0.25]),
    (TensorProto.COMPLEX64, [1 + 2j, -3j]),
]


@pytest.mark.parametrize("raw", [True, False], ids=["raw", "typed"])
def test_every_way_in_which_onnx_stores_numbers(raw: bool, tmp_path: Path) -> None:
    tensors = []
    for kind, values in TYPED:
        name = TensorProto.DataType.Name(kind)
        tensor = helper.make_tensor(name, kind, [2], values)
        if raw:
            tensor = onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(tensor), name)
        tensors.append(tensor)
    graph = helper.make_graph([], "weights", [], [], tensors)
    model = helper.make_model(graph)
    path = tmp_path / "weights.onnx"
    path.write_bytes(model.SerializeToString())
    assert_same_weights(open_artifact(path), model)


def test_onnx_numbers_in_a_file_beside_it(tmp_path: Path) -> None:
    tensor = onnx.numpy_helper.from_array(torch.arange(600.0).view(2, 300).numpy(), "w")
    model = helper.make_model(helper.make_graph([], "beside", [], [], [tensor]))
    onnx.save(
        model, tmp_path / "net.onnx", save_as_external_data=True, location="net.data",
        size_threshold=0,
    )  # fmt: skip
    artifact = open_artifact(tmp_path / "net.onnx")
    assert torch.equal(artifact.tensor("w"), torch.arange(600.0).view(2, 300))
    assert artifact.entries[0].file == "net.data"
    assert artifact.size_bytes == sum(p.stat().st_size for p in tmp_path.iterdir())


def test_graphs_inside_a_node_of_onnx(tmp_path: Path) -> None:
    """If and Loop are boxes, in which their graphs are boxes; equal names in both branches stay
    apart, and what a branch takes from outside leads there."""
    path = tmp_path / "nested.onnx"
    onnx.save(branching_onnx(), path)
    artifact = open_artifact(path)
    graph = program(artifact)
    assert {module.path: module.type for module in graph.modules} == {
        "choose": "If", "choose.then_branch": "then_branch of If",
        "choose.else_branch": "else_branch of If", "again": "Loop", "again.body": "body of Loop",
    }  # fmt: skip
    assert "nested" in artifact.title  # the name of the outer graph, not of one inside
    told = {(node.module, node.op): node for node in graph.nodes}
    assert all("graph" in text for _, text in told["choose", "If"].attributes)
    assert len(told["choose", "If"].attributes) == 2
    relu, tanh = told["choose.then_branch", "Relu"], told["choose.else_branch", "Tanh"]
    assert relu.inputs == tanh.inputs == ("x",)
    add = told["choose.then_branch", "Add"]
    assert add.inputs == (relu.outputs[0].name, "choose.then_branch.w")
    assert add.outputs[0].shape == (2, 4)
    branches = {told[f"choose.{side}_branch", "Add"].outputs[0].name for side in ("then", "else")}
    assert len(branches) == 2 and {"p", *branches} == set(told["choose", "If"].inputs)
    assert told["again.body", "Mul"].inputs == ("y", "again.body.two")
    assert told["again", "Loop"].inputs[:3] == ("n", "p", "y")
    assert told["again.body", "Mul"].outputs[0].name in told["again", "Loop"].inputs
    weights = {entry.key: entry.value for entry in artifact.tensors}
    assert weights.keys() == {
        "n", "choose.then_branch.w", "choose.else_branch.w", "again.body.two"
    }  # fmt: skip
    assert same_bits(artifact.tensor("again.body.two"), torch.tensor(2.0))
    known = {value.name for node in graph.nodes for value in node.outputs} | {"x", "p", *weights}
    assert all(name in known for node in graph.nodes for name in node.inputs)


def test_scan_of_onnx_and_a_sparse_tensor(tmp_path: Path) -> None:
    """What Scan is given are the inputs of its graph, and what that gives is among its own."""
    path = tmp_path / "scan.onnx"
    onnx.save(scanning_onnx(), path)
    artifact = open_artifact(path)
    graph = program(artifact)
    assert {module.path: module.type for module in graph.modules} == {
        "scan": "Scan", "scan.body": "body of Scan"
    }  # fmt: skip
    told = {(node.module, node.op): node for node in graph.nodes}
    add, each = told["scan.body", "Add"], told["scan.body", "Identity"]
    assert add.inputs == ("start", "x") and add.outputs[0].shape == (4,)
    assert each.inputs == (add.outputs[0].name,)
    scan = told["scan", "Scan"]
    assert scan.inputs == ("start", "x", add.outputs[0].name, each.outputs[0].name)
    assert told["", "MatMul"].inputs == (scan.outputs[1].name, "w")
    assert told["", "MatMul"].outputs[0].shape == (3, 4)
    entries = {entry.key: entry for entry in artifact.entries}
    assert list(entries) == ["w", "w/values", "w/indices"] and entries["w"].shape == (4, 4)
    assert "sparse: 3 numbers are stored" in entries["w"].note and entries["w"].value == "w"
    values, places = artifact.tensor("w/values"), artifact.tensor("w/indices")
    dense = torch.zeros(16).scatter(0, places, values).view(4, 4)
    assert torch.equal(dense, torch.diag(torch.tensor([1.0, 2.0, 3.0, 0.0])))


@pytest.mark.parametrize("depth", [15, 25, 3000])
def test_graphs_in_graphs_have_a_bound(depth: int, tmp_path: Path) -> None:
    path = tmp_path / "deep.onnx"
    path.write_bytes(deep_onnx(depth))
    if depth < 20:
        assert len(program(open_artifact(path)).modules) == 2 * depth
    else:
        with pytest.raises(LabError, match="its graphs are nested more than 20 deep"):
            open_artifact(path)


def test_the_box_of_a_choice_without_a_name_is_called_after_its_result(tmp_path: Path) -> None:
    def branch(op: str) -> onnx.GraphProto:
        value = helper.make_tensor_value_info("z", TensorProto.FLOAT, [2])
        return helper.make_graph([helper.make_node(op, ["x"], ["z"])], op, [], [value])

    float_, bool_ = TensorProto.FLOAT, TensorProto.BOOL
    choice = helper.make_node(
        "If", ["c"], ["y"], then_branch=branch("Abs"), else_branch=branch("Neg")
    )
    graph = helper.make_graph(
        [choice], "net",
        [helper.make_tensor_value_info("x", float_, [2]),
         helper.make_tensor_value_info("c", bool_, [])],
        [helper.make_tensor_value_info("y", float_, [2])],
    )  # fmt: skip
    onnx.save(helper.make_model(graph), tmp_path / "if.onnx")
    found = open_artifact(tmp_path / "if.onnx").graph
    assert found is not None
    assert [each.path for each in found.modules] == ["y", "y.else_branch", "y.then_branch"]
    assert [(node.op, node.module) for node in found.nodes] == [
        ("Neg", "y.else_branch"), ("Abs", "y.then_branch"), ("If", "y"),
    ]  # fmt: skip
