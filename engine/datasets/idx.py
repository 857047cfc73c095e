"""IDX files, in which MNIST and Fashion-MNIST come: images in one, labels in another."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from pathlib import Path
from struct import unpack

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

_TYPES = {0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
_TESTS = ("t10k", "test")
_MAX_DIMENSIONS = 32
_Array = np.ndarray | MappedArray


def read(path: Path, labels: str, own_test: bool, faults: str) -> Samples:
    """A file of images with the file of its labels (`labels`, beside it; if empty, its name is that
    of the images with "labels" for "images"), or a folder with both.

    In a folder, files named t10k or test are the validation data if `own_test`. Raises DataProblem.
    """
    if not path.is_dir():
        require(path)
        pairs = [(path, beside_it(path, labels) if labels else _labels_of(path))]
    else:
        train, test = _found(path, test=False), _found(path, test=True)
        if train is None:
            raise DataProblem(
                f"{path.name} has no two IDX files with images and labels in their names,"
                " such as train-images-idx3-ubyte and train-labels-idx1-ubyte."
            )
        pairs = [train, test] if own_test and test else [train]
    read_pairs = [_pair(*pair) for pair in pairs]
    shapes = [x.shape[1:] for x, _ in read_pairs]
    if shapes[-1] != shapes[0]:
        raise DataProblem(
            f"{pairs[1][0].name} has samples of shape {shapes[1]}; those for training have"
            f" {shapes[0]}."
        )
    return _samples(read_pairs, [images.name for images, _ in pairs], Faults(faults == "skip"))


def read_array(path: Path) -> _Array:
    """The array of an IDX file, gzipped or not; one that would take too much memory is mapped.
    Raises DataProblem."""
    name = path.name
    with opened(path) as file:
        head = exactly(file, 4, name)
        if head[:2] != b"\0\0" or head[2] not in _TYPES or not 0 < head[3] <= _MAX_DIMENSIONS:
            raise DataProblem(
                f"{name} is not an IDX file: it begins with {head.hex(' ')}, not with 00 00, a type"
                f" from 08 to 0e, and the number of dimensions, 1 to {_MAX_DIMENSIONS}."
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


def _samples(
    pairs: Sequence[tuple[_Array, np.ndarray]], names: Sequence[str], faults: Faults
) -> Samples:
    """The good samples of each pair of images and labels; those of a second one are held out."""
    parts, goods = [x for x, _ in pairs], [np.ones(len(x), bool) for x, _ in pairs]
    for part, good, name in zip(parts, goods, names, strict=True):
        if part.dtype.kind == "f":
            mark_faults(part, name, faults, good)
    if not goods[0].any():
        raise DataProblem(f"{names[0]} has no sample without a fault.")
    rows = np.flatnonzero(np.concatenate(goods))
    y, classes = labelled(np.concatenate([labels for _, labels in pairs])[rows])
    store = ArrayStore(tuple(parts))
    if any(isinstance(part, MappedArray) for part in parts):
        x: np.ndarray | StoredRows = StoredRows(store, rows)
    else:
        x = np.concatenate([part[good] for part, good in zip(parts, goods, strict=True)])
        x = as_images(x) if is_image(x) else as_floats(x)
    held_out = sum(int(good.sum()) for good in goods[1:])
    return Samples(x, y, classes, held_out=held_out, skipped=faults.skipped)


def _labels_of(images: Path) -> Path:
    name = images.name.replace("images", "labels").replace("idx3", "idx1")
    plain = name.removesuffix(".gz")
    for each in (name, plain, f"{plain}.gz"):
        if each != images.name and (found := images.with_name(each)).is_file():
            return found
    raise DataProblem(
        f"The labels of {images.name} are not beside it.", hint="Name their file as labels."
    )


def _found(folder: Path, test: bool) -> tuple[Path, Path] | None:
    """The files of images and of labels in a folder, for training or for the test part."""
    names = sorted(p.name for p in folder.iterdir() if p.is_file() and "idx" in p.name.lower())
    names = [n for n in names if any(word in n for word in _TESTS) == test]
    images, labels = (next((n for n in names if what in n), "") for what in ("images", "labels"))
    return (folder / images, folder / labels) if images and labels else None
