"""Two programs that compute different things are never equal."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import pytest
import torch
from onnx import NodeProto, TensorProto, helper
from torch import Tensor, nn

from engine.artifacts.comparing import GRAPH, compare, rows_in
from engine.artifacts.contents.artifact import Artifact
from engine.artifacts.opening import open_artifact
from engine.protocol import ArtifactDifference
from tests.engine.artifacts.programs.test_onnx_numbers import constant_in, model, opened, sparse


def differing(first: Artifact, second: Artifact) -> dict[str, ArtifactDifference]:
    rows = [row for row in compare(first, second) if row is not None]
    assert len(rows) == rows_in(first, second)
    return {row.key: row for row in rows if row.verdict != "equal"}


def node(op: str, inputs: list[str], outputs: list[str], **attributes: Any) -> NodeProto:
    return helper.make_node(op, inputs, outputs, **attributes)


def constant(**attributes: Any) -> onnx.ModelProto:
    return model([node("Constant", [], ["w"], **attributes), node("Add", ["x", "w"], ["y"])])


def floats(*values: float) -> TensorProto:
    return helper.make_tensor("", TensorProto.FLOAT, [len(values)], values)


def int4(*values: int) -> TensorProto:
    return helper.make_tensor("", TensorProto.INT4, [len(values)], values)


def function(number: float, default: float = 1.0, opset: int = 21) -> onnx.ModelProto:
    nodes = [node("Constant", [], ["w"], value=floats(number)), node("Add", ["a", "w"], ["b"])]
    own = helper.make_function("my", "F", ["a"], ["b"], nodes, [helper.make_opsetid("", opset)])
    own.attribute_proto.append(helper.make_attribute("alpha", default))
    return model([node("F", ["x"], ["y"], domain="my")], functions=[own])


def with_opset(version: int) -> onnx.ModelProto:
    whole = model([node("Relu", ["x"], ["y"])])
    whole.opset_import[0].version = version
    return whole


def with_training(op: str) -> onnx.ModelProto:
    whole = model([node("Relu", ["x"], ["y"])])
    whole.training_info.add().algorithm.CopyFrom(model([node(op, ["x"], ["y"])]).graph)
    return whole


def last(count: int, end: float) -> list[float]:
    return [0.5] * count + [end]


ONNX: dict[str, tuple[onnx.ModelProto, onnx.ModelProto, str]] = {
    "a constant": (constant(value=floats(1, 2)), constant(value=floats(1, 3)), "w"),
    "a constant number": (constant(value_float=1.0), constant(value_float=1.0000001), "w"),
    "constant numbers": (constant(value_ints=[1, 2**60]), constant(value_ints=[1, 2**60 + 1]), "w"),
    "a constant text": (constant(value_string="a"), constant(value_string="b"), "w"),
    "the end of a constant text": (
        constant(value_strings=["x" * 5000 + "a"]), constant(value_strings=["x" * 5000 + "b"]), "w",
    ),
    "a sparse constant": (
        constant(sparse_value=sparse([1.0])), constant(sparse_value=sparse([2.0])), "w/values",
    ),
    "numbers of 4 bits": (constant(value=int4(1, -8)), constant(value=int4(1, 7)), "w"),
    "a constant in a branch": (
        model([constant_in("If", 1.0)]), model([constant_in("If", 2.0)]), "n.then_branch.w",
    ),
    "a constant in a loop": (
        model([constant_in("Loop", 1.0)]), model([constant_in("Loop", 2.0)]), "n.body.w",
    ),
    "a constant in a scan": (
        model([constant_in("Scan", 1.0)]), model([constant_in("Scan", 2.0)]), "n.body.w",
    ),
    "a constant in a function": (function(1.0), function(2.0), "my::F.w"),
    "a default of a function": (function(1.0), function(1.0, 2.0), GRAPH),
    "the opset of a function": (function(1.0), function(1.0, opset=20), GRAPH),
    "a filled value": (
        model([node("ConstantOfShape", ["x"], ["y"], value=floats(1))]),
        model([node("ConstantOfShape", ["x"], ["y"], value=floats(2))]), "y.value",
    ),
    "the last digit of an attribute": (
        model([node("LeakyRelu", ["x"], ["y"], alpha=0.1)]),
        model([node("LeakyRelu", ["x"], ["y"], alpha=0.1000001)]), GRAPH,
    ),
    "the end of a long attribute": (
        model([node("Trees", ["x"], ["y"], domain="my", weights=last(300, 0.5))]),
        model([node("Trees", ["x"], ["y"], domain="my", weights=last(300, 0.6))]), GRAPH,
    ),
    "the end of many attributes": (
        model([node("Own", ["x"], ["y"], domain="my", **{f"a{n}": n for n in range(80)})]),
        model([node("Own", ["x"], ["y"], domain="my", **{f"a{n}": n % 79 for n in range(80)})]),
        GRAPH,
    ),
    "an attribute that one has": (
        model([node("Gemm", ["x", "x"], ["y"])]),
        model([node("Gemm", ["x", "x"], ["y"], transB=1)]), GRAPH,
    ),
    "an operation": (
        model([node("Relu", ["x"], ["y"])]), model([node("Tanh", ["x"], ["y"])]), GRAPH,
    ),
    "the order of its inputs": (
        model([node("Exp", ["x"], ["e"]), node("Sub", ["x", "e"], ["y"])]),
        model([node("Exp", ["x"], ["e"]), node("Sub", ["e", "x"], ["y"])]), GRAPH,
    ),
    "an operation more": (
        model([node("Relu", ["x"], ["y"])]),
        model([node("Relu", ["x"], ["z"]), node("Relu", ["z"], ["y"])]), GRAPH,
    ),
    "how it trains": (with_training("Relu"), with_training("Tanh"), GRAPH),
    "the opset": (with_opset(12), with_opset(13), GRAPH),
}  # fmt: skip


@pytest.mark.parametrize("what", ONNX)
def test_networks_of_onnx_that_differ_are_not_equal(what: str, tmp_path: Path) -> None:
    first, second, key = ONNX[what]
    a, b = opened(first, tmp_path, "a.onnx"), opened(second, tmp_path, "b.onnx")
    found = differing(a, b)
    assert key in found
    assert not differing(a, opened(first, tmp_path, "c.onnx"))


def test_the_first_difference_of_two_graphs_is_told(tmp_path: Path) -> None:
    first, second, _ = ONNX["the last digit of an attribute"]
    found = differing(opened(first, tmp_path, "a.onnx"), opened(second, tmp_path, "b.onnx"))
    assert found[GRAPH] == ArtifactDifference(
        GRAPH, "different", "1 operations", "1 operations",
        note="operation 1, LeakyRelu: alpha is 0.1 and 0.100000098",
    )  # fmt: skip


def test_names_of_operations_and_words_on_a_model_do_not_make_another_network(
    tmp_path: Path,
) -> None:
    whole = model([node("Relu", ["x"], ["y"], name="a", doc_string="b")])
    other = model([node("Relu", ["x"], ["y"], name="c")])
    other.producer_name = "somebody else"
    assert not differing(opened(whole, tmp_path, "a.onnx"), opened(other, tmp_path, "b.onnx"))


class Of(nn.Module):
    """The module that a function of two modules' numbers makes."""

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x)


FUNCTIONS: dict[str, tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor]]] = {
    "a number": (lambda x: x + 1, lambda x: x + 2),
    "the last digit": (lambda x: x * 0.1, lambda x: x * 0.1000000000000001),
    "which dim is indexed": (
        lambda x: x[:, torch.tensor([0, 1])], lambda x: x[torch.tensor([0, 1])],
    ),
    "an operation": (torch.relu, torch.tanh),
    "the end of a long list": (
        lambda x: x.new_tensor([1.0] * 200) + x[0, 0],
        lambda x: x.new_tensor([1.0] * 199 + [2]) + x[0, 0],
    ),
}  # fmt: skip


@pytest.mark.filterwarnings(
    "ignore:`torch.jit.*is deprecated", "ignore:.*TracerWarning", "ignore::torch.jit.TracerWarning"
)
@pytest.mark.parametrize("what", FUNCTIONS)
def test_programs_of_torch_that_differ_are_not_equal(what: str, tmp_path: Path) -> None:
    x = torch.ones(2, 2)
    for ending in ("pt2", "ts"):
        found = []
        for number, function_ in enumerate((*FUNCTIONS[what], FUNCTIONS[what][0])):
            path = tmp_path / f"{number}.{ending}"
            if ending == "pt2":
                torch.export.save(torch.export.export(Of(function_), (x,)), path)
            else:
                torch.jit.trace(Of(function_), (x,)).save(path)  # type: ignore[attr-defined]
            found.append(open_artifact(path))
        assert differing(found[0], found[1]), ending
        assert not differing(found[0], found[2]), ending


@pytest.mark.filterwarnings("ignore:`torch.jit.*is deprecated")
def test_a_script_that_trains_is_another_than_one_that_does_not(tmp_path: Path) -> None:
    for name, is_training in (("a", True), ("b", False), ("c", True)):
        module = torch.jit.script(nn.Sequential(nn.Dropout()).train(is_training))
        module.save(tmp_path / f"{name}.ts")
    a, b, c = (open_artifact(tmp_path / f"{name}.ts") for name in "abc")
    assert differing(a, b).keys() == {GRAPH} and not differing(a, c)


@pytest.mark.filterwarnings("ignore:`torch.jit.*is deprecated")
def test_what_is_not_compared_is_told(tmp_path: Path) -> None:
    script = tmp_path / "a.ts"
    torch.jit.script(nn.ReLU()).save(script)
    onnx_ = opened(model([node("Relu", ["x"], ["y"])]), tmp_path)
    found = differing(open_artifact(script), onnx_)
    assert found[GRAPH].verdict == "unread"
    assert found[GRAPH].note == "graphs of two formats are not compared"
    torch.save({}, tmp_path / "a.pt")
    row = differing(open_artifact(tmp_path / "a.pt"), onnx_)[GRAPH]
    assert row == ArtifactDifference(GRAPH, "only second", "", "1 operations")


@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor:UserWarning")
def test_tensors_in_parts_are_compared_by_their_parts(tmp_path: Path) -> None:
    x = torch.arange(6.0).view(2, 3)
    for name, scale, value, is_coalesced in (("a", 0.5, 1.0, True), ("b", 0.25, 2.0, False)):
        indices = torch.tensor([[0, 1], [0, 2]])
        coo = torch.sparse_coo_tensor(indices, torch.ones(2), (2, 3), is_coalesced=True)
        other = torch.sparse_coo_tensor(indices, torch.ones(2), (2, 3), is_coalesced=is_coalesced)
        torch.save(
            {
                "same": coo, "coalesced": other,
                "scale": torch.quantize_per_tensor(x, scale, 0, torch.quint8),
                "part": torch.sparse_coo_tensor(indices, torch.tensor([1.0, value]), (2, 3)),
            },
            tmp_path / f"{name}.pt",
        )  # fmt: skip
    a, b = open_artifact(tmp_path / "a.pt"), open_artifact(tmp_path / "b.pt")
    rows = {row.key: row for row in compare(a, b) if row}
    assert rows["same"].verdict == rows["same/values"].verdict == "equal"
    assert "compared by their own keys" in rows["same"].note
    assert rows["scale"].verdict == rows["coalesced"].verdict == "different"
    assert rows["part"].verdict == "equal" and rows["part/values"].verdict == "different"
