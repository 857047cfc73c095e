"""Programs of torch.export (.pt2): the graph, weights and constants, read from their JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from ...protocol import ProgramGraph, ProgramModule, ProgramNode, ProgramValue
from ...system.errors import LabError
from ...tensors.readable import dtype_name
from ..contents.archive import Archive
from ..contents.artifact import Artifact, Entry, plain, shortened, with_own_keys
from ..contents.file_bytes import FileBytes, check_stride, checked_shape
from .nested_graphs import inside, own_box

MAX_JSON_BYTES = 64 * 2**20
MAX_JSON_VALUES = 4_000_000
"""A node takes about 140, and each some hundred bytes of memory."""
_MAX_NESTED = 20
_DTYPES = {
    1: "uint8", 2: "int8", 3: "int16", 4: "int32", 5: "int64", 6: "float16", 7: "float32",
    8: "float64", 9: "complex32", 10: "complex64", 11: "complex128", 12: "bool", 13: "bfloat16",
    28: "uint16", 29: "float8_e4m3fn", 30: "float8_e5m2", 31: "float8_e4m3fnuz",
    32: "float8_e5m2fnuz", 33: "float8_e8m0fnu", 34: "uint32", 35: "uint64",
}  # fmt: skip
"""ScalarType of torch._export.serde.schema."""
_WEIGHTS = (("weights", "weights"), ("constants", "constants"))


def open_program(path: Path, archive: Archive) -> Artifact:
    """The index of the program. Raises LabError."""
    records = archive.inner()
    models = [name for name in records if name.startswith("models/") and name.endswith(".json")]
    if not models:
        raise _damaged(path, "it has no models/*.json")
    model = "models/model.json" if "models/model.json" in models else models[0]
    name = Path(model).stem
    try:
        whole = _json(archive, model)
        module = whole["graph_module"]
        entries = []
        for folder, kind in _WEIGHTS:
            config = f"data/{folder}/{name}_{kind}_config.json"
            if config in records:
                entries += _tensors(archive, folder, _json(archive, config)["config"])
        entries = with_own_keys(entries)
        graph, values = _graph(module)
        entries = tuple(replace(each, value=values.get(each.key, "")) for each in entries)
        metadata = _metadata(whole)
    except KeyError as error:
        raise _damaged(path, f"{model} lacks something at {plain(str(error), 100)}") from error
    except (TypeError, AttributeError, IndexError, ValueError) as error:
        raise _damaged(path, f"{model} does not have the form that torch writes") from error
    if len(models) > 1:
        metadata["programs"] = ", ".join(sorted(Path(each).stem for each in models)[:50])
    if any("aotinductor" in each for each in records):
        metadata["compiled code"] = "has some, of AOTInductor: it is not read"
    return Artifact(path, "exported program", "program of torch.export", entries, metadata, graph)


def _json(archive: Archive, name: str) -> dict[str, Any]:
    data = archive.read(archive.inner()[name], MAX_JSON_BYTES)
    if sum(map(data.count, (b"{", b"[", b","))) > MAX_JSON_VALUES:
        raise LabError(
            f"{plain(archive.path.name, 200)} cannot be read as a program of torch.export: {name}"
            f" has more than {MAX_JSON_VALUES:,} values."
        )
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        raise _damaged(archive.path, f"{name} is not JSON, or nested too deeply") from None
    if not isinstance(found, dict):
        raise _damaged(archive.path, f"{name} is not a list of names and values")
    return found


def _metadata(whole: dict[str, Any]) -> dict[str, str]:
    version = whole.get("schema_version") or {}
    told = {
        "torch": whole.get("torch_version", ""),
        "schema": ".".join(str(version[part]) for part in ("major", "minor") if part in version),
        "opset": ", ".join(f"{k} {v}" for k, v in (whole.get("opset_version") or {}).items()),
    }
    for name, bounds in (whole.get("range_constraints") or {}).items():
        least, most = bounds.get("min_val"), bounds.get("max_val")
        told[f"size {plain(name, 50)}"] = f"{least} to {'any' if most is None else most}"
    return {name: plain(str(text)) for name, text in told.items() if text}


def _tensors(archive: Archive, folder: str, config: dict[str, Any]) -> list[Entry]:
    entries = []
    records = archive.inner()
    for key, told in config.items():
        told_name, meta = told["path_name"], told["tensor_meta"]
        role = "parameter" if told["is_param"] else "buffer" if folder == "weights" else "constant"
        record = records.get(f"data/{folder}/{told_name}")
        if meta is None or told["use_pickle"]:
            note = "it is stored as a pickle"
            entries.append(Entry(key, "tensor", role=role, note=note))
            continue
        shape = checked_shape(key, [_integer(size) for size in meta["sizes"]])
        count = 1
        for size in shape:
            count *= size
        dtype: torch.dtype = getattr(torch, _DTYPES[meta["dtype"]])
        if record is None:
            raise _damaged(archive.path, f"the numbers of {plain(key, 80)} are missing")
        stride = tuple(_integer(step) for step in meta["strides"])
        start = _integer(meta["storage_offset"])
        elements = record.size_bytes // dtype.itemsize
        stride = check_stride(plain(key, 80), shape, start, stride, elements)
        at = archive.start_of(record)
        place = FileBytes(archive.path, at, record.size_bytes, dtype, start, stride)
        size_bytes, at = count * dtype.itemsize, at + start * dtype.itemsize
        entries.append(
            Entry(key, "tensor", shape, dtype_name(dtype), size_bytes, place, at, role=role)
        )
    return entries


def _integer(size: dict[str, Any]) -> int:
    return size["as_int"]


def _graph(module: dict[str, Any]) -> tuple[ProgramGraph, dict[str, str]]:
    """The program, and the values in it that are tensors of the file, by their keys."""
    whole, signature = module["graph"], module["signature"]
    values = {name: _value(name, meta) for name, meta in whole["tensor_values"].items()}
    weights: dict[str, str] = {}
    inputs = []
    for spec in signature["input_specs"]:
        ((kind, told),) = spec.items()
        if kind in ("parameter", "buffer", "tensor_constant"):
            weights[plain(told[f"{kind}_name"], 1000)] = plain(told["arg"]["name"], 500)
        elif kind == "user_input":
            inputs += _names(told["arg"])
    outputs = []
    for spec in signature["output_specs"]:
        ((kind, told),) = spec.items()
        if kind == "user_output":
            outputs += _names(told["arg"])
    modules: dict[str, str] = {}
    nodes = tuple(_nodes(whole, values, modules))
    graph = ProgramGraph(
        inputs=tuple(values.get(name, ProgramValue(plain(name, 500))) for name in inputs),
        outputs=tuple(values.get(name, ProgramValue(plain(name, 500))) for name in outputs),
        modules=tuple(ProgramModule(*each) for each in modules.items()),
        nodes=nodes,
    )
    return graph, weights


def _nodes(
    graph: dict[str, Any],
    values: dict[str, ProgramValue],
    modules: dict[str, str],
    names: Mapping[str, str] | None = None,
    box: str = "",
    depth: int = 0,
) -> Iterator[ProgramNode]:
    """The nodes of a graph. The nodes of graphs inside a node (torch.cond, a loop) come before that
    node, in a box with it, and their results are among its inputs. For a graph in a `box`, `names`
    gives the value of the program for a name in the graph."""
    if depth > _MAX_NESTED:
        raise LabError(f"The program has graphs nested more than {_MAX_NESTED} deep.")
    own = dict(names or {})

    def full_name(name: str) -> str:
        return own.get(name) or plain(inside(box, name), 500)

    for node in graph["nodes"]:
        inputs, attributes, parts = [], [], []
        after: list[str] = []
        for argument in node["inputs"]:
            given = [full_name(name) for name in _names(argument["arg"])]
            if given:
                inputs += given
                after += given
            if not given or _is_mixed(argument["arg"]):
                attributes.append((plain(argument["name"], 200), _text(argument["arg"])))
            if "as_graph" in argument["arg"]:
                part = argument["arg"]["as_graph"]
                parts.append((plain(part["name"], 200), part["graph"]))
                after = []
        op = node["target"].removeprefix("torch.ops.").removesuffix(".default")
        outputs = [name for output in node["outputs"] for name in _names(output)]
        label = plain(node.get("name") or (outputs or [op])[0], 500)
        path = box or _module(node, modules)
        if parts:
            path = own_box(modules, path, label, op.rpartition(".")[2])
        for name, part in parts:
            inner = own_box(modules, path, name, f"{name} of {op}")
            takes = [name for argument in part["inputs"] for name in _names(argument)]
            known = dict(zip(takes, after, strict=False))
            for name, meta in part["tensor_values"].items():
                values.setdefault(name := inside(inner, name), _value(name, meta))
            yield from _nodes(part, values, modules, known, inner, depth + 1)
            for argument in part["outputs"]:
                inputs += [known.get(name) or inside(inner, name) for name in _names(argument)]
        made = [plain(inside(box, name), 500) for name in outputs]
        yield ProgramNode(
            label,
            plain(op, 200),
            path,
            tuple(inputs),
            tuple(values.get(name, ProgramValue(name)) for name in made),
            tuple(attributes),
        )


def _module(node: dict[str, Any], modules: dict[str, str]) -> str:
    """The path of the module that a node came from."""
    stack = node.get("metadata", {}).get("nn_module_stack", "")
    path = ""
    for call in stack.split(";") if stack else ():
        _, path, kind = [*call.split(",", 2), "", ""][:3]
        modules.setdefault(plain(path, 500), plain(kind.rpartition(".")[2], 200))
    return plain(path, 500)


def _names(argument: dict[str, Any]) -> list[str]:
    """The values that an argument names."""
    ((kind, value),) = argument.items()
    match kind:
        case "as_tensor" | "as_custom_obj":
            return [value["name"]]
        case "as_tensors":
            return [each["name"] for each in value]
        case "as_optional_tensor":
            return _names(value) if "as_tensor" in value else []
        case "as_optional_tensors":
            return [name for each in value if "as_tensor" in each for name in _names(each)]
        case "as_nested_tensors":
            return [each["name"] for inner in value for each in inner]
        case "as_sym_int" | "as_sym_bool" | "as_sym_float":
            return [value["as_name"]] if "as_name" in value else []
        case "as_sym_ints" | "as_sym_bools" | "as_sym_floats":
            return [each["as_name"] for each in value if "as_name" in each]
    return []


def _is_mixed(argument: dict[str, Any]) -> bool:
    """Whether an argument has more than the values that it names: which of them is where."""
    ((kind, value),) = argument.items()
    return kind == "as_nested_tensors" or (
        isinstance(value, list) and len(_names(argument)) < len(value)
    )


def _text(argument: dict[str, Any]) -> str:
    ((kind, value),) = argument.items()
    if kind == "as_graph":
        return f"a graph of {len(value['graph']['nodes'])} nodes: the box beside it"
    if kind == "as_scalar_type":
        return _DTYPES.get(value, str(value))
    return "None" if kind == "as_none" else shortened(str(value), 300)


def _value(name: str, meta: dict[str, Any]) -> ProgramValue:
    shape = []
    for size in meta["sizes"]:
        if "as_int" in size:
            shape.append(size["as_int"])
        else:
            words = size["as_expr"]["expr_str"].split("'")
            shape.append(plain(words[1] if len(words) == 3 else size["as_expr"]["expr_str"], 100))
    return ProgramValue(plain(name, 500), tuple(shape), _DTYPES.get(meta["dtype"], "?"))


def _damaged(path: Path, why: str) -> LabError:
    return LabError(
        f"{path.name} cannot be read as a program of torch.export: {why}.",
        hint="It may be damaged, or written by a much older or newer torch: export it again.",
    )
