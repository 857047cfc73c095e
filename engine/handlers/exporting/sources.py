"""What an export works on: the module with its weights, and the batch that it is called with."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from ...errors import LabError
from ...exporting import package
from ...exporting.examples import Example, captured, example_of
from ...exporting.package import Code
from ...exporting.programs import exported, scripted
from ...exporting.weights import check_fits, load_weights
from ...exporting.weights_fit import find_fit, load_fit
from ...lab import Lab
from ...models.check import check
from ...models.live import LiveModel
from ...module_kept import module_kept
from ...project import catalogue
from ...project.subject import CanvasSubject, FileSubject, holds_model
from ...protocol import ExportCommand
from ...subjects.function import FunctionModule
from ...subjects.subject import CanvasModel, CodeModel
from ..subjects import find_subject, first_batch, run_of, running

SAMPLES = 4
"""Batch size of the inputs that stand for those of a model of blocks."""


@dataclass(frozen=True)
class Source:
    """`renaming`: how the names of weights from a file were changed to fit, in words."""

    subject: CanvasModel | CodeModel
    renaming: str = ""

    @property
    def module(self) -> nn.Module:
        return self.subject.module


def source_of(lab: Lab, command: ExportCommand) -> Source:
    """The subject; with the command's weights, a module of code takes these over, and a model of
    blocks is another one. Raises LabError, and what the user's code raises."""
    weights = Path(command.weights).expanduser() if command.weights else None
    if isinstance(command.subject, CanvasSubject) and weights is not None:
        other = LiveModel(command.model, command.training.seed)
        return Source(CanvasModel(other), _load(weights, other.module))
    subject = find_subject(lab, command.subject, command.model, command.training)
    return Source(subject, _load(weights, subject.module) if weights else "")


def example(lab: Lab, command: ExportCommand, source: Source) -> Example:
    """The call that a program is written from: for code the one that the first batch of its data
    leads to. Raises LabError if there is no data, and what the user's code raises."""
    subject = source.subject
    if isinstance(subject, CanvasModel):
        return example_of(tuple(example_inputs(subject.live)), {})
    if not command.objective.has_data:
        raise LabError(
            f"There is no batch to call {subject.title} with.",
            hint="Name its data under Train, or with --data: a program is written from one run.",
        )
    batches, generators, run = run_of(lab, subject, command)
    with running(lab, command.training, generators), module_kept(subject.module, training=False):
        found = captured(subject.module, run(first_batch(batches())))
    return found.of_size(2) if found.size == 1 else found


def example_inputs(live: LiveModel) -> list[Tensor]:
    """One tensor (SAMPLES, *shape) for each input of the model, in the order of its arguments. They
    hold normal numbers, or 0 and 1 for integers, drawn from a seed of their own."""
    generator = torch.Generator().manual_seed(0)
    inputs = []
    for block_id in live.blocks.order:
        block = live.model.block(block_id)
        if block.kind != "Input":
            continue
        values = catalogue.arguments(block)
        assert isinstance(values["shape"], tuple)
        shape = (SAMPLES, *(int(n) for n in values["shape"]))
        dtype = getattr(torch, str(values["dtype"]))
        if dtype.is_floating_point:
            inputs.append(torch.randn(shape, generator=generator, dtype=dtype))
        else:
            inputs.append(torch.randint(2, shape, generator=generator, dtype=dtype))
    return inputs


def code_of(
    lab: Lab, command: ExportCommand, source: Source, still: nn.Module, example: Example
) -> tuple[Code, str]:
    """The code of a package, and why its number of samples is fixed ("" if it is free). What has no
    file of Python becomes a program. Raises LabError."""
    subject = command.subject
    if isinstance(subject, CanvasSubject):
        return package.of_blocks(check(command.model, command.training).code), ""
    is_function = isinstance(source.module, FunctionModule)
    if isinstance(subject, FileSubject) and not holds_model(subject.path) and not is_function:
        return _code_of_file(lab, subject, source), ""
    if isinstance(still, torch.jit.ScriptModule):
        return package.of_script(scripted(still)), ""
    program = exported(still, example)
    return package.of_program(program), program.fixed


def _code_of_file(lab: Lab, subject: FileSubject, source: Source) -> Code:
    file = lab.subjects.file(Path(subject.path))
    root = file.path.parent
    while (root / "__init__.py").is_file():
        root = root.parent
    files = {}
    for path, digest in {file.path: file.digest, **file.imports}.items():
        data = path.read_bytes()
        if hashlib.sha256(data).hexdigest() != digest:
            raise LabError(
                f"{path.name} has changed since it ran.",
                hint=f"Run {path.name} again, then export.",
            )
        files[path.relative_to(root).as_posix()] = data
    assert isinstance(source.subject, CodeModel)
    name = file.path.relative_to(root).as_posix()
    return package.of_file(name, files, subject.expression, not source.subject.made)


def _load(source: Path, module: nn.Module) -> str:
    """Load weights that fit exactly, maybe after a prefix is taken off; it is told in words."""
    state = load_weights(source)
    fit = find_fit(state, module)
    if not fit.is_whole or fit.unexpected:
        renamed = {fit.renamed(key): tensor for key, tensor in state.items()}
        check_fits(renamed, module, str(source))
    load_fit(state, module, fit)
    return fit.renaming
