"""Programs that are broken or want to do harm, of ONNX, torch.export and TorchScript: as in
`hostile_pickles`."""

from __future__ import annotations

import json
import os
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
from onnx import TensorProto, helper

from tests.engine.artifacts.hostile_pickles import Write, archive, evil, written

# -- ONNX ------------------------------------------------------------------------------------------


def model(*tensors: onnx.TensorProto, **more: Any) -> bytes:
    graph = helper.make_graph([], "g", [], [], list(tensors), **more)
    return helper.make_model(graph).SerializeToString()


def external(**told: str) -> bytes:
    tensor = TensorProto(name="w", data_type=1, dims=[2], data_location=TensorProto.EXTERNAL)
    for key, value in told.items():
        tensor.external_data.add(key=key, value=value)
    return model(tensor)


def external_at(make: Callable[[Path], object]) -> Write:
    """A model whose numbers should be in `w.bin`, which `make` makes."""

    def write(folder: Path) -> Path:
        make(folder / "w.bin")
        return written("w.onnx", external(location="w.bin"))(folder)

    return write


def sparse(places: list[int], dims: list[int]) -> bytes:
    values = helper.make_tensor("w", 1, [1], [1.0])
    at = TensorProto(name="at", data_type=7, dims=[1], int64_data=places)
    return model(sparse_initializer=[onnx.SparseTensorProto(values=values, indices=at, dims=dims)])


def without_places() -> bytes:
    values = helper.make_tensor("w", 1, [1], [1.0])
    return model(sparse_initializer=[onnx.SparseTensorProto(values=values, dims=[4])])


ONNX: dict[str, Write] = {
    "an ONNX that is empty": written("empty.onnx", b""),
    "an ONNX of other bytes": written("bytes.onnx", b"\x08\x07hello there"),
    "an ONNX cut off": written(
        "cut.onnx", model(helper.make_tensor("w", 1, [100], [0.0] * 100))[:-50]
    ),
    "an ONNX without a graph": written("graph.onnx", b"\x08\x07"),
    "an ONNX number without end": written("varint.onnx", b"\x08" + b"\xff" * 30),
    "an ONNX field of an exabyte": written("field.onnx", b"\x3a\xff\xff\xff\xff\xff\xff\xff\x7f"),
    "an ONNX shape below zero": written(
        "negative.onnx", model(TensorProto(name="w", data_type=1, dims=[-1], raw_data=b"1234"))
    ),
    "an ONNX shape that does not fit": written(
        "fit.onnx", model(TensorProto(name="w", data_type=1, dims=[9], raw_data=b"1234"))
    ),
    "an ONNX shape that overflows": written(
        "overflow.onnx", model(TensorProto(name="w", data_type=1, dims=[2**40] * 3, raw_data=b""))
    ),
    "an ONNX of too few numbers": written(
        "few.onnx", model(TensorProto(name="w", data_type=1, dims=[3], float_data=[1.0]))
    ),
    "an ONNX that reads elsewhere": written("out.onnx", external(location="../../etc/passwd")),
    "an ONNX that reads an absolute path": written("abs.onnx", external(location="/etc/passwd")),
    "an ONNX whose numbers are missing": written("gone.onnx", external(location="gone.bin")),
    "an ONNX whose numbers are a device": external_at(lambda path: path.symlink_to("/dev/zero")),
    "an ONNX whose numbers are a pipe": external_at(os.mkfifo),
    "an ONNX whose numbers are a folder": external_at(Path.mkdir),
    "an ONNX whose numbers are too few": external_at(lambda path: path.write_bytes(b"1234")),
    "an ONNX that reads beyond": written(
        "beyond.onnx", external(location="beyond.onnx", offset="99999")
    ),
    "an ONNX that reads before its file": written(
        "before.onnx", external(location="before.onnx", offset="-8")
    ),
    "an ONNX that reads at a word": written(
        "word.onnx", external(location="word.onnx", offset="here")
    ),
    "an ONNX of a sparse shape below zero": written("sparse.onnx", sparse([0], [-4])),
    "an ONNX of a sparse tensor without places": written("places.onnx", without_places()),
    "an ONNX of a sparse tensor of too few places": written("too_few.onnx", sparse([], [4])),
}

# -- torch.export ----------------------------------------------------------------------------------

TENSOR = {
    "dtype": 7, "sizes": [{"as_int": 2}], "strides": [{"as_int": 1}],
    "storage_offset": {"as_int": 0}, "layout": 7, "requires_grad": False,
    "device": {"type": "cpu", "index": None},
}  # fmt: skip
GRAPH = {"inputs": [], "outputs": [], "nodes": [], "tensor_values": {}}
SIGNATURE = {"input_specs": [], "output_specs": []}


def program(data: bytes, how: int = zipfile.ZIP_STORED) -> bytes:
    return archive({"p/archive_format": b"pt2", "p/models/model.json": data}, how)


def exported(
    graph: Any = GRAPH,
    signature: Any = SIGNATURE,
    weight: Any = None,
    numbers: bytes = bytes(8),
    **more: Any,
) -> bytes:
    """A program with one weight."""
    whole = {"graph_module": {"graph": graph, "signature": signature}, **more}
    told = {"path_name": "weight_0", "is_param": True, "use_pickle": False, "tensor_meta": TENSOR}
    config = {"config": {"w": {**told, **(weight or {})}}}
    return archive(
        {
            "p/archive_format": b"pt2",
            "p/models/model.json": json.dumps(whole).encode(),
            "p/data/weights/model_weights_config.json": json.dumps(config).encode(),
            "p/data/weights/weight_0": numbers,
        }
    )


def weight(**meta: Any) -> dict[str, Any]:
    return {"tensor_meta": {**TENSOR, **meta}}


def deep(depth: int) -> dict[str, Any]:
    """A graph in a node of a graph, and so on."""
    graph: dict[str, Any] = GRAPH
    for _ in range(depth):
        inner = {"as_graph": {"name": "body", "graph": graph}}
        node = {"target": "cond", "inputs": [{"name": "f", "arg": inner}], "outputs": []}
        graph = {**GRAPH, "nodes": [node]}
    return graph


EXPORTED: dict[str, Write] = {
    "a pt2 without a program": written("none.pt2", archive({"p/archive_format": b"pt2"})),
    "a pt2 without JSON": written("json.pt2", program(b"{")),
    "a pt2 nested deeply": written("deep.pt2", program(b"[" * 200_000)),
    "a pt2 of millions of values": written(
        "values.pt2", program(b'{"a":[' + b"{}," * 2_100_000 + b"{}]}", zipfile.ZIP_DEFLATED)
    ),
    "a pt2 of another form": written("form.pt2", program(b'{"a": 1}')),
    "a pt2 that is a list": written("list.pt2", program(b"[]")),
    "a pt2 whose graphs are nested deeply": written("graphs.pt2", exported(deep(40))),
    "a pt2 with a node of nothing": written("node.pt2", exported({**GRAPH, "nodes": [None]})),
    "a pt2 with a value of no sizes": written(
        "values.pt2", exported({**GRAPH, "tensor_values": {"x": {"dtype": 7}}})
    ),
    "a pt2 with an input of two kinds": written(
        "kinds.pt2", exported(signature={**SIGNATURE, "input_specs": [{"a": {}, "b": {}}]})
    ),
    "a pt2 whose numbers are missing": written("gone.pt2", exported(weight={"path_name": "no"})),
    "a pt2 that reads out of its archive": written(
        "out.pt2", exported(weight={"path_name": "../../../etc/passwd"})
    ),
    "a pt2 of too few numbers": written("few.pt2", exported(numbers=bytes(7))),
    "a pt2 of a size below zero": written(
        "negative.pt2", exported(weight=weight(sizes=[{"as_int": -2}]))
    ),
    "a pt2 of a size that overflows": written(
        "huge.pt2", exported(weight=weight(sizes=[{"as_int": 2**62}]))
    ),
    "a pt2 of a stride below zero": written(
        "stride.pt2", exported(weight=weight(strides=[{"as_int": -1}]))
    ),
    "a pt2 of a place below zero": written(
        "place.pt2", exported(weight=weight(storage_offset={"as_int": -1}))
    ),
    "a pt2 of a place beyond": written(
        "beyond.pt2", exported(weight=weight(storage_offset={"as_int": 1}))
    ),
    "a pt2 of no dtype": written("dtype.pt2", exported(weight=weight(dtype=999))),
    "a pt2 of sizes in words": written(
        "words.pt2", exported(weight=weight(sizes=[{"as_int": "two"}]))
    ),
    "a pt2 with weights of a list": written("weights.pt2", exported(weight={"tensor_meta": [1]})),
}

# -- TorchScript -----------------------------------------------------------------------------------


def script(
    code: bytes, data: bytes = b"\x80\x02c__torch__\nM\n)\x81}b.", constants: bytes = b"\x80\x02)."
) -> bytes:
    return archive(
        {
            "s/data.pkl": data,
            "s/constants.pkl": constants,
            "s/code/__torch__.py": code,
            "s/version": b"3\n",
        }
    )


FORWARD = b"class M(Module):\n  def forward(self: M, x: Tensor) -> Tensor:\n"
DOUBLING = b"".join(b"    a%d = (a%d, a%d)\n" % (i + 1, i, i) for i in range(60))
MODULE = b"\x80\x02c__torch__\nM\n)\x81}"
LOST = MODULE + b"X\x01\x00\x00\x00wctorch._utils\n_rebuild_tensor_v2\n((X\x07\x00\x00\x00storage"
LOST += b"ctorch\nFloatStorage\nX\x01\x00\x00\x007X\x03\x00\x00\x00cpuK\x02tQK\x00K\x02\x85K\x01"
LOST += b"\x85\x89}tRsb."
"""A module whose tensor lies in storage 7, which is not there."""

SCRIPTS: dict[str, Write] = {
    "a script of a class that is not its own": written(
        "class.pt", script(FORWARD + b"    return x\n", b"\x80\x02cos\nsystem\n)\x81}b.")
    ),
    "a script that calls os.system": lambda folder: written(
        "calls.pt", script(b"", pickle.dumps(evil(folder), 2))
    )(folder),
    "a script whose constants call os.system": lambda folder: written(
        "constants.pt", script(b"", constants=pickle.dumps(evil(folder), 2))
    )(folder),
    "a script cut off in its pickle": written("cut.pt", script(b"", MODULE)),
    "a script whose pickle is empty": written("empty.pt", script(b"", b"")),
    "a script whose pickle keeps nothing": written("kept.pt", script(b"", b"\x80\x02h\x05.")),
    "a script with a name that is no text": written(
        "name.pt", script(b"", b"\x80\x02X\x02\x00\x00\x00\x88\x89.")
    ),
    "a script whose numbers are missing": written("lost.pt", script(FORWARD, LOST)),
}
"""Programs with code that cannot be followed are opened without a graph: see QUIET."""

QUIET: dict[str, Write] = {
    "a script that is no code": written("text.pt", script(b"hello there")),
    "a script of a million lines": written("lines.pt", script(FORWARD + b"    x\n" * 1_000_000)),
    "a script of a long list": written(
        "list.pt", script(FORWARD + b"    y = [" + b"x," * 300_000 + b"]\n    return x\n")
    ),
    "a script nested deeply": written("deep.pt", script(b"(" * 100_000)),
    "a script that doubles its values": written(
        "double.pt", script(FORWARD + b"    a0 = x\n" + DOUBLING + b"    return a60\n")
    ),
    "a script that calls itself": written(
        "itself.pt", script(FORWARD + b"    return (self).forward(x, )\n")
    ),
    "a script without forward": written("none.pt", script(b"class M(Module):\n  pass\n")),
    "a script of bytes that are no text": written("bytes.pt", script(b"\xff\xfe\x00class")),
}
"""These hold a module without harm: they are opened, with a note in the place of the graph."""

PROGRAMS = {**ONNX, **EXPORTED, **SCRIPTS}
