"""Small data files of every kind, written byte by byte."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from pathlib import Path
from struct import pack

import numpy as np
from PIL import Image

from engine.datasets.dataset import Dataset
from engine.datasets.load import load_dataset
from engine.project.document import DataSetup

RNG = np.random.default_rng(0)


def loaded(kind: str, path: Path, validation: float = 0.0, **params: object) -> Dataset:
    """The data set of a file, not standardised."""
    if kind == "csv":
        params = {"standardise": "nothing", **params}
    return load_dataset(DataSetup(kind, params, validation, path=str(path)))  # pyright: ignore[reportArgumentType]


def idx(values: np.ndarray, code: int = 8) -> bytes:
    """The bytes of an IDX file."""
    head = bytes((0, 0, code, values.ndim)) + pack(f">{values.ndim}I", *values.shape)
    return head + values.astype(values.dtype.newbyteorder(">")).tobytes()


def write(path: Path, data: bytes | str, packed: bool = False) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    data = data.encode() if isinstance(data, str) else data
    path.write_bytes(gzip.compress(data) if packed else data)
    return path


def pixels(*shape: int) -> np.ndarray:
    return RNG.integers(0, 256, shape, np.uint8)


def mnist(folder: Path, packed: bool = True) -> tuple[np.ndarray, ...]:
    """The four files of MNIST, small: returns their arrays."""
    found = []
    for part, count in (("train", 12), ("t10k", 4)):
        x, y = pixels(count, 5, 4), np.arange(count, dtype=np.uint8) % 3
        end = ".gz" if packed else ""
        write(folder / f"{part}-images-idx3-ubyte{end}", idx(x), packed)
        write(folder / f"{part}-labels-idx1-ubyte{end}", idx(y), packed)
        found += [x, y]
    return tuple(found)


def cifar(labels: Sequence[Sequence[int]]) -> tuple[bytes, np.ndarray]:
    """Records with these labels, and their pixels (N, 3, 32, 32)."""
    images = pixels(len(labels), 3, 32, 32)
    records = [bytes(of) + image.tobytes() for of, image in zip(labels, images, strict=True)]
    return b"".join(records), images


def images(folder: Path, mode: str = "RGB", size: tuple[int, int] = (6, 4)) -> dict:
    """Two classes of three PNGs each, `size` is (width, height): their pixels by name."""
    found = {}
    for name in ("cat", "dog"):
        for i in range(3):
            path = folder / name / f"{i}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            shape = (size[1], size[0], 3) if mode == "RGB" else (size[1], size[0])
            found[name, i] = pixels(*shape)
            Image.fromarray(found[name, i], mode).save(path)
    return found
