"""A Python file as cells: the parts between lines that begin with `# %%`. What a reader calls the
file, or the cell, that code is in."""

from __future__ import annotations

import re
from pathlib import PurePath

from msgspec import Struct

_MARK = re.compile(r"[ \t]*#[ \t]*%%")
_OF_NOTEBOOK = re.compile(r"ipykernel_\d+")
"""The folder in which Jupyter's kernel has its cells, each named by a number that says nothing."""


class FileCell(Struct, frozen=True):
    """`source` is the cell's text with its `# %%` line, `first_line` the 1-based line of the file
    that it begins with."""

    source: str
    first_line: int


def split_cells(text: str) -> tuple[FileCell, ...]:
    """The cells of a file. A cell without code is left out; a file without marks is one cell.

    A mark inside a string of several lines begins a cell, too, as in editors.
    """
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    starts = [0, *(i for i, line in enumerate(lines) if _MARK.match(line) and i > 0)]
    ends = [*starts[1:], len(lines)]
    cells = []
    for start, end in zip(starts, ends, strict=True):
        source = "\n".join(lines[start:end]).rstrip()
        body = [line for line in lines[start:end] if not _MARK.match(line)]
        if any(line.strip() for line in body):
            cells.append(FileCell(source=source, first_line=start + 1))
    return tuple(cells)


def source_title(file: str) -> str:
    """What a reader calls the file name of code: `<cell 3>` is "cell 3", a path the file's name."""
    if file.startswith("<"):
        return file.strip("<>")
    path = PurePath(file)
    return "notebook cell" if _OF_NOTEBOOK.fullmatch(path.parent.name) else path.name
