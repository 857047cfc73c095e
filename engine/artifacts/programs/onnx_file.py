"""ONNX models: the graph, its weights and metadata, read from the protocol buffer itself."""

from __future__ import annotations

import ast
import mmap
import re
import struct
from collections import ChainMap
from dataclasses import dataclass, field, replace
from pathlib import Path

from msgspec.structs import replace as changed

from ...protocol import ProgramGraph, ProgramModule, ProgramNode, ProgramValue
from ...system.errors import LabError
from ..contents.artifact import (
    MAX_METADATA,
    Artifact,
    Entry,
    digest,
    plain,
    with_own_keys,
)
from .nested_graphs import inside, own_box
from .onnx_attributes import Attribute, attribute_of
from .onnx_tensors import DTYPES, OTHERS, constant_of, pair_of, sparse_of, tensor_of
from .protobuf import Field, fields

# Numbers of fields in onnx.proto3.
_MODEL = {1: "ir_version", 2: "producer_name", 3: "producer_version", 4: "domain",
          5: "model_version", 6: "doc_string"}  # fmt: skip
_MODEL_GRAPH, _OPSET, _MODEL_METADATA, _TRAINING, _FUNCTION = 7, 8, 14, 20, 25
_MAX_ATTRIBUTES = 60
_MAX_NESTED = 20


@dataclass
class _Graph:
    """The parts of the file that have been read so far."""

    path: Path
    entries: list[Entry] = field(default_factory=list)
    nodes: list[ProgramNode] = field(default_factory=list)
    inputs: list[ProgramValue] = field(default_factory=list)
    outputs: list[ProgramValue] = field(default_factory=list)
    values: dict[str, ProgramValue] = field(default_factory=dict)
    modules: dict[str, str] = field(default_factory=dict)
    parts: dict[str, Path] = field(default_factory=dict)
    name: str = ""


def open_onnx(path: Path) -> Artifact:
    """The index of the model. Raises LabError."""
    with path.open("rb") as file:
        if not path.stat().st_size:
            raise _damaged(path, "it is empty")
        # Not closed here: an error on its way still has views of it.
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    try:
        return _model(path, memoryview(mapped))
    except (ValueError, struct.error, IndexError) as error:
        raise _damaged(path, str(error)) from error


def _model(path: Path, whole: memoryview) -> Artifact:
    metadata: dict[str, str] = {}
    graph: _Graph | None = None
    opsets = []
    functions: list[Field] = []
    unread = ""
    note = ""
    for each in fields(whole):
        if each.number in _MODEL:
            is_number = isinstance(each.value, int)
            told = str(each.integer) if is_number else plain(each.text)
            if told and told != "0":
                metadata[_MODEL[each.number]] = told
        elif each.number == _MODEL_GRAPH:
            graph = _graph(path, each)
        elif each.number == _OPSET:
            opsets.append(_opset(each))
        elif each.number == _MODEL_METADATA and len(metadata) < MAX_METADATA:
            key, value = pair_of(each)
            metadata[plain(key, 200)] = plain(value)
        elif each.number == _FUNCTION:
            functions.append(each)
        elif each.number == _TRAINING:
            unread += digest(each.data)
            note = "What it says of its training is not read."
    if graph is None or "ir_version" not in metadata:
        raise ValueError("it has no graph, as an ONNX model must")
    for each in functions:
        _add_function(graph, each)
    if functions:
        boxes = "a box" if len(functions) == 1 else "boxes"
        note = f"Its functions are in {boxes} of their own, beside the nodes that call them. {note}"
    metadata["opset"] = ", ".join(opsets) or "none"
    weights = {entry.key for entry in graph.entries}
    found = ProgramGraph(
        inputs=tuple(value for value in graph.inputs if value.name not in weights),
        outputs=tuple(graph.outputs),
        nodes=tuple(_with_shapes(node, graph.values) for node in graph.nodes),
        modules=tuple(ProgramModule(*each) for each in graph.modules.items()),
        note=note.strip(),
    )
    title = f"ONNX model {plain(graph.name, 100)}".strip()
    parts = (path, *graph.parts.values())
    entries = with_own_keys(replace(entry, value=entry.key) for entry in graph.entries)
    return Artifact(
        path, "onnx", title, entries, metadata, found, parts=parts, program_digest=unread
    )


def _add_function(graph: _Graph, message: Field) -> None:
    """Add a function of the model: its nodes, and one for the whole, which takes its results and
    says what it is given."""
    inputs: list[str] = []
    outputs: list[str] = []
    nodes: list[Field] = []
    told: list[tuple[str, str]] = []
    name = domain = overload = ""
    defaults: list[Field] = []
    for each in fields(message.data, message.offset):
        match each.number:
            case 1:
                name = plain(each.text, 200)
            case 4:
                inputs.append(plain(each.text, 500))
            case 5:
                outputs.append(plain(each.text, 500))
            case 6:
                told.append(("takes attribute", plain(each.text, 200)))
            case 7:
                nodes.append(each)
            case 9:
                told.append(("opset", _opset(each)))
            case 10:
                domain = plain(each.text, 200)
            case 11:
                defaults.append(each)
            case 13:
                overload = plain(each.text, 200)
    label = ":".join(filter(None, (f"{domain}::{name}", overload)))
    box = own_box(graph.modules, "", label, f"function {label}")
    names: ChainMap[str, str] = ChainMap({each: inside(box, each) for each in inputs})
    for each in nodes:
        _add_node(graph, each, names, box)
    for each in defaults:
        attribute = attribute_of(each)
        told.append(attribute.told)
        graph.entries += _numbers(graph, attribute, box)
    told.append(("inputs", ", ".join(inputs)))
    results = tuple(names.get(each, each) for each in outputs)
    graph.nodes.append(ProgramNode(label, "function", box, results, (), tuple(told)))


def _graph(path: Path, message: Field) -> _Graph:
    graph = _Graph(path)
    inputs, outputs = _read(graph, message, ChainMap(), "", ())
    graph.inputs += inputs
    graph.outputs += outputs
    graph.values |= {value.name: value for value in (*inputs, *outputs)}
    return graph


def _read(
    graph: _Graph,
    message: Field,
    names: ChainMap[str, str],
    box: str,
    given: tuple[str, ...],
) -> tuple[list[ProgramValue], list[ProgramValue]]:
    """Add what a graph in the file holds; returns its inputs and outputs. The names of a graph
    inside a node begin with its `box`, and `given` are the values for its inputs. `names` gives the
    name in the whole program for a name in the graph."""
    if len(names.maps) > _MAX_NESTED:
        raise ValueError(f"its graphs are nested more than {_MAX_NESTED} deep")
    own: dict[str, str] = {}
    nodes: list[Field] = []
    inputs: list[ProgramValue] = []
    outputs: list[ProgramValue] = []
    values: list[ProgramValue] = []
    for each in fields(message.data, message.offset):
        if each.number == 1:
            nodes.append(each)
        elif each.number == 2 and not box:
            graph.name = each.text
        elif each.number == 5:
            entry = tensor_of(graph.path, each, graph.parts)
            own[entry.key] = inside(box, entry.key)
            graph.entries.append(replace(entry, key=own[entry.key]))
        elif each.number == 15:
            for entry in sparse_of(graph.path, each, graph.parts):
                own[entry.key] = inside(box, entry.key)
                graph.entries.append(replace(entry, key=own[entry.key]))
        elif each.number == 11:
            inputs.append(_value(each))
        elif each.number == 12:
            outputs.append(_value(each))
        elif each.number == 13:
            values.append(_value(each))
    are_given = len(given) == len(inputs)
    for number, value in enumerate(inputs):
        names[value.name] = given[number] if are_given else inside(box, value.name)
    names.update(own)  # an initializer may be an input too
    for each in nodes:
        _add_node(graph, each, names, box)
    outputs = [changed(value, name=names.get(value.name, value.name)) for value in outputs]
    values = [changed(value, name=inside(box, value.name)) for value in values]
    graph.values |= {value.name: value for value in (*values, *(outputs if box else ()))}
    return inputs, outputs


def _add_node(graph: _Graph, message: Field, names: ChainMap[str, str], box: str) -> None:
    """Add a node. The nodes of graphs inside it (If, Loop, Scan) come before it, in a box with it,
    and their results are among its inputs."""
    inputs: list[str] = []
    outputs: list[str] = []
    attributes: list[Attribute] = []
    others: list[bytes] = []
    name = op = domain = overload = ""
    told: dict[str, str] = {}
    for each in fields(message.data, message.offset):
        match each.number:
            case 1:
                inputs.append(plain(each.text, 500))
            case 2:
                outputs.append(plain(each.text, 500))
            case 3:
                name = plain(each.text, 500)
            case 4:
                op = plain(each.text, 200)
            case 5 if len(attributes) < _MAX_ATTRIBUTES:
                attributes.append(attribute_of(each))
            case 5:
                others.append(bytes(each.data))
            case 7:
                domain = plain(each.text, 200)
            case 8:
                overload = plain(each.text, 200)
            case 9:
                key, value = pair_of(each)
                told[key] = value
    op = f"{domain}::{op}" if domain and domain != "ai.onnx" else op
    op = f"{op}:{overload}" if overload else op
    module = box or _module(told, name, graph.modules)
    inputs = [names.get(each, each) for each in inputs]
    graphs = [(each.name, body) for each in attributes for body in each.graphs]
    if graphs:
        module = own_box(graph.modules, module, name or (outputs or [op])[0], op)
    given = tuple(inputs) if op in ("Loop", "Scan") else ()
    for key, body in graphs:
        part = own_box(graph.modules, module, key, f"{key} of {op}")
        _, results = _read(graph, body, names.new_child(), part, given)
        inputs += [result.name for result in results]
    for each in outputs:
        names[each] = inside(box, each)
    made = tuple(ProgramValue(names[each]) for each in outputs)
    result = made[0].name if made else inside(box, name or op)
    for each in attributes:
        if op == "Constant":
            found = constant_of(graph.path, each.message, graph.parts, result)
            graph.entries += [replace(entry, role="constant") for entry in found]
        else:
            graph.entries += _numbers(graph, each, result)
    texts = [each.told for each in attributes]
    if others:
        texts.append(("…", f"{len(others):,} more {digest(b''.join(sorted(others)))}"))
    graph.nodes.append(ProgramNode(name, op, module, tuple(inputs), made, tuple(texts)))


def _numbers(graph: _Graph, attribute: Attribute, owner: str) -> list[Entry]:
    """The tensors that an attribute is, by keys that begin with the value or box that has it."""
    found: list[Entry] = []
    for place, (is_sparse, message) in enumerate(attribute.tensors):
        key = inside(owner, attribute.name)
        key = f"{key}.{place}" if len(attribute.tensors) > 1 else key
        if is_sparse:
            found += sparse_of(graph.path, message, graph.parts, key)
        else:
            found.append(tensor_of(graph.path, message, graph.parts, key))
    return [replace(entry, role="constant") for entry in found]


def _module(told: dict[str, str], name: str, modules: dict[str, str]) -> str:
    """The path of the module that a node came from: as torch's exporter says it, or as the names
    that its older one gave to nodes (`/body/body.0/Gemm`)."""
    scopes = _names(told.get("pkg.torch.onnx.name_scopes", ""))
    classes = _names(told.get("pkg.torch.onnx.class_hierarchy", ""))
    if len(scopes) > 1 and len(scopes) == len(classes):
        for scope, kind in zip(scopes[:-1], classes[:-1], strict=True):
            modules.setdefault(plain(scope, 500), plain(kind.rpartition(".")[2], 200))
        return plain(scopes[-2], 500)
    if re.fullmatch(r"(/[\w.]+)+", name):
        return name.split("/")[-2] if name.count("/") > 1 else ""
    return ""


def _names(text: str) -> list[str]:
    try:
        found = ast.literal_eval(text) if 0 < len(text) < 10_000 else []
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return []
    is_list = isinstance(found, list) and all(isinstance(each, str) for each in found)
    return found if is_list else []


def _value(message: Field) -> ProgramValue:
    name, shape, dtype = "", None, ""
    for each in fields(message.data, message.offset):
        if each.number == 1:
            name = plain(each.text, 500)
        elif each.number == 2:
            for kind in fields(each.data, each.offset):
                if kind.number in (1, 8):
                    shape, dtype = _tensor_type(kind)
                else:
                    dtype = {4: "sequence", 5: "map", 9: "optional"}.get(kind.number, dtype)
    return ProgramValue(name, shape, dtype)


def _tensor_type(message: Field) -> tuple[tuple[int | str, ...] | None, str]:
    shape: list[int | str] | None = None
    dtype = ""
    for each in fields(message.data, message.offset):
        if each.number == 1:
            kind = each.integer
            dtype = DTYPES.get(kind) or OTHERS.get(kind, f"type {kind}")
        elif each.number == 2:
            shape = []
            for dim in fields(each.data, each.offset):
                size: int | str = "?"
                for told in fields(dim.data, dim.offset):
                    if told.number == 1:
                        size = told.integer
                    elif told.number == 2:
                        size = plain(told.text, 100)
                shape.append(size)
    return None if shape is None else tuple(shape), dtype


def _with_shapes(node: ProgramNode, values: dict[str, ProgramValue]) -> ProgramNode:
    outputs = tuple(values.get(value.name, value) for value in node.outputs)
    return ProgramNode(node.name, node.op, node.module, node.inputs, outputs, node.attributes)


def _opset(message: Field) -> str:
    domain, version = "", 0
    for each in fields(message.data, message.offset):
        if each.number == 1:
            domain = plain(each.text, 100)
        elif each.number == 2:
            version = each.integer
    return f"{domain} {version}".strip()


def _damaged(path: Path, why: str) -> LabError:
    return LabError(
        f"{path.name} cannot be read as an ONNX model: {plain(why, 200)}.",
        hint="It may be damaged or cut off: copy or download it again.",
    )
