"""`run.json`: what a run is, as one JSON file that people can read.

The settings are a project, in the format of project files and checked as these are.
"""

from __future__ import annotations

import json
import os
import platform
import socket
from collections.abc import Iterable
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Literal

import msgspec
import psutil
from msgspec import Struct

from ..project import files, limits
from ..project.atomic import read_regular, write_atomically
from ..project.document import ParamValue, Project

FORMAT = "tensorlab-run"
VERSION = 1
FILE = "run.json"
MAX_NOTE_CHARS = 500
MAX_S = 3e10
"""The last date that every system can show, in seconds since 1970."""

RunState = Literal["running", "finished", "stopped", "failed"]


class RunProblem(ValueError):
    """A run's folder or a file in it cannot be used; the message says which and why."""


class Writer(Struct, frozen=True):
    """The process that writes a run: `began_s`, in seconds since 1970, tells it from a later one of
    the same number."""

    host: str
    pid: int
    began_s: float

    @staticmethod
    def own() -> Writer:
        return Writer(socket.gethostname(), os.getpid(), psutil.Process().create_time())

    @property
    def is_own(self) -> bool:
        return self == Writer.own()

    def is_alive(self) -> bool | None:
        """None for a process of another machine."""
        if self.host != socket.gethostname():
            return None
        try:
            return abs(psutil.Process(self.pid).create_time() - self.began_s) < 1.0
        except psutil.Error:
            return False


class Origin(Struct, frozen=True):
    """The run and its step from which another run went on."""

    run: str
    step: int


class CodeFile(Struct, frozen=True):
    """A Python file of the user's that a run uses, with the SHA-256 of what ran when it began."""

    path: str
    sha256: str


class Trial(Struct, frozen=True):
    """Which trial of a sweep a run is (`number` from 1), the values that were drawn for it, and its
    `figure` after the last epoch; the best has the lowest, or with `maximise` the highest."""

    sweep: str
    number: int
    values: dict[str, ParamValue] = {}
    figure: str = "validation loss"
    maximise: bool = False
    value: float | None = None
    is_pruned: bool = False


class RunRecord(Struct, frozen=True, kw_only=True):
    """`project` has the subject, the settings and the objective as they are at the last checkpoint.
    Times are seconds since 1970; `ended_s` is 0 while the run goes on. `error` says why it failed,
    `no_script` why it has no train.py.
    """

    id: str
    project: Project
    writer: Writer
    began_s: float
    ended_s: float = 0.0
    state: RunState = "running"
    error: str = ""
    note: str = ""
    origin: Origin | None = None
    versions: dict[str, str] = {}
    code: tuple[CodeFile, ...] = ()
    trial: Trial | None = None
    no_script: str = ""


def changed(then: Iterable[CodeFile], now: Iterable[CodeFile]) -> tuple[str, ...]:
    """The names of the files that have run with another content than when the run began."""
    ran = {file.path: file.sha256 for file in now}
    return tuple(
        Path(file.path).name for file in then if ran.get(file.path, file.sha256) != file.sha256
    )


@cache
def versions() -> dict[str, str]:
    """The versions of all that decides the numbers of a run."""
    return {"python": platform.python_version(), "torch": version("torch")}


def save(folder: Path, record: RunRecord) -> None:
    """Raises OSError."""
    fields = msgspec.to_builtins(record)
    fields["project"] = json.loads(files.dumps(record.project))
    text = json.dumps({"format": FORMAT, "version": VERSION, **fields}, indent=1)
    write_atomically(folder / FILE, f"{text}\n".encode(), private=True)


def load(folder: Path) -> RunRecord:
    """Raises RunProblem."""
    path = folder / FILE
    try:
        document = json.loads(read_regular(path, limits.MAX_FILE_BYTES))
    except FileNotFoundError as error:
        raise RunProblem(f"{folder} is not the folder of a run: it has no {FILE}.") from error
    except OSError as error:
        raise RunProblem(f"{path} cannot be read: {error.strerror or error}.") from error
    except (ValueError, RecursionError) as error:
        raise RunProblem(f"{path} is damaged: {error}.") from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise RunProblem(f"{path} is not of a run: format “{FORMAT}” is expected.")
    if document.get("version") != VERSION:
        raise RunProblem(
            f"{path} has version {document.get('version')!r}; this Tensor Lab reads {VERSION}."
        )
    try:
        project = files.from_document(document.get("project"))
        fields = {**document, "project": {}}
        record = msgspec.convert(fields, RunRecord)
        msgspec.msgpack.encode(record)  # as a list of runs is sent
    except UnicodeEncodeError as error:
        raise RunProblem(
            f"{path} is damaged: a text in it holds half of a character (a lone surrogate)."
        ) from error
    except (ValueError, RecursionError) as error:
        raise RunProblem(f"{path} is damaged: {error}") from error
    for name, seconds in (
        ("began_s", record.began_s),
        ("ended_s", record.ended_s),
        ("writer.began_s", record.writer.began_s),
    ):
        if not 0 <= seconds < MAX_S:
            raise RunProblem(f"{path} is damaged: {name} is {seconds:g}, no time of a date.")
    return msgspec.structs.replace(record, project=project)
