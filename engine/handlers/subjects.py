"""Answers about subjects: a Python file that runs, and the structure of a module."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import torch
from torch import nn

from ..compiled import own_path
from ..errors import LabError, error_report, sendable
from ..lab import Lab
from ..project.document import Model, TrainingSetup
from ..project.edits import loss_call
from ..project.subject import (
    CanvasSubject,
    ConsoleSubject,
    FileSubject,
    Objective,
    Subject,
    split_reference,
)
from ..protocol import (
    MAX_SNAPSHOT_BYTES,
    ExportCommand,
    FileSnapshot,
    InitPreviewSnapshot,
    ModuleRow,
    PreviewInitCommand,
    ReadStructureCommand,
    RunFileCommand,
    ShowSubjectCommand,
    Snapshot,
    StepSnapshot,
    StructureSnapshot,
    WatchCommand,
    WatchedSnapshot,
    WeightRow,
    WriteStepCommand,
)
from ..randomness import RandomStream
from ..recording.user_files import is_user_file
from ..signatures import required_parameters
from ..subjects.calls import calls_in
from ..subjects.function import reached
from ..subjects.initial_values import preview
from ..subjects.python_file import objects_in
from ..subjects.structure import (
    module_rows,
    optimizers_among,
    totals,
    unregistered,
    weight_rows,
)
from ..subjects.subject import CanvasModel, CodeModel
from ..tensors.error_help import explain_error
from ..training.objectives.catalogue_data import CatalogueData
from ..training.objectives.code_data import CodeData
from ..training.objectives.code_objective import CodeObjective, Step, compile_step
from ..training.objectives.loaders import Given, given_by
from ..training.objectives.objective import CatalogueObjective
from ..training.objectives.objective import Objective as RunObjective
from ..training.objectives.usual_steps import described, usual_call, write_step
from .console import output_of, users_code
from .holding import seen_and_held


def run_file(lab: Lab, command: RunFileCommand) -> Iterator[Snapshot]:
    """Raises as `python_file.run_file` does."""
    path, output = Path(command.path).expanduser(), output_of(lab)
    copy = Path(command.copy) if command.copy else None
    with seen_and_held(lab, copy or path, output) as around:
        file = lab.subjects.run_file(path, output, lab.control, around, copy, command.digest)
    yield FileSnapshot(
        path=str(path.absolute()),
        digest=file.digest,
        objects=objects_in(file),
        imports={str(path): digest for path, digest in file.imports.items()},
    )


def show_subject(lab: Lab, command: ShowSubjectCommand) -> Iterator[Snapshot]:
    """Nothing is looked up before `lab.subject` is."""
    subject, training = command.subject, command.training

    def module() -> nn.Module:
        with lab.canvas.sheltered():
            return find_subject(lab, subject, Model(), training).module

    lab.subjects.shown = None if isinstance(subject, CanvasSubject) else module
    yield from ()


def write_usual_step(lab: Lab, command: WriteStepCommand) -> Iterator[Snapshot]:
    """Raises LabError if there is no such subject or data, or no usual task fits."""
    subject = find_subject(lab, command.subject, Model(), command.training)
    if isinstance(subject, CanvasModel):
        raise LabError("The canvas has its own data set and loss.", hint="Set them under Train.")
    data = _data(lab, subject, command.objective, command.training, validates=False)()
    with running(lab, command.training, data.generators):
        batch = first_batch(data.batches(0, 0))
        is_own = inspect.isfunction(subject.variables.get("step"))
        written = None if is_own else write_step(subject.module, batch)
    if written is None:
        yield StepSnapshot(task="step of your code", source="", batch=described(batch))
        return
    yield StepSnapshot(task=written.task, source=written.source, batch=described(batch))


def read_structure(lab: Lab, command: ReadStructureCommand) -> Iterator[Snapshot]:
    """Raises LabError if there is no such subject, and what its code raises. Data that cannot be
    had, and a step that fails, are told in the answer."""
    subject = find_subject(lab, command.subject, command.model, command.training)
    batch, calls, unrun = "", {}, None
    if isinstance(subject, CanvasModel) or command.objective.has_data:
        try:
            batches, generators, run = run_of(lab, subject, command)
            with running(lab, command.training, generators):
                first = first_batch(batches())
                batch = described(first)
                calls = calls_in(subject.module, run(first))
        except Exception as error:  # the user's code may raise anything
            report = error_report(error, is_user_file)
            unrun = msgspec.structs.replace(report, hint=report.hint or explain_error(error))
    optimizers = optimizers_among(subject.variables) if isinstance(subject, CodeModel) else {}
    watching = lab.subjects.watching
    watched = watching.paths if watching.subject == command.subject else ()
    whole = StructureSnapshot(
        title=subject.title,
        totals=totals(subject.module),
        batch=batch,
        unrun=unrun,
        made=isinstance(subject, CodeModel) and subject.made,
        optimizers=tuple(map(sendable, optimizers)),
        unregistered=unregistered(subject.module),
        watched=watched,
    )
    weights = weight_rows(subject.module, optimizers)
    yield from structure_in_parts(whole, module_rows(subject.module, calls), weights)


def run_of(
    lab: Lab, subject: CanvasModel | CodeModel, command: ReadStructureCommand | ExportCommand
) -> tuple[Callable[[], Iterable[Any]], Sequence[torch.Generator], Callable[[Any], Callable]]:
    """Batches, the generators from which they draw, and what runs one. Where the program would
    write the step, the model runs by itself: to write a step is one run more of the user's code.
    Raises as `objective_of` does."""
    training, written = command.training, command.objective
    is_own = isinstance(subject, CodeModel) and inspect.isfunction(subject.variables.get("step"))
    if isinstance(subject, CodeModel) and not written.step and not is_own:
        data = _data(lab, subject, written, training, validates=False)()
        run = functools.partial(usual_call, subject.module)
        return lambda: data.batches(0, 0), data.generators, run
    objective = objective_of(lab, subject, written, command.model, training)
    return (
        lambda: objective.batches(0, 0),
        objective.generators,
        lambda batch: functools.partial(objective.outcome, batch),
    )


def watch(lab: Lab, command: WatchCommand) -> Iterator[Snapshot]:
    """Raises LabError if there is no such subject or module, and for too many modules."""
    module = code_model(lab, command.subject, command.training).module
    watching = lab.subjects.watching
    watching.watch(command.subject, module, command.paths)
    yield WatchedSnapshot(paths=watching.paths)


def preview_init(lab: Lab, command: PreviewInitCommand) -> Iterator[Snapshot]:
    """Raises LabError if there is no such subject, function or tensor, and for arguments that are
    not constants."""
    module = code_model(lab, command.subject, command.training).module
    tensors = {
        **dict(module.named_parameters(remove_duplicate=False)),
        **dict(module.named_buffers(remove_duplicate=False)),
    }
    tensors = {own_path(name): tensor for name, tensor in tensors.items()}
    if missing := [name for name in command.names if name not in tensors]:
        raise LabError(f"There is no parameter or buffer `{missing[0]}`.", hint="Choose another.")
    chosen = {name: tensors[name] for name in command.names}
    yield InitPreviewSnapshot(rows=tuple(preview(command.function, command.arguments, chosen)))


def code_model(
    lab: Lab, subject: ConsoleSubject | FileSubject, training: TrainingSetup
) -> CodeModel:
    """Raises as `find_subject` does."""
    model = find_subject(lab, subject, Model(), training)
    assert isinstance(model, CodeModel)
    return model


def find_subject(
    lab: Lab, subject: Subject, model: Model, training: TrainingSetup
) -> CanvasModel | CodeModel:
    """The subject of a command. Raises LabError if there is none, and what its code raises."""
    match subject:
        case CanvasSubject():
            return CanvasModel(lab.models.live_model(model, training.seed))
        case ConsoleSubject():
            namespace = lab.console.namespace
            found = lab.subjects.of_console(subject, training.seed, namespace, lab.control)
        case FileSubject():
            found = lab.subjects.of_file(subject, training.seed, output_of(lab), lab.control)
    lab.subjects.watching.follow(subject, found.module)
    return found


def forget_weights(lab: Lab, subject: Subject, model: Model, training: TrainingSetup) -> None:
    """Let the subject have fresh weights, from the training's seed. Raises LabError for an object
    that the user's own code has made."""
    if isinstance(subject, CanvasSubject):
        lab.models.live_model(model, training.seed).reset(model, training.seed)
    else:
        find_subject(lab, subject, model, training)
        lab.subjects.forget(subject)


def objective_of(
    lab: Lab,
    subject: CanvasModel | CodeModel,
    written: Objective,
    model: Model,
    training: TrainingSetup,
    *,
    is_look: bool = False,
) -> RunObjective:
    """Where batches and loss of a run of the subject come from. For a look (`is_look`), what the
    expressions of the data compute is computed once until code of the user's runs again. Raises
    LabError if the data or the step cannot be used, and what the user's code raises."""
    if isinstance(subject, CanvasModel):
        given = given_objects(lab, training, lab.console.namespace.variables)
        return CatalogueObjective(subject.module, training, *loss_call(model, training), given)
    make = _data(lab, subject, written, training, is_look)
    step, source = _step(lab, subject, written, make, training)
    logging = lab.console.namespace.lab.logging
    known = [*reached(step), *subject.module.modules()]
    return CodeObjective(step, make(), logging=logging, reached=known, source=source)


def _data(
    lab: Lab,
    subject: CodeModel,
    written: Objective,
    training: TrainingSetup,
    is_look: bool = False,
    validates: bool = True,
) -> Callable[[], CatalogueData | CodeData]:
    """What makes the batches of a subject, each time with a loader of its own; what the user names
    as data is computed once, now, that for validation only if it `validates`."""

    def given() -> Given:
        return given_objects(lab, training, subject.variables)

    if written.of_setup:
        return lambda: CatalogueData(training, given())
    if not written.data:
        raise LabError(
            f"There is no data to train {subject.title} on.",
            hint="Choose a data set under Train, or name a Dataset, a DataLoader or tensors of your"
            " code.",
        )
    data = _value(lab, written.data, subject.variables, is_look)
    validation = (
        _value(lab, written.validation, subject.variables, is_look)
        if validates and written.validation
        else None
    )
    size, loading = training.batch_size, training.data.loading
    return lambda: CodeData(data, validation, size, loading, given())


def given_objects(lab: Lab, training: TrainingSetup, variables: Mapping[str, Any]) -> Given:
    """The arguments of the DataLoader that the user's code has."""
    return given_by(training.data.loading, lambda expression: _value(lab, expression, variables))


def _step(
    lab: Lab,
    subject: CodeModel,
    written: Objective,
    make: Callable[[], CatalogueData | CodeData],
    training: TrainingSetup,
) -> tuple[Step, str]:
    """The step as it is written; else the function `step` of the subject's own code, if it has
    one; else one that fits the first batch. With its source, "" for the subject's own."""
    own = subject.variables.get("step")
    if written.step or not inspect.isfunction(own):
        source = written.step
        if not source:
            data = make()
            with running(lab, training, data.generators):
                source = write_step(subject.module, first_batch(data.batches(0, 0))).source
        variables = {"lab": lab.console.namespace.lab, **subject.variables}
        return compile_step(source, subject.module, variables), source
    takes = len(required_parameters(own))
    if takes == 2:
        return functools.partial(own, subject.module), ""
    if takes == 1:
        return own, ""
    raise LabError(
        f"`step` of your code takes {takes} arguments.",
        hint="Write step(batch) or step(model, batch).",
    )


@contextmanager
def running(
    lab: Lab, training: TrainingSetup, generators: Sequence[torch.Generator]
) -> Iterator[None]:
    """In this context the user's code runs, and the random numbers are those with which a run
    begins: a batch drawn in it is the first of the run's. Afterwards the global generators, and
    these of the data's own, stand where they stood."""
    stream = RandomStream(training.seed, torch.device("cpu"), generators)
    with users_code(lab), stream:
        yield


def first_batch(batches: Iterable[Any]) -> Any:
    """Raises LabError if there is none."""
    for batch in batches:
        return batch
    raise LabError("The data has no batch.", hint="Give data with samples.")


def _value(
    lab: Lab, expression: str, variables: Mapping[str, Any], is_look: bool = False
) -> object:
    """The value of an expression among the subject's variables, or in a file that it names."""
    reference = split_reference(expression)
    output = output_of(lab)
    if reference is not None:
        path, expression = reference
        variables = lab.subjects.file(Path(path)).variables
    value = lab.subjects.value_once if is_look else lab.subjects.value
    return value(expression, variables, output, lab.control)


def console_value(lab: Lab, expression: str) -> object:
    """The value of an expression of the console, or of a file that it names. Raises as
    `SubjectState.value` does."""
    return _value(lab, expression, lab.console.namespace.variables)


def structure_in_parts(
    whole: StructureSnapshot, modules: list[ModuleRow], weights: list[WeightRow]
) -> Iterator[StructureSnapshot]:
    """The structure in snapshots that can be sent; the last has `left` 0."""
    rows: list[ModuleRow | WeightRow] = [*modules, *weights]
    part: list[ModuleRow | WeightRow] = []
    size, left = 0, len(rows)
    for row in rows:
        row_bytes = len(msgspec.msgpack.encode(row))
        if part and size + row_bytes > MAX_SNAPSHOT_BYTES // 2:
            left -= len(part)
            yield _with_rows(whole, part, left)
            part, size = [], 0
        part.append(row)
        size += row_bytes
    yield _with_rows(whole, part, 0)


def _with_rows(
    whole: StructureSnapshot, rows: list[ModuleRow | WeightRow], left: int
) -> StructureSnapshot:
    return msgspec.structs.replace(
        whole,
        modules=tuple(row for row in rows if isinstance(row, ModuleRow)),
        weights=tuple(row for row in rows if isinstance(row, WeightRow)),
        left=left,
    )
