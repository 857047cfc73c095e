"""Project files: `.tlab`, one JSON file that people can read and diff.

The keys `format` and `version` come first, then the project's own fields in the order of the
structs. A value without structure inside stands on one line, so that one wire is one line of a
diff. JSON has no infinities and no NaN: they are written as `{"$float": "inf"}`.
"""

from __future__ import annotations

import copy
import errno
import json
import math
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from . import limits, other_files
from .atomic import read_regular, write_atomically
from .document import FORMAT_VERSION, ParamValue, Project, replace
from .migrations import MIGRATIONS, without_sharding
from .soundness import FileProblem, check, require_plain
from .subject import expression_with_path, with_paths

__all__ = [
    "SUFFIX",
    "FileProblem",
    "OtherFile",
    "dumps",
    "from_document",
    "load",
    "loads",
    "migrate",
    "read",
    "runs_folder",
    "save",
    "weights_file",
    "without_sharding",
]


class OtherFile(FileProblem):
    """The file is not a project; `kind` says what it is."""

    def __init__(self, kind: other_files.Kind, name: str) -> None:
        super().__init__(other_files.in_words(kind, name))
        self.kind = kind


FORMAT = "tensorlab"
SUFFIX = ".tlab"
WEIGHTS_SUFFIX = ".safetensors"
RUNS_SUFFIX = ".runs"
_WIDTH = 100


def weights_file(path: str | os.PathLike[str]) -> Path:
    """The file beside a project's that has the weights its model has learnt, if it has any."""
    return Path(path).with_suffix(WEIGHTS_SUFFIX)


def runs_folder(path: str | os.PathLike[str]) -> str:
    """The folder beside a project's file that has its runs. It is "" without a file, and beside one
    whose name is not UTF-8, which no message can carry: then the data folder has them."""
    folder = str(Path(path).with_suffix(RUNS_SUFFIX).absolute()) if str(path) else ""
    try:
        folder.encode()
    except UnicodeEncodeError:
        return ""
    return folder


def save(project: Project, path: str | os.PathLike[str]) -> bytes:
    """Write the project atomically and return what the file holds now. Python files, models
    and data in its folder, or below, are written relative to it, so that they can be moved
    together. Raises OSError; what was there is then untouched."""
    folder = Path(os.fsdecode(path)).absolute().parent

    def relative(file: str) -> str:
        return Path(file).relative_to(folder).as_posix() if folder in Path(file).parents else file

    data = dumps(_with_paths(project, relative)).encode()
    write_atomically(path, data)
    return data


def load(path: str | os.PathLike[str]) -> Project:
    """Read a project file of this or an older version. The file is never written to.

    Raises FileProblem when it cannot be read, is damaged, incomplete, of another program or of a
    newer version of this one.
    """
    return loads(read(path), path)


def read(path: str | os.PathLike[str]) -> bytes:
    """The contents of a project file, for `loads`. Raises FileProblem; it is an OtherFile if the
    file is known to be something else."""
    try:
        data = read_regular(path, limits.MAX_FILE_BYTES)
    except OSError as error:
        if error.errno == errno.EFBIG:
            with open(path, "rb") as file:
                _require_no_other(path, file.read(other_files.HEAD_BYTES))
        raise FileProblem(f"The file cannot be read: {error.strerror or error}.") from error
    _require_no_other(path, data[: other_files.HEAD_BYTES])
    return data


def _require_no_other(path: str | os.PathLike[str], head: bytes) -> None:
    name = os.path.basename(path)
    kind = other_files.kind_of(name, head)
    if head.startswith(b"PK") and other_files.model_in(Path(os.fsdecode(path))):
        kind = "model"
    if kind is not None:
        raise OtherFile(kind, name)


def dumps(project: Project) -> str:
    """The project as text, valid in UTF-8: half of a character that was pasted is replaced."""
    fields = _without_special_floats(msgspec.to_builtins(project))
    text = _format({"format": FORMAT, "version": FORMAT_VERSION, **fields}) + "\n"
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def loads(data: bytes, path: str | os.PathLike[str] = "") -> Project:
    """As `load`, of the contents of the file at `path`; without one, relative paths stay."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise FileProblem("This is not a text file, so it is not a Tensor Lab project.") from error
    if not text.strip():
        raise FileProblem("The file is empty.")
    try:
        document = json.loads(text, parse_int=_integer)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        if error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated string"):
            message = f"The file ends early, at {where}: only a part of it was written."
        else:
            message = f"The file is damaged at {where}: {error.msg}."
        raise FileProblem(message) from error
    except RecursionError as error:
        raise FileProblem("The file is nested too deeply for a Tensor Lab project.") from error
    project = from_document(document)
    if not path:
        return project
    folder = Path(os.fsdecode(path)).absolute().parent
    return _with_paths(project, lambda file: str(folder / file))


def _with_paths(project: Project, changed: Callable[[str], str]) -> Project:
    subject, objective = with_paths(project.subject, project.objective, changed)
    training = project.training
    if training.data.path:
        path, is_expression = training.data.path, training.data.kind == "console"
        path = expression_with_path(path, changed) if is_expression else changed(path)
        data = replace(training.data, path=path)
        training = replace(training, data=data)
    return replace(project, subject=subject, objective=objective, training=training)


def from_document(document: object) -> Project:
    """A decoded file as a Project, checked and brought to this version. Raises FileProblem."""
    require_plain(document)
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise FileProblem(
            f"This is not a Tensor Lab project: “{FORMAT}” is expected here.", "format"
        )
    fields = migrate(document)
    del fields["format"], fields["version"]
    fields = _with_special_floats(fields)
    try:
        project = msgspec.convert(fields, Project)
    except msgspec.ValidationError as error:
        # msgspec says "Expected `float`, got `str` - at `$.model.blocks[0].x`".
        message, _, place = str(error).partition(" - at `$")
        place = place.rstrip("`").lstrip(".")
        raise FileProblem(message, _with_key(place, fields)) from error
    check(project)
    return project


def _integer(digits: str) -> int:
    """Python converts at most 4,300 digits. A number of 40 is as far out of bounds as a longer
    one."""
    return int(digits[:40])


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
    if version < FORMAT_VERSION:
        document = copy.deepcopy(document)
    for step in range(version, FORMAT_VERSION):
        try:
            document = MIGRATIONS[step](document)
        except FileProblem:
            raise
        except KeyError as error:
            raise FileProblem(
                f"Missing in a file of version {step}.", str(error.args[0])
            ) from error
        except (TypeError, AttributeError, ValueError) as error:
            raise FileProblem(
                f"The file does not follow format version {step}: {error}."
            ) from error
        document["version"] = step + 1
    return document


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
