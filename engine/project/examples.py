"""The usual mistakes and the examples: Python files in `assets/`, one each, read and checked here.

Comments at the top of a file are its fields, `# title: ...`; further lines of a field begin with
`#` and two spaces. Each line `# %% name` begins a part, which is a field, too: code for the
console. Imports between the comments and the first part are for running the file as a plain
script; the console has torch and nn already.
A file's name is a number, its place in the list, and a key: `03_detached.py`.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import fields

FOLDER = Path(__file__).resolve().parents[2] / "assets"


class ExampleProblem(ValueError):
    """A file of `assets/` is not as it must be; the message names the file and the field."""


class Mistake(Struct, frozen=True):
    """`wrong` makes the mistake, `right` is the same code without it.

    `happens` says what comes of it, `why` gives the reason. `error` is the type of the exception,
    empty where nothing is raised. `root` is the expression whose graph shows the mistake, `node`
    the first node there of this name (or leaf of this label) and `look` what to see at it.
    `missing` names the tensor whose `.grad` is None against expectation.
    """

    key: str
    title: str
    happens: str
    why: str
    root: str
    node: str
    look: str
    wrong: str
    right: str
    error: str = ""
    missing: str = ""


class Example(Struct, frozen=True):
    """Code worth stepping through; `tip` says what it shows."""

    key: str
    title: str
    tip: str
    code: str


class GraphExample(Example, frozen=True):
    """Its numbers are small enough to check by hand. `root` is the tensor whose graph is read."""

    root: str


class DerivativeExample(Example, frozen=True):
    """After the code, `kind` of derivative is asked of `function` at `inputs`. `call` uses the
    function once, so that its lines can be stepped through."""

    kind: str
    function: str
    inputs: str
    call: str = ""


@lru_cache
def mistakes() -> dict[str, Mistake]:
    """The usual mistakes with autograd by key, in the order of the list."""
    return load(FOLDER / "mistakes", Mistake)


@lru_cache
def graph_examples() -> dict[str, GraphExample]:
    return load(FOLDER / "examples" / "graph", GraphExample)


@lru_cache
def trace_examples() -> dict[str, Example]:
    return load(FOLDER / "examples" / "trace", Example)


@lru_cache
def derivative_examples() -> dict[str, DerivativeExample]:
    return load(FOLDER / "examples" / "derivatives", DerivativeExample)


Form = TypeVar("Form", Mistake, Example, GraphExample, DerivativeExample)


def load(folder: Path, form: type[Form]) -> dict[str, Form]:
    """The files of a folder by key. Raises ExampleProblem, and OSError for a missing folder."""
    found: dict[str, Form] = {}
    for path in sorted(path for path in folder.iterdir() if path.suffix == ".py"):
        each = _read(path, form)
        if each.key in found:
            raise ExampleProblem(f"{path}: another file has the key {each.key} already.")
        found[each.key] = each
    return found


def _read(path: Path, form: type[Form]) -> Form:
    name = re.fullmatch(r"\d\d_(\w+)", path.stem)
    if not name:
        raise ExampleProblem(f"{path}: the name must be two digits, _ and a key: 03_detached.py.")
    top, *parts = re.split(r"^# %% (\w+)\n", path.read_text(encoding="utf-8"), flags=re.M)
    said: dict[str, str] = {"key": name[1]}
    last = ""
    for line in top.splitlines():
        if field := re.fullmatch(r"# (\w+): (.*)", line):
            last = field[1]
            _add(said, last, field[2].strip(), path)
        elif line.startswith("#  ") and last:
            said[last] += " " + line[1:].strip()
        elif line.startswith("#"):
            raise ExampleProblem(f"{path}: this line is not a field: {line}")
    for part, code in zip(parts[::2], parts[1::2], strict=True):
        _add(said, part, code.strip("\n") + "\n", path)
    known = _required(form)
    for field in said.keys() - known.keys():
        raise ExampleProblem(f"{path}: {field}: no such field; there are {', '.join(known)}.")
    for field, required in known.items():
        if required and field not in said:
            raise ExampleProblem(f"{path}: {field}: missing.")
    return form(**said)


@lru_cache
def _required(form: type[Struct]) -> dict[str, bool]:
    """The fields of a form, and whether each is required."""
    return {field.name: field.required for field in fields(form)}


def _add(said: dict[str, str], field: str, text: str, path: Path) -> None:
    if field in said:
        raise ExampleProblem(f"{path}: {field}: said twice.")
    if not text.strip():
        raise ExampleProblem(f"{path}: {field}: empty.")
    said[field] = text
