"""NumPy's files: `.npz` with an array of samples and one of targets, or `.npy`."""

from __future__ import annotations

import zipfile
import zlib
from math import prod
from pathlib import Path
from typing import BinaryIO

import numpy as np

from .samples import DataProblem, Samples
from .source import Faults, as_images, exactly, labelled, matched, opened, require, require_size

_PICKLES = "Pickles can run any code, so none is read. Save numbers: np.save of a plain array."
_MAX_HEADER = 10_000


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
        with opened(path) as file:
            samples = read_npy(file, path.name)
        beside = path.with_name(y if y.endswith(".npy") else f"{y}.npy")
        if beside.is_file() and beside != path:
            with opened(beside) as file:
                targets = read_npy(file, beside.name)
            names = (path.name, beside.name)
        elif samples.ndim == 2 and samples.shape[1] > 1:
            samples, targets = samples[:, :-1], samples[:, -1]
            names = (path.name, f"{path.name}, last column")
        else:
            raise DataProblem(
                f"{path.name} has shape {samples.shape}, and its targets are not beside it.",
                hint=f"Save them as {beside.name}, or both in an .npz.",
            )
    return _samples(samples, targets, names, target, Faults(faults == "skip"))


def read_npy(file: BinaryIO, name: str) -> np.ndarray:
    """The array of an .npy file. Raises DataProblem."""
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
    data = exactly(file, prod(shape) * dtype.itemsize, name)
    return np.frombuffer(data, dtype).reshape(shape, order="F" if fortran else "C")


def _of_archive(path: Path, array: str) -> np.ndarray:
    name = f"{path.name}, {array}"
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.namelist()
            if f"{array}.npy" not in members:
                arrays = ", ".join(m.removesuffix(".npy") for m in members[:20]) or "none"
                raise DataProblem(
                    f"{path.name} has no array {array}.", hint=f"Its arrays are: {arrays}."
                )
            require_size(archive.getinfo(f"{array}.npy").file_size, name)
            with archive.open(f"{array}.npy") as file:
                return read_npy(file, name)  # pyright: ignore[reportArgumentType]
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError) as error:
        raise DataProblem(f"{path.name} is damaged: {error}.") from error
    except (RuntimeError, NotImplementedError) as error:  # it has a password, or is packed by xz
        raise DataProblem(f"{path.name} cannot be unpacked: {error}.") from error


def _samples(
    x: np.ndarray, y: np.ndarray, names: tuple[str, str], target: str, faults: Faults
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
    require_size(4 * x.size, x_name)
    good = np.ones(len(x), bool)
    for values, name in ((x, x_name), (y, y_name)):
        if values.dtype.kind == "f":
            flat = np.isfinite(values.reshape(len(values), -1))
            for row in np.flatnonzero(~flat.all(1) & good).tolist():
                at = int(np.argmin(flat[row]))
                value = values[row].flatten()[at]
                faults.add(f"{name}, sample {row}: element {at} is {value}.")
                good[row] = False
    if not good.any():
        raise DataProblem(f"{x_name} has no sample without a fault.")
    x, y = x[good], y[good]
    is_image = x.dtype == np.uint8 and x.ndim > 2
    x = as_images(x) if is_image else x.astype(np.float32).reshape(len(x), *(x.shape[1:] or (1,)))
    classes: tuple[str, ...] = ()
    if target == "numbers" or (target == "auto" and y.dtype.kind == "f"):
        if y.dtype.kind == "U":
            raise DataProblem(f"{y_name} holds texts, not numbers.")
        y = y.astype(np.float32).reshape(len(y), -1)
    elif y.ndim != 1:
        raise DataProblem(f"{y_name} has shape {y.shape}; labels are (N,).")
    else:
        y, classes = labelled(y)
    targets = () if classes else tuple(f"{i}" for i in range(y.shape[1]))
    return Samples(x, y, classes, targets, skipped=faults.skipped)
