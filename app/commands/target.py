"""What a command works on: `PROJECT.tlab`; `FILE.py:EXPRESSION`, a module of the user's code; or a
file that holds a model (`.pt`, `.pt2`)."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from textwrap import indent
from typing import NamedTuple

from msgspec.structs import replace

from app import templates
from app.commands.conversation import Conversation, failure
from app.commands.failures import BAD_ARGUMENTS, CommandFailure
from engine.project import files
from engine.project.catalogue import datasets
from engine.project.cells import expressions_of
from engine.project.document import Cell, DataSetup, Project
from engine.project.other_files import is_readable
from engine.project.subject import (
    MODEL,
    CanvasSubject,
    FileSubject,
    Objective,
    Subject,
    files_of,
    holds_model,
    needs_cells,
    python_named,
    split_reference,
    takes_setup_data,
    title,
)
from engine.protocol import (
    CellSnapshot,
    EnterFolderCommand,
    ErrorSnapshot,
    OutputSnapshot,
    RunCellCommand,
    RunFileCommand,
    ShowSubjectCommand,
    Snapshot,
)


class Target(NamedTuple):
    """`text` is what was written. `project` is the one in the file, or a new one for a file of
    code; `subject` is what the project has chosen. `objective` says what code is trained for.
    `cells` are those of the project that are to run. `unagreed`: what the project names of Python
    is not used."""

    text: str
    path: Path
    project: Project
    subject: Subject = CanvasSubject()
    objective: Objective = Objective()
    cells: tuple[Cell, ...] = ()
    unagreed: bool = False

    @property
    def is_code(self) -> bool:
        return self.subject.is_code

    @property
    def has_folder(self) -> bool:
        """Whether its runs lie beside it: beside a project, as in the window."""
        return not self.is_code or self.path.suffix == files.SUFFIX


def target_of(
    text: str,
    *,
    data: str | None = None,
    validation: str | None = None,
    settings: Path | None = None,
    dataset: str | None = None,
    run_cells: bool = False,
) -> Target:
    """The target that an argument names; code is trained as the project file `settings` says, and
    by the step that was written there, if one was; on data of the code, or on the `dataset`
    KIND[:PATH]; without either, on the data set of the settings. The cells of a project are to run
    with `run_cells`. Raises CommandFailure for a file that is not there, for data or settings that
    cannot go with it, and for a project whose subject only its cells make, without them."""
    reference = split_reference(text)
    if reference is None and holds_model(text):
        reference = text, MODEL
    if reference is None:
        if data or validation or dataset:
            raise CommandFailure(
                "--data, --validation and --dataset are for a subject of code, FILE.py:EXPRESSION;"
                " a project has its data set.",
                BAD_ARGUMENTS,
            )
        if settings:
            raise CommandFailure(
                "--settings is for a subject of code, FILE.py:EXPRESSION; a project has settings.",
                BAD_ARGUMENTS,
            )
        path = Path(text)
        if path.suffix == ".py":
            raise CommandFailure(
                f"{text}: which module of the file? Write {text}:NAME, or {text}:Net(10).",
                BAD_ARGUMENTS,
            )
        project = load_project(path)
        cells = project.cells if run_cells else ()
        if needs_cells(project.subject) and not cells:
            raise CommandFailure(f"{text}: {_cells_wanted(project)}", BAD_ARGUMENTS)
        if python_named(project.subject):
            require_agreement(text, project, run_cells)
        unagreed = bool(expressions_of(project)) and not run_cells
        return Target(text, path, project, project.subject, project.objective, cells, unagreed)
    if run_cells and not settings:
        raise CommandFailure("--run-cells is for a project: a file has no cells.", BAD_ARGUMENTS)
    file, expression = reference
    path = Path(file)
    if not path.is_file():
        raise CommandFailure(f"{file}: there is no such file.", BAD_ARGUMENTS)
    subject = FileSubject(str(path.absolute()), expression)
    if dataset and (data or validation):
        raise CommandFailure(
            "--dataset is what to train and to validate on: leave --data and --validation off.",
            BAD_ARGUMENTS,
        )
    objective = Objective(_absolute(data or ""), _absolute(validation or ""))
    project = Project(name=path.stem)
    cells: tuple[Cell, ...] = ()
    if settings:
        chosen = load_project(settings)
        cells = chosen.cells if run_cells else ()
        used = Project(training=chosen.training, objective=Objective(step=chosen.objective.step))
        require_agreement(str(settings), used, run_cells)
        project = replace(project, training=chosen.training)
        has_set = takes_setup_data(chosen.subject, chosen.objective)
        objective = replace(
            objective,
            of_setup=has_set and not data,
            loss_of_setup=chosen.objective.loss_of_setup,
            step=chosen.objective.step,
        )
    if dataset:
        setup = replace(project.training, data=_data_set(dataset, project.training.data))
        project = replace(project, training=setup)
        objective = replace(objective, of_setup=True)
    return Target(text, path, project, subject, objective, cells=cells)


def _data_set(text: str, data: DataSetup) -> DataSetup:
    """`data` with the data set KIND or KIND:PATH; another kind has parameters of its own."""
    kind, _, place = text.partition(":")
    known = {key: each for key, each in datasets().items() if not each.source or each.is_of_path}
    if kind not in known:
        names = ", ".join(f"{key}:PATH" if each.source else key for key, each in known.items())
        raise CommandFailure(f"--dataset: there is no “{kind}”; there are {names}.", BAD_ARGUMENTS)
    is_of_path = known[kind].is_of_path
    if place and not is_of_path:
        raise CommandFailure(f"--dataset: {kind} has no path.", BAD_ARGUMENTS)
    if is_of_path and not place:
        raise CommandFailure(f"--dataset: where is it? Write {kind}:PATH.", BAD_ARGUMENTS)
    if kind != data.kind:
        data = replace(data, kind=kind, params={}, columns={}, transforms=(), points=())
    return replace(data, path=str(Path(place).absolute()) if place else "")


def is_file_to_read(text: str, data: str | None) -> bool:
    """Whether an argument of inspect is a file that is only read: no project and no code. A file of
    a whole model that is given data is run, as code is."""
    if data or split_reference(text) is not None:
        return False
    return os.path.isdir(text) or is_readable(text)


def load_project(path: Path) -> Project:
    """The project in a file. Raises CommandFailure that names the file, and the field at fault if
    there is one."""
    if not path.is_file():
        raise CommandFailure(f"{path}: there is no such project file.", BAD_ARGUMENTS)
    try:
        return files.load(path)
    except files.FileProblem as problem:
        raise CommandFailure(f"{path}: {problem}") from None


def runs_beside(target: Target) -> str:
    """The folder for runs beside the project, as in the window; "" is the data folder: for a file
    of code, for a template of the program's own, and where nothing can be written beside the
    project."""
    folder = target.path.absolute().parent
    if (
        not target.has_folder
        or folder.resolve() == templates.FOLDER
        or not os.access(folder, os.W_OK)
    ):
        return ""
    return files.runs_folder(target.path)


def _cells_wanted(project: Project) -> str:
    what = f"its subject is {title(project.subject)}, of the console, and"
    count = len(project.cells)
    if not count:
        return (
            f"{what} it holds no cells that make it. Run them in the window and save, or name a"
            " module of a file: FILE.py:NAME."
        )
    ways = "one cell makes" if count == 1 else f"{count:,} cells make"
    return f"{what} {ways} it. Nothing of them runs until you say so: add --run-cells."


def require_agreement(text: str, project: Project, run_cells: bool) -> None:
    """Raises CommandFailure if a file names Python, and the user has not said that it may run."""
    named = expressions_of(project)
    if named and not run_cells:
        shown = "\n".join(indent(each, "    ") for each in named)
        raise CommandFailure(
            f"{text} names Python:\n{shown}\nNothing of it runs until you say so: add --run-cells.",
            BAD_ARGUMENTS,
        )


def run_code(engine: Conversation, target: Target) -> None:
    """Run the Python files and the cells of the target, whose Python the engine then may use or
    not. Raises CommandFailure."""
    engine.unagreed = target.unagreed
    _run_files(engine, target)
    if not target.cells:
        return
    project = target.project
    told = ShowSubjectCommand(subject=target.subject, training=project.training)
    for command in (EnterFolderCommand(folder=str(target.path.absolute().parent)), told):
        list(engine.ask(command))
    for number, cell in enumerate(target.cells, 1):
        print(f"Cell {number} of {len(target.cells)}:", file=sys.stderr)
        print(indent(cell.source, "    "), flush=True, file=sys.stderr)
        command = RunCellCommand(source=cell.source, model=project.model, training=project.training)
        for snapshot in engine.ask(command):
            show_output(snapshot)
            if isinstance(snapshot, CellSnapshot) and snapshot.error is not None:
                error = snapshot.error
                told = error.traceback.rstrip() or f"{error.type}: {error.message}"
                raise CommandFailure(f"{target.text}: cell {number} raised.\n{told}")
            if isinstance(snapshot, ErrorSnapshot):
                raise failure(target.text, snapshot)


def _run_files(engine: Conversation, target: Target) -> None:
    for path in files_of(target.subject, target.objective):
        for snapshot in engine.ask(RunFileCommand(path=path)):
            show_output(snapshot)
            if isinstance(snapshot, ErrorSnapshot):
                raise failure(path, snapshot)


def show_output(snapshot: Snapshot) -> None:
    """Print what the user's code printed to stderr: stdout is for the command's own report."""
    if isinstance(snapshot, OutputSnapshot):
        print(snapshot.text, end="", flush=True, file=sys.stderr)


def _absolute(expression: str) -> str:
    """The expression, with the file that it names by its whole path."""
    reference = split_reference(expression)
    if reference is None:
        return expression
    path = Path(reference[0])
    if not path.is_file():
        raise CommandFailure(f"{path}: there is no such file.", BAD_ARGUMENTS)
    return f"{path.absolute()}:{reference[1]}"
