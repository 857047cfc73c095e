"""Reading and writing regular files: a crash leaves either the old one or the new one, never half.

A device, a pipe or a socket is refused: reading one may never end, and replacing one would break
what uses it.
"""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def read_regular(path: str | os.PathLike[str], max_bytes: int) -> bytes:
    """The contents of a regular file. Raises OSError, also for another kind of file, a longer one,
    and a name that no file can have."""
    try:
        with open(path, "rb", opener=_open_without_waiting) as file:
            status = os.fstat(file.fileno())
            _require_regular(status.st_mode, path)
            if status.st_size > max_bytes:
                words = f"it has {status.st_size:,} bytes, more than {max_bytes:,}"
                raise OSError(errno.EFBIG, words, path)
            return file.read()
    except ValueError as error:  # a zero byte in the name
        raise OSError(errno.EINVAL, "no file can have this name", path) from error


def digest_of(path: str | os.PathLike[str], max_bytes: int) -> str | None:
    """The SHA-256 of a regular file; None if `read_regular` cannot read it."""
    import hashlib  # the window shows before it is needed

    try:
        return hashlib.sha256(read_regular(path, max_bytes)).hexdigest()
    except OSError:
        return None


def regular_target(path: str | os.PathLike[str]) -> Path:
    """The file that `path` leads to, which may not exist yet. Raises OSError if there is something
    else than a regular file."""
    try:
        target = Path(path).resolve()
        if target.exists():
            _require_regular(target.stat().st_mode, path)
    except ValueError as error:  # a zero byte in the name
        raise OSError(errno.EINVAL, "no file can have this name", path) from error
    except RuntimeError as error:  # Python 3.12 and older, of symbolic links in a circle
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path) from error
    return target


def private_folder(path: Path) -> None:
    """Make a folder, if it is not there, that only this user can look into. Raises OSError."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    if path.stat().st_mode & 0o077:  # of an older version, or of a system with other defaults
        path.chmod(0o700)


def write_atomically(path: str | os.PathLike[str], data: bytes, *, private: bool = False) -> None:
    """Write the bytes as `replacing` does."""
    with replacing(path, private=private) as temporary:
        temporary.write_bytes(data)


@contextmanager
def replacing(path: str | os.PathLike[str], *, private: bool = False) -> Iterator[Path]:
    """An empty temporary file beside `path`, for the block to write; then fsync, rename over
    `path`, fsync the folder.

    An existing file keeps its permissions, but a `private` one is this user's alone; a symbolic
    link stays one. Raises OSError, also if there is something else than a regular file, and what
    the block raises; then it leaves what was there as it was.
    """
    target = regular_target(path)
    handle, temporary = tempfile.mkstemp(
        dir=target.parent, prefix=f".{target.name}.", suffix=".tmp"
    )
    os.close(handle)
    try:
        yield Path(temporary)
        with open(temporary, "rb+") as file:
            os.fsync(file.fileno())
        os.chmod(temporary, 0o600 if private else _mode(target))
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise
    sync_folder(target.parent)


def sync_folder(folder: Path) -> None:
    """Make a rename in `folder` outlive a power cut, where the system can."""
    if os.name != "posix":
        return  # Windows cannot open a folder
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _open_without_waiting(path: str, flags: int) -> int:
    """A pipe without a writer opens at once too."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
}


def _require_regular(mode: int, path: str | os.PathLike[str]) -> None:
    if not stat.S_ISREG(mode):
        kind = _KINDS.get(stat.S_IFMT(mode), "something else")
        raise OSError(errno.EINVAL, f"it is {kind}, not a regular file", path)


def _mode(target: Path) -> int:
    if target.exists():
        return target.stat().st_mode & 0o7777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
