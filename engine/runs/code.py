"""`code/` in the folder of a run: the user's Python files that it uses, as they were when it began.

`run.json` has the SHA-256 of each. A copy counts as the file only if it has that SHA-256: it is
then what the user agreed to run when the run began.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from ..errors import LabError
from ..project.atomic import private_folder, read_regular, write_atomically
from ..protocol import FileCopy
from .record import CodeFile, RunProblem

FOLDER = "code"
MAX_BYTES = 16 * 2**20
"""The largest file that is copied."""


class Ran(NamedTuple):
    """A file as it has run: `root` is the folder to import from. `imported` by another one."""

    path: Path
    root: Path
    sha256: str
    imported: bool = False


class KeptCode:
    """The files of a run that begins: `files` for its record, with contents to `write`. A file that
    has changed since it ran has no copy."""

    def __init__(self, ran: Iterable[Ran]) -> None:
        ran = tuple(ran)
        roots = list(dict.fromkeys(each.root for each in ran))
        self._contents: dict[str, bytes] = {}
        files = []
        for each in ran:
            place = PurePosixPath(each.path.relative_to(each.root).as_posix())
            copy = str(place if len(roots) == 1 else str(roots.index(each.root)) / place)
            content = _content(each.path)
            if content is None or _sha256(content) != each.sha256:
                copy = ""
            else:
                self._contents[copy] = content
            files.append(CodeFile(str(each.path), copy, each.sha256, each.imported))
        self.files = tuple(files)

    def write(self, folder: Path) -> None:
        """Write the copies into the folder of the run. Raises LabError."""
        try:
            for copy, content in self._contents.items():
                path = folder / FOLDER / copy
                private_folder(path.parent)
                write_atomically(path, content, private=True)
        except OSError as error:
            raise LabError(
                f"The code of the run could not be copied into {folder}: {error.strerror}.",
                hint="Without the copy it goes on only while the files are where they are now.",
            ) from error


def copy(source: Path, target: Path) -> None:
    """Copy the code of a run to the folder of another. Raises OSError."""
    if (source / FOLDER).is_dir():
        shutil.copytree(source / FOLDER, target / FOLDER, dirs_exist_ok=True)


def changed(then: Iterable[CodeFile], ran: Iterable[Ran]) -> tuple[str, ...]:
    """The names of the files that have run with another content than when the run began."""
    now = {str(each.path): each.sha256 for each in ran}
    return tuple(
        Path(file.path).name for file in then if now.get(file.path, file.sha256) != file.sha256
    )


def copies_wanted(folder: Path, then: Iterable[CodeFile]) -> tuple[FileCopy, ...]:
    """The copies to run in place of files that are gone. Where only an imported file is gone, they
    are those of the files that import it, unless one of these has changed. Raises RunProblem if
    copies are wanted and one is not what the run began with."""
    files = tuple(then)
    contents = {file.path: _content(Path(file.path)) for file in files}
    mains = [file for file in files if not file.imported]
    gone = [file for file in mains if contents[file.path] is None]
    lost = next((file for file in files if contents[file.path] is None), None)
    if not gone and lost is not None and _are_unchanged(mains, contents):
        gone = mains
    if not gone or lost is None:
        return ()
    for file in files:
        if not _is_sound(folder, file):
            raise RunProblem(
                f"{lost.path} is gone, and the copy of {Path(file.path).name} in {folder / FOLDER}"
                " is missing or not what the run began with."
            )
    return tuple(
        FileCopy(file.path, str((folder / FOLDER / file.copy).absolute()), file.sha256)
        for file in gone
    )


def _are_unchanged(files: Iterable[CodeFile], contents: Mapping[str, bytes | None]) -> bool:
    return all(_sha256(contents[file.path] or b"") == file.sha256 for file in files)


def _is_sound(folder: Path, file: CodeFile) -> bool:
    place = PurePosixPath(file.copy)
    if not file.copy or place.is_absolute() or ".." in place.parts:
        return False
    content = _content(folder / FOLDER / place)
    return content is not None and _sha256(content) == file.sha256


def _content(path: Path) -> bytes | None:
    """None if it cannot be read."""
    try:
        return read_regular(path, MAX_BYTES)
    except OSError:
        return None


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
