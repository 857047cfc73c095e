"""The storages that operations make, while they live."""

from __future__ import annotations

import weakref
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor

from ...system.private_torch import TorchDispatchMode, tree_leaves

T = TypeVar("T")


class LivingStorages(TorchDispatchMode, Generic[T]):
    """In this context each storage that an operation makes is followed until it is freed. A
    subclass says what is known of one that is `made`, and gets that back when it is `freed`."""

    def __init__(self) -> None:
        super().__init__()
        self._living: dict[int, tuple[T, weakref.ref[torch.UntypedStorage]]] = {}

    @abstractmethod
    def made(self, storage: torch.UntypedStorage) -> T: ...

    @abstractmethod
    def freed(self, known: T) -> None: ...

    def known_of(self, storage: torch.UntypedStorage) -> T | None:
        """What is known of a storage that is followed and lives; else None."""
        found = self._living.get(storage._cdata)
        return None if found is None else found[0]

    def known(self) -> Iterator[T]:
        """What is known of each storage that lives."""
        return (known for known, _ in list(self._living.values()))

    def follow(self, storage: torch.UntypedStorage) -> T:
        key, known = storage._cdata, self.made(storage)

        def end(ref: object) -> None:
            # Another storage may have the address already.
            if key in self._living and self._living[key][1] is ref:
                del self._living[key]
            self.freed(known)

        self._living[key] = known, weakref.ref(storage, end)
        return known

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        own = {part.untyped_storage()._cdata for part in plain_tensors(args, kwargs)}
        for tensor in plain_tensors(result):
            storage = tensor.untyped_storage()
            # Else a view, or written in place.
            if storage._cdata not in own and self.known_of(storage) is None:
                self.follow(storage)
        return result


def plain_tensors(*values: Any) -> Iterator[Tensor]:
    """The tensors that have one storage."""
    for leaf in tree_leaves(values):
        if isinstance(leaf, Tensor) and leaf.layout is torch.strided:
            yield leaf
