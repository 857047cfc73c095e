"""IDX files, in which MNIST and Fashion-MNIST come: images in one, labels in another."""

from __future__ import annotations

from math import prod
from pathlib import Path
from struct import unpack

import numpy as np

from .samples import DataProblem, Samples
from .source import (
    exactly,
    is_large,
    labelled,
    matched,
    opened,
    require,
    require_length,
    require_unpacked,
)
from .stored.arrays import ArrayStore, MappedArray, as_images, is_image
from .stored.rows import StoredRows

_TYPES = {0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
_TESTS = ("t10k", "test")
_Array = np.ndarray | MappedArray


def read(path: Path, labels: str, own_test: bool) -> Samples:
    """A file of images with the file of its labels (`labels`, beside it; if empty, its name is that
    of the images with "labels" for "images"), or a folder with both.

    In a folder, files named t10k or test are the validation data if `own_test`. Raises DataProblem.
    """
    if not path.is_dir():
        x, y = _pair(require(path), path.with_name(labels) if labels else _labels_of(path))
        return _samples([x], [y])
    x, y = _pair(*_found(path, test=False))
    if own_test and (test := _found(path, test=True)):
        x_test, y_test = _pair(*test)
        if x_test.shape[1:] != x.shape[1:]:
            raise DataProblem(
                f"{test[0].name} has samples of shape {x_test.shape[1:]}; those for training have"
                f" {x.shape[1:]}."
            )
        return _samples([x, x_test], [y, y_test])
    return _samples([x], [y])


def read_array(path: Path) -> _Array:
    """The array of an IDX file, gzipped or not; one that would take too much memory is mapped.
    Raises DataProblem."""
    name = path.name
    with opened(path) as file:
        head = exactly(file, 4, name)
        if head[:2] != b"\0\0" or head[2] not in _TYPES or not head[3]:
            raise DataProblem(
                f"{name} is not an IDX file: it begins with {head.hex(' ')}, not with 00 00, a type"
                " from 08 to 0e, and the number of dimensions."
            )
        shape = unpack(f">{head[3]}I", exactly(file, 4 * head[3], name))
        dtype = np.dtype(_TYPES[head[2]])
        size = prod(shape) * dtype.itemsize
        if is_large(max(size, 4 * prod(shape))):
            require_unpacked(file, name)
            require_length(path, file.tell(), size, name)
            return MappedArray(path, file.tell(), dtype, shape)
        data = exactly(file, size, name)
        if file.read(1):
            raise DataProblem(f"{name} goes on after the {len(data):,} bytes of its array.")
    return np.frombuffer(data, dtype).reshape(shape)


def _pair(images: Path, labels: Path) -> tuple[_Array, np.ndarray]:
    x, y = read_array(images), read_array(labels)
    if x.ndim < 2:
        raise DataProblem(f"{images.name} has no samples: its array has shape {x.shape}.")
    if isinstance(y, MappedArray) or y.ndim != 1 or y.dtype.kind not in "iu":
        raise DataProblem(
            f"{labels.name} has no labels: an array of {y.dtype.name} and shape {y.shape}."
        )
    matched(len(x), len(y), images.name, labels.name)
    return x, y


def _samples(parts: list[_Array], labels: list[np.ndarray]) -> Samples:
    """A second part is held out."""
    y, classes = labelled(np.concatenate(labels))
    held_out = len(labels[1]) if len(labels) > 1 else 0
    store = ArrayStore(tuple(parts))
    if any(isinstance(part, MappedArray) for part in parts):
        x: np.ndarray | StoredRows = StoredRows(store, np.arange(len(store)))
    else:
        x = np.concatenate([part[:] for part in parts])
        x = as_images(x) if is_image(x) else x.astype(np.float32, copy=False)
    return Samples(x, y, classes, held_out=held_out)


def _labels_of(images: Path) -> Path:
    name = images.name.replace("images", "labels").replace("idx3", "idx1")
    plain = name.removesuffix(".gz")
    for each in (name, plain, f"{plain}.gz"):
        if each != images.name and (found := images.with_name(each)).is_file():
            return found
    raise DataProblem(
        f"The labels of {images.name} are not beside it.", hint="Name their file as labels."
    )


def _found(folder: Path, test: bool) -> tuple[Path, ...]:
    """The files of images and of labels in a folder; for the test part () if it has none."""
    names = sorted(p.name for p in folder.iterdir() if p.is_file() and "idx" in p.name.lower())
    names = [n for n in names if any(word in n for word in _TESTS) == test]
    pair = [next((n for n in names if what in n), None) for what in ("images", "labels")]
    if None not in pair:
        return tuple(folder / name for name in pair if name)
    if test:
        return ()
    raise DataProblem(
        f"{folder.name} has no two IDX files with images and labels in their names,"
        " such as train-images-idx3-ubyte and train-labels-idx1-ubyte."
    )
