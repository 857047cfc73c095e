"""What a workspace works on, as the document keeps it: a reference, never the object. No torch."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path, PurePath
from typing import ClassVar

from msgspec import Struct
from msgspec.structs import replace

MODEL_SUFFIXES = (".pt", ".pth", ".pt2")
MODEL = "model"


class CanvasSubject(Struct, frozen=True, forbid_unknown_fields=True, tag="canvas"):
    """The model of blocks on the canvas."""

    is_code: ClassVar[bool] = False


class ConsoleSubject(Struct, frozen=True, forbid_unknown_fields=True, tag="console"):
    """`expression` names a module of the console (`model`, `model.encoder`), a class or a function
    that makes one without arguments, or a function of tensors. Nothing in it is computed."""

    is_code: ClassVar[bool] = True
    expression: str


class FileSubject(Struct, frozen=True, forbid_unknown_fields=True, tag="file"):
    """As ConsoleSubject, in the Python file at `path`; `expression` may also make the module
    (`Net(10)`). A file that holds a model itself
    (`MODEL_SUFFIXES`) has it under the name MODEL, and runs nothing."""

    is_code: ClassVar[bool] = True
    path: str
    expression: str


CodeSubject = ConsoleSubject | FileSubject
Subject = CanvasSubject | CodeSubject
"""`is_code`: it has no blocks, and its data and its step are what the user's code says."""


class Objective(Struct, frozen=True, forbid_unknown_fields=True):
    """How a subject that is code gets its batches and its loss.

    `data` and `validation` are expressions in the subject's own namespace, or `FILE.py:EXPRESSION`:
    a Dataset, a DataLoader, a tuple of tensors, a list of samples, or a function that returns an
    iterable of batches. With `of_setup` they are not used: batches are pairs (x, y) of the set-up's
    data, as a model of blocks gets them.
    `step` is the source of `def step(batch)`, which returns the loss, or a dict of named figures
    with `loss` among them; if it is empty, the program writes one that fits the first batch, or,
    with `loss_of_setup`, one with the loss of the set-up.
    """

    data: str = ""
    validation: str = ""
    step: str = ""
    of_setup: bool = False
    loss_of_setup: bool = False

    @property
    def has_data(self) -> bool:
        return self.of_setup or bool(self.data)

    @property
    def expressions(self) -> tuple[str, ...]:
        """The expressions of the data that is used."""
        named = () if self.of_setup else (self.data, self.validation)
        return tuple(text for text in named if text)


def takes_setup_data(subject: Subject, objective: Objective) -> bool:
    """Whether batches are of the data set of the set-up, not of the user's code."""
    return objective.of_setup or not subject.is_code


def expressions_used(subject: Subject, objective: Objective) -> tuple[str, ...]:
    """Those of the user's data that the subject is trained on; the canvas has none."""
    return objective.expressions if subject.is_code else ()


def title(subject: Subject) -> str:
    """The subject in a few words: "Canvas", `model`, `net.py: Net()`."""
    match subject:
        case CanvasSubject():
            return "Canvas"
        case ConsoleSubject():
            return subject.expression
        case FileSubject():
            name = PurePath(subject.path).name
            is_whole = holds_model(subject.path) and subject.expression == MODEL
            return name if is_whole else f"{name}: {subject.expression}"


def file_name(subject: Subject) -> str:
    """A name for files that are written of it; "" for the canvas, whose name is the project's."""
    match subject:
        case CanvasSubject():
            return ""
        case ConsoleSubject():
            return re.sub(r"\W+", "_", subject.expression).strip("_") or MODEL
        case FileSubject():
            return PurePath(subject.path).stem


def needs_cells(subject: Subject) -> bool:
    """Whether only cells that have run make the subject."""
    return isinstance(subject, ConsoleSubject)


def whole_title(subject: Subject) -> str:
    """As `title`, with the whole path of a file."""
    if isinstance(subject, FileSubject):
        return f"{subject.path}: {subject.expression}"
    return title(subject)


def python_named(subject: Subject) -> str:
    """What the subject names of Python, with the whole path of a file; "" for the canvas."""
    return whole_title(subject) if subject.is_code else ""


def is_same_subject(then: Subject, now: Subject) -> bool:
    """Whether both are one subject. A file may have moved to another folder since."""
    if then == now or not (isinstance(then, FileSubject) and isinstance(now, FileSubject)):
        return then == now
    return title(then) == title(now) and not Path(then.path).exists()


def holds_model(path: str) -> bool:
    """Whether the file of a subject is a model itself, not Python."""
    return path.endswith(MODEL_SUFFIXES)


def python_file(subject: Subject) -> str:
    """The Python file that has to run to make the subject; "" if none has."""
    if isinstance(subject, FileSubject) and not holds_model(subject.path):
        return subject.path
    return ""


def files_of(subject: Subject, objective: Objective) -> tuple[str, ...]:
    """The Python files that have to run before the subject can be worked on."""
    own = python_file(subject)
    data = [split_reference(text) for text in expressions_used(subject, objective)]
    files = [own, *(reference[0] for reference in data if reference)]
    return tuple(dict.fromkeys(filter(None, files)))


def with_paths(
    subject: Subject, objective: Objective, changed: Callable[[str], str]
) -> tuple[Subject, Objective]:
    """Both with every path of a file in them changed."""
    if isinstance(subject, FileSubject):
        subject = FileSubject(changed(subject.path), subject.expression)
    data, validation = (
        expression_with_path(text, changed) for text in (objective.data, objective.validation)
    )
    return subject, replace(objective, data=data, validation=validation)


def expression_with_path(text: str, changed: Callable[[str], str]) -> str:
    """An expression with the path of the file that it names changed, if it names one."""
    reference = split_reference(text)
    return text if reference is None else f"{changed(reference[0])}:{reference[1]}"


def split_reference(text: str) -> tuple[str, str] | None:
    """The path and the expression of `FILE.py:EXPRESSION`; None for any other text. Colons in the
    path (a drive) and in the expression (a slice) are allowed."""
    path, dot, rest = text.partition(".py:")
    return (f"{path}.py", rest.strip()) if dot and path and rest.strip() else None
