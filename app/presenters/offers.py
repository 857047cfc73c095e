"""The subjects that the console and a Python file offer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from engine.project.subject import ConsoleSubject, FileSubject, Subject
from engine.protocol import FileObject, Variable
from widgets.subject.chooser import Offer

STEP = "step"
"""A function of this name is Train's own."""


def offers_of_console(variables: Sequence[Variable]) -> tuple[Offer, ...]:
    """A module that has several names is offered once, by its first; then its methods."""
    offers: list[Offer] = []
    for variable in variables:
        name, is_module = variable.name, variable.kind == "module"
        if (is_module and not variable.same_as) or (variable.kind == "function" and name != STEP):
            offers.append(
                Offer(
                    ConsoleSubject(name),
                    f"{variable.type}, a variable of the console.",
                    is_other=is_module and variable.size_bytes == 0,
                    also=tuple(ConsoleSubject(v.name) for v in variables if v.same_as == name),
                )
            )
            offers += (
                _of_method(ConsoleSubject(f"{name}.{method}"), name) for method in variable.methods
            )
    return tuple(offers)


def names_of_canvas(variables: Iterable[Variable]) -> tuple[Subject, ...]:
    """The subjects that are the canvas's model by another name."""
    return tuple(ConsoleSubject(v.name) for v in variables if v.same_as == "canvas.model")


def offers_of_file(path: str, objects: Iterable[FileObject]) -> tuple[Offer, ...]:
    """Modules, classes, functions that can be called as they are, which may return a module, and
    functions of tensors."""
    offers: list[Offer] = []
    for found in objects:
        offer = _offer(path, found)
        if offer is not None:
            offers.append(offer)
        offers += (
            _of_method(FileSubject(path, f"{found.name}.{method}"), found.name)
            for method in found.methods
        )
    return tuple(offers)


def _of_method(subject: Subject, owner: str) -> Offer:
    return Offer(subject, f"a method of {owner}, of tensors.", is_other=True)


def _offer(path: str, found: FileObject) -> Offer | None:
    named, called = FileSubject(path, found.name), FileSubject(path, f"{found.name}()")
    match found.kind:
        case "module":
            detail = f"{found.type}, a module of the file."
            return Offer(named, detail, is_other=found.is_bare)
        case "class" if found.required:
            detail = f"a class of the file; it needs {', '.join(found.required)}."
            return Offer(named, detail, found.required)
        case "class":
            return Offer(called, "a class of the file, called.")
        case "function" if found.takes_tensors and found.name != STEP:
            return Offer(named, "a function of the file, of tensors.", is_other=True)
        case "function" if not found.required and found.name != "main":
            return Offer(called, "a function of the file, called.")
    return None  # data, and a script's main(), which would do what the script does
