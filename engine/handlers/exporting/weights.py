"""Answers about weights: those of a file for a subject, and those beside a project."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path

from torch import Tensor
from torch.nn.parameter import is_lazy

from ...artifacts.contents.artifact import state_of
from ...exporting.weights import check_fits, load_weights, save_weights
from ...exporting.weights_fit import find_fit, load_fit, tensors_of, under_names
from ...lab import Lab
from ...models.live import LiveModel
from ...protocol import (
    FitSnapshot,
    KeyFit,
    LoadWeightsCommand,
    OpenWeightsCommand,
    SavedWeightsSnapshot,
    SaveWeightsCommand,
    Snapshot,
    WeightsSnapshot,
)
from ..artifacts import reading
from ..subjects.find import subject_of

MAX_TOLD_KEYS = 100
"""The most names of each kind that are sent of a file that does not fit."""


def load_into_subject(lab: Lab, command: LoadWeightsCommand) -> Iterator[Snapshot]:
    """Raises LabError if the file cannot be read, and what making the subject raises."""
    path = Path(command.path)
    with reading(lab, command.path):
        artifact = lab.artifacts.open(command.path)
    if command.branches:
        state = under_names(state_of(artifact, command.group), command.branches)
    elif artifact.kind in ("torch", "safetensors") and not command.group:
        state = load_weights(path)  # looks for the state_dict in a checkpoint
    else:
        state = state_of(artifact, command.group)
    subject = subject_of(lab, command)
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
        saved_beside=subject.saved_beside,
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


def _shape(tensor: Tensor) -> tuple[int, ...]:
    return () if is_lazy(tensor) else tuple(tensor.shape)
