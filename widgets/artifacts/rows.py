"""The keys of a file as rows of a tree: groups by the parts of the keys, then the entries."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from engine.project.layers.layer import holder, suggested
from engine.protocol import ArtifactEntry
from widgets.text import format_bytes, format_shape

_PART = re.compile(r"[./]")


@dataclass
class Row:
    """A group of keys that begin with `path`, or an entry. `around` is the number of the row that
    it lies in, -1 at the top. `layer` is the module that a group suggests."""

    name: str
    path: str
    around: int
    entry: ArtifactEntry | None = None
    layer: str = ""
    size_bytes: int = 0
    own: dict[str, tuple[int, ...]] = field(default_factory=dict)
    inner: list[str] = field(default_factory=list)

    @property
    def shape(self) -> str:
        entry = self.entry
        if entry is None:
            return ""
        if entry.kind == "value":
            return entry.text.partition("\n")[0]
        return format_shape(entry.shape)

    @property
    def dtype(self) -> str:
        return "" if self.entry is None else self.entry.dtype

    @property
    def size(self) -> str:
        return format_bytes(self.size_bytes) if self.size_bytes else ""

    @property
    def notes(self) -> str:
        """Further words on it."""
        entry = self.entry
        if entry is None:
            return self.layer
        return " · ".join(filter(None, (entry.role, entry.sharing, entry.note, entry.part)))


def rows_of(entries: Iterable[ArtifactEntry]) -> list[Row]:
    """The rows, each after the one that it lies in. A branch has the bytes that its tensors add."""
    rows: list[Row] = []
    groups: dict[str, int] = {}

    def group(path: str) -> int:
        """The number of the row of a group, made with those around it if it is new."""
        if not path:
            return -1
        if path not in groups:
            around, name = _split(path)
            holder_row = group(around)
            groups[path] = len(rows)
            rows.append(Row(name, path, holder_row))
            if holder_row >= 0:
                rows[holder_row].inner.append(name)
        return groups[path]

    for entry in entries:
        around, name = _split(entry.key)
        inside = group(around)
        rows.append(Row(name, entry.key, inside, entry, size_bytes=entry.added_bytes))
        if inside >= 0 and entry.kind == "tensor":
            rows[inside].own[name] = entry.shape
    for row in reversed(rows):
        if row.around >= 0:
            rows[row.around].size_bytes += row.size_bytes
        if row.entry is not None:
            row.size_bytes = row.entry.size_bytes
    for row in rows:
        if row.entry is None and row.size_bytes:
            row.layer = suggested(row.own) or ("" if row.own else holder(row.inner))
    return rows


def _split(key: str) -> tuple[str, str]:
    """The group that a key lies in, and its name there."""
    places = [found.start() for found in _PART.finditer(key)]
    place = places[-1] if places and 0 < places[-1] < len(key) - 1 else -1
    return (key[:place], key[place + 1 :]) if place > 0 else ("", key)
