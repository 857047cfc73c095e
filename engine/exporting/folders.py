"""Folders that are written whole: a crash leaves either the old one or the new one."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from fnmatch import fnmatch
from pathlib import Path

from ..project.atomic import sync_folder
from ..system.errors import LabError


@contextmanager
def new_folder(path: Path, own: tuple[str, ...]) -> Iterator[Path]:
    """An empty folder beside `path`, which is there under its name after the block. A folder that
    is there already is replaced only if all its files are named as in `own`: an earlier export.

    Raises LabError. If the block raises, nothing is left.
    """
    if not path.parent.is_dir():
        raise LabError(
            f"The folder {path.parent} does not exist.", hint="Make it, or choose another one."
        )
    _require_own(path, own)
    try:
        fresh = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent))
    except OSError as error:
        raise _unwritable(path, error) from error
    try:
        yield fresh
        for file in fresh.iterdir():
            with file.open("rb") as written:
                os.fsync(written.fileno())
        mask = os.umask(0)
        os.umask(mask)
        fresh.chmod(0o777 & ~mask)
        _move_into_place(fresh, path)
        sync_folder(path.parent)
    except OSError as error:
        raise _unwritable(path, error) from error
    finally:
        shutil.rmtree(fresh, ignore_errors=True)  # it was renamed, or the block raised


def _require_own(path: Path, own: tuple[str, ...]) -> None:
    if path.is_dir():
        others = [f.name for f in path.iterdir() if not any(fnmatch(f.name, o) for o in own)]
        if not others:
            return
        told = f"The folder {path} has other files: {others[0]}."
    elif path.exists() or path.is_symlink():
        told = f"{path} is a file."
    else:
        return
    raise LabError(told, hint="Give the name of a new folder.")


def _move_into_place(fresh: Path, path: Path) -> None:
    old = None
    if path.exists():
        old = fresh.with_name(f"{fresh.name}.old")
        path.rename(old)
    try:
        fresh.rename(path)
    except OSError:
        if old is not None:
            old.rename(path)
        raise
    if old is not None:
        shutil.rmtree(old)


def _unwritable(path: Path, error: OSError) -> LabError:
    return LabError(
        f"{path} cannot be written: {error.strerror or error}.",
        hint="Choose a folder that you may write to, on a disk with free space.",
    )


def sizes(paths: list[Path], below: Path) -> list[tuple[str, int]]:
    """The names of files, as seen from a folder, with their sizes in bytes."""
    return [(path.relative_to(below).as_posix(), path.stat().st_size) for path in paths]
