"""torch's DataLoader with the arguments of a set-up; batches of samples of different lengths."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, IterableDataset
from torch.utils.data import Dataset as TorchDataset
from torch.utils.data.dataloader import default_collate

from ...datasets.source import check_padding
from ...project.document import Loading
from ...system.errors import LabError


@dataclass(frozen=True)
class Padding:
    """`pad_batch` as the collate_fn of a DataLoader. Raises LabError for samples that it cannot
    pad."""

    side: str
    value: float
    gives: str

    def __call__(self, samples: Sequence[Any]) -> Any:
        if isinstance(samples[0], Mapping):
            raise LabError(
                "Samples that are dicts cannot be padded here.",
                hint="Give samples (x, y), or a DataLoader with a collate_fn of your own.",
            )
        is_bare = not isinstance(samples[0], tuple | list)
        first, *others = [samples] if is_bare else zip(*samples, strict=True)
        check_padding([torch.as_tensor(x) for x in first])
        for part in others:
            if isinstance(part[0], Tensor) and len({each.shape for each in part}) > 1:
                check_padding(part)
        return pad_batch(samples, self.side, self.value, self.gives)


def pad_batch(samples: Sequence[Any], side: str, value: float, gives: str) -> Any:
    """A batch of samples (x, ...) whose x, of shape (length, ...), are padded with `value` to the
    longest of the batch. Behind x come its "lengths", int64 (B,), or a "mask", bool (B, longest),
    which is True at the elements that are real; or neither. Other parts are padded where they
    differ: whole numbers with -100, which torch's losses ignore."""
    is_bare = not isinstance(samples[0], tuple | list)
    first, *others = [samples] if is_bare else zip(*samples, strict=True)
    x = [torch.as_tensor(each) for each in first]
    batch: list[Any] = [pad_sequence(x, True, value, side)]
    lengths = torch.tensor([len(each) for each in x], device=batch[0].device)
    if gives == "lengths":
        batch.append(lengths)
    if gives == "mask":
        places = torch.arange(batch[0].shape[1], device=lengths.device)
        batch.append((places.flip(0) if side == "left" else places) < lengths[:, None])
    for part in map(list, others):
        if isinstance(part[0], Tensor) and len({each.shape for each in part}) > 1:
            filler = value if part[0].is_floating_point() else -100
            batch.append(pad_sequence(part, True, filler, side))
        else:
            batch.append(default_collate(part))
    return batch[0] if is_bare and len(batch) == 1 else batch


@dataclass(frozen=True, eq=False)
class Given:
    """Arguments of a DataLoader that are objects of the user's code; None for torch's own. A
    sampler may be a function, or a class, that makes one of the data set."""

    sampler: Any = None
    batch_sampler: Any = None
    worker_init_fn: Callable[[int], object] | None = None
    generator: torch.Generator | None = None
    collate_fn: Callable[[Any], Any] | None = None

    def __bool__(self) -> bool:
        return any(value is not None for value in vars(self).values())

    @property
    def in_validation(self) -> Given:
        """The objects that also serve validation: all but those that decide the order of the
        samples."""
        return Given(worker_init_fn=self.worker_init_fn, collate_fn=self.collate_fn)


NOTHING_GIVEN = Given()


def given_by(loading: Loading, find: Callable[[str], object]) -> Given:
    """What the expressions of `loading` stand for, as `find` says. Raises LabError for objects that
    a DataLoader cannot take, or not together; and what `find` raises."""
    if loading.sampler and loading.batch_sampler:
        raise LabError(
            "sampler and batch_sampler each say which samples come: a DataLoader takes one.",
            hint="Leave one of them empty.",
        )
    if loading.collate_fn and loading.padding != "none":
        raise LabError(
            "collate_fn and padding each make a batch of samples.",
            hint="Set padding to none, or leave collate_fn empty.",
        )
    found: dict[str, Any] = {name: find(text) for name, text in loading.given.items()}
    for name, value in found.items():
        wanted = _WANTED[name]
        if not _fits(name, value):
            raise LabError(
                f"{name} is {loading.given[name]}, of type {type(value).__name__}: it must be"
                f" {wanted}.",
                hint="Name another object of your code, or leave the field empty.",
            )
    return Given(**found)


_WANTED = {
    "sampler": "a Sampler, another object that gives indices each time it is iterated, or a"
    " function of the data set that makes one",
    "batch_sampler": "an object that gives lists of indices each time it is iterated, or a function"
    " of the data set that makes one",
    "worker_init_fn": "a function of the worker's number",
    "generator": "a torch.Generator on the CPU",
    "collate_fn": "a function of a list of samples",
}


def _fits(name: str, value: object) -> bool:
    if name == "generator":
        return isinstance(value, torch.Generator) and value.device.type == "cpu"
    if name in ("sampler", "batch_sampler"):
        return (isinstance(value, Iterable) or callable(value)) and not isinstance(value, Iterator)
    return callable(value)


def loader_of(
    dataset: TorchDataset,
    batch_size: int,
    loading: Loading,
    shuffle: bool,
    drop_last: bool,
    given: Given = NOTHING_GIVEN,
) -> DataLoader[Any]:
    """A DataLoader of the data set as `loading` says, with the objects `given`; an IterableDataset
    has an order of its own, and so has a sampler. Raises LabError for what torch refuses."""
    arguments = arguments_of(loading)
    if loading.padding != "none":
        arguments["collate_fn"] = Padding(loading.padding, loading.padding_value, loading.gives)
    for name in ("worker_init_fn", "generator", "collate_fn"):
        if (value := getattr(given, name)) is not None:
            arguments[name] = value
    if given.batch_sampler is not None:
        arguments["batch_sampler"] = _sampler(given.batch_sampler, dataset)
    else:
        arguments |= {"batch_size": batch_size, "drop_last": drop_last}
        if given.sampler is not None:
            arguments["sampler"] = _sampler(given.sampler, dataset)
        elif not isinstance(dataset, IterableDataset):
            arguments["shuffle"] = shuffle
    try:
        return DataLoader(dataset, **arguments)
    except (ValueError, TypeError) as error:
        if not given:
            raise
        raise LabError(
            f"The DataLoader does not take these arguments. torch says: {error}",
            hint="Change what the fields of the batches name.",
        ) from error


def _sampler(given: Any, dataset: TorchDataset) -> Any:
    return given if isinstance(given, Iterable) else given(dataset)


def arguments_of(loading: Loading) -> dict[str, Any]:
    """The arguments of workers and memory. Without workers, those of workers are torch's own."""
    arguments: dict[str, Any] = {"num_workers": loading.workers or 0}
    if loading.workers:
        arguments["prefetch_factor"] = loading.prefetch_factor
        arguments["persistent_workers"] = loading.persistent_workers
        arguments["timeout"] = loading.timeout
        arguments["in_order"] = loading.in_order
        if loading.start_method != "default":
            arguments["multiprocessing_context"] = loading.start_method
    if loading.pin_memory and torch.cuda.is_available():
        arguments["pin_memory"] = True
    return arguments


def repeats(*loaders: object) -> bool:
    """Whether the batches come in the order of their samples each time: torch's DataLoader with
    in_order off gives a batch as soon as one of several workers has it."""
    return all(
        loader.in_order or loader.num_workers < 2
        for loader in loaders
        if isinstance(loader, DataLoader)
    )


def end_workers(*loaders: object) -> None:
    """End the processes of DataLoaders that keep them from epoch to epoch."""
    for loader in loaders:
        if isinstance(loader, DataLoader) and loader.persistent_workers:
            loader._iterator = None
