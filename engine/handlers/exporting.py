"""Answers about exporting a model to a file."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from ..datasets.load import load_dataset
from ..errors import LabError
from ..exporting.code_export import save_code
from ..exporting.train_script import save_script, script_of
from ..exporting.weights import Written, check_fits, load_weights, save_weights
from ..exporting.weights_fit import find_fit, load_fit, tensors_of
from ..lab import Lab
from ..models.check import check
from ..models.live import LiveModel
from ..project import catalogue
from ..project.edits import loss_call
from ..project.subject import CanvasSubject
from ..protocol import (
    ExportCommand,
    ExportSnapshot,
    FitSnapshot,
    KeyFit,
    LoadWeightsCommand,
    OpenWeightsCommand,
    SavedWeightsSnapshot,
    SaveWeightsCommand,
    Snapshot,
    WeightsSnapshot,
)
from .subjects import find_subject

MAX_TOLD_KEYS = 100
"""As many names of each kind are told of a file that does not fit."""
SAMPLES = 4
"""Batch size of the inputs on which the exported Python is compared with the live model."""


def export(lab: Lab, command: ExportCommand) -> Iterator[Snapshot]:
    """Write the file and answer with an ExportSnapshot. A module of code takes over the weights of
    `command.weights`; the canvas's live model is not changed.

    Raises LabError if the model cannot be built, `command.weights` does not fit it, or the path
    cannot be written.
    """
    path, renaming = Path(command.path).expanduser(), ""
    if command.format in ("py", "script"):
        if not isinstance(command.subject, CanvasSubject):
            raise LabError(
                "Only a model of blocks is written as Python: yours is Python already.",
                hint="Export its weights: .pt or .safetensors.",
            )
        live, renaming = _canvas(lab, command)
        code = check(command.model, command.training).code
        if command.format == "py":
            written = save_code(code, live.module, example_inputs(live), path)
        else:
            written = _script(command, code, live, path)
    else:
        module, renaming = _source(lab, command)
        written = save_weights(module, path, command.format)
    yield ExportSnapshot(
        path=str(written.path),
        format=command.format,
        size_bytes=written.size_bytes,
        sha256=written.sha256,
        max_error=written.max_error,
        keys=written.keys,
        renaming=renaming,
    )


def _script(command: ExportCommand, code: str, live: LiveModel, path: Path) -> Written:
    training = command.training
    if command.fresh:
        live = LiveModel(command.model, training.seed)
    loss, params = loss_call(command.model, training)
    dataset = load_dataset(training.data)
    text = script_of(code, training, loss, params, dataset, path, live.module)
    return save_script(text, live.module, example_inputs(live), dataset, path)


def load_into_subject(lab: Lab, command: LoadWeightsCommand) -> Iterator[Snapshot]:
    """Raises LabError if the file cannot be read, and what making the subject raises."""
    path = Path(command.path)
    state = load_weights(path)
    subject = find_subject(lab, command.subject, command.model, command.training)
    fit = find_fit(state, subject.module)
    may_load = command.agreed or (fit.is_whole and not fit.is_renamed)
    if may_load:
        load_fit(state, subject.module, fit)
    own = tensors_of(subject.module)

    def told(names: Iterable[str], tensors: Mapping[str, Tensor]) -> tuple[KeyFit, ...]:
        first = islice(names, MAX_TOLD_KEYS)
        return tuple(KeyFit(name, _shape(tensors[name])) for name in first)

    yield FitSnapshot(
        path=str(path),
        title=subject.title,
        loaded=may_load,
        matched=len(fit.matched),
        missing=told(fit.missing, own),
        unexpected=told(fit.unexpected, state),
        misshapen=tuple(
            KeyFit(name, _shape(state[key]), _shape(own[name]))
            for name, key in islice(fit.misshapen.items(), MAX_TOLD_KEYS)
        ),
        counts=(len(fit.missing), len(fit.unexpected), len(fit.misshapen)),
        renaming=fit.renaming,
        is_canvas=isinstance(command.subject, CanvasSubject),
    )


def save_project_weights(lab: Lab, command: SaveWeightsCommand) -> Iterator[Snapshot]:
    """Write the live model's weights. Raises as `export` does."""
    live = lab.models.live_model(command.model, command.training.seed)
    path = Path(os.fsdecode(command.path))
    save_weights(live.module, path, "safetensors")
    run = lab.run
    yield SavedWeightsSnapshot() if run is None else SavedWeightsSnapshot(run=run.id, step=run.step)


def open_project_weights(lab: Lab, command: OpenWeightsCommand) -> Iterator[Snapshot]:
    """Drop the live model of the previous project; with a file, make one with its weights.

    Raises LabError if the file cannot be read or does not fit the model. The model then has new
    weights, as without a file.
    """
    lab.models.live = None
    if not command.path:
        yield WeightsSnapshot(origin="", parameters=0)
        return
    path = Path(os.fsdecode(command.path))
    state = load_weights(path)
    live = LiveModel(command.model, command.training.seed)
    check_fits(state, live.module, path.name)
    live.module.load_state_dict(state)
    lab.models.live = live
    yield WeightsSnapshot(
        origin=f"The weights of {path.name} are loaded.", parameters=live.parameters
    )


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


def _source(lab: Lab, command: ExportCommand) -> tuple[nn.Module, str]:
    """The module to write, and how the names of its weights were changed to fit."""
    if isinstance(command.subject, CanvasSubject):
        live, renaming = _canvas(lab, command)
        return live.module, renaming
    module = find_subject(lab, command.subject, command.model, command.training).module
    return module, _load(command.weights, module) if command.weights else ""


def _canvas(lab: Lab, command: ExportCommand) -> tuple[LiveModel, str]:
    """The live model; with weights, another model that has them. The second as in `_source`."""
    seed = command.training.seed
    if not command.weights:
        return lab.models.live_model(command.model, seed), ""
    other = LiveModel(command.model, seed)
    return other, _load(command.weights, other.module)


def _load(weights: str, module: nn.Module) -> str:
    """Load weights that fit exactly, maybe after a prefix is taken off; it is told in words."""
    source = Path(weights).expanduser()
    state = load_weights(source)
    fit = find_fit(state, module)
    if not fit.is_whole or fit.unexpected:
        renamed = {fit.renamed(key): tensor for key, tensor in state.items()}
        check_fits(renamed, module, str(source))
    load_fit(state, module, fit)
    return fit.renaming


def _shape(tensor: Tensor) -> tuple[int, ...]:
    return () if is_lazy(tensor) else tuple(tensor.shape)
