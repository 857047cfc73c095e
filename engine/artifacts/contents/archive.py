"""A zip archive as torch and NumPy write them: which records there are, and where their bytes lie.
Nothing is ever unpacked to a disk."""

from __future__ import annotations

import struct
import zipfile
import zlib
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

from ...system.errors import LabError
from .artifact import damaged

MAX_DIRECTORY_BYTES = 64 * 2**20
_LOCAL_HEADER = struct.Struct("<4s5H3I2H")
_RATIO = 1100
"""Deflate makes nothing smaller than 1/1032 of its size."""
_ENCRYPTED = 0x1
_READ_ERRORS = (zipfile.BadZipFile, zlib.error, EOFError, ValueError, OSError, RuntimeError)


class Record(NamedTuple):
    """A record of the archive. The bytes of one that is not `compressed` lie in the file as they
    are, from `offset` on."""

    name: str
    size_bytes: int
    compressed: bool
    header_at: int


class Archive:
    """The records of a zip file. Raises LabError for an archive that neither torch nor NumPy would
    write.

    `window`: where the archive begins in a file that holds several, and how many bytes it has.
    """

    def __init__(self, path: Path, window: tuple[int, int] | None = None) -> None:
        self.path = path
        self._window = window
        with self._open() as file:
            self._check_directory(file)
            try:
                with zipfile.ZipFile(file) as archive:
                    infos = archive.infolist()
            except (zipfile.BadZipFile, NotImplementedError, ValueError) as error:
                raise damaged(path.name, str(error)) from error
            size = file.seek(0, 2)
        records = [self._checked(info, size) for info in infos if not info.is_dir()]
        if len({record.name for record in records}) < len(records):
            raise damaged(path.name, "two records have one name")
        places = [record.name.partition("/") for record in records]
        folders = {first if slash else "" for first, slash, _ in places}
        self.folder = folders.pop() if len(folders) == 1 else ""
        self.records = {record.name: record for record in records}

    def inner(self) -> dict[str, Record]:
        """The records without the folder that all are in."""
        cut = len(self.folder) + 1 if self.folder else 0
        return {record.name[cut:]: record for record in self.records.values()}

    def read(self, record: Record, limit: int) -> bytes:
        """The whole record. Raises LabError for one of more than `limit` bytes."""
        if record.size_bytes > limit:
            raise LabError(
                f"{record.name} in {self.path.name} has {record.size_bytes:,} bytes, more than"
                f" {limit:,}: no such record is that large.",
                hint="The file may be damaged, or made to fill the memory.",
            )
        data = self.head(record, limit + 1)
        if len(data) != record.size_bytes:
            raise damaged(self.path.name, f"{record.name} has another size than the archive says")
        return data

    def head(self, record: Record, count: int) -> bytes:
        """The first bytes of a record."""
        try:
            with (
                self._open() as file,
                zipfile.ZipFile(file) as archive,
                archive.open(record.name) as member,
            ):
                return member.read(count)
        except _READ_ERRORS as error:
            raise damaged(self.path.name, f"{record.name}: {error}") from error

    def start_of(self, record: Record) -> int:
        """Where the bytes of a record that is not compressed begin in the file."""
        if record.compressed:
            raise damaged(self.path.name, f"{record.name} is compressed, which torch never does")
        with self._open() as file:
            file.seek(record.header_at)
            header = file.read(_LOCAL_HEADER.size)
        if len(header) < _LOCAL_HEADER.size or header[:4] != b"PK\x03\x04":
            raise damaged(self.path.name, f"{record.name} is not where the archive says")
        *_, name_size, extra_size = _LOCAL_HEADER.unpack(header)
        start = record.header_at + _LOCAL_HEADER.size + name_size + extra_size
        before = self._window[0] if self._window else 0
        return before + start

    def _open(self) -> BinaryIO:
        file = self.path.open("rb")
        return file if self._window is None else cast(BinaryIO, Window(file, *self._window))

    def _check_directory(self, file: BinaryIO) -> None:
        """The list of the records is read whole: its size is looked at first."""
        try:
            end = zipfile._EndRecData(file)  # pyright: ignore[reportAttributeAccessIssue]
        except (OSError, ValueError, struct.error) as error:
            raise damaged(self.path.name, str(error)) from error
        if end is None:
            raise damaged(self.path.name, "it is cut off, or no archive")
        if end[5] > MAX_DIRECTORY_BYTES:
            raise damaged(self.path.name, "its list of records is longer than any torch writes")
        file.seek(0)

    def _checked(self, info: zipfile.ZipInfo, file_size: int) -> Record:
        parts = info.filename.replace("\\", "/").split("/")
        if ".." in parts or "" in parts or ":" in parts[0] or len(info.filename) > 1000:
            raise damaged(self.path.name, f"the record {ascii(info.filename)[:80]} leads out of it")
        if info.flag_bits & _ENCRYPTED:
            raise damaged(self.path.name, f"{info.filename} is encrypted")
        compressed = info.compress_type != zipfile.ZIP_STORED
        is_honest = (
            info.file_size <= info.compress_size * _RATIO
            if compressed
            else info.file_size == info.compress_size
        )
        if not is_honest or info.header_offset + info.compress_size > file_size:
            raise damaged(self.path.name, f"{info.filename} has another size than the archive says")
        return Record(info.filename, info.file_size, compressed, info.header_offset)


class Window:
    """Some bytes of a file as a file of their own."""

    def __init__(self, file: BinaryIO, start: int, size: int) -> None:
        self._file, self._start, self._size = file, start, size
        self._at = 0
        self.seekable = file.seekable
        self.close = file.close

    def seek(self, offset: int, whence: int = 0) -> int:
        base = (0, self._at, self._size)[whence]
        if base + offset < 0:
            raise OSError("before the beginning")
        self._at = base + offset
        return self._at

    def tell(self) -> int:
        return self._at

    def read(self, count: int = -1) -> bytes:
        left = max(0, self._size - self._at)
        count = left if count is None or count < 0 else min(count, left)
        self._file.seek(self._start + self._at)
        data = self._file.read(count)
        self._at += len(data)
        return data

    def __enter__(self) -> Window:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
