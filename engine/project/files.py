"""Project files: `.tlab`, one JSON file that people can read and diff.

The keys `format` and `version` come first, then the project's own fields in the order of the
structs. A value without structure inside stands on one line, so that one wire is one line of a
diff. JSON has no infinities and no NaN: they are written as `{"$float": "inf"}`.
"""

from __future__ import annotations

import copy
import json
import math
import os
import re
from pathlib import Path
from typing import Any

import msgspec

from . import catalogue
from .atomic import write_atomically
from .document import FORMAT_VERSION, ParamValue, Project
from .migrations import MIGRATIONS

FORMAT = "tensorlab"
SUFFIX = ".tlab"
_WIDTH = 100


class FileProblem(ValueError):
    """A project file cannot be read. `field` is the path of the field at fault, if one is."""

    def __init__(self, message: str, field: str = "") -> None:
        super().__init__(f"{field}: {message}" if field else message)
        self.field = field


def save(project: Project, path: str | os.PathLike[str]) -> None:
    """Write the project atomically. Raises OSError; what was there is then untouched."""
    write_atomically(path, dumps(project).encode())


def load(path: str | os.PathLike[str]) -> Project:
    """Read a project file of this or an older version. The file is never written to.

    Raises FileProblem when it cannot be read, is damaged, incomplete, of another program or of a
    newer version of this one.
    """
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise FileProblem(f"The file cannot be read: {error.strerror}.") from error
    return loads(data)


def dumps(project: Project) -> str:
    fields = _without_special_floats(msgspec.to_builtins(project))
    return _format({"format": FORMAT, "version": FORMAT_VERSION, **fields}) + "\n"


def loads(data: bytes) -> Project:
    """As `load`, of a file's contents."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise FileProblem("This is no text file, so no Tensor Lab project.") from error
    if not text.strip():
        raise FileProblem("The file is empty.")
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        if error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated string"):
            message = f"The file breaks off at {where}: it was written only in part."
        else:
            message = f"The file is damaged at {where}: {error.msg}."
        raise FileProblem(message) from error
    except RecursionError as error:
        raise FileProblem("The file is nested too deeply for a Tensor Lab project.") from error
    project = from_document(document)
    check(project)
    return project


def from_document(document: object) -> Project:
    """A decoded file as a Project, brought to this version. Raises FileProblem."""
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise FileProblem(f"This is no Tensor Lab project: “{FORMAT}” is expected here.", "format")
    fields = migrate(document)
    del fields["format"], fields["version"]
    fields = _with_special_floats(fields)
    try:
        return msgspec.convert(fields, Project)
    except msgspec.ValidationError as error:
        # msgspec says "Expected `float`, got `str` - at `$.model.blocks[0].x`".
        message, _, place = str(error).partition(" - at `$")
        place = place.rstrip("`").lstrip(".")
        raise FileProblem(message, _with_key(place, fields)) from error


def _with_key(place: str, document: object) -> str:
    """The path with the key at fault, where msgspec writes `[...]` for any key of a dict."""
    before, gap, _ = place.partition("[...]")
    if not gap:
        return place
    holder: Any = document
    for step in re.findall(r"\w+", before):
        holder = holder[int(step) if step.isdigit() else step]
    for key, value in holder.items():
        try:
            msgspec.convert(value, ParamValue)
        except msgspec.ValidationError:
            return f"{before}.{key}"
    return before


def migrate(document: dict) -> dict:
    """Bring a decoded file to FORMAT_VERSION, one version at a time; the argument is untouched.

    Raises FileProblem when the version is missing, no number, newer than this program, or when a
    step does not find what its version must hold.
    """
    version = document.get("version")
    if not isinstance(version, int) or isinstance(version, bool) or version < 0:
        raise FileProblem(f"A format version is expected here, not {version!r}.", "version")
    if version > FORMAT_VERSION:
        raise FileProblem(
            f"The file has format version {version}; this Tensor Lab reads up to "
            f"{FORMAT_VERSION}. Update Tensor Lab to open it.",
            "version",
        )
    document = copy.deepcopy(document)
    for step in range(version, FORMAT_VERSION):
        try:
            document = MIGRATIONS[step](document)
        except KeyError as error:
            raise FileProblem(
                f"Missing in a file of version {step}.", str(error.args[0])
            ) from error
        except (TypeError, AttributeError, ValueError) as error:
            raise FileProblem(f"This is no sound file of version {step}: {error}.") from error
        document["version"] = step + 1
    return document


def check(project: Project) -> None:
    """Raise FileProblem where fields are sound one by one but do not fit together."""
    ports = {}
    names = set()
    for i, block in enumerate(project.model.blocks):
        at = f"model.blocks[{i}]"
        if block.id in ports:
            raise FileProblem(f"Another block has the id “{block.id}” already.", f"{at}.id")
        if block.name in names:
            raise FileProblem(f"Another block is named “{block.name}” already.", f"{at}.name")
        try:
            kind = catalogue.kind(block.kind)
        except KeyError:
            raise FileProblem(f"There is no block “{block.kind}”.", f"{at}.kind") from None
        known = {param.name for param in kind.params}
        for name in block.params:
            if name not in known:
                raise FileProblem(f"{block.kind} has no such parameter.", f"{at}.params.{name}")
        inputs, outputs = catalogue.ports(block)
        ports[block.id] = {port.name for port in inputs}, {port.name for port in outputs}
        names.add(block.name)
    ends = set()
    for i, wire in enumerate(project.model.wires):
        at = f"model.wires[{i}]"
        for field, block_id in (("source", wire.source), ("target", wire.target)):
            if block_id not in ports:
                raise FileProblem(f"There is no block “{block_id}”.", f"{at}.{field}")
        if wire.source_port not in ports[wire.source][1]:
            raise FileProblem(f"There is no output “{wire.source_port}”.", f"{at}.source_port")
        if wire.target_port not in ports[wire.target][0]:
            raise FileProblem(f"There is no input “{wire.target_port}”.", f"{at}.target_port")
        if (wire.target, wire.target_port) in ends:
            raise FileProblem("Another wire ends at the same port.", at)
        ends.add((wire.target, wire.target_port))


def _format(value: object, indent: int = 0) -> str:
    flat = json.dumps(value, ensure_ascii=False, allow_nan=False)
    if not isinstance(value, dict | list) or not value:
        return flat
    children = value.values() if isinstance(value, dict) else value
    leaf = not any(isinstance(child, dict | list) and child for child in children)
    if leaf and len(flat) + indent <= _WIDTH:
        return flat
    inner = indent + 2
    if isinstance(value, dict):
        lines = [
            f"{json.dumps(key, ensure_ascii=False)}: {_format(child, inner)}"
            for key, child in value.items()
        ]
    else:
        lines = [_format(child, inner) for child in value]
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    body = ",\n".join(" " * inner + line for line in lines)
    return f"{opening}\n{body}\n{' ' * indent}{closing}"


def _without_special_floats(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return {"$float": str(value)}
    if isinstance(value, dict):
        return {key: _without_special_floats(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_special_floats(item) for item in value]
    return value


def _with_special_floats(value: Any) -> Any:
    if isinstance(value, dict):
        if value.keys() == {"$float"} and value["$float"] in ("inf", "-inf", "nan"):
            return float(value["$float"])
        return {key: _with_special_floats(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_special_floats(item) for item in value]
    return value
