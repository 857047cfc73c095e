"""Programs of ONNX, torch.export and TorchScript, against what their own libraries load."""

from __future__ import annotations

import json
import logging
import operator
import warnings
import zipfile
from collections.abc import Iterator
from pathlib import Path

import onnx
import onnx.numpy_helper
import pytest
import torch
from onnx import TensorProto, helper
from torch._export.serde.serialize import _TORCH_TO_SERIALIZE_DTYPE as TORCH_TO_NUMBERS

from engine.artifacts.opening import open_artifact
from engine.artifacts.programs.exported_program import _DTYPES as EXPORTED
from engine.artifacts.programs.onnx_tensors import DTYPES as ONNX
from engine.artifacts.programs.onnx_tensors import OTHERS as ONNX_OTHERS
from engine.protocol import ProgramGraph, ProgramNode
from engine.tensors.compare import same_bits
from tests.engine.artifacts.networks import (
    Branching,
    Choosing,
    assert_same_weights,
    net,
    program,
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


class Parts(torch.nn.Module):
    """Operations that take several tensors, perhaps none, and sizes, and give several tensors."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn = torch.nn.GRU(2, 3, batch_first=True)

    def forward(self, x: torch.Tensor, places: torch.Tensor) -> tuple[torch.Tensor, ...]:
        one, two = x.split(2, 1)
        y = torch.cat([one, two, x[:, places]], 1).view(x.shape[0], -1)
        y = torch.nn.functional.layer_norm(y, (6,), None, None)
        return self.rnn(y.view(x.shape[0], 3, 2))[0], torch.topk(y, 2).values


def test_what_the_operations_of_an_exported_program_take(tmp_path: Path) -> None:
    given = torch.ones(3, 4), torch.tensor([1, 0])
    batch = {0: torch.export.Dim("batch")}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = torch.export.export(Parts(), given, dynamic_shapes=(batch, None))
        torch.export.save(made, tmp_path / "parts.pt2")
        exported = torch.export.load(tmp_path / "parts.pt2")
    graph = program(open_artifact(tmp_path / "parts.pt2"))
    calls = [node for node in exported.graph.nodes if node.op == "call_function"]
    items = [node for node in calls if node.target is operator.getitem]
    whole = [node for node in calls if node not in items]
    assert [node.name for node in graph.nodes] == [node.name for node in whole]
    for mine, theirs in zip(graph.nodes, whole, strict=True):
        assert set(mine.inputs) == {each.name for each in theirs.all_input_nodes}
        own = {node.name for node in items if node.args[0] is theirs} or {theirs.name}
        assert own <= {value.name for value in mine.outputs}
    assert tuple(v.name for v in graph.outputs) == exported.graph_signature.user_outputs
    assert tuple(v.name for v in graph.inputs) == exported.graph_signature.user_inputs


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
    assert ours == theirs
    for number, name in ONNX.items():
        assert helper.tensor_dtype_to_np_dtype(number).name == name
    for number, name in ONNX_OTHERS.items():
        assert TensorProto.DataType.Name(number).lower() == name.replace("_", "")


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


def test_nothing_of_a_program_is_loaded(files: Path, monkeypatch) -> None:
    """The readers call none of torch's loaders."""

    def refuse(*_: object, **__: object) -> Iterator[None]:
        raise AssertionError("a loader of torch was called")

    for module, name in ((torch, "load"), (torch.jit, "load"), (torch.export, "load")):
        monkeypatch.setattr(module, name, refuse)
    for path in files.iterdir():
        assert open_artifact(path).tensors


def test_a_weight_of_a_program_that_is_a_pickle_is_told_and_not_read(tmp_path: Path) -> None:
    exported = torch.export.export(torch.nn.Linear(2, 1), (torch.ones(1, 2),))
    torch.export.save(exported, tmp_path / "plain.pt2")
    with (
        zipfile.ZipFile(tmp_path / "plain.pt2") as plain,
        zipfile.ZipFile(tmp_path / "pickled.pt2", "w") as pickled,
    ):
        for name in plain.namelist():
            data = plain.read(name)
            if name.endswith("_weights_config.json"):
                told = json.loads(data)
                told["config"]["bias"]["use_pickle"] = True
                data = json.dumps(told).encode()
            pickled.writestr(name, data)
    found = open_artifact(tmp_path / "pickled.pt2")
    weight, bias = sorted(found.tensors, key=lambda entry: entry.key, reverse=True)
    assert (bias.key, bias.role, bias.note) == ("bias", "parameter", "it is stored as a pickle")
    assert bias.place is None and weight.note == "" and weight.role == "parameter"
    assert torch.equal(found.tensor("weight"), exported.state_dict["weight"])
