"""Folders, and indices of several files, that are broken or want to do harm: as in
`hostile_pickles`."""

from __future__ import annotations

import json
import os
import pickle
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import safetensors.torch
import torch

from engine.project.document import Project
from engine.runs.folders import METRICS
from engine.runs.record import FILE, RunRecord, Writer, save
from tests.engine.artifacts.hostile_pickles import Write, evil, good


def index(weight_map: Any, **files: bytes) -> Write:
    def write(folder: Path) -> Path:
        for name, data in files.items():
            (folder / name.replace("__", ".")).write_bytes(data)
        path = folder / "model.safetensors.index.json"
        path.write_text(json.dumps({"weight_map": weight_map}))
        return path

    return write


def dcp_of(make: Callable[[Path], Any], data: bytes | None = None) -> Write:
    """A folder with the pickle of what `make` gives as its index, and maybe a file of numbers."""

    def write(folder: Path) -> Path:
        inner = folder / "dcp"
        inner.mkdir(exist_ok=True)
        if data is not None:
            (inner / "__0_0.distcp").write_bytes(data)
        (inner / ".metadata").write_bytes(pickle.dumps(make(folder)))
        return inner

    return write


def dcp_index(path: str, offset: int = 0, length: int = 100) -> Any:
    from torch.distributed.checkpoint.filesystem import _StorageInfo
    from torch.distributed.checkpoint.metadata import (
        ChunkStorageMetadata,
        Metadata,
        MetadataIndex,
        TensorProperties,
        TensorStorageMetadata,
    )

    size = torch.Size([2])
    chunk = ChunkStorageMetadata(torch.Size([0]), size)
    tensor = TensorStorageMetadata(TensorProperties(torch.float32), size, [chunk])
    place = _StorageInfo(path, offset, length)
    return Metadata({"a": tensor}, storage_data={MetadataIndex("a", torch.Size([0])): place})


class _Attribute:
    """Its pickle asks for an attribute of a class that the index of a folder may name."""

    def __reduce__(self) -> Any:
        from torch.distributed.checkpoint.metadata import Metadata

        return getattr, (Metadata, "__init__")


TENSOR = safetensors.torch.save({"a": torch.ones(2)})


def evil_bytes(path: Path) -> bytes:
    """The canary is looked for below the folder of the file."""
    return pickle.dumps(evil(path.parent))


def linked(target: str) -> Callable[[Path], object]:
    return lambda path: path.symlink_to(target)


def to_itself(path: Path) -> None:
    path.symlink_to(path.name)


def raw_index(data: bytes) -> Write:
    return index_is(lambda path: path.write_bytes(data))


def index_is(make: Callable[[Path], object]) -> Write:
    def write(folder: Path) -> Path:
        make(folder / "model.safetensors.index.json")
        return folder / "model.safetensors.index.json"

    return write


def index_with(weight_map: Any, make: Callable[[Path], object]) -> Write:
    """An index whose file `part.safetensors` `make` makes."""

    def write(folder: Path) -> Path:
        make(folder / "part.safetensors")
        return index(weight_map)(folder)

    return write


def hub(
    config: bytes = b"{}",
    weights: bytes = b"",
    torch_weights: bool = False,
    place: Callable[[Path], object] | None = None,
) -> Write:
    """A folder of Hugging Face."""

    def write(folder: Path) -> Path:
        (folder / "config.json").write_bytes(config)
        if weights:
            (folder / "model.safetensors").write_bytes(weights)
        if torch_weights:
            (folder / "pytorch_model.bin").write_bytes(pickle.dumps(evil(folder)))
        if place is not None:
            place(folder / "model.safetensors")
        return folder

    return write


def dcp_bytes(data: bytes) -> Write:
    def write(folder: Path) -> Path:
        (folder / ".metadata").write_bytes(data)
        return folder

    return write


def dcp_cut(folder: Path) -> Path:
    return dcp_bytes(pickle.dumps(dcp_index("__0_0.distcp"))[:-40])(folder)


def dcp_pipe(folder: Path) -> Path:
    os.mkfifo(folder / ".metadata")
    return folder


def run_with(make: Callable[[Path], object]) -> Write:
    """A run whose newest checkpoint `make` makes."""

    def write(folder: Path) -> Path:
        (folder / "checkpoints").mkdir()
        make(folder / "checkpoints" / "step-00000003.pt")
        return folder

    return write


def database(*statements: str) -> bytes:
    connection = sqlite3.connect(":memory:")
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    try:
        return connection.serialize()
    finally:
        connection.close()


def run_of(run: bytes = b"", figures: bytes | None = None) -> Write:
    def write(folder: Path) -> Path:
        if run:
            (folder / FILE).write_bytes(run)
        else:
            writer = Writer.own()
            save(
                folder,
                RunRecord(id="r", project=Project(), writer=writer, began_s=1e9, state="finished"),
            )
        if figures is not None:
            (folder / METRICS).write_bytes(figures)
        return folder

    return write


def run_figures(make: Callable[[Path], object]) -> Write:
    def write(folder: Path) -> Path:
        make(folder / METRICS)
        return run_of()(folder)

    return write


FOLDERS: dict[str, Write] = {
    "an index that leads out": index({"a": "../../secret.safetensors"}),
    "an index with an absolute path": index({"a": "/etc/passwd"}),
    "an index of a file that is missing": index({"a": "gone.safetensors"}),
    "an index of a tensor that is missing": index(
        {"b": "x.safetensors"}, x__safetensors=safetensors.torch.save({"a": torch.ones(1)})
    ),
    "an index without files": index("hello"),
    "an index of numbers": index({"a": 3}),
    "a DCP index that runs code": dcp_of(evil),
    "a DCP index that leads out": dcp_of(lambda _: dcp_index("../../secret")),
    "a DCP index of a missing file": dcp_of(lambda _: dcp_index("__0_0.distcp")),
    "a DCP index that asks for an attribute": dcp_of(lambda _: {"a": _Attribute()}),
    "a DCP index of nothing": dcp_of(lambda _: {}),
    "an empty folder": lambda folder: folder,
    "an index whose file is a folder": index_with({"a": "part.safetensors"}, Path.mkdir),
    "an index whose file is a device": index_with({"a": "part.safetensors"}, linked("/dev/zero")),
    "an index whose file is a pipe": index_with({"a": "part.safetensors"}, os.mkfifo),
    "an index whose file is a link to itself": index_with({"a": "part.safetensors"}, to_itself),
    "an index whose file is cut off": index({"a": "x.safetensors"}, x__safetensors=TENSOR[:-3]),
    "an index whose file runs code": index_with(
        {"a": "part.safetensors"},
        lambda path: path.write_bytes(pickle.dumps(evil(path.parent))),
    ),
    "an index that names itself": index({"a": "model.safetensors.index.json"}),
    "an index that names ..": index({"a": ".."}),
    "an index with a backslash": index({"a": "..\\secret.safetensors"}),
    "an index with a zero byte": index({"a": "x\0.safetensors"}),
    "an index with a name of a megabyte": index({"a": "x" * 2**20}),
    "an index nested deeply": raw_index(b"[" * 200_000),
    "an index that is a list": raw_index(b"[]"),
    "an index that is a pipe": index_is(os.mkfifo),
    "an index that is a device": index_is(linked("/dev/zero")),
    "a config without weights": hub(),
    "a config that is no JSON": hub(config=b"{", weights=TENSOR),
    "a config that is a list": hub(config=b"[1]", weights=TENSOR),
    "a config nested deeply": hub(config=b'{"a":' * 200_000, weights=TENSOR),
    "weights of a folder that run code": hub(torch_weights=True),
    "weights of a folder that are a device": hub(place=linked("/dev/zero")),
    "a DCP index that is cut off": dcp_cut,
    "a DCP index that is no pickle": dcp_bytes(b"hello there"),
    "a DCP index that is a pipe": dcp_pipe,
    "a DCP place before its file": dcp_of(lambda _: dcp_index("__0_0.distcp", -5), b"12345678"),
    "a DCP place beyond its file": dcp_of(
        lambda _: dcp_index("__0_0.distcp", 0, 2**40), b"12345678"
    ),
    "a DCP index with an absolute path": dcp_of(lambda _: dcp_index("/etc/passwd")),
    "a run whose checkpoint runs code": run_with(lambda path: path.write_bytes(evil_bytes(path))),
    "a run whose checkpoint is a pipe": run_with(os.mkfifo),
    "a run whose checkpoint is a device": run_with(linked("/dev/zero")),
    "a run whose checkpoint is cut off": run_with(
        lambda path: path.write_bytes(good()[: len(good()) // 2])
    ),
}

RUNS: dict[str, Write] = {
    "a run without JSON": run_of(run=b"{"),
    "a run nested deeply": run_of(run=b"[" * 200_000),
    "a run of another form": run_of(run=b'{"id": 3, "began_s": "yesterday"}'),
    "a run whose figures are no database": run_of(figures=b"hello there"),
    "a run whose figures are cut off": run_of(figures=b"SQLite format 3\0" + bytes(50)),
    "a run whose figures are of another database": run_of(figures=database("CREATE TABLE a (b)")),
    "a run whose figures are a view that never ends": run_of(
        figures=database(
            "PRAGMA user_version = 2",
            "CREATE VIEW steps AS WITH RECURSIVE n(step) AS (SELECT 1 UNION ALL SELECT step + 1"
            " FROM n) SELECT step, 0.5 AS loss FROM n",
        )
    ),
    "a run whose figures are a folder": run_figures(Path.mkdir),
    "a run whose figures are a pipe": run_figures(os.mkfifo),
}
"""Folders of runs that are damaged: what is whole of them is shown, with what is wrong."""
