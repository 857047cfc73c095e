"""What stands in the files of programs, piece by piece: what is named, told and refused."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import onnx
import pytest
import torch
from onnx import TensorProto, helper

from engine.artifacts.contents.artifact import plain
from engine.artifacts.opening import open_artifact
from engine.artifacts.programs import exported_program, onnx_file
from engine.artifacts.programs.exported_program import (
    _metadata,
    _module,
    _names,
    _text,
    _value,
)
from engine.artifacts.programs.nested_graphs import inside, own_box
from engine.artifacts.programs.onnx_attributes import attribute_of
from engine.artifacts.programs.protobuf import fields
from engine.protocol import ProgramValue
from engine.system.errors import LabError

OLDER = "It may be damaged, or written by a much older or newer torch: export it again."


# -- programs of torch.export ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("argument", "names"),
    [
        ({"as_tensor": {"name": "x"}}, ["x"]),
        ({"as_custom_obj": {"name": "o", "class_fqn": "c"}}, ["o"]),
        ({"as_tensors": [{"name": "x"}, {"name": "y"}]}, ["x", "y"]),
        ({"as_optional_tensor": {"as_tensor": {"name": "x"}}}, ["x"]),
        ({"as_optional_tensor": {"as_none": True}}, []),
        (
            {"as_optional_tensors": [{"as_none": True}, {"as_tensor": {"name": "y"}}]},
            ["y"],
        ),
        ({"as_nested_tensors": [[{"name": "a"}], [{"name": "b"}, {"name": "c"}]]}, list("abc")),
        ({"as_sym_int": {"as_name": "s"}}, ["s"]),
        ({"as_sym_int": {"as_int": 3}}, []),
        ({"as_sym_bool": {"as_name": "s"}}, ["s"]),
        ({"as_sym_float": {"as_name": "s"}}, ["s"]),
        ({"as_sym_ints": [{"as_int": 3}, {"as_name": "s"}]}, ["s"]),
        ({"as_int": 3}, []),
        ({"as_none": True}, []),
    ],
)
def test_the_values_that_an_argument_names(argument: dict[str, Any], names: list[str]) -> None:
    assert _names(argument) == names


@pytest.mark.parametrize(
    ("argument", "text"),
    [
        ({"as_int": 3}, "3"),
        ({"as_none": True}, "None"),
        ({"as_scalar_type": 7}, "float32"),
        ({"as_scalar_type": 99}, "99"),
        ({"as_string": "mean"}, "mean"),
        ({"as_ints": [1, 2]}, "[1, 2]"),
        (
            {"as_graph": {"name": "g", "graph": {"nodes": [1, 2]}}},
            "a graph of 2 nodes: the box beside it",
        ),
    ],
)
def test_the_text_of_an_argument(argument: dict[str, Any], text: str) -> None:
    assert _text(argument) == text


def test_the_shape_of_a_value_has_names_for_sizes_that_are_open() -> None:
    sizes = [
        {"as_int": 3},
        {"as_expr": {"expr_str": "Symbol('s0', integer=True)"}},
        {"as_expr": {"expr_str": "2*s0"}},
    ]
    found = _value("x", {"sizes": sizes, "dtype": 13})
    assert found == ProgramValue("x", (3, "s0", "2*s0"), "bfloat16")
    assert _value("x", {"sizes": [], "dtype": 99}) == ProgramValue("x", (), "?")


def test_the_module_of_a_node_is_the_innermost_of_its_stack() -> None:
    modules: dict[str, str] = {}
    stack = "L__self__,,net.Net;L__self___a,a,torch.nn.modules.Sequential;x,a.0,torch.nn.Linear"
    assert _module({"metadata": {"nn_module_stack": stack}}, modules) == "a.0"
    assert modules == {"": "Net", "a": "Sequential", "a.0": "Linear"}
    assert _module({"metadata": {"nn_module_stack": "x,a,other.Kind"}}, modules) == "a"
    assert modules["a"] == "Sequential"
    assert _module({"metadata": {}}, modules) == _module({}, modules) == ""
    assert _module({"metadata": {"nn_module_stack": "broken"}}, modules) == ""
    long = f"x,{'p' * 501},net.{'K' * 201}"
    assert _module({"metadata": {"nn_module_stack": long}}, modules) == plain("p" * 501, 500)
    assert modules[plain("p" * 501, 500)] == plain("K" * 201, 200) != "K" * 201


def test_what_a_program_says_of_itself() -> None:
    assert _metadata({}) == {}
    whole = {
        "torch_version": "2.13.0", "schema_version": {"major": 8, "minor": 2},
        "opset_version": {"aten": 10, "own": 1},
        "range_constraints": {
            "s0": {"min_val": 2, "max_val": None}, "s1": {"min_val": 0, "max_val": 9},
        },
    }  # fmt: skip
    assert _metadata(whole) == {
        "torch": "2.13.0", "schema": "8.2", "opset": "aten 10, own 1", "size s0": "2 to any",
        "size s1": "0 to 9",
    }  # fmt: skip
    assert _metadata({"schema_version": {"major": 8}}) == {"schema": "8"}


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("exported") / "net.pt2"
    torch.manual_seed(0)
    torch.export.save(torch.export.export(torch.nn.Linear(2, 1), (torch.ones(1, 2),)), path)
    return path


def changed(exported: Path, path: Path, change: Any, more: dict[str, bytes] | None = None) -> Path:
    """The program with other records: `change(name, data)` gives their bytes, or None."""
    with zipfile.ZipFile(exported) as old, zipfile.ZipFile(path, "w") as new:
        for name in old.namelist():
            data = change(name, old.read(name))
            if data is not None:
                new.writestr(name, data)
        folder = old.namelist()[0].partition("/")[0]
        for name, data in (more or {}).items():
            new.writestr(f"{folder}/{name}", data)
    return path


def refused(path: Path) -> tuple[str, str]:
    with pytest.raises(LabError) as raised:
        open_artifact(path)
    return str(raised.value), raised.value.hint


def told(change: Any) -> Any:
    def write(name: str, data: bytes) -> bytes:
        if not name.endswith("models/model.json"):
            return data
        whole = json.loads(data)
        change(whole)
        return json.dumps(whole).encode()

    return write


def same(name: str, data: bytes) -> bytes:
    return data


def test_other_programs_and_compiled_code_of_a_file_are_told(exported, tmp_path: Path) -> None:
    found = open_artifact(exported)
    assert (found.kind, found.title) == ("exported program", "program of torch.export")
    assert not {"programs", "compiled code"} & found.metadata.keys()
    model = b"{}"
    more = {"models/another.json": model, "data/aotinductor/model/a.so": b"x"}
    found = open_artifact(changed(exported, tmp_path / "a.pt2", same, more))
    assert found.metadata["programs"] == "another, model"
    assert found.metadata["compiled code"] == "has some, of AOTInductor: it is not read"
    assert {entry.role for entry in found.entries} == {"parameter"}
    assert {entry.key: entry.value for entry in found.entries} == {
        "weight": "p_weight", "bias": "p_bias",
    }  # fmt: skip


def test_a_program_of_another_name_is_read(exported, tmp_path: Path) -> None:
    with zipfile.ZipFile(exported) as old, zipfile.ZipFile(tmp_path / "b.pt2", "w") as new:
        for name in old.namelist():
            new.writestr(
                name.replace("models/model.json", "models/own.json").replace(
                    "/model_weights", "/own_weights"
                ).replace("/model_constants", "/own_constants"),
                old.read(name),
            )  # fmt: skip
    found = open_artifact(tmp_path / "b.pt2")
    assert [entry.key for entry in found.tensors] == [
        entry.key for entry in open_artifact(exported).tensors
    ]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (told(lambda whole: whole.pop("graph_module")), "lacks something at 'graph_module'"),
        (told(lambda whole: whole.update(graph_module=3)), "does not have the form that torch"),
        (lambda name, data: b"{" if name.endswith("model.json") else data, "is not JSON, or"),
        (lambda name, data: b"[1]" if name.endswith("model.json") else data, "is not a list of"),
    ],
)
def test_a_program_that_does_not_fit_together_is_told(
    exported, tmp_path: Path, change: Any, why: str
) -> None:
    words, hint = refused(changed(exported, tmp_path / "c.pt2", change))
    assert words.startswith("c.pt2 cannot be read as a program of torch.export: models/model.json")
    assert why in words and hint == OLDER


def test_without_a_program_or_its_numbers_it_is_told(exported, tmp_path: Path, monkeypatch) -> None:
    none = changed(
        exported, tmp_path / "d.pt2",
        lambda name, data: None if "/models/" in name else data, {"models/x.txt": b"x"},
    )  # fmt: skip
    assert refused(none)[0] == (
        "d.pt2 cannot be read as a program of torch.export: it has no models/*.json."
    )
    lacks = changed(
        exported, tmp_path / "e.pt2",
        lambda name, data: None if "/weights/weight_" in name else data,
    )  # fmt: skip
    assert "the numbers of " in refused(lacks)[0] and refused(lacks)[1] == OLDER
    monkeypatch.setattr(exported_program, "MAX_JSON_VALUES", 10)
    assert refused(exported)[0].endswith("models/model.json has more than 10 values.")


def test_a_box_has_a_path_of_its_own() -> None:
    modules = {"a": "A"}
    assert own_box(modules, "", "a", "If") == "a_2"
    assert own_box(modules, "", "a", "Loop") == "a_3"
    assert own_box(modules, "a", "x/then.branch", "If") == "a.then_branch"
    assert own_box(modules, "a", "", "If") == "a.If"
    assert modules == {
        "a": "A", "a_2": "If", "a_3": "Loop", "a.then_branch": "If", "a.If": "If",
    }  # fmt: skip
    assert own_box(modules, "", "n" * 200, "If") == "n" * 100
    many = {"a": "", **{f"a_{n}": "" for n in range(2, 10)}}
    assert own_box(many, "", "a", "If") == "a_10"  # as many as there are
    many["a_11"] = many["a_12"] = ""
    assert own_box(many, "", "a", "If") == "a_13"
    assert (inside("a", "b"), inside("", "b"), inside("a", "")) == ("a.b", "b", "")


# -- ONNX ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("['', 'a', 'a.b']", ["", "a", "a.b"]),
        ("", []),
        ("[1, 2]", []),
        ("'a'", []),
        ("[a", []),
        ("[f()]", []),
        ("['" + "x" * 9996 + "']", []),
    ],
)
def test_names_of_modules_in_an_onnx_model(text: str, names: list[str]) -> None:
    assert onnx_file._names(text) == names


SCOPES, CLASSES = "pkg.torch.onnx.name_scopes", "pkg.torch.onnx.class_hierarchy"


@pytest.mark.parametrize(
    ("told", "name", "path", "modules"),
    [
        ({}, "/body/body.0/Gemm", "body.0", {}),
        ({}, "/Gemm", "", {}),
        ({}, "Gemm_3", "", {}),
        ({}, "/a b/Gemm", "", {}),
        (
            {SCOPES: "['', 'a', 'a.b', 'n']", CLASSES: "['net.Net', 'x.A', 'y.B', 'aten.mul']"},
            "n", "a.b", {"": "Net", "a": "A", "a.b": "B"},
        ),
        ({SCOPES: "['', 'n']", CLASSES: "['net.Net', 'aten.mul']"}, "n", "", {"": "Net"}),
        ({SCOPES: "['n']", CLASSES: "['aten.mul']"}, "/a/n", "a", {}),
        ({SCOPES: "['', 'a', 'n']", CLASSES: "['net.Net']"}, "/a/n", "a", {}),
    ],
)  # fmt: skip
def test_the_module_of_a_node_of_onnx(
    told: dict[str, str], name: str, path: str, modules: dict[str, str]
) -> None:
    found: dict[str, str] = {}
    assert onnx_file._module(told, name, found) == path and found == modules


def attribute(**given: Any) -> tuple[str, str]:
    ((name, value),) = given.items()
    message = helper.make_attribute(name, value).SerializeToString()
    whole = b"\x0a" + bytes([len(message) & 0x7F | 0x80, len(message) >> 7]) + message
    (field,) = fields(memoryview(whole))
    return attribute_of(field).told


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (3, "3"),
        (0.25, "0.25"),
        ("same", "“same”"),
        ([1, 2, 3], "1, 2, 3"),
        ([0.5, 1.5], "0.5, 1.5"),
        (["a", "b"], "“a”, “b”"),
        (0.1, "0.1"),
        (0.10000001, "0.100000009"),
        (0.1000001, "0.100000098"),
    ],
)
def test_an_attribute_of_onnx_is_told_in_words(value: Any, text: str) -> None:
    assert attribute(axes=value) == ("axes", text)


@pytest.mark.parametrize("one", [0, 0.5])
def test_a_digest_stands_for_the_numbers_that_are_not_told(one: float) -> None:
    _, text = attribute(axes=[one] * 300)
    assert text.startswith(f"{one}, {one}, ") and "… #" in text
    changed = [*[one] * 299, one + 1]
    assert attribute(axes=changed)[1] != text == attribute(axes=[one] * 300)[1]


def model_of(path: Path, nodes: list[Any], inputs: list[Any], **fields_: Any) -> Path:
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])]
    graph = helper.make_graph(nodes, "net", inputs, outputs, **fields_)
    onnx.save(helper.make_model(graph), path)
    return path


def test_types_of_values_of_onnx(tmp_path: Path) -> None:
    inputs = [
        helper.make_tensor_value_info("a", TensorProto.STRING, []),
        helper.make_tensor_value_info("b", TensorProto.INT4, None),
        helper.make_value_info("c", helper.make_optional_type_proto(
            helper.make_tensor_type_proto(TensorProto.FLOAT, [1]))),
        helper.make_sparse_tensor_value_info("d", TensorProto.DOUBLE, [3, "n"]),
        helper.make_value_info("e", helper.make_map_type_proto(
            TensorProto.INT64, helper.make_tensor_type_proto(TensorProto.FLOAT, [1]))),
    ]  # fmt: skip
    given: dict[str, Any] = {f"n{number}": number for number in range(70)}
    node = helper.make_node("Own", ["a"], ["y"], **given)
    found = open_artifact(model_of(tmp_path / "a.onnx", [node], inputs)).graph
    assert found is not None
    assert [(each.name, each.shape, each.dtype) for each in found.inputs] == [
        ("a", (), "string"), ("b", None, "int4"), ("c", None, "optional"),
        ("d", (3, "n"), "float64"), ("e", None, "map"),
    ]  # fmt: skip
    assert len(found.nodes[0].attributes) == 61
    assert found.nodes[0].attributes[60][1].startswith("10 more #")


def test_an_input_that_is_a_weight_is_none_and_functions_are_told(tmp_path: Path) -> None:
    weight = onnx.numpy_helper.from_array(torch.ones(2).numpy(), "w")
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in "xw"]
    node = helper.make_node("Add", ["x", "w"], ["y"], domain="ai.onnx")
    path = model_of(tmp_path / "a.onnx", [node], inputs, initializer=[weight])
    found = open_artifact(path)
    assert found.graph is not None and found.graph.note == ""
    assert [each.name for each in found.graph.inputs] == ["x"]
    assert [(each.op, each.inputs) for each in found.graph.nodes] == [("Add", ("x", "w"))]
    assert [(entry.key, entry.value) for entry in found.entries] == [("w", "w")]
    model = onnx.load(path)
    for name in ("f", "g"):
        model.functions.append(
            helper.make_function("own", name, ["x"], ["y"],
                                 [helper.make_node("Abs", ["x"], ["y"])],
                                 [helper.make_opsetid("", 18)])
        )  # fmt: skip
    onnx.save(model, tmp_path / "b.onnx")
    graph = open_artifact(tmp_path / "b.onnx").graph
    assert graph is not None
    assert graph.note == (
        "Its functions are in boxes of their own, beside the nodes that call them."
    )
    assert [(node.module, node.op, node.inputs) for node in graph.nodes[1:]] == [
        ("own::f", "Abs", ("own::f.x",)), ("own::f", "function", ("own::f.y",)),
        ("own::g", "Abs", ("own::g.x",)), ("own::g", "function", ("own::g.y",)),
    ]  # fmt: skip


def test_a_model_without_a_graph_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.onnx").write_bytes(onnx.ModelProto(ir_version=8).SerializeToString())
    assert refused(tmp_path / "a.onnx") == (
        "a.onnx cannot be read as an ONNX model: it has no graph, as an ONNX model must.",
        "It may be damaged or cut off: copy or download it again.",
    )
    graph = helper.make_graph([], "net", [], [])
    (tmp_path / "b.onnx").write_bytes(onnx.ModelProto(graph=graph).SerializeToString())
    assert "it has no graph, as an ONNX model must" in refused(tmp_path / "b.onnx")[0]


def test_the_opsets_of_a_model_are_told_also_one_without_a_version(tmp_path: Path) -> None:
    graph = helper.make_graph([], "net", [], [])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    model.opset_import.append(onnx.OperatorSetIdProto(domain="own"))
    (tmp_path / "a.onnx").write_bytes(model.SerializeToString())
    assert open_artifact(tmp_path / "a.onnx").metadata["opset"] == "18, own 0"
    del model.opset_import[:]
    (tmp_path / "b.onnx").write_bytes(model.SerializeToString())
    assert open_artifact(tmp_path / "b.onnx").metadata["opset"] == "none"
