"""Folders of images, one folder for each class. Those that would take too much memory together
are read when a batch has them."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .samples import DataProblem, Samples
from .source import Faults, is_large, require
from .stored.arrays import as_images
from .stored.rows import StoredRows

_FORMATS = ("PNG", "JPEG", "BMP", "GIF", "WEBP", "PPM", "TIFF")
_MAX_PIXELS = 64_000_000
_TESTS = ("val", "valid", "validation", "test")


def read(path: Path, size: tuple[int, ...], colour: str, own_test: bool, faults: str) -> Samples:
    """Images of `size` (height, width), resized if they have another: float32 (N, C, H, W) from 0
    to 1, C is 3 for RGB. Classes are the names of the folders.

    A folder with `train` and `val` (or `test`) in it has its own validation data, used if
    `own_test`. Raises DataProblem.
    """
    require(path, folder=True)
    if len(size) != 2:
        raise DataProblem(f"size is {size}: give height and width, such as (64, 64).")
    train, found = path, Faults(faults == "skip")
    test = next((path / name for name in _TESTS if (path / name).is_dir()), None)
    if (path / "train").is_dir():
        train = path / "train"
    else:
        test = None
    classes = _folders(train)
    files = _files(train, classes)
    tests: list[tuple[Path, int]] = []
    if test is not None and own_test:
        for name in _folders(test):
            if name not in classes:
                raise DataProblem(f"{test.name}/{name} is a class that {train.name} does not have.")
        tests = _files(test, classes)
    mode, channels = ("RGB", 3) if colour == "RGB" else ("L", 1)
    height, width = size
    folder = _Folder(mode, (channels, height, width))
    if is_large(4 * len(files + tests) * channels * height * width):
        files, tests = folder.readable(files, found), folder.readable(tests, found)
        store = ImageStore(folder, tuple(file for file, _ in files + tests))
        x: np.ndarray | StoredRows = StoredRows(store, np.arange(len(store)))
        labels, test_labels = ([label for _, label in part] for part in (files, tests))
    else:
        pixels, labels = folder.pixels(files, found)
        test_pixels, test_labels = folder.pixels(tests, found)
        x = as_images(np.concatenate([pixels, test_pixels]))
    if not labels:
        raise DataProblem(f"{path.name} has no image that can be read.")
    for label in sorted(set(range(len(classes))) - set(labels)):
        found.add(f"{classes[label]} has no image.")
    return Samples(
        x,
        np.array(labels + test_labels, np.int64),
        classes,
        held_out=len(test_labels),
        skipped=found.skipped,
    )


def _folders(folder: Path) -> tuple[str, ...]:
    names = sorted(p.name for p in folder.iterdir() if p.is_dir() and not p.name.startswith("."))
    if len(names) < 2:
        raise DataProblem(
            f"{folder.name} has {len(names)} folder{'' if len(names) == 1 else 's'} in it; images"
            " lie in one folder for each class, at least two."
        )
    return tuple(names)


def _files(folder: Path, classes: tuple[str, ...]) -> list[tuple[Path, int]]:
    """The files of each class, with its label. Hidden files and Thumbs.db are none."""
    found = []
    for label, name in enumerate(classes):
        if not (folder / name).is_dir():
            continue
        for file in sorted((folder / name).iterdir()):
            if not file.name.startswith(".") and file.name != "Thumbs.db":
                found.append((file, label))
    return found


@dataclass(frozen=True)
class _Folder:
    """How the images of a folder are read: in a mode of Pillow's, with this (C, height, width)."""

    mode: str
    shape: tuple[int, int, int]

    def image(self, file: Path) -> np.ndarray:
        """uint8 (C, height, width). Raises DataProblem that names the file."""
        try:
            return _image(file, self.mode, *self.shape[1:])
        except DataProblem as problem:
            raise DataProblem(f"{file.parent.name}/{file.name} {problem}") from problem

    def readable(self, files: list[tuple[Path, int]], found: Faults) -> list[tuple[Path, int]]:
        """The files that are images, with their labels: each is read."""
        return [each for each in files if self._read(each[0], found) is not None]

    def pixels(self, files: list[tuple[Path, int]], found: Faults) -> tuple[np.ndarray, list[int]]:
        """uint8 (N, C, H, W) and labels of the files that are images."""
        pixels = np.empty((len(files), *self.shape), np.uint8)
        labels = list[int]()
        for file, label in files:
            image = self._read(file, found)
            if image is not None:
                pixels[len(labels)] = image
                labels.append(label)
        return pixels[: len(labels)], labels

    def _read(self, file: Path, found: Faults) -> np.ndarray | None:
        try:
            return self.image(file)
        except DataProblem as problem:
            found.add(str(problem))
            return None


@dataclass(frozen=True, eq=False)
class ImageStore:
    """Images that are read when they are asked for."""

    folder: _Folder
    files: tuple[Path, ...]

    def __len__(self) -> int:
        return len(self.files)

    @property
    def sample_shape(self) -> tuple[int, ...]:
        return self.folder.shape

    def read(self, rows: np.ndarray) -> np.ndarray:
        found = np.empty((len(rows), *self.folder.shape), np.uint8)
        for place, row in enumerate(rows.tolist()):
            found[place] = self.folder.image(self.files[row])
        return as_images(found)


def _image(file: Path, mode: str, height: int, width: int) -> np.ndarray:
    """uint8 (C, height, width). Raises DataProblem that says why it cannot be read."""
    from PIL import Image, UnidentifiedImageError

    if not file.is_file():
        raise DataProblem("is not a file.")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of odd but readable files; the size is checked here
            with Image.open(file, formats=_FORMATS) as image:
                if image.width * image.height > _MAX_PIXELS:
                    size = f"{image.width:,} × {image.height:,}"
                    raise DataProblem(f"has {size} pixels; {_MAX_PIXELS:,} are the most.")
                if image.mode[0] in "IF":
                    raise DataProblem("has more than 8 bits a pixel.")
                plain = image.convert(mode)
                if plain.size != (width, height):
                    plain = plain.resize((width, height), Image.Resampling.BILINEAR)
    except UnidentifiedImageError as error:
        raise DataProblem("is not an image that can be read.") from error
    except Image.DecompressionBombError as error:
        raise DataProblem(f"has more than {_MAX_PIXELS:,} pixels.") from error
    except (OSError, SyntaxError, ValueError, EOFError) as error:
        raise DataProblem(f"is a damaged image: {error}.") from error
    array = np.asarray(plain, np.uint8)
    return array[None] if array.ndim == 2 else array.transpose(2, 0, 1)
