"""The binary files of CIFAR-10 and CIFAR-100: records of one or two labels and 3,072 pixels."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from .samples import DataProblem, Samples
from .source import MAX_BYTES, Faults, require, require_size, whole
from .stored.arrays import as_images

_PIXELS = 3 * 32 * 32
_VERSIONS = {
    "CIFAR-10": (0, 1, 10, "batches.meta.txt"),
    "CIFAR-100 fine": (1, 2, 100, "fine_label_names.txt"),
    "CIFAR-100 coarse": (0, 2, 20, "coarse_label_names.txt"),
}
"""By version: which byte of a record is the label, the number of label bytes, the number of
classes, and the file of their names."""


def read(path: Path, version: str, own_test: bool, faults: str) -> Samples:
    """A file of records, or a folder of them: x (N, 3, 32, 32) from 0 to 1. In a folder, test.bin
    and test_batch.bin are the validation data if `own_test`. Raises DataProblem."""
    at, labels, classes, names_file = _VERSIONS[version]
    found = Faults(faults == "skip")
    folder = path if path.is_dir() else path.parent
    files = _files(path) if path.is_dir() else [require(path)]
    tests = [f for f in files if f.name.startswith("test")] if own_test and path.is_dir() else []
    trains = [f for f in files if f not in tests]
    parts = [_records(file, at, labels, version, found) for file in trains or files]
    held_out = 0
    if trains:
        test_parts = [_records(file, at, labels, version, found) for file in tests]
        held_out = sum(map(len, test_parts))
        parts += test_parts
    records = np.concatenate(parts)
    if not len(records):
        raise DataProblem(f"{path.name} has no records.")
    require_size(4 * _PIXELS * len(records), "The images")
    return Samples(
        as_images(records[:, labels:].reshape(-1, 3, 32, 32)),
        records[:, at].astype(np.int64),
        _names(folder / names_file, classes),
        held_out=held_out,
        skipped=found.skipped,
    )


def _files(folder: Path) -> list[Path]:
    found = sorted(p for p in folder.iterdir() if p.is_file())
    files = [p for p in found if p.name.removesuffix(".gz").endswith(".bin")]
    if not files:
        pickled = any(p.name in ("data_batch_1", "train") for p in found)
        raise DataProblem(
            f"{folder.name} has no .bin files"
            + (": it is CIFAR's Python version, which is pickled." if pickled else "."),
            hint="Pickles can run any code, so none is read. Get CIFAR's binary version.",
        )
    return files


def _records(file: Path, at: int, labels: int, version: str, found: Faults) -> np.ndarray:
    """The good records of a file: uint8 (N, labels + 3072)."""
    size = labels + _PIXELS
    data = whole(file, MAX_BYTES // 4)
    if data[:1] == b"\x80" and data[-1:] == b"." and len(data) % size:
        raise DataProblem(
            f"{file.name} is a pickle, as CIFAR's Python version has them.",
            hint="Pickles can run any code, so none is read. Get CIFAR's binary version.",
        )
    if len(data) % size:
        raise DataProblem(
            f"{file.name} has {len(data):,} bytes. A record of {version} has {size:,}: the last one"
            f" is cut off after {len(data) % size:,}."
        )
    records = np.frombuffer(data, np.uint8).reshape(-1, size)
    classes = _VERSIONS[version][2]
    bad = np.flatnonzero(records[:, at] >= classes)
    for row in bad.tolist():
        found.add(
            f"{file.name}, record {row + 1:,}: label {records[row, at]}; {version} has 0 to"
            f" {classes - 1}."
        )
    return np.delete(records, bad, 0) if len(bad) else records


def _names(file: Path, classes: int) -> tuple[str, ...]:
    """The names of the classes, from their file if it is there and has one for each."""
    if file.is_file() and file.stat().st_size < 1 << 16:
        names = tuple(file.read_text(encoding="utf-8", errors="replace").split())
        if len(names) == classes:
            return names
    return tuple(map(str, range(classes)))
