"""Folders of images, one folder for each class."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np

from .samples import DataProblem, Samples
from .source import Faults, as_images, require, require_size

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
    require_size(4 * len(files + tests) * channels * height * width, f"{path.name} in this size")
    pixels, labels = _pixels(files, mode, height, width, found)
    test_pixels, test_labels = _pixels(tests, mode, height, width, found)
    if not len(labels):
        raise DataProblem(f"{path.name} has no image that can be read.")
    return Samples(
        as_images(np.concatenate([pixels, test_pixels])),
        np.concatenate([labels, test_labels]),
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


def _pixels(
    files: list[tuple[Path, int]], mode: str, height: int, width: int, found: Faults
) -> tuple[np.ndarray, np.ndarray]:
    """uint8 (N, C, H, W) and labels (N,) of the files that are images."""
    channels = len(mode) if mode == "RGB" else 1
    pixels = np.empty((len(files), channels, height, width), np.uint8)
    labels = []
    for file, label in files:
        name = f"{file.parent.name}/{file.name}"
        try:
            image = _image(file, mode, height, width)
        except DataProblem as problem:
            found.add(f"{name} {problem}")
            continue
        pixels[len(labels)] = image
        labels.append(label)
    return pixels[: len(labels)], np.array(labels, np.int64)


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
