"""Answers with the model's predictions, between the steps of a run as well."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ....datasets.dataset import Dataset
from ....datasets.pictures import pictures_of
from ....lab import Lab
from ....protocol import (
    MAX_MATRIX,
    MAX_POINTS,
    SAMPLES_SHOWN,
    Plane,
    PredictedSample,
    PredictionsSnapshot,
    ReadPredictionsCommand,
)
from ....system.errors import sendable
from ....training.objectives.catalogue_data import CatalogueData
from ....training.objectives.code_objective import CodeObjective
from ....training.objectives.objective import CatalogueObjective, Objective
from ....training.predictions.plane import SIDE, bounds_of, predict_plane
from ....training.predictions.predictions import Predictions, predictions_of
from ....training.run import TrainingRun
from ...subjects.find import subject_of

BATCH = 512
IMAGE_SIDE = 48
SHOWN_VALUES = 8
SHOWN_CHARACTERS = 60


@dataclass(frozen=True, eq=False)
class _Data:
    """The batches of a part of the data, how many samples it has in all, the data set, if it is
    that of the set-up, and the set-up's loss, if that is used."""

    batches: Iterable[tuple[Tensor, Tensor]]
    total: int
    dataset: Dataset | None
    loss: nn.Module | None


def read_predictions(lab: Lab, command: ReadPredictionsCommand) -> Iterator[PredictionsSnapshot]:
    """Raises LabError for data that has no pairs of tensors, or predictions that do not fit the
    targets, and what the user's code raises."""
    subject = subject_of(lab, command)
    run = lab.run if isinstance(lab.run, TrainingRun) else None
    if run is not None and run.loop.model is not subject.module:
        run = None
    objective = subject.objective(is_look=True) if run is None else run.loop.objective
    with subject.running(objective.generators):
        data = _data(objective, command.part)
        found = predictions_of(subject.module, data.batches, data.loss)
        plane = _plane(subject.module, found, data.dataset)
    chosen = _chosen(found, command)
    has_classes = found.chances is not None
    names = _names(found, data.dataset) if has_classes else ()
    yield PredictionsSnapshot(
        step=run.step if run is not None else 0,
        part=command.part,
        samples=len(found.y),
        total=max(data.total, len(found.y)),
        loss=found.losses.mean().item(),
        classes=tuple(map(sendable, names[:MAX_MATRIX])),
        accuracy=(found.predicted == found.y).double().mean().item() if has_classes else math.nan,
        counts=(
            tuple(map(tuple, found.confusion(len(names)).tolist()))
            if 0 < len(names) <= MAX_MATRIX
            else ()
        ),
        pairs=() if has_classes else _pairs(found),
        r2=math.nan if has_classes else _r2(found),
        matching=len(chosen),
        shown=_shown(found, chosen[command.first :][:SAMPLES_SHOWN], names),
        plane=plane,
    )


def _data(objective: Objective, part: str) -> _Data:
    of_setup, is_validation = _data_of_setup(objective), part == "validation"
    if of_setup is not None:
        dataset = of_setup.dataset
        x = dataset.x_val if is_validation else dataset.x_train
        y = dataset.y_val if is_validation else dataset.y_train
        batches = zip(x.split(BATCH), y.split(BATCH), strict=True)
        if dataset.ragged is not None:  # how long a batch is may count
            batches = of_setup.in_order(is_validation)
        loss = objective.loss_fn if isinstance(objective, CatalogueObjective) else None
        return _Data(batches, len(y), dataset, loss)
    if is_validation:
        return _Data(objective.validation_batches(), objective.validation_samples, None, None)
    return _Data(objective.batches(0, 0), 0, None, None)


def _data_of_setup(objective: Objective) -> CatalogueData | None:
    """The data of the set-up, if batches are of it."""
    data = objective.loaded if isinstance(objective, CodeObjective) else objective
    return data if isinstance(data, CatalogueData) else None


def _chosen(found: Predictions, command: ReadPredictionsCommand) -> Tensor:
    """The numbers of the samples that are asked for, the worst first."""
    order = found.worst
    for wanted, of in ((command.actual, found.y), (command.predicted, found.predicted)):
        if wanted is not None and not of.is_floating_point():
            order = order[(of[order] == wanted).view(len(order), -1).any(1)]
    return order


def _names(found: Predictions, dataset: Dataset | None) -> tuple[str, ...]:
    """The names of all classes that occur: a model may have more scores than there are classes."""
    known = dataset.classes if dataset is not None else ()
    most = int(torch.stack([found.y.max(), found.predicted.max()]).max()) + 1
    return (*known, *map(str, range(len(known), most)))


def _shown(found: Predictions, rows: Tensor, names: tuple[str, ...]) -> tuple[PredictedSample, ...]:
    x, y, predicted = found.x[rows], found.y[rows], found.predicted[rows]
    images = pictures_of(x, IMAGE_SIDE) if x.ndim == 4 and x.is_floating_point() else ()
    return tuple(
        PredictedSample(
            number=int(row),
            target=_text(y[i], names),
            predicted=_text(predicted[i], names),
            is_right=bool((predicted[i] == y[i]).all()),
            loss=found.losses[row].item(),
            chance=None if found.chances is None else found.chances[row].double().mean().item(),
            image=images[i] if images else None,
            text="" if images else _text(x[i].flatten()[:SHOWN_CHARACTERS], names),
        )
        for i, row in enumerate(rows.tolist())
    )


def _text(values: Tensor, names: tuple[str, ...]) -> str:
    """Names of classes or characters; of numbers the first ones."""
    if not values.is_floating_point() and names and int(values.max()) < len(names):
        parts = [names[int(value)] for value in values.flatten()[:SHOWN_CHARACTERS]]
        return sendable("".join(parts) if values.ndim else parts[0])
    flat = values.flatten()
    shown = ", ".join(f"{value:.4g}" for value in flat[:SHOWN_VALUES].tolist())
    return f"{shown}, …" if len(flat) > SHOWN_VALUES else shown


def _pairs(found: Predictions) -> tuple[tuple[float, float], ...]:
    first = torch.stack([found.y.flatten(1)[:, 0], found.predicted.flatten(1)[:, 0]], 1)
    return tuple(map(tuple, first[:MAX_POINTS].double().tolist()))


def _r2(found: Predictions) -> float:
    """The mean over the targets of 1 - squared errors / squared deviations, as scikit-learn's
    r2_score has it; NaN where a target does not vary."""
    y = found.y.flatten(1).double()
    squared = (found.predicted.flatten(1).double() - y).square().sum(0)
    return (1 - squared / (y - y.mean(0)).square().sum(0)).mean().item()


def _plane(model: nn.Module, found: Predictions, dataset: Dataset | None) -> Plane | None:
    is_flat = found.x.shape[1:] == (2,) and found.y.ndim == 1 and found.x.is_floating_point()
    if dataset is None or not is_flat or len(dataset.classes) > MAX_MATRIX:
        return None
    bounds = bounds_of(found.x if dataset.is_stored else dataset.x_train.cpu())
    chances, classes = predict_plane(model, bounds).max(-1)
    points, labels = found.x[:MAX_POINTS], found.y[:MAX_POINTS]
    wrong = (found.predicted[:MAX_POINTS] != labels).nonzero().flatten()
    return Plane(
        *bounds,
        side=SIDE,
        classes=bytes(classes.flatten().tolist()),
        chances=bytes((chances * 255).round().int().flatten().tolist()),
        points=tuple((*xy, y) for xy, y in zip(points.tolist(), labels.tolist(), strict=True)),
        wrong=tuple(wrong.tolist()),
    )
