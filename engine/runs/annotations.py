"""`annotations.json` in the folder of a run: the user's own words at steps of its plots."""

from __future__ import annotations

from pathlib import Path

import msgspec

from ..project.atomic import read_regular, write_atomically
from ..protocol import Annotation
from .record import RunProblem

FILE = "annotations.json"
MAX_ANNOTATIONS, MAX_CHARS = 200, 200
MAX_BYTES = 1 << 20
MAX_STEP = 2**53


def load(folder: Path) -> tuple[Annotation, ...]:
    """Raises RunProblem."""
    path = folder / FILE
    try:
        found = msgspec.json.decode(
            read_regular(path, MAX_BYTES), type=tuple[Annotation, ...], strict=True
        )
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise RunProblem(f"{path} cannot be read: {error.strerror or error}.") from error
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise RunProblem(f"{path} is damaged: {error}.") from error
    if problem := problem_of(found):
        raise RunProblem(f"{path} is damaged: {problem}")
    return found


def problem_of(annotations: tuple[Annotation, ...]) -> str:
    """Why they cannot be kept; empty if they can."""
    if len(annotations) > MAX_ANNOTATIONS:
        return f"A run has at most {MAX_ANNOTATIONS} annotations."
    for each in annotations:
        if not 0 <= each.step <= MAX_STEP:
            return f"{each.step} is not the number of a step."
        if not 0 < len(each.text) <= MAX_CHARS or len(each.plot) > MAX_CHARS:
            return f"An annotation has 1 to {MAX_CHARS} characters."
        if not each.text.isprintable():
            return "An annotation is one line of characters that can be printed."
    return ""


def save(folder: Path, annotations: tuple[Annotation, ...]) -> None:
    """Raises OSError."""
    data = msgspec.json.format(msgspec.json.encode(annotations), indent=1)
    write_atomically(folder / FILE, data + b"\n", private=True)


def copy(source: Path, target: Path, step: int) -> None:
    """Copy the annotations up to the step at which the other run went on. Raises RunProblem and
    OSError."""
    kept = tuple(each for each in load(source) if each.step <= step)
    if kept:
        save(target, kept)
