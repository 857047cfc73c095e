"""The contents of a file: tensors and values by key, metadata, and the graph of a program."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Literal, Protocol

from torch import Tensor

from ...protocol import ProgramGraph
from ...system.errors import LabError

MAX_TEXT_CHARS = 2_000
MAX_KEY_CHARS = 1_000
MAX_ENTRIES = 500_000
MAX_METADATA = 500


class Place(Protocol):
    """Where the numbers of a tensor are."""

    def read(self, shape: tuple[int, ...]) -> Tensor:
        """The tensor; a large one is mapped from the file. Raises LabError if it cannot be read."""
        ...


@dataclass(frozen=True, slots=True)
class Entry:
    """A tensor or another value of the file. `place` is None for a tensor whose numbers cannot be
    read: `note` says why. `offset` is where its numbers begin in `file`, the part of a folder that
    has them ("" in a single file). `text` is a value in words, `value` the tensor's name in the
    program of the file. A tensor `in_parts` has no place, and its parts are entries of their own.
    Two values of equal texts are equal, unless there is a `note`, which says what was not read."""

    key: str
    kind: Literal["tensor", "value"] = "tensor"
    shape: tuple[int, ...] = ()
    dtype: str = ""
    size_bytes: int = 0
    place: Place | None = None
    offset: int | None = None
    file: str = ""
    role: str = ""
    text: str = ""
    note: str = ""
    value: str = ""
    in_parts: bool = False


@dataclass(frozen=True)
class Artifact:
    """`kind` is a short word for programs, `title` says in words what the file is. `parts` are the
    files that it consists of, if there is more than one. `program_digest` is one of what the graph
    leaves out, or of the whole program; "" if it leaves nothing out."""

    path: Path
    kind: str
    title: str
    entries: tuple[Entry, ...] = ()
    metadata: dict[str, str] = field(default_factory=dict)
    graph: ProgramGraph | None = None
    note: str = ""
    parts: tuple[Path, ...] = ()
    program_digest: str = ""

    @cached_property
    def _by_key(self) -> dict[str, Entry]:
        return {entry.key: entry for entry in self.entries}

    @cached_property
    def size_bytes(self) -> int:
        return sum(path.stat().st_size for path in self.files)

    @property
    def files(self) -> tuple[Path, ...]:
        return self.parts or (self.path,)

    @property
    def tensors(self) -> list[Entry]:
        return [entry for entry in self.entries if entry.kind == "tensor"]

    def tensor(self, key: str) -> Tensor:
        """The tensor of a key. Raises LabError."""
        entry = self._by_key.get(key)
        if entry is None or entry.kind != "tensor":
            raise LabError(f"{self.path.name} has no tensor {key}.", hint="Open the file again.")
        if entry.place is None:
            raise LabError(f"{key} of {self.path.name} has no numbers to read: {entry.note}.")
        return entry.place.read(entry.shape)


def file_beside(path: Path, name: str) -> Path:
    """The file of this name in the folder of `path`, which names it. Raises LabError for a name
    that leads out of the folder, and for a file that is not there."""
    if name in ("", ".", "..") or set(name) & {"/", "\\", "\0"}:  # on any system
        raise LabError(
            f"{path.name} was refused: it names {plain(name, 80)}, outside of its own folder.",
            hint="The files that it names lie beside it.",
        )
    beside = path.parent / name
    if not beside.is_file():
        raise LabError(
            f"{path.name} names {plain(name, 80)}, which is not there.",
            hint="Download or copy all files of the model into one folder.",
        )
    return beside


def state_of(artifact: Artifact, group: str = "") -> dict[str, Tensor]:
    """The tensors of a file that have numbers, by their keys; of a group, by what comes after its
    name. Raises LabError if there are none."""
    state = {}
    for entry in artifact.tensors:
        inside = entry.key.removeprefix(group)
        is_in = not group or (inside != entry.key and inside[:1] in ("/", "."))
        if is_in and entry.place is not None:
            state[inside[1:] if group else inside] = artifact.tensor(entry.key)
    if not state:
        where = f" under {group}" if group else ""
        raise LabError(f"{artifact.path.name} has no tensors{where} that can be loaded.")
    return state


def with_own_keys(entries: Iterable[Entry]) -> tuple[Entry, ...]:
    """The entries with keys in plain characters, each once. Raises LabError for too many."""
    found: dict[str, Entry] = {}
    for entry in entries:
        if len(found) >= MAX_ENTRIES:
            raise LabError(f"The file has more than {MAX_ENTRIES:,} entries, too many to list.")
        key = plain(entry.key, MAX_KEY_CHARS)
        number = 2
        while key in found:
            key, number = f"{plain(entry.key, MAX_KEY_CHARS)} #{number}", number + 1
        found[key] = entry if key == entry.key else replace(entry, key=key)
    return tuple(found.values())


def plain(text: str, limit: int = MAX_TEXT_CHARS) -> str:
    """The text as it can be printed: other characters are escaped, and what is too long is cut."""
    text = text if len(text) <= limit else f"{text[: limit - 1]}…"
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\n" else ascii(c)[1:-1] for c in text)


def digest(data: bytes | memoryview) -> str:
    """Different for different bytes."""
    return f"#{hashlib.sha256(data).hexdigest()[:16]}"


def shortened(text: str, limit: int = MAX_TEXT_CHARS) -> str:
    """As `plain`, but different for different texts: one that is cut ends with a digest of all."""
    if len(text) <= limit:
        return plain(text, limit)
    return f"{plain(text, limit - 20)} {digest(text.encode(errors='surrogatepass'))}"


def damaged(name: str, why: str) -> LabError:
    """The error for a file whose bytes are not what its format says."""
    return LabError(
        f"{plain(name, 200)} cannot be read: {why}.",
        hint="It may be damaged or cut off: copy or download it again.",
    )


def signature(paths: Iterable[Path]) -> tuple[tuple[int, int], ...]:
    """Changes when one of the files is written again. Raises OSError."""
    found = [os.stat(path) for path in paths]
    return tuple((each.st_size, each.st_mtime_ns) for each in found)
