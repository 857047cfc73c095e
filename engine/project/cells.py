"""A Python file as cells: the parts between lines that begin with `# %%`. What a reader calls the
file, or the cell, that code is in. The Python that a project holds."""

from __future__ import annotations

import re
from pathlib import PurePath

from msgspec import Struct

from .document import Project
from .subject import python_named

_NUMBER = re.compile(r" #\d+$")
"""Keeps two texts of one name apart; it says nothing to a reader."""
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
    """What a reader calls the file name of code: `<cell 3>` is "cell 3", `<step #2>` is "step", a
    path the file's name."""
    if file.startswith("<"):
        return _NUMBER.sub("", file.strip("<>"))
    path = PurePath(file)
    return "notebook cell" if _OF_NOTEBOOK.fullmatch(path.parent.name) else path.name


def expressions_of(project: Project) -> tuple[str, ...]:
    """What a project names of Python besides its cells, each as it is written: its subject in code,
    the data and the step of that, data of the console, and objects of its DataLoader. A file of
    a model counts: to open it is to load a program."""
    subject, objective, data = project.subject, project.objective, project.training.data
    named = [python_named(subject), objective.data, objective.validation, objective.step]
    named += [data.path] if data.kind == "console" else []
    return tuple(dict.fromkeys(filter(None, (*named, *data.loading.given.values()))))


def python_digest(project: Project) -> str:
    """The SHA-256 of all Python that a project holds: its cells, and what `expressions_of` has."""
    import hashlib  # the window shows before it is needed

    parts = [cell.source for cell in project.cells], expressions_of(project)
    return hashlib.sha256(repr(parts).encode(errors="surrogatepass")).hexdigest()
