"""`train.py` in the folder of a run: the same training as a plain script."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from torch import Tensor, nn

from ...datasets.load import load_dataset
from ...errors import LabError
from ...exporting.code_names import CodeNames
from ...exporting.code_script import CodeSubject, Expression, code_script_of
from ...exporting.loader_lines import LoaderLines, loader_lines
from ...exporting.train_script import data_of, script_of, write_script
from ...lab import Lab
from ...project.document import Model, TrainingSetup
from ...project.edits import loss_call
from ...project.subject import (
    CanvasSubject,
    FileSubject,
    Subject,
    holds_model,
    split_reference,
)
from ...project.subject import Objective as Written
from ...protocol import ExportCommand, TrainCommand
from ...random_states import States, drawn_from
from ...runs.writer import RunWriter
from ...signatures import required_parameters
from ...subjects.function import FunctionModule
from ...subjects.python_file import PythonFile
from ...subjects.subject import CanvasModel, CodeModel
from ...training.objectives.code_objective import CodeObjective
from ...training.objectives.objective import Objective
from ..subjects import given_objects, objective_of

FILE = "train.py"
MAX_BYTES = 64 * 2**20
"""A run whose data and first weights are larger gets no script: each run would have a copy."""


def loader_of_cells(
    lab: Lab, subject: CanvasModel, model: Model, training: TrainingSetup
) -> LoaderLines | None:
    """The DataLoader with objects of the console, for a script; None without any. Raises LabError
    if the cells that ran do not tell how they are made."""
    if not training.data.loading.given:
        return None
    objective = objective_of(lab, subject, Written(), model, training)
    found = given_objects(lab, training, lab.console.namespace.variables)
    samplers = {"sampler": found.sampler, "batch_sampler": found.batch_sampler}
    made = {name: not isinstance(value, Iterable) for name, value in samplers.items()}
    cells = lab.console.namespace.journal.sources
    return loader_lines(training, cells, made, objective.batches_per_epoch)


class Drawn(NamedTuple):
    """The states of the random generators before the data of a run was made, and after."""

    before: States
    after: States


def code_script(
    lab: Lab,
    subject: CodeModel,
    command: TrainCommand | ExportCommand,
    objective: CodeObjective,
    drawn: Drawn,
    path: Path,
) -> tuple[str, dict[str, Any]]:
    """The script of a module of code that is to lie at `path`, and what lies beside it besides the
    weights. Raises LabError for what no script can have."""
    reference, setup = command.subject, command.training
    own = _file_of(lab, reference)
    if isinstance(subject.module, FunctionModule):
        raise LabError(
            f"{subject.title} is a function of tensors, which only the program trains as a module.",
            hint="Write a class of nn.Module that calls it, and choose that.",
        )

    if command.objective.of_setup:
        raise LabError(
            "A script of your own code has no data set of Train.",
            hint="Let the code read the data, and name it under Data.",
        )

    def read(text: str) -> Expression:
        found = split_reference(text)
        return Expression(text, own) if found is None else Expression(found[1], _ran(lab, found[0]))

    assert not isinstance(reference, CanvasSubject)
    calls = any(isinstance(node, ast.Call) for node in ast.walk(ast.parse(reference.expression)))
    written, saved = command.objective, dict[str, Any]()
    found = CodeSubject(
        title=subject.title,
        module=subject.module,
        expression=Expression(reference.expression.strip(), own),
        makes=subject.made and not calls,
        step_takes=0 if objective.source else len(required_parameters(subject.variables["step"])),
        data=read(written.data),
        validation=read(written.validation) if written.validation else None,
        given={name: read(text) for name, text in setup.data.loading.given.items()},
    )
    if path.absolute() in [each.file.path for each in (found.expression, found.data) if each.file]:
        raise LabError(
            f"{path.name} is your own file.", hint="Give the script another name, or folder."
        )
    namespace = lab.console.namespace
    names = CodeNames(namespace.journal.cells, namespace.variables, saved)
    before = drawn_from(*drawn)
    then = {name: state for name, state in drawn.after.items() if drawn.before[name] != state}
    return code_script_of(found, setup, objective, names, path, before, then), saved


def _file_of(lab: Lab, subject: Subject) -> PythonFile | None:
    if not isinstance(subject, FileSubject):
        return None
    if holds_model(subject.path):
        raise LabError(
            f"{Path(subject.path).name} holds a model, and no Python that makes it.",
            hint="Choose the module of a Python file, and load the weights into it.",
        )
    return _ran(lab, subject.path)


def _ran(lab: Lab, path: str) -> PythonFile:
    return lab.subjects.file(Path(path))


def add_script(
    lab: Lab,
    writer: RunWriter,
    subject: CanvasModel | CodeModel,
    command: TrainCommand,
    objective: Objective,
    code: str,
    drawn: Drawn,
) -> None:
    """Let a run that begins with the weights of now have its script; if there can be none, let its
    folder say why."""
    try:
        writer.also.append(_writer(lab, subject, command, objective, code, drawn))
    except LabError as error:
        writer.leave_out_script(f"{error} {error.hint}".strip())


def _writer(
    lab: Lab,
    subject: CanvasModel | CodeModel,
    command: TrainCommand,
    objective: Objective,
    code: str,
    drawn: Drawn,
) -> Callable[[Path], object]:
    module, training = subject.module, command.training
    weights = first_weights(module)
    if isinstance(subject, CodeModel):
        assert isinstance(objective, CodeObjective)
        text, data = code_script(lab, subject, command, objective, drawn, Path(FILE))
    else:
        loss, params = loss_call(command.model, training)
        dataset = load_dataset(training.data)
        loader = loader_of_cells(lab, subject, command.model, training)
        text = script_of(code, training, loss, params, dataset, Path(FILE), module, loader)
        data = data_of(dataset)
    tensors = (each for each in (*data.values(), *weights.values()) if isinstance(each, Tensor))
    size = sum(tensor.nbytes for tensor in tensors)
    if size > MAX_BYTES:
        raise LabError(
            f"Data and first weights lie beside it, in each run: {size / 2**20:,.0f} MiB.",
            hint="Export writes the training script.",
        )
    return lambda folder: write_script(text, weights, data, folder / FILE)


def first_weights(module: nn.Module) -> dict[str, Any]:
    """A copy of the module's state_dict, on the CPU."""
    return {
        name: value.detach().to("cpu", copy=True) if isinstance(value, Tensor) else value
        for name, value in module.state_dict().items()
    }
