"""Facts of an object, kept while it lives."""

from __future__ import annotations

import weakref
from typing import Generic, TypeVar

V = TypeVar("V")

MIN_LIMIT = 1_000
"""How many objects are remembered before the dead among them are forgotten."""


class Remembered(Generic[V]):
    """A mapping by identity that keeps no key alive. However many objects come and go, it holds
    little more than those that live."""

    def __init__(self) -> None:
        self.values: dict[int, tuple[weakref.ref, V]] = {}
        """By the id of a key; the key may be dead, and another may have its id."""
        self._limit = MIN_LIMIT

    def __len__(self) -> int:
        return len(self.values)

    def get(self, key: object) -> V | None:
        found = self.values.get(id(key))
        return found[1] if found is not None and found[0]() is key else None

    def set(self, key: object, value: V) -> None:
        if len(self.values) >= self._limit:
            self.forget_the_dead()
        self.values[id(key)] = weakref.ref(key), value

    def forget(self, key: object) -> None:
        self.values.pop(id(key), None)

    def forget_the_dead(self) -> None:
        self.values = {key: each for key, each in self.values.items() if each[0]() is not None}
        self._limit = max(MIN_LIMIT, 2 * len(self.values))
