"""NumPy's files: `.npz` with an array of samples and one of targets, or `.npy`. Samples that would
take too much memory stay in the file, if it is not packed."""

from __future__ import annotations

import zipfile
import zlib
from dataclasses import replace
from math import prod
from pathlib import Path
from struct import unpack
from typing import BinaryIO

import numpy as np

from .samples import DataProblem, Samples
from .source import (
    Faults,
    beside_it,
    exactly,
    is_large,
    labelled,
    mark_faults,
    matched,
    opened,
    require,
    require_length,
    require_unpacked,
)
from .stored.arrays import ArrayStore, MappedArray, as_floats, as_images, is_image
from .stored.rows import StoredRows

_PICKLES = "Pickles can run any code, so none is read. Save numbers: np.save of a plain array."
_MAX_HEADER = 10_000
_CHUNK = 1 << 20
_Array = np.ndarray | MappedArray


def read(path: Path, x: str, y: str, target: str, faults: str) -> Samples:
    """Arrays `x` and `y` of an .npz; or an .npy of samples, with the targets in the .npy `y` beside
    it, and without one in its last column.

    Integers and texts are labels, floats are numbers, unless `target` says otherwise. Images of
    uint8 become float32 from 0 to 1. Raises DataProblem.
    """
    require(path)
    with path.open("rb") as file:
        start = file.read(2)
    if start == b"PK":
        samples, targets = _of_archive(path, x), _of_archive(path, y)
        names = (f"{path.name}, {x}", f"{path.name}, {y}")
    else:
        samples = _of_file(path)
        beside = beside_it(path, y if y.endswith(".npy") else f"{y}.npy")
        if beside.is_file() and beside != path:
            targets = _of_file(beside)
            names = (path.name, beside.name)
        elif samples.ndim == 2 and samples.shape[1] > 1:
            samples, targets = _last_column_apart(samples)
            names = (path.name, f"{path.name}, last column")
        else:
            raise DataProblem(
                f"{path.name} has shape {samples.shape}, and its targets are not beside it.",
                hint=f"Save them as {beside.name}, or both in an .npz.",
            )
    if isinstance(targets, MappedArray):
        raise DataProblem(f"{names[1]} has too many targets to be in memory.")
    return _samples(samples, targets, names, target, Faults(faults == "skip"))


def _last_column_apart(table: _Array) -> tuple[_Array, np.ndarray]:
    if isinstance(table, MappedArray):
        return replace(table, columns=table.shape[1] - 1), table[:, -1]
    return table[:, :-1], table[:, -1]


def _of_file(path: Path) -> _Array:
    with opened(path) as file:
        return read_npy(file, path.name, path)


def read_npy(file: BinaryIO, name: str, path: Path, start: int | None = 0) -> _Array:
    """The array of an .npy file, which is in the file at `path` from byte `start` on; None: it is
    packed there. One that would take too much memory is mapped. Raises DataProblem."""
    lib = np.lib.format
    try:
        version = lib.read_magic(file)
        if version not in ((1, 0), (2, 0)):
            raise ValueError(f"its version is {version}")
        header = lib.read_array_header_1_0 if version == (1, 0) else lib.read_array_header_2_0
        shape, fortran, dtype = header(file, max_header_size=_MAX_HEADER)
    except ValueError as error:
        if str(error).startswith("Object arrays"):
            raise DataProblem(f"{name} holds pickled objects.", hint=_PICKLES) from error
        reason = str(error).splitlines()[0]
        raise DataProblem(f"{name} is not an .npy file: {reason}.") from error
    if dtype.hasobject:
        raise DataProblem(f"{name} holds pickled objects.", hint=_PICKLES)
    if min(shape, default=1) < 0:
        raise DataProblem(f"{name} is damaged: its header has the shape {shape}.")
    size = prod(shape) * dtype.itemsize
    if is_large(max(size, 4 * prod(shape))):
        require_unpacked(file, name, is_packed=start is None)
        offset = file.tell() + (start or 0)
        require_length(path, offset, size, name)
        return MappedArray(path, offset, dtype, shape, fortran)
    data = exactly(file, size, name)
    return np.frombuffer(data, dtype).reshape(shape, order="F" if fortran else "C")


def _of_archive(path: Path, array: str) -> _Array:
    name = f"{path.name}, {array}"
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.namelist()
            if f"{array}.npy" not in members:
                arrays = ", ".join(m.removesuffix(".npy") for m in members[:20]) or "none"
                raise DataProblem(
                    f"{path.name} has no array {array}.", hint=f"Its arrays are: {arrays}."
                )
            member = archive.getinfo(f"{array}.npy")
            with archive.open(member) as file:
                found = read_npy(file, name, path, _start_of(path, member))  # pyright: ignore[reportArgumentType]
                while isinstance(found, MappedArray) and file.read(_CHUNK):
                    pass  # at its end the sum of its bytes is checked
                return found
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError) as error:
        raise DataProblem(f"{path.name} is damaged: {error}.") from error
    except (RuntimeError, NotImplementedError) as error:  # it has a password, or is packed by xz
        raise DataProblem(f"{path.name} cannot be unpacked: {error}.") from error


def _start_of(path: Path, member: zipfile.ZipInfo) -> int | None:
    """The byte of the archive at which a member begins; None if it is packed."""
    if member.compress_type != zipfile.ZIP_STORED:
        return None
    with path.open("rb") as file:
        file.seek(member.header_offset + 26)
        lengths = unpack("<2H", file.read(4))  # of its name, and of what follows the name
    return member.header_offset + 30 + sum(lengths)


def _samples(
    x: _Array, y: np.ndarray, names: tuple[str, str], target: str, faults: Faults
) -> Samples:
    x_name, y_name = names
    if x.dtype.kind not in "biuf":
        raise DataProblem(f"{x_name} holds {x.dtype.name}; samples are real numbers.")
    if not x.ndim:
        raise DataProblem(f"{x_name} is a single number: dim 0 counts the samples.")
    if y.ndim > 2 or not y.ndim or y.dtype.kind not in "biufU":
        raise DataProblem(
            f"{y_name} has shape {y.shape} and dtype {y.dtype.name}; targets are labels (N,) or"
            " numbers (N, T)."
        )
    matched(len(x), len(y), x_name, y_name)
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    good = np.ones(len(x), bool)
    for values, name in ((x, x_name), (y, y_name)):
        if values.dtype.kind == "f":
            mark_faults(values, name, faults, good)
    if not good.any():
        raise DataProblem(f"{x_name} has no sample without a fault.")
    y = y[good]
    samples: np.ndarray | StoredRows
    if isinstance(x, MappedArray):
        samples = StoredRows(ArrayStore((x,)), np.flatnonzero(good))
    elif is_image(x):
        samples = as_images(x[good])
    else:
        samples = as_floats(x[good])
        samples = samples.reshape(len(samples), *(samples.shape[1:] or (1,)))
    classes: tuple[str, ...] = ()
    if target == "numbers" or (target == "auto" and y.dtype.kind == "f"):
        if y.dtype.kind == "U":
            raise DataProblem(f"{y_name} holds texts, not numbers.")
        y = as_floats(y).reshape(len(y), -1)
    elif y.ndim != 1:
        raise DataProblem(f"{y_name} has shape {y.shape}; labels are (N,).")
    else:
        y, classes = labelled(y)
    targets = () if classes else tuple(f"{i}" for i in range(y.shape[1]))
    return Samples(samples, y, classes, targets, skipped=faults.skipped)
