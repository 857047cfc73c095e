"""Programs of ONNX, torch.export and TorchScript, against what their own libraries load."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from pathlib import Path

import onnx
import onnx.numpy_helper
import pytest
import torch
from onnx import TensorProto, helper
from torch._export.serde.serialize import _TORCH_TO_SERIALIZE_DTYPE as TORCH_TO_NUMBERS

from engine.artifacts.contents.artifact import Artifact
from engine.artifacts.opening import open_artifact
from engine.artifacts.programs.exported_program import _DTYPES as EXPORTED
from engine.artifacts.programs.onnx_tensors import DTYPES as ONNX
from engine.artifacts.programs.onnx_tensors import OTHERS as ONNX_OTHERS
from engine.errors import LabError
from engine.protocol import ProgramGraph, ProgramNode
from engine.tensors.compare import same_bits
from tests.engine.artifacts.networks import (
    Branching,
    Choosing,
    branching_onnx,
    deep_onnx,
    net,
    scanning_onnx,
)


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> Path:
    """One folder with the network in each format."""
    folder = tmp_path_factory.mktemp("programs")
    model, x = net(), torch.ones(2, 4)
    batch = {"x": {0: torch.export.Dim("batch")}}
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.export.save(
            torch.export.export(model, (x,), dynamic_shapes=batch), folder / "net.pt2"
        )
        torch.jit.save(torch.jit.script(model), folder / "script.pt")
        torch.jit.save(torch.jit.trace(model, x), folder / "trace.pt")
        torch.jit.save(torch.jit.script(Choosing()), folder / "choosing.pt")
        torch.onnx.export(
            model, (x,), folder / "net.onnx", dynamo=True, external_data=False, verbose=False,
            dynamic_shapes=batch,
        )  # fmt: skip
    return folder


def program(artifact: Artifact) -> ProgramGraph:
    assert artifact.graph is not None
    return artifact.graph


def by_op(graph: ProgramGraph, op: str) -> list[ProgramNode]:
    return [node for node in graph.nodes if node.op == op]


def test_a_program_of_torch_export(files: Path) -> None:
    artifact = open_artifact(files / "net.pt2")
    exported = torch.export.load(files / "net.pt2")
    state = {**exported.state_dict, **exported.constants}
    assert {entry.key for entry in artifact.tensors} == set(state)
    assert all(same_bits(artifact.tensor(key), value.detach()) for key, value in state.items())
    parameters = {e.key for e in artifact.entries if e.role == "parameter"}
    assert parameters == {name for name, _ in net().named_parameters()}
    graph = program(artifact)
    own = [node for node in exported.graph.nodes if node.op == "call_function"]
    assert [node.name for node in graph.nodes] == [node.name for node in own]
    assert [node.inputs for node in graph.nodes] == [
        tuple(each.name for each in node.all_input_nodes) for node in own
    ]
    for mine, theirs in zip(graph.nodes, own, strict=True):
        value = theirs.meta["val"]
        (made,) = mine.outputs
        assert tuple(map(str, made.shape or ())) == tuple(map(str, value.shape))
        assert f"torch.{made.dtype}" == str(value.dtype)
        named = zip(theirs.target._schema.arguments, theirs.args, strict=False)
        assert dict(mine.attributes) == {
            each.name: str(arg) for each, arg in named if not isinstance(arg, torch.fx.Node)
        }
    (relu,) = by_op(graph, "aten.relu")
    assert relu.module == "body.2"
    assert {m.path: m.type for m in graph.modules}["body"] == "Sequential"
    values = {entry.key: entry.value for entry in artifact.entries}
    assert values["head.weight"] == "p_head_weight"
    assert [value.name for value in graph.inputs] == ["x"]
    signature = exported.graph_signature
    assert tuple(value.name for value in graph.outputs) == signature.user_outputs
    ((size, bounds),) = exported.range_constraints.items()
    assert graph.inputs[0].shape == (str(size), 4)
    assert artifact.metadata[f"size {size}"] == f"{bounds.lower} to any"
    assert artifact.metadata["torch"] == torch.__version__


def test_an_onnx_model(files: Path) -> None:
    artifact = open_artifact(files / "net.onnx")
    model = onnx.load(files / "net.onnx")
    assert_same_weights(artifact, model)
    graph = program(artifact)
    assert [n.op for n in graph.nodes] == [n.op_type for n in model.graph.node]
    assert [list(n.inputs) for n in graph.nodes] == [list(n.input) for n in model.graph.node]
    assert artifact.metadata["opset"] == str(model.opset_import[0].version)
    assert graph.inputs[0].shape == ("batch", 4) and graph.outputs[0].shape == ("batch", 2)
    (relu,) = by_op(graph, "Relu")
    assert relu.module == "body.2" and relu.outputs[0].shape == ("batch", 8)
    assert {m.path: m.type for m in graph.modules}["body.2"] == "ReLU"


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


def assert_same_weights(artifact: Artifact, model: onnx.ModelProto) -> None:
    assert {e.key for e in artifact.tensors} == {t.name for t in model.graph.initializer}
    for tensor in model.graph.initializer:
        expected = torch.from_numpy(onnx.numpy_helper.to_array(tensor).copy())
        assert torch.equal(artifact.tensor(tensor.name), expected), tensor.name


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


@pytest.mark.parametrize("name", ["script.pt", "trace.pt"])
def test_a_torchscript_program(files: Path, name: str) -> None:
    artifact = open_artifact(files / name)
    state = net().state_dict()
    assert {e.key for e in artifact.tensors if not e.key.startswith("CONSTANTS")} == set(state)
    assert all(same_bits(artifact.tensor(key), value) for key, value in state.items())
    roles = {entry.key: entry.role for entry in artifact.entries}
    assert roles["head.bias"] == "parameter" and roles["body.1.running_var"] == "buffer"
    graph = program(artifact)
    assert [(n.op, n.module) for n in graph.nodes][:4] == [
        ("linear", "body.0"), ("batch_norm", "body.1"), ("relu", "body.2"), ("linear", "head"),
    ]  # fmt: skip
    assert graph.nodes[0].inputs == ("x", "body.0.weight", "body.0.bias")
    assert {m.path: m.type for m in graph.modules}["body.1"] == "BatchNorm1d"
    assert graph.outputs[0].name == graph.nodes[-1].outputs[0].name
    made = {value.name for node in graph.nodes for value in node.outputs}
    known = made | {"x"} | {entry.value for entry in artifact.entries}
    assert all(name in known for node in graph.nodes for name in node.inputs)


class Holding(torch.nn.Module):
    """Has attributes of many kinds."""

    def __init__(self) -> None:
        super().__init__()
        self.count, self.label, self.is_on = 3, "abc", True
        self.plain, self.tensors = torch.ones(2), [torch.zeros(2), torch.ones(3)]
        self.numbers, self.table = [1, 2], {"a": 4}

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.count + self.plain + self.tensors[0] + self.numbers[0] + self.table["a"]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of torch.jit
def test_attributes_of_a_torchscript_module(tmp_path: Path) -> None:
    torch.jit.save(torch.jit.script(Holding()), tmp_path / "holding.pt")
    artifact = open_artifact(tmp_path / "holding.pt")
    texts = {each.key: each.text for each in artifact.entries if each.kind == "value"}
    model = Holding()
    assert texts == {
        "count": str(model.count), "label": model.label, "is_on": str(model.is_on),
        "numbers": str(model.numbers), "table/a": str(model.table["a"]),
    }  # fmt: skip
    tensors = {"plain": model.plain, "tensors/0": model.tensors[0], "tensors/1": model.tensors[1]}
    assert {each.key for each in artifact.tensors} == tensors.keys()
    assert all(same_bits(artifact.tensor(key), each) for key, each in tensors.items())
    roles = {each.key: each.role for each in artifact.tensors}
    assert roles["plain"] == "attribute"


def test_what_depends_on_the_data_shows_both_sides(files: Path) -> None:
    graph = program(open_artifact(files / "choosing.pt"))
    ops = {node.op for node in graph.nodes}
    assert {"linear", "relu", "tanh", "if"} <= ops
    assert "What a loop repeats is shown once" in graph.note


def test_the_numbers_that_the_formats_have_for_dtypes() -> None:
    theirs = {number.value: dtype for dtype, number in TORCH_TO_NUMBERS.items()}
    ours = {number: getattr(torch, name) for number, name in EXPORTED.items()}
    assert {**ours, TORCH_TO_NUMBERS[torch.complex32].value: torch.complex32} == theirs
    for number, name in ONNX.items():
        assert helper.tensor_dtype_to_np_dtype(number).name == name
    for number, name in ONNX_OTHERS.items():
        assert TensorProto.DataType.Name(number).lower() == name.replace("_", "")


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


def test_graphs_inside_a_node_of_torch_export(tmp_path: Path) -> None:
    """torch.cond and while_loop, whose operands are the inputs of their graphs."""
    path = tmp_path / "nested.pt2"
    logging.getLogger("torch._export").setLevel(logging.ERROR)
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")  # torch's own, about gradients of what it traces
        torch.export.save(torch.export.export(Branching(), (torch.ones(2, 4),)), path)
    artifact = open_artifact(path)
    graph = program(artifact)
    boxes = {module.path: module.type for module in graph.modules}
    assert boxes["cond.true_graph_0"] == "true_graph_0 of higher_order.cond"
    assert {"cond.false_graph_0", "while_loop.while_loop_body_graph_0"} <= boxes.keys()
    told = {(node.module, node.op): node for node in graph.nodes}
    linear = told["cond.true_graph_0", "aten.linear"]
    assert linear.inputs == ("x", "p_a_weight", "p_a_bias")
    assert linear.outputs[0].shape == (2, 4)
    assert told["cond.false_graph_0", "aten.linear"].inputs[1:] == ("p_b_weight", "p_b_bias")
    relu = told["cond.true_graph_0", "aten.relu"]
    cond = told["cond", "higher_order.cond"]
    assert relu.outputs[0].name in cond.inputs
    doubled = told["while_loop.while_loop_body_graph_0", "aten.mul.Tensor"]
    assert doubled.inputs == (cond.outputs[0].name,)
    assert doubled.outputs[0].name in told["while_loop", "higher_order.while_loop"].inputs


@pytest.mark.parametrize("depth", [15, 25, 3000])
def test_graphs_in_graphs_have_a_bound(depth: int, tmp_path: Path) -> None:
    path = tmp_path / "deep.onnx"
    path.write_bytes(deep_onnx(depth))
    if depth < 20:
        assert len(program(open_artifact(path)).modules) == 2 * depth
    else:
        with pytest.raises(LabError, match="its graphs are nested more than 20 deep"):
            open_artifact(path)


def test_nothing_of_a_program_is_loaded(files: Path, monkeypatch) -> None:
    """The readers call none of torch's loaders."""

    def refuse(*_: object, **__: object) -> Iterator[None]:
        raise AssertionError("a loader of torch was called")

    for module, name in ((torch, "load"), (torch.jit, "load"), (torch.export, "load")):
        monkeypatch.setattr(module, name, refuse)
    for path in files.iterdir():
        assert open_artifact(path).tensors
