"""Weights of a loss's classes: as they are typed, or balanced by the training rows."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from ...datasets.dataset import Dataset
from ...project.document import ParamValue
from ...system.errors import LabError

BALANCED = "balanced"
WEIGHTS = ("weight", "pos_weight")
"""Arguments of losses that are tensors: a number for each class."""


def weighted(
    params: Mapping[str, ParamValue], dataset: Dataset | None, kind: str
) -> dict[str, ParamValue]:
    """The arguments of a loss with numbers in place of "balanced". Raises LabError for weights that
    do not fit the classes of the data."""
    found = dict(params)
    for name in WEIGHTS:
        value = found.get(name)
        if value == BALANCED:
            if dataset is None:
                raise LabError("Balanced weights need training rows.", hint="Type the weights.")
            found[name] = _positive(dataset) if name == "pos_weight" else _of_classes(dataset)
        elif isinstance(value, tuple) and dataset is not None and dataset.classes:
            classes = len(dataset.classes)
            if len(value) not in ((1, classes) if name == "pos_weight" else (classes,)):
                raise LabError(
                    f"{kind} has {len(value)} numbers as its {name}, and the data has"
                    f" {classes} classes.",
                    hint=f"Give {classes} numbers, or balanced.",
                )
    return found


def tensors(params: Mapping[str, ParamValue]) -> dict[str, object]:
    """The arguments with weights as torch takes them."""
    return {
        name: torch.tensor(value) if name in WEIGHTS and isinstance(value, tuple) else value
        for name, value in params.items()
    }


def _of_classes(dataset: Dataset) -> tuple[float, ...]:
    """As scikit-learn's compute_class_weight("balanced")."""
    counts = _counts(dataset)
    return tuple(sum(counts) / (len(counts) * count) for count in counts)


def _positive(dataset: Dataset) -> tuple[float, ...]:
    """Zeros / ones of each column: of classes, with 1 at the class of a sample."""
    y = dataset.y_train
    if dataset.classes:
        counts = _counts(dataset)
        return tuple((sum(counts) - count) / count for count in counts)
    ones = [float(total) for total in y.sum(0)]
    if min(ones) <= 0:
        raise LabError("A target is never 1 in the training rows.", hint="Type the weights.")
    return tuple((len(y) - total) / total for total in ones)


def _counts(dataset: Dataset) -> list[int]:
    if not dataset.classes:
        raise LabError("The targets are numbers: they have no classes to balance.")
    labels: Tensor = dataset.y_train.flatten()
    counts = labels.bincount(minlength=len(dataset.classes)).tolist()
    if not all(counts):
        name = dataset.classes[counts.index(0)]
        raise LabError(
            f"The class {name} has no training row, so it has no balanced weight.",
            hint="Type the weights, or split the data in another way.",
        )
    return counts
