"""Finds the subject of a command. Here alone its kind decides."""

from __future__ import annotations

from typing import Protocol

from ...lab import Lab
from ...project.document import Model, TrainingSetup
from ...project.subject import CanvasSubject, ConsoleSubject, FileSubject, title
from ...project.subject import Objective as Written
from ...project.subject import Subject as Reference
from .canvas import CanvasModel
from .code import ConsoleModel, FileModel
from .subject import Subject, make_modules_current, require_agreement, value_of

_NO_BLOCKS, _USUAL, _NOTHING = Model(), TrainingSetup(), Written()


class Asked(Protocol):
    """A command, or a project. It may have a `model` and an `objective`, too."""

    @property
    def subject(self) -> Reference: ...

    @property
    def training(self) -> TrainingSetup: ...


def subject_of(lab: Lab, asked: Asked) -> Subject:
    """Raises as `find_subject` does."""
    model = getattr(asked, "model", _NO_BLOCKS)
    written = getattr(asked, "objective", _NOTHING)
    return find_subject(lab, asked.subject, model, asked.training, written)


def find_subject(
    lab: Lab,
    reference: Reference,
    model: Model = _NO_BLOCKS,
    training: TrainingSetup = _USUAL,
    written: Written = _NOTHING,
) -> Subject:
    """The subject that a reference means, `model` on the canvas. Raises LabError if the user's code
    has none, or if the user has not agreed to that of the document, and what that code raises."""
    match reference:
        case CanvasSubject():
            return CanvasModel(lab, reference, training, written, model)
        case ConsoleSubject():
            require_agreement(lab, title(reference))
            return ConsoleModel(lab, reference, training, written)
        case FileSubject():
            require_agreement(lab, title(reference))
            return FileModel(lab, reference, training, written)


def console_value(lab: Lab, expression: str) -> object:
    """The object that a name of the console, or of a file that it names, stands for, or a tuple of
    such: `data.train`, `(x, y)`. The modules of that file are current from now on. Raises as
    `look_up` does, and unless the user has agreed to the Python of the document."""
    require_agreement(lab, expression)
    make_modules_current(lab, expression)
    return value_of(lab, expression, lab.console.namespace.variables, calls=False)
