"""Batches of any data that PyTorch's users have, and their move to a device."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from math import ceil
from typing import Any, TypeGuard

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import (
    DataLoader,
    Dataset,
    RandomSampler,
    Sampler,
    SequentialSampler,
    TensorDataset,
)
from torch.utils.data.dataloader import default_collate

from ...project.document import Loading
from ...recording.kernel_asserts import is_gpu, know_limits
from ...system.errors import LabError
from .loaders import NOTHING_GIVEN, Given, loader_of
from .rank_rows import Part, PartLoader, part_of_loader

_USUAL = Loading()
KINDS = (
    "Data is a Dataset, a DataLoader, a tuple of tensors, a list of samples, or a function that"
    " returns batches."
)


def batches_of(
    data: object,
    batch_size: int,
    loading: Loading = _USUAL,
    is_training: bool = True,
    given: Given = NOTHING_GIVEN,
) -> Iterable[Any]:
    """An iterable that gives the batches of an epoch each time it is iterated.

    A Dataset, a list of samples, a tensor or array of numpy, and a tuple or list of these of one
    length come as `loading` says: as from `DataLoader(dataset, batch_size, shuffle=True)` if it
    says nothing; not `is_training` in their own order, and all of them. With objects `given`,
    tensors come by a DataLoader, too. A DataLoader and any other iterable, such as a list of
    batches, stay what they are; a function is called for every epoch. Raises LabError for anything
    else.
    """
    given = given if is_training else given.in_validation
    shuffle, drops = is_training and loading.shuffle, is_training and loading.drop_last
    if (columns := as_columns(data)) is not None:
        if loading.workers is not None or given:
            return loader_of(TensorDataset(*columns), batch_size, loading, shuffle, drops, given)
        return _TensorBatches(columns, batch_size, shuffle, drops)
    if isinstance(data, Dataset) or has_samples(data):
        return loader_of(data, batch_size, loading, shuffle, drops, given)
    if callable(data) and not isinstance(data, Iterable):
        return _Calls(data)
    if isinstance(data, Iterable) and not isinstance(data, str | bytes | Mapping):
        if isinstance(data, Iterator):
            raise LabError(
                f"A {type(data).__name__} can be read once only, and training reads its data every"
                " epoch.",
                hint="Give the function that makes it, or a DataLoader.",
            )
        return data
    raise LabError(f"An object of type {type(data).__name__} has no batches.", hint=KINDS)


def as_columns(data: object) -> tuple[Tensor, ...] | None:
    """The tensors of data that is a tensor or array of numpy, a tuple or list of these, or a
    TensorDataset; None for any other. Raises LabError unless they have one number of samples."""
    if isinstance(data, Tensor | np.ndarray):
        data = (data,)
    if type(data) is TensorDataset:
        data = data.tensors
    if not isinstance(data, tuple | list) or not data or not all(map(_is_column, data)):
        return None
    columns = tuple(map(_as_tensor, data))
    if len({len(part) if part.ndim else 0 for part in columns}) > 1:
        shapes = " and ".join(str(tuple(part.shape)) for part in columns)
        raise LabError(
            f"The tensors of the data have different numbers of samples: {shapes}.",
            hint="Dim 0 counts the samples; it must be the same for all.",
        )
    return columns


def _is_column(part: object) -> bool:
    return isinstance(part, Tensor | np.ndarray)


def _as_tensor(part: Tensor | np.ndarray) -> Tensor:
    try:
        return torch.as_tensor(part)
    except TypeError as error:
        raise LabError(
            f"The data has an array of {part.dtype}, which no tensor can hold.",
            hint="Give numbers: array.astype('float32'), say.",
        ) from error


def has_samples(data: Any) -> TypeGuard[Dataset[Any]]:
    """Whether it is a list, or anything else by index, of samples: tuples or dicts with a part that
    is one number or a text. The parts of a batch have a number for each sample."""
    if not hasattr(data, "__getitem__") or not hasattr(data, "__len__"):
        return False
    if isinstance(data, str | bytes | Mapping) or not len(data):
        return False
    try:
        first = data[0]
    except (LookupError, TypeError):  # by other keys than numbers
        return False
    parts = tuple(first.values()) if isinstance(first, Mapping) else first
    return isinstance(parts, tuple | list) and any(map(_is_single, parts))


def _is_single(part: object) -> bool:
    return isinstance(part, int | float | str | np.generic) or (
        isinstance(part, Tensor) and not part.ndim
    )


def in_order(
    data: object, batch_size: int, loading: Loading = _USUAL, given: Given = NOTHING_GIVEN
) -> Iterable[Any]:
    """As `batches_of`, but a Dataset or tensors come in their own order, as for validation."""
    return batches_of(data, batch_size, loading, is_training=False, given=given)


class _TensorBatches:
    """The batches that a DataLoader of a TensorDataset gives, with the same random numbers drawn.
    It takes and stacks the samples one by one, which lasts longer than a small model's step; here
    the rows of a batch are taken at once."""

    def __init__(
        self, tensors: Sequence[Tensor], batch_size: int, shuffle: bool, drop_last: bool
    ) -> None:
        self.dataset = TensorDataset(*tensors)
        self._size, self._drops = batch_size, drop_last
        if shuffle and not len(self.dataset):
            raise LabError("The data has no samples.", hint=KINDS)
        order = _Order(len(self.dataset), shuffle)
        # What it draws besides is drawn, too.
        self._orders = DataLoader(_Rows(), None, sampler=order)  # pyright: ignore[reportArgumentType]

    def __len__(self) -> int:
        whole = len(self.dataset) // self._size
        return whole if self._drops else ceil(len(self.dataset) / self._size)

    def __iter__(self) -> Iterator[list[Tensor]]:
        return self._batches(iter(self._orders))

    def _batches(self, orders: Iterator[Tensor]) -> Iterator[list[Tensor]]:
        for order in orders:
            for rows in order.split(self._size)[: len(self)]:
                yield self._taken(rows)

    def _taken(self, rows: Tensor) -> list[Tensor]:
        # Indexing takes up to four times as long.
        return [tensor.index_select(0, rows) for tensor in self.dataset.tensors]

    def parts(self, rank: int, size: int) -> Iterator[Part]:
        """The rows of one rank of each batch."""
        for order in iter(self._orders):
            for rows in order.split(self._size)[: len(self)]:
                own = rows[rank::size]
                yield Part(self._taken(own if len(own) else rows[:1]), len(own), len(rows))


class _TensorParts:
    """The rows of one rank of each batch of tensors."""

    def __init__(self, batches: _TensorBatches, rank: int, size: int) -> None:
        self._batches, self._place = batches, (rank, size)

    def __iter__(self) -> Iterator[Part]:
        return self._batches.parts(*self._place)


def is_on(batches: Iterable[Any], device: torch.device | None) -> bool:
    """Whether all tensors of these batches are known to be on the device."""
    if not isinstance(batches, _TensorBatches) or device is None or is_gpu(device):
        return False
    return all(tensor.device == device for tensor in batches.dataset.tensors)


def repeats_surely(batches: object) -> bool:
    """Whether torch alone makes the batches, of tensors in memory."""
    if isinstance(batches, _TensorBatches):
        return True
    if type(batches) is not DataLoader or type(batches.dataset) is not TensorDataset:
        return False
    sampler = type(getattr(batches.batch_sampler, "sampler", None))
    return sampler in (RandomSampler, SequentialSampler) and batches.collate_fn is default_collate


def parts_of(batches: Iterable[Any], rank: int, size: int) -> _TensorParts | PartLoader | None:
    """What gives the rows of rank r of N, r, r + N, ..., of each of these batches; None for data
    that gives whole batches only."""
    if isinstance(batches, _TensorBatches):
        return _TensorParts(batches, rank, size)
    return part_of_loader(batches, rank, size)


class _Order(Sampler[Tensor]):
    """The numbers of all rows, as one tensor, in the order of a RandomSampler's if `shuffled`."""

    def __init__(self, rows: int, shuffled: bool) -> None:
        self._rows, self._shuffled = rows, shuffled

    def __iter__(self) -> Iterator[Tensor]:
        if not self._shuffled:
            yield torch.arange(self._rows)
            return
        seed = int(torch.empty((), dtype=torch.int64).random_())
        yield torch.randperm(self._rows, generator=torch.Generator().manual_seed(seed))


class _Rows(Dataset[Tensor]):
    """The rows' numbers themselves."""

    def __getitem__(self, rows: Tensor) -> Tensor:
        return rows


class _Calls:
    """The batches that a function returns, called for each epoch."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def __iter__(self) -> Iterator[Any]:
        return iter(self._function())


def generators_of(*loaders: object) -> tuple[torch.Generator, ...]:
    """The generators of the loaders' own, and of their samplers and data sets, each once."""
    found: dict[int, torch.Generator] = {}
    for loader in loaders:
        parts = [getattr(loader, name, None) for name in ("sampler", "batch_sampler", "dataset")]
        inner = getattr(parts[1], "sampler", None), getattr(parts[2], "dataset", None)
        for part in (loader, *parts, *inner):
            for value in getattr(part, "__dict__", {}).values():
                if isinstance(value, torch.Generator):
                    found[id(value)] = value
    return tuple(found.values())


def length_of(batches: Iterable[Any]) -> int | None:
    """The number of batches; None if the data does not say."""
    if not isinstance(batches, Sized):
        return None
    try:
        return len(batches)
    except (TypeError, NotImplementedError):  # a DataLoader over an IterableDataset
        return None


def skipped(batches: Iterable[Any], first: int) -> Iterator[Any]:
    """The batches from number `first` (0-based) on; those before it are read now."""
    iterator = iter(batches)
    for _ in itertools.islice(iterator, first):
        pass
    return iterator


def samples_in(batch: Any) -> int:
    """The size of dimension 0 of the first tensor in the batch; 1 without a tensor."""
    if type(batch) is list and batch and type(batch[0]) is Tensor and batch[0].ndim:
        return batch[0].shape[0]  # what most data gives
    first = next((tensor for tensor in tensors_in(batch) if tensor.ndim), None)
    return 1 if first is None else len(first)


def tensors_in(value: Any) -> Iterator[Tensor]:
    """The tensors in nested tuples, lists, dicts and packed sequences, in their order."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from tensors_in(item)
    elif isinstance(value, tuple | list):  # a PackedSequence is a tuple too
        for item in value:
            yield from tensors_in(item)
    elif dataclass_fields := getattr(value, "__dataclass_fields__", None):
        for name in dataclass_fields:
            yield from tensors_in(getattr(value, name))


def placed(batch: Any, device: torch.device) -> Any:
    """The batch `moved` to the device. Of labels and indices that go to a GPU the limits are read
    before."""
    there = moved(batch, device)
    if is_gpu(device):
        for copy, source in zip(tensors_in(there), tensors_in(batch), strict=False):
            know_limits(copy, source)
    return there


def moved(value: Any, device: torch.device) -> Any:
    """The value with its tensors on the device; pinned memory is copied without waiting."""
    if type(value) is Tensor and value.device == device:
        return value
    if type(value) is list:
        return [moved(item, device) for item in value]
    if hasattr(value, "to"):  # a tensor, a packed sequence, a batch of a library's own
        return value.to(device, non_blocking=isinstance(value, Tensor) and value.is_pinned())
    if isinstance(value, Mapping):
        return {key: moved(item, device) for key, item in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(moved(item, device) for item in value))
    if isinstance(value, tuple | list):
        return type(value)(moved(item, device) for item in value)
    return value
