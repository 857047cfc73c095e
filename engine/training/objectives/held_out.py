"""A share of the user's own data for validation: split as a data set of Train is."""

from __future__ import annotations

from collections.abc import Sized
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset, IterableDataset, Subset, TensorDataset

from ...datasets.split import split_rows
from ...project.document import DataSetup
from ...system.errors import LabError
from .batches import as_columns, has_samples


class Rows(NamedTuple):
    """The rows of the data for training and for validation, int64, in their order there."""

    training: Tensor
    validation: Tensor


def rows_of(data: Any, setup: DataSetup) -> Rows:
    """Which samples of the data are held out, as the set-up's fraction and seed say. Stratified,
    where the data tells its classes without a sample being read: tensors and lists do, and a
    Dataset with `targets`. Raises LabError for data without samples of its own to be split."""
    columns = as_columns(data)
    is_set = isinstance(data, Dataset)
    has_rows = isinstance(data, Sized) if is_set else has_samples(data)
    if columns is None and (isinstance(data, IterableDataset) or not has_rows):
        raise LabError(
            f"No share of a {type(data).__name__} can be held out: it gives batches, or samples in"
            " an order of its own.",
            hint="Name a Dataset or tensors, or data of its own for validation.",
        )
    count = len(columns[0] if columns is not None else cast(Sized, data))
    training, validation = split_rows(
        count,
        _classes(data, columns),
        setup.validation_fraction,
        setup.split_seed,
        setup.stratified,
    )
    return Rows(torch.from_numpy(training), torch.from_numpy(validation))


def part_of(data: Any, rows: Tensor) -> Dataset[Any]:
    """These samples of the data."""
    columns = as_columns(data)
    if columns is not None:
        return TensorDataset(*(column[rows] for column in columns))
    return Subset(data, rows.tolist())


def _classes(data: Any, columns: tuple[Tensor, ...] | None) -> np.ndarray | None:
    """The class of each sample, (N,); None where it is not known, or targets are numbers."""
    if columns is not None:
        found = columns[-1] if len(columns) > 1 else None
    elif isinstance(data, Dataset):
        found = getattr(data, "targets", None)
    else:
        found = [sample[-1] for sample in data] if isinstance(data[0], tuple | list) else None
    if found is None:
        return None
    try:
        labels = torch.as_tensor(found)
    except (TypeError, ValueError, RuntimeError):  # texts, or targets of different shapes
        return None
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    is_label = labels.ndim == 1 and not labels.is_floating_point() and not labels.is_complex()
    return labels.cpu().numpy() if is_label else None
