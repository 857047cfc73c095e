"""Files of torch whose pickles are broken or want to do harm: name, and a function that writes one
into a folder and returns its path. CANARY exists afterwards if any of their code ran."""

from __future__ import annotations

import io
import os
import pickle
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

CANARY = "canary"
Write = Callable[[Path], Path]


class Runs:
    """A pickle of it calls something that makes the canary."""

    def __init__(self, function: Callable[..., Any], *args: Any) -> None:
        self._call = function, args

    def __reduce__(self) -> tuple[Callable[..., Any], tuple]:
        return self._call


def evil(folder: Path) -> Runs:
    return Runs(os.system, f"touch {folder / CANARY}")


def evil_exec(folder: Path) -> Runs:
    return Runs(exec, f"open({str(folder / CANARY)!r}, 'w')")


def written(name: str, data: bytes) -> Write:
    def write(folder: Path) -> Path:
        (folder / name).write_bytes(data)
        return folder / name

    return write


def saved(state: Any, **options: Any) -> bytes:
    buffer = io.BytesIO()
    torch.save(state, buffer, **options)
    return buffer.getvalue()


def good() -> bytes:
    return saved({"a": torch.arange(100.0), "b": torch.ones(3, 3)})


def with_pickle(data: bytes, **others: bytes) -> bytes:
    """A file of torch.save with another data.pkl, and other records."""
    return archive({"archive/data.pkl": data, "archive/version": b"3\n", **others})


def archive(records: dict[str, bytes], compress: int = zipfile.ZIP_STORED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compress) as file:
        for name, data in records.items():
            file.writestr(name, data)
    return buffer.getvalue()


def changed(data: bytes, place: int, by: bytes) -> bytes:
    return data[:place] + by + data[place + len(by) :]


# -- pickles ---------------------------------------------------------------------------------------


def pickled(make: Callable[[Path], Any], wrap: Callable[[bytes], bytes], name: str) -> Write:
    def write(folder: Path) -> Path:
        return written(name, wrap(pickle.dumps(make(folder), protocol=2)))(folder)

    return write


def saved_whole(make: Callable[[Path], Any], name: str, **options: Any) -> Write:
    return lambda folder: written(name, saved({"a": torch.ones(2), "b": make(folder)}, **options))(
        folder
    )


def torch_pickle(body: bytes) -> bytes:
    """A pickle of protocol 2 with this body."""
    return b"\x80\x02" + body + b"."


def tensor_pickle(shape: tuple, stride: tuple, start: int, count: int, key: str = "0") -> bytes:
    """The pickle of one tensor with these numbers, whether they fit or not."""

    class Of:
        def __init__(self, call: tuple) -> None:
            self.call = call

        def __reduce__(self) -> tuple:
            return self.call

    class Pickler(pickle.Pickler):
        def persistent_id(self, obj: Any) -> Any:
            if isinstance(obj, str) and obj == "the storage":
                return ("storage", torch.FloatStorage, key, "cpu", count)
            return None

    buffer = io.BytesIO()
    tensor = Of((torch._utils._rebuild_tensor_v2, ("the storage", start, shape, stride, False, {})))
    Pickler(buffer, protocol=2).dump({"a": tensor})
    return buffer.getvalue()


def tensor_file(*numbers: Any, key: str = "0") -> bytes:
    return with_pickle(tensor_pickle(*numbers, key=key), **{"archive/data/0": bytes(400)})


def nested(opening: bytes, closing: bytes, depth: int) -> bytes:
    return torch_pickle(opening * depth + closing * depth)


SHARED_LISTS = b"]" + b"".join(b"q\x00]h\x00ah\x00a" for _ in range(60))
"""A list that holds the one before twice, sixty times."""
TUPLE_KEY = b"}" + b")" + b"\x85" * 200_000 + b"K\x01s"
"""A dict whose key is a tuple in a tuple, 200,000 deep: its hash would exhaust the stack."""

PICKLES: dict[str, Write] = {
    "os.system in a zip": saved_whole(evil, "evil.pt"),
    "exec in a zip": saved_whole(evil_exec, "exec.pth"),
    "os.system before 1.6": saved_whole(evil, "legacy.pt", _use_new_zipfile_serialization=False),
    "os.system as a bare pickle": pickled(evil, bytes, "bare.pt"),
    "exec as a bare pickle, .bin": pickled(evil_exec, bytes, "bare.bin"),
    "os.system in the data.pkl": pickled(evil, with_pickle, "inner.pt"),
    "a whole module": written("module.pt", saved(torch.nn.Linear(1, 1))),
    "an INST of os.system": written("inst.pt", with_pickle(b"(S'touch canary'\nios\nsystem\n.")),
    "an OBJ of os.system": written("obj.pt", with_pickle(b"(cos\nsystem\nS'touch canary'\no.")),
    "a getattr of builtins": written(
        "getattr.pt",
        with_pickle(torch_pickle(b"cbuiltins\ngetattr\n(ctorch\nSize\nX\x01\0\0\0atR")),
    ),
    "an extension number": written("ext.pt", with_pickle(torch_pickle(b"\x82\x01"))),
    "a persistent id of no storage": written("pid.pt", with_pickle(torch_pickle(b"K\x01Q"))),
    "a bytearray of a terabyte": written(
        "bytes.pt", with_pickle(torch_pickle(b"cbuiltins\nbytearray\n\x8a\x06\0\0\0\0\0\x01\x85R"))
    ),
    "bytes of which there are fewer": written(
        "short.pt", with_pickle(torch_pickle(b"\x8e" + struct.pack("<Q", 2**60) + b"x"))
    ),
    "lists that hold each other": written("shared.pt", with_pickle(torch_pickle(SHARED_LISTS))),
    "lists nested deeply": written("deep.pt", with_pickle(nested(b"]", b"a", 100_000))),
    "four million operations": written("long.pt", with_pickle(torch_pickle(b"N0" * 2_000_000))),
    "no pickle at all": written("text.pt", with_pickle(b"hello")),
    "an empty pickle": written("empty.pt", with_pickle(b"")),
    "a tuple for a dict's items": written("items.pt", with_pickle(torch_pickle(b")K\x01K\x02s"))),
}
HARMLESS: dict[str, Write] = {
    "a memo index of four billion": written(
        "memo.pt", with_pickle(torch_pickle(b"K\x01r\xff\xff\xff\xff"))
    ),
    "a key that is a deep tuple": written("key.pt", with_pickle(torch_pickle(TUPLE_KEY))),
    "a list that holds itself": written("self.pt", with_pickle(torch_pickle(b"]q\x00h\x00a"))),
}
"""These would exhaust memory or stack if they were loaded as Python does: they are opened."""

TENSORS: dict[str, Write] = {
    "a shape beyond its storage": written("shape.pt", tensor_file((1000,), (1,), 0, 100)),
    "a start beyond its storage": written("start.pt", tensor_file((10,), (1,), 95, 100)),
    "a stride beyond its storage": written("stride.pt", tensor_file((10,), (50,), 0, 100)),
    "a negative stride": written("backwards.pt", tensor_file((10,), (-1,), 9, 100)),
    "a negative size": written("negative.pt", tensor_file((-1,), (1,), 0, 100)),
    "a shape that overflows": written("overflow.pt", tensor_file((2**40, 2**40), (0, 0), 0, 100)),
    "a storage larger than its record": written("large.pt", tensor_file((1000,), (1,), 0, 1000)),
    "a storage that is missing": written("missing.pt", tensor_file((1,), (1,), 0, 1, key="9")),
    "a storage outside of data/": written(
        "outside.pt", tensor_file((1,), (1,), 0, 1, key="../version")
    ),
    "a shape that is no tuple": written("words.pt", tensor_file("ab", (1,), 0, 100)),  # type: ignore
}
