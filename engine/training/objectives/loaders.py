"""torch's DataLoader with the arguments of a set-up; batches of samples of different lengths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader, IterableDataset
from torch.utils.data import Dataset as TorchDataset
from torch.utils.data.dataloader import default_collate

from ...datasets.source import padded
from ...errors import LabError
from ...project.document import Loading

_IGNORED = -100
"""What targets that are sequences of classes are padded with: torch's losses ignore it."""


@dataclass(frozen=True)
class Padding:
    """Makes a batch of samples (x, ...) whose x have different lengths: `padded` to the longest of
    the batch. Behind x come its `lengths`, int64 (B,), or a `mask`, bool (B, longest), which is
    True at the elements that are real; or neither. Other parts are padded where they differ."""

    on_the_left: bool
    value: float
    gives: str

    def __call__(self, samples: Sequence[Any]) -> Any:
        if isinstance(samples[0], Mapping):
            raise LabError(
                "Samples that are dicts cannot be padded here.",
                hint="Give samples (x, y), or a DataLoader with a collate_fn of your own.",
            )
        if not isinstance(samples[0], tuple | list):
            parts = self._sequences(samples)
            return parts[0] if len(parts) == 1 else parts
        first, *others = zip(*samples, strict=True)
        return [*self._sequences(first), *map(self._part, others)]

    def _sequences(self, column: Sequence[Any]) -> list[Tensor]:
        x, lengths = padded([torch.as_tensor(x) for x in column], self.on_the_left, self.value)
        if self.gives == "lengths":
            return [x, lengths]
        if self.gives == "mask":
            places = torch.arange(x.shape[1])
            places = places.flip(0) if self.on_the_left else places
            return [x, places < lengths[:, None]]
        return [x]

    def _part(self, column: Sequence[Any]) -> Any:
        if isinstance(column[0], Tensor) and len({part.shape for part in column}) > 1:
            value = self.value if column[0].is_floating_point() else _IGNORED
            return padded(column, self.on_the_left, value)[0]
        return default_collate(list(column))


def loader_of(
    dataset: TorchDataset, batch_size: int, loading: Loading, shuffle: bool, drop_last: bool
) -> DataLoader[Any]:
    """A DataLoader of the data set as `loading` says; an IterableDataset has an order of its
    own."""
    arguments = arguments_of(loading)
    if loading.padding != "none":
        on_the_left = loading.padding == "left"
        arguments["collate_fn"] = Padding(on_the_left, loading.padding_value, loading.gives)
    if not isinstance(dataset, IterableDataset):
        arguments["shuffle"] = shuffle
    return DataLoader(dataset, batch_size, drop_last=drop_last, **arguments)


def arguments_of(loading: Loading) -> dict[str, Any]:
    """The arguments of workers and memory. Without workers, those of workers are torch's own."""
    arguments: dict[str, Any] = {"num_workers": loading.workers or 0}
    if loading.workers:
        arguments["prefetch_factor"] = loading.prefetch_factor
        arguments["persistent_workers"] = loading.persistent_workers
        arguments["timeout"] = loading.timeout
        if loading.start_method != "default":
            arguments["multiprocessing_context"] = loading.start_method
    if loading.pin_memory and torch.cuda.is_available():
        arguments["pin_memory"] = True
    return arguments


def end_workers(*loaders: object) -> None:
    """End the processes of DataLoaders that keep them from epoch to epoch."""
    for loader in loaders:
        if isinstance(loader, DataLoader) and loader.persistent_workers:
            loader._iterator = None
