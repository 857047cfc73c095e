"""The batches of the user's own data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch

from ...importing.folder_modules import FolderModules
from ...project.document import DataSetup, Loading
from .batches import (
    batches_of,
    generators_of,
    in_order,
    is_on,
    length_of,
    parts_of,
    placed,
    repeats_surely,
    skipped,
)
from .guessing import Guess, TargetsSeen
from .held_out import part_of, rows_of
from .loaders import NOTHING_GIVEN, Given, end_workers, repeats
from .rank_rows import Part, PartLoader
from .seen_batches import SeenBatches


class CodeData:
    """The batches of `data` (see `batches_of`), and of `validation` if it is not None; `loading`
    says how they are taken, with which objects `given`. Without validation data, that of `share`
    holds out a part of the data. `modules` and `validation_modules` are those of the files that the
    two are from, if an expression names files. Batches are moved to the device of a run, and stay
    where they are without one. Raises LabError for data that has no batches, or cannot be split."""

    def __init__(
        self,
        data: object,
        validation: object | None,
        batch_size: int,
        loading: Loading | None = None,
        given: Given = NOTHING_GIVEN,
        share: DataSetup | None = None,
        modules: FolderModules | None = None,
        validation_modules: FolderModules | None = None,
    ) -> None:
        self._modules, self._validation_modules = modules, validation_modules
        loading = loading or Loading()
        self.data, self.validation, self.given = data, validation, given
        self.rows = rows_of(data, share) if validation is None and share is not None else None
        if self.rows is not None:
            validation = part_of(data, self.rows.validation)
            data = part_of(data, self.rows.training)
        self._batches = batches_of(data, batch_size, loading, given=given)
        self._validation: Iterable[Any] = (
            () if validation is None else in_order(validation, batch_size, loading, given)
        )
        self.generators = generators_of(self._batches, self._validation)
        self.draws_by_code = not repeats_surely(self._batches)
        self._validates = validation is not None
        self._targets = TargetsSeen()
        self._parts: Iterable[Part] | None = None
        self._device: torch.device | None = None
        self.validation_samples = 0 if validation is None else _samples(self._validation)

    @property
    def guess(self) -> Guess:
        return self._targets.guess

    @property
    def batches_per_epoch(self) -> int | None:
        return length_of(self._batches)

    @property
    def repeats(self) -> bool:
        return repeats(self._batches, self._validation)

    def to(self, device: torch.device) -> None:
        self._device = device

    def batches(self, epoch: int, first: int, seen: SeenBatches | None = None) -> Iterator[Any]:
        def begin() -> Iterator[Any]:
            batches = self._batches
            if seen is not None and self.draws_by_code and repeats(batches):  # else it is told
                batches = seen.noted(batches, epoch, self.data)
            return skipped(batches, first)

        found = _iterated(self._modules, begin)
        is_judged = not self._validates and not first
        found = self._targets.of(found) if is_judged else found
        return found if is_on(self._batches, self._device) else map(self._moved, found)

    def validation_batches(self) -> Iterator[Any]:
        found = _iterated(self._validation_modules, lambda: iter(self._validation))
        return map(self._moved, self._targets.of(found))

    def divide(self, rank: int, size: int) -> bool:
        """Whether the data can load the rows of one rank alone; if so, `parts` gives them."""
        self._parts = parts_of(self._batches, rank, size)
        return self._parts is not None

    def parts(self, first: int) -> Iterator[Part]:
        """As `batches`, of each batch the rows of the rank."""
        parts = self._parts
        assert parts is not None
        found = _iterated(self._modules, lambda: skipped(parts, first))
        return (part._replace(batch=self._moved(part.batch)) for part in found)

    def _moved(self, batch: Any) -> Any:
        return batch if self._device is None else placed(batch, self._device)

    def close(self) -> None:
        own = self._parts.loader if isinstance(self._parts, PartLoader) else None
        end_workers(self._batches, self._validation, own)


def _iterated(modules: FolderModules | None, begin: Callable[[], Iterator[Any]]) -> Iterator[Any]:
    return begin() if modules is None else modules.iterated(begin)


def _samples(batches: Iterable[Any]) -> int:
    """The number of samples, if the data says it; else that of its batches, or 0."""
    dataset = getattr(batches, "dataset", None)
    try:
        return len(dataset) if dataset is not None else length_of(batches) or 0
    except TypeError:
        return 0
