"""Reading for all kinds of data sets: files of bounded size, and faults that are refused or
skipped."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import BinaryIO

import numpy as np
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from .samples import DataProblem
from .stored.arrays import MappedArray
from .stored.rows import CHUNK_BYTES

MAX_BYTES = 2 * 2**30
"""The memory that the samples of a data set may take. Arrays and images that take more stay in
their files (`stored`)."""
MAX_TOLD = 1000
"""The most skipped rows that are named; the rest are counted."""
_CHUNK = 1 << 20


class Faults:
    """Rows and files that cannot be used. The first one is refused, or all are skipped."""

    def __init__(self, skips: bool) -> None:
        self._skips = skips
        self._count = 0
        self._told: list[str] = []

    def add(self, text: str) -> None:
        """`text` names the row or the file, and what is wrong. Raises DataProblem unless faults
        are skipped."""
        if not self._skips:
            raise DataProblem(text, hint="Correct it, or set faults to skip.")
        self._count += 1
        if len(self._told) < MAX_TOLD:
            self._told.append(text)

    @property
    def skipped(self) -> tuple[str, ...]:
        rest = self._count - len(self._told)
        return (*self._told, f"… and {rest:,} more") if rest else tuple(self._told)


def mark_faults(
    values: np.ndarray | MappedArray, name: str, faults: Faults, good: np.ndarray
) -> None:
    """Add samples with a number that is not finite as float32 to the faults, and mark them in
    `good`. Raises DataProblem as Faults does."""
    if isinstance(values, MappedArray):
        values = replace(values)  # a map of its own: its pages go with it
    most = np.finfo(np.float32).max
    step = max(1, CHUNK_BYTES * len(values) // max(1, values.dtype.itemsize * prod(values.shape)))
    for start in range(0, len(values), step):
        block = values[start : start + step]
        block = block.reshape(len(block), -1)
        is_finite = np.abs(block) <= most  # NaN is not
        for row in np.flatnonzero(~is_finite.all(1) & good[start : start + step]).tolist():
            at = int(np.argmin(is_finite[row]))
            large = ", too large for float32" if np.isfinite(block[row, at]) else ""
            faults.add(f"{name}, sample {start + row}: element {at} is {block[row, at]}{large}.")
            good[start + row] = False


def require(path: Path, *, folder: bool = False) -> Path:
    """The path, if it is a regular file, or a folder. Raises DataProblem, and OSError
    if the system cannot say."""
    wanted = "folder" if folder else "file"
    if not path.exists():
        raise DataProblem(f"There is no {wanted} {path}.", hint="Choose it again.")
    if not (path.is_dir() if folder else path.is_file()):
        raise DataProblem(f"{path} is not a {wanted}.", hint=f"Choose a {wanted}.")
    return path


def beside_it(path: Path, name: str) -> Path:
    """The file of this name in the folder of `path`. Raises DataProblem for what is no name."""
    try:
        return path.with_name(name)
    except ValueError as error:
        raise DataProblem(f"{name} is not the name of a file beside {path.name}.") from error


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """The bytes of a file, unpacked if it is gzipped. Raises DataProblem, for what goes wrong in
    the `with` block too."""
    try:
        with require(path).open("rb") as file:
            packed = file.read(2) == b"\x1f\x8b"
            file.seek(0)
            if packed:
                with gzip.open(file) as unpacked:
                    yield unpacked  # pyright: ignore[reportReturnType]
            else:
                yield file
    except EOFError as error:
        raise DataProblem(f"{path.name} is cut off: its gzip data ends early.") from error
    except (gzip.BadGzipFile, zlib.error) as error:
        raise DataProblem(f"{path.name} is damaged: {error}.") from error
    except OSError as error:
        raise DataProblem(f"{path.name} cannot be read: {error.strerror or error}.") from error


def exactly(file: BinaryIO, count: int, name: str) -> bytes:
    """The next `count` bytes. Memory is taken for what the file holds, not for what its header
    promises. Raises DataProblem if there are fewer."""
    require_size(count, name)
    found = bytearray()
    while len(found) < count:
        chunk = file.read(min(_CHUNK, count - len(found)))
        if not chunk:
            raise DataProblem(
                f"{name} ends early: {count:,} bytes are promised, and {len(found):,} follow."
            )
        found += chunk
    return bytes(found)


def is_large(count: int) -> bool:
    """Whether `count` bytes are more than a data set may have in memory."""
    return count > MAX_BYTES


def require_unpacked(file: BinaryIO, name: str, is_packed: bool = False) -> None:
    """Raises DataProblem for gzipped data, whose rows cannot be read one by one."""
    if is_packed or isinstance(file, gzip.GzipFile):
        raise DataProblem(
            f"{name} is packed, and too large to be read whole: a data set may have {MAX_BYTES:,}"
            " bytes in memory.",
            hint="Unpack it: then its samples are read from the file, batch by batch.",
        )


def require_length(path: Path, offset: int, count: int, name: str) -> None:
    """Raises DataProblem if a file has less than `count` bytes from byte `offset` on."""
    there = path.stat().st_size - offset
    if there < count:
        raise DataProblem(
            f"{name} ends early: {count:,} bytes are promised, and {max(0, there):,} follow."
        )


def require_size(count: int, name: str) -> None:
    """Raises DataProblem if `count` bytes are more than a data set may have."""
    if is_large(count):
        raise DataProblem(
            f"{name} promises {count:,} bytes; a data set may have {MAX_BYTES:,}.",
            hint="Use a part of it, or train your own code with a DataLoader.",
        )


def whole(path: Path, most: int) -> bytes:
    """All bytes of a file, unpacked. Raises DataProblem if there are more than `most`."""
    with opened(path) as file:
        found = bytearray()
        while chunk := file.read(_CHUNK):
            found += chunk
            if len(found) > most:
                raise DataProblem(f"{path.name} has more than {most:,} bytes.")
    return bytes(found)


def decoded(data: bytes, encoding: str, name: str) -> str:
    """The text of a file. Raises DataProblem that names the byte at fault."""
    try:
        text = data.decode("utf-8-sig" if encoding == "utf-8" else encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DataProblem(
            f"{name}, line {line}: byte {error.start:,} (0x{data[error.start]:02x}) is not"
            f" {encoding}.",
            hint="Choose another encoding.",
        ) from error
    if "\0" in text:
        raise DataProblem(f"{name} is not text: character {text.index(chr(0)):,} is NUL.")
    return text


def labelled(values: np.ndarray) -> tuple[np.ndarray, tuple[str, ...]]:
    """Labels (N,) int64 from 0 to C - 1, and the names of the classes: the values that there are,
    in their order."""
    classes, labels = np.unique(values, return_inverse=True)
    return labels.astype(np.int64).reshape(values.shape), tuple(map(str, classes.tolist()))


def matched(x: int, y: int, x_name: str, y_name: str) -> None:
    """Raises DataProblem unless there are as many samples as targets, and any."""
    if x != y:
        raise DataProblem(f"{x_name} has {x:,} samples, {y_name} has {y:,} targets.")
    if not x:
        raise DataProblem(f"{x_name} has no samples.")


def padded(sequences: Sequence[Tensor], on_the_left: bool, value: float) -> Tensor:
    """Sequences (L, ...) in one tensor (N, longest, ...), with `value` behind them, or before them
    if `on_the_left`. Raises DataProblem where they differ in more than their length."""
    check_padding(sequences)
    return pad_sequence(list(sequences), True, value, "left" if on_the_left else "right")


def check_padding(sequences: Sequence[Tensor]) -> None:
    """Raises DataProblem where the sequences (L, ...) differ in more than their length."""
    shapes = {tuple(sequence.shape[1:]) for sequence in sequences if sequence.ndim}
    if len(shapes) != 1 or any(not sequence.ndim for sequence in sequences):
        told = sorted({tuple(sequence.shape) for sequence in sequences})[:3]
        raise DataProblem(
            "Only dim 0 of a sample may have different sizes to be padded: there are shapes"
            f" {', '.join(map(str, told))}.",
            hint="Give samples of shape (length, ...).",
        )
