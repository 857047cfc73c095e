"""Answers about exporting a model to a file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor, nn

from ..errors import LabError
from ..exporting.code_export import save_code
from ..exporting.weights import check_fits, load_weights, save_weights
from ..lab import Lab
from ..models.check import check
from ..models.live import LiveModel
from ..project import catalogue
from ..project.subject import CanvasSubject
from ..protocol import (
    ExportCommand,
    ExportSnapshot,
    OpenWeightsCommand,
    SavedWeightsSnapshot,
    SaveWeightsCommand,
    Snapshot,
    WeightsSnapshot,
)
from .subjects import find_subject

SAMPLES = 4
"""Batch size of the inputs on which the exported Python is compared with the live model."""


def export(lab: Lab, command: ExportCommand) -> Iterator[Snapshot]:
    """Write the file and answer with an ExportSnapshot. A module of code takes over the weights of
    `command.weights`; the canvas's live model is not changed.

    Raises LabError if the model cannot be built, `command.weights` does not fit it, or the path
    cannot be written.
    """
    path = Path(command.path).expanduser()
    if command.format == "py":
        if not isinstance(command.subject, CanvasSubject):
            raise LabError(
                "Only a model of blocks is written as Python: yours is Python already.",
                hint="Export its weights: .pt or .safetensors.",
            )
        live = _canvas(lab, command)
        code = check(command.model, command.training).code
        written = save_code(code, live.module, example_inputs(live), path)
    else:
        written = save_weights(_source(lab, command), path, command.format)
    yield ExportSnapshot(
        path=str(written.path),
        format=command.format,
        size_bytes=written.size_bytes,
        sha256=written.sha256,
        max_error=written.max_error,
        keys=written.keys,
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


def _source(lab: Lab, command: ExportCommand) -> nn.Module:
    if isinstance(command.subject, CanvasSubject):
        return _canvas(lab, command).module
    module = find_subject(lab, command.subject, command.model, command.training).module
    if command.weights:
        _load(command.weights, module)
    return module


def _canvas(lab: Lab, command: ExportCommand) -> LiveModel:
    seed = command.training.seed
    if not command.weights:
        return lab.models.live_model(command.model, seed)
    other = LiveModel(command.model, seed)
    _load(command.weights, other.module)
    return other


def _load(weights: str, module: nn.Module) -> None:
    source = Path(weights).expanduser()
    state = load_weights(source)
    check_fits(state, module, str(source))
    module.load_state_dict(state)
