"""Files that are broken or want to do harm, of all formats: as in `hostile_pickles`."""

from __future__ import annotations

import gzip
import io
import json
import pickle
import struct
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.torch
import torch

from tests.engine.artifacts.hostile_folders import FOLDERS
from tests.engine.artifacts.hostile_pickles import (
    PICKLES,
    TENSORS,
    Write,
    archive,
    changed,
    evil,
    good,
    tensor_pickle,
    written,
)
from tests.engine.artifacts.hostile_programs import PROGRAMS

# -- archives --------------------------------------------------------------------------------------


def npy(array: np.ndarray, **options: Any) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, **options)
    return buffer.getvalue()


def zeros_bomb() -> bytes:
    """64 MiB of zeros as data.pkl, in 64 KiB."""
    return archive({"archive/data.pkl": bytes(80 * 2**20)}, zipfile.ZIP_DEFLATED)


def lying_size(data: bytes) -> bytes:
    """The list of records says that the first has another size."""
    at = data.index(b"PK\x01\x02")
    return changed(data, at + 24, struct.pack("<I", 10**9))


def bomb_npz() -> bytes:
    """A compressed array whose header says that it has a terabyte."""
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<f4", "fortran_order": False, "shape": (2**38,)}
    )
    return archive({"x.npy": header.getvalue() + bytes(1000)}, zipfile.ZIP_DEFLATED)


def encrypted(data: bytes) -> bytes:
    """The list of records says so of the first."""
    return changed(data, data.index(b"PK\x01\x02") + 8, struct.pack("<H", 1))


def overlapping() -> bytes:
    """Two records of the list that are one and the same in the file, as bombs of zip have it."""
    data = archive({"a.npy": npy(np.zeros(1000)), "b.npy": npy(np.zeros(1000))})
    first = data.index(b"PK\x01\x02")
    second = data.index(b"PK\x01\x02", first + 4)
    return changed(data, second + 42, data[first + 42 : first + 46])


def twice(folder: Path) -> Path:
    """Two records of one name: the one that a reader checks may not be the one that it loads."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # zipfile's, about the name
        file.writestr("archive/data.pkl", tensor_pickle((100,), (1,), 0, 100))
        file.writestr("archive/data/0", bytes(400))
        file.writestr("archive/data.pkl", pickle.dumps(evil(folder), 2))
    return written("twice.pt", buffer.getvalue())(folder)


OTHER = archive({"readme.txt": b"hello"})
ARCHIVES: dict[str, Write] = {
    "a zip cut in the middle": written("cut.pt", good()[: len(good()) // 2]),
    "a zip without its end": written("end.pt", good()[:-10]),
    "a zip of only its beginning": written("begin.pt", good()[:100]),
    "a zip bomb": written("bomb.pt", zeros_bomb()),
    "a size that is not true": written("size.pt", lying_size(good())),
    "a record that leads out": written("out.pt", archive({"a/../../x": b"", "a/data.pkl": b""})),
    "a record with an absolute name": written("abs.pt", archive({"/etc/x": b"", "data.pkl": b""})),
    "a record of a drive": written("drive.pt", archive({"C:\\x": b"", "data.pkl": b""})),
    "numbers that are compressed": written(
        "deflated.pt",
        archive(
            {"archive/data.pkl": tensor_pickle((100,), (1,), 0, 100), "archive/data/0": bytes(400)},
            zipfile.ZIP_DEFLATED,
        ),
    ),
    "a zip of other things": written("other.pt", OTHER),
    "a zip that lists more than it has": written(
        "directory.pt", changed(OTHER, len(OTHER) - 10, struct.pack("<I", 2**31))
    ),
    "a record that is not where it should be": written(
        "moved.pt", changed(good(), good().index(b"PK\x01\x02") + 42, struct.pack("<I", 7))
    ),
    "an array of a terabyte in a zip": written("bomb.npz", bomb_npz()),
    "an archive as the pickle of an archive": written(
        "inner.pt", archive({"archive/data.pkl": good()})
    ),
    "a state_dict in an archive": written("outer.pt", archive({"inner.pt": good()})),
    "an npz in an npz": written("inner.npz", archive({"x.npy": archive({"x.npy": b"\x93NUMPY"})})),
    "a state_dict that was packed by gzip": written("packed.pt", gzip.compress(good())),
    "two records of one name": twice,
    "a record that is encrypted": written("encrypted.pt", encrypted(good())),
    "records that overlap": written("overlap.npz", overlapping()),
    "a byteorder of no machine": written(
        "middle.pt",
        archive(
            {
                "archive/data.pkl": tensor_pickle((100,), (1,), 0, 100),
                "archive/data/0": bytes(400),
                "archive/byteorder": b"middle",
            }
        ),
    ),
    "an npz with a script": written("script.npz", archive({"x.npy": b"", "run.py": b""})),
}

# -- arrays and safetensors ------------------------------------------------------------------------


def objects(folder: Path) -> Path:
    return written("objects.npy", npy(np.array([evil(folder)], object), allow_pickle=True))(folder)


def npy_header(text: str) -> bytes:
    data = text.encode().ljust(118) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(data)) + data


ARRAYS: dict[str, Write] = {
    "an array of objects": objects,
    "an npz of objects": lambda folder: written(
        "objects.npz", archive({"x.npy": objects(folder).read_bytes()})
    )(folder),
    "an npy cut off": written("cut.npy", npy(np.ones(1000))[:500]),
    "an npy header that calls": written("calls.npy", npy_header("__import__('os').getcwd()")),
    "an npy header nested deeply": written("deep.npy", npy_header("(" * 100)),
    "an npy of a negative size": written(
        "negative.npy", npy_header("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}")
    ),
    "an npy of an exabyte": written(
        "huge.npy", npy_header("{'descr': '<f4', 'fortran_order': False, 'shape': (1<<60,)}")
    ),
    "an npy of 70 dimensions": written(
        "dimensions.npy",
        npy_header(f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({'1,' * 70})}}")
        + bytes(4),
    ),
    "an npy of a version to come": written("version.npy", b"\x93NUMPY\x09\x00" + bytes(100)),
    "an npy that is no array": written("text.npy", b"hello there"),
}


def header(told: Any, data: bytes = b"", length: int | None = None) -> bytes:
    text = told if isinstance(told, bytes) else json.dumps(told).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def one(**fields: Any) -> dict[str, Any]:
    return {"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8], **fields}}


SAFETENSORS: dict[str, Write] = {
    f"{name}, safetensors": written(f"{name.replace(' ', '_')}.safetensors", data)
    for name, data in {
        "a huge header": header({}, length=2**62),
        "a header longer than the file": header(one(), length=10_000),
        "a header without JSON": header(b"{hello}"),
        "a header nested deeply": header(b'{"a":' * 100_000),
        "a header that is a list": header(b"{  }x")[:-1] + b"]",
        "a name twice": header(b'{"a":1,"a":2}'),
        "no bytes": header(one()),
        "bytes left over": header(one(), bytes(100)),
        "offsets that overlap": header({**one(), "b": one()["a"]}, bytes(8)),
        "offsets backwards": header(one(data_offsets=[8, 0]), bytes(8)),
        "offsets of words": header(one(data_offsets=["0", "8"]), bytes(8)),
        "a shape that does not fit": header(one(shape=[3]), bytes(8)),
        "a shape that overflows": header(one(shape=[2**40, 2**40]), bytes(8)),
        "a shape below zero": header(one(shape=[-2]), bytes(8)),
        "a cut file": safetensors.torch.save({"a": torch.ones(100)})[:-7],
        "seven bytes": bytes(7),
    }.items()
}

OTHERS: dict[str, Write] = {
    "a file that is not there": lambda folder: folder / "nothing.pt",
    "an empty file": written("empty.pt", b""),
    "a text": written("text.pth", b"hello there, this is not a model"),
    "a picture": written("picture.pt", b"\x89PNG\r\n\x1a\n" + bytes(100)),
    "random bytes": written("random.bin", bytes(range(256)) * 40),
}

HOSTILE = {
    **PICKLES, **TENSORS, **ARCHIVES, **ARRAYS, **SAFETENSORS, **FOLDERS, **PROGRAMS, **OTHERS,
}  # fmt: skip
