"""Folders and parts of files."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import NamedTuple

from ..errors import LabError
from ..temporary import prefix

MOST_ENTRIES = 2000
"""Entries of a folder that are listed."""


_made: set[str] = set()


class Entry(NamedTuple):
    name: str
    is_folder: bool
    size_bytes: int


def entries_of(folder: Path) -> list[Entry]:
    """The contents of a folder, folders first; hidden entries and names that are no text are left
    out.

    Raises LabError.
    """
    try:
        with os.scandir(folder) as found:
            listed = [_entry(each) for each in found if _is_shown(each.name)]
    except OSError as error:
        raise _refused(folder, error) from error
    return sorted(listed, key=lambda entry: (not entry.is_folder, entry.name.lower(), entry.name))


def read_part(path: Path, offset: int, size: int) -> tuple[bytes, int]:
    """Some bytes of a file, and its whole size. Raises LabError."""
    try:
        with path.open("rb") as file:
            file.seek(offset)
            return file.read(size), os.fstat(file.fileno()).st_size
    except OSError as error:
        raise _refused(path, error) from error


def write_part(path: Path, offset: int, data: bytes) -> int:
    """Write bytes; those at offset 0 begin the file anew. Returns the file's size. Raises
    LabError."""
    try:
        with path.open("r+b" if offset else "wb") as file:
            file.seek(offset)
            file.write(data)
            return file.tell()
    except OSError as error:
        raise _refused(path, error) from error


def new_folder() -> Path:
    """A new temporary folder; an engine that starts later removes it. Raises LabError."""
    try:
        made = tempfile.mkdtemp(prefix=prefix())
    except OSError as error:
        raise _refused(Path(tempfile.gettempdir()), error) from error
    _made.add(made)
    return Path(made)


def remove_folder(path: str) -> None:
    """Remove a folder that `new_folder` has made in this process; no other one."""
    if path in _made:
        _made.remove(path)
        shutil.rmtree(path, ignore_errors=True)


def _entry(found: os.DirEntry[str]) -> Entry:
    try:
        return Entry(found.name, found.is_dir(), found.stat().st_size)
    except OSError:  # a link that leads nowhere
        return Entry(found.name, False, 0)


def _is_shown(name: str) -> bool:
    return not name.startswith(".") and name.isprintable()


def _refused(path: Path, error: OSError) -> LabError:
    return LabError(f"{path}: {error.strerror or error}.")
