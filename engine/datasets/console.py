"""Data of the console: tensors, a Dataset, a DataLoader, or a function that returns batches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

from ..restoring.random_states import torch_states_kept
from ..system.errors import LabError
from ..tensors.readable import as_floats
from .console_values import current
from .samples import DataProblem, Samples
from .source import MAX_BYTES, labelled, padded, require_size

_SHAPE = "Data is a pair of tensors (x, y), a Dataset of such pairs, a DataLoader, or a function."


def read(
    expression: str, target: str, padding: str, padding_value: float, padded_to: str
) -> Samples:
    """All samples of the data, read once, in their order if it has one. Random numbers that the
    data draws begin at seed 0, and the generators go on as if nothing had been read. Raises
    DataProblem, also for what the user's code raises."""
    find, _ = current()
    try:
        with torch_states_kept():
            torch.manual_seed(0)
            x, y, lengths = _pair(find(expression), expression, padding, padding_value)
        samples = _samples(x, y, target, expression)
    except DataProblem:
        raise
    except LabError as error:
        raise DataProblem(str(error), hint=error.hint) from error
    except NameError as error:
        raise DataProblem(
            f"The data {expression} needs `{error.name}`, which the console does not have.",
            hint="Run the cell that makes it.",
        ) from error
    except Exception as error:  # the user's code may raise anything
        told = f"{type(error).__name__}: {error}"
        raise DataProblem(f"{expression} cannot be read: {told}", hint=_SHAPE) from error
    if lengths is None or padded_to == "all":
        return samples
    return replace(samples, lengths=lengths, on_the_left=padding == "left", padding=padding_value)


_Read = tuple[Tensor, Tensor, np.ndarray | None]
"""Samples and targets, each as one tensor, and the lengths of samples that are padded."""


def _pair(data: Any, name: str, padding: str, value: float) -> _Read:
    if type(data) is TensorDataset:
        data = data.tensors
    if isinstance(data, Tensor):
        raise DataProblem(f"{name} is one tensor: it has no targets.", hint="Give (x, y).")
    if isinstance(data, tuple | list) and data and all(isinstance(p, Tensor) for p in data):
        if len(data) != 2:
            raise DataProblem(f"{name} has {len(data)} tensors.", hint="Give two: (x, y).")
        return data[0], data[1], None
    if isinstance(data, DataLoader) and not isinstance(data.dataset, IterableDataset):
        # In the order of its data set: the split and the batches here have an order of their own.
        size = data.batch_size
        if size is None:
            return _collected(map(_as_batch, data), name, padding, value)
        loader = DataLoader(data.dataset, size, collate_fn=data.collate_fn)
        return _collected(loader, name, padding, value)
    if isinstance(data, Dataset) and not isinstance(data, IterableDataset):
        samples = (data[i] for i in range(_length(data, name)))
        return _collected(map(_as_batch, samples), name, padding, value)
    if isinstance(data, IterableDataset):
        return _collected(map(_as_batch, data), name, padding, value)
    if callable(data) and not isinstance(data, Iterable):
        data = data()
        if isinstance(data, tuple) and len(data) == 2:
            return _pair(data, name, padding, value)
    if isinstance(data, Iterable) and not isinstance(data, str | bytes | Mapping):
        return _collected(data, name, padding, value)
    raise DataProblem(f"{name} is of type {type(data).__name__}: it has no samples.", hint=_SHAPE)


def _length(data: Any, name: str) -> int:
    try:
        return len(data)
    except TypeError as error:
        raise DataProblem(
            f"{name} is a {type(data).__name__} without a length.",
            hint="Give it __len__, or make it an IterableDataset.",
        ) from error


def _as_batch(sample: Any) -> tuple[Any, Any]:
    """A sample as a batch of one."""
    if isinstance(sample, tuple | list) and len(sample) == 2:
        x, y = (torch.as_tensor(part) for part in sample)
        return x[None], y[None]
    raise _no_pair(sample)


def _no_pair(found: Any) -> DataProblem:
    kind = type(found).__name__
    size = f" of {len(found)}" if isinstance(found, tuple | list) else ""
    return DataProblem(
        f"A sample or batch is a {kind}{size}, not a pair (x, y).",
        hint="Such data trains a module of your own: choose it as the subject.",
    )


def _collected(batches: Iterable[Any], name: str, padding: str, value: float) -> _Read:
    """All batches in one, each of their samples padded to the longest."""
    inputs, targets, size = [], [], 0
    for batch in batches:
        if not isinstance(batch, tuple | list) or len(batch) != 2:
            raise _no_pair(batch)
        x, y = (torch.as_tensor(part) for part in batch)
        size += x.nbytes
        if size > MAX_BYTES:
            raise DataProblem(
                f"The samples of {name} take more than {MAX_BYTES / 2**30:g} GiB.",
                hint="Train a module of your own on it: batches are then read one by one.",
            )
        inputs.append(x.detach())
        targets.append(y.detach())
    if not inputs:
        raise DataProblem(f"{name} has no sample.", hint="Is it a generator that was read before?")
    shapes = {tuple(y.shape[1:]) for y in targets}
    if len(shapes) > 1:
        raise DataProblem(f"The targets of {name} have different shapes: {_first_shapes(shapes)}.")
    rows = [row for x in inputs for row in x] if len({x.shape[1:] for x in inputs}) > 1 else []
    if not rows:
        return torch.cat(inputs), torch.cat(targets), None
    if padding == "refuse":
        shapes = {tuple(row.shape) for row in rows}
        raise DataProblem(
            f"The samples of {name} have different shapes: {_first_shapes(shapes)}.",
            hint="Set padding to right or left.",
        )
    together = padded(rows, padding == "left", value)
    return together, torch.cat(targets), np.array([len(row) for row in rows])


def _first_shapes(shapes: set[tuple[int, ...]]) -> str:
    first = sorted(shapes)[:3]
    return ", ".join(map(str, first)) + (", …" if len(shapes) > len(first) else "")


def _samples(x: Tensor, y: Tensor, target: str, name: str) -> Samples:
    if not x.ndim or not y.ndim or len(x) != len(y):
        raise DataProblem(
            f"x has shape {tuple(x.shape)} and y {tuple(y.shape)}: dim 0 counts the samples, and is"
            " the same for both."
        )
    if not len(x):
        raise DataProblem(f"{name} has no sample.")
    if x.is_complex() or y.is_complex() or x.is_sparse or y.is_sparse:
        raise DataProblem("Samples and targets are dense tensors of real numbers.")
    require_size(4 * x.numel(), name)
    x, y = x.detach().cpu(), y.detach().cpu()
    # Whole numbers are ids, but for uint8, which images have.
    is_ids = not x.is_floating_point() and x.dtype not in (torch.uint8, torch.bool)
    x = x.long() if is_ids else x.float() / 255 if x.dtype == torch.uint8 else as_floats(x)
    has_numbers = target == "numbers" or (target == "auto" and y.is_floating_point())
    y = as_floats(y) if has_numbers else y
    used = ((x if is_ids else x.float(), "x"), (y.float() if has_numbers else y, "y"))
    for values, what in used:
        are_finite = torch.isfinite(values).reshape(len(values), -1).all(1)
        if not bool(are_finite.all()):
            row = int(are_finite.logical_not().nonzero()[0])
            raise DataProblem(
                f"{what}, sample {row}: it has a number that is not finite as float32."
            )
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.ndim > 2:
        raise DataProblem(
            f"y has shape {tuple(y.shape)}; targets are labels (N,) or numbers (N, T)."
        )
    samples = np.ascontiguousarray(x.numpy() if x.ndim > 1 else x[:, None].numpy())
    if has_numbers:
        numbers = y.reshape(len(y), -1).numpy()
        return Samples(samples, numbers, (), tuple(f"{i}" for i in range(numbers.shape[1])))
    if y.ndim != 1:
        raise DataProblem(f"y has shape {tuple(y.shape)}; labels are (N,).")
    whole = y if y.dtype == torch.uint64 else y.long()  # int64 does not have the largest of these
    is_whole = not y.is_floating_point() or bool((whole == y).all())
    labels, classes = labelled((whole if is_whole else y.double()).numpy())
    return Samples(samples, labels, classes)
