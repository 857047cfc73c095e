"""The command that trains a project on several machines, by torchrun."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from .document import Project, TrainingSetup, replace
from .subject import MODEL, CanvasSubject, ConsoleSubject, python_named, takes_setup_data

HOST = "HOST:29400"
"""Stands for the address of one of the machines, with a free port."""


class NoCommand(ValueError):
    """A project cannot be trained from the command line as it is. The message says what to do."""


def train_arguments(project: Project, path: str) -> tuple[str, ...]:
    """The arguments of `tensorlab train` for a project saved in `path`. Raises NoCommand."""
    subject = project.subject
    if isinstance(subject, ConsoleSubject):
        raise NoCommand(
            "Other machines do not have the objects of the console: write the model into a Python"
            " file."
        )
    data = project.training.data
    of_console = takes_setup_data(subject, project.objective) and data.kind == "console"
    if of_console or (not subject.is_code and data.loading.given):
        raise NoCommand(
            "Other machines do not have the objects of the console: take data of a file, and no"
            " objects of your code for its DataLoader."
        )
    if isinstance(subject, CanvasSubject) or project.objective.of_setup:
        if not path:
            raise NoCommand("Save the project first: the command names its file.")
        return (path, "--run-cells") if python_named(subject) else (path,)
    of_file = (
        subject.path if subject.expression == MODEL else f"{subject.path}:{subject.expression}"
    )
    setup = replace(project.training, processes=1)  # torchrun counts them
    objective = project.objective
    is_usual = setup == TrainingSetup() and not (objective.loss_of_setup or objective.step)
    if not (is_usual or path):
        raise NoCommand("Save the project first: the command takes its settings and its step.")
    options = {
        "--data": objective.data,
        "--validation": objective.validation,
        "--settings": "" if is_usual else path,
    }
    agreed = () if is_usual or not (objective.step or data.loading.given) else ("--run-cells",)
    return (of_file, *(part for option in options.items() if option[1] for part in option), *agreed)


def torchrun_line(arguments: Sequence[str], machines: int, processes: int) -> str:
    """The command to give on each of the machines."""
    torchrun = [
        *("torchrun", "--nnodes", str(machines), "--nproc-per-node", str(processes)),
        *("--rdzv-backend", "c10d", "--rdzv-endpoint", HOST, "-m", "--"),
    ]
    return shlex.join([*torchrun, "tensorlab", "train", *arguments])
