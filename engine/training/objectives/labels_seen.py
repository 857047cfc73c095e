"""The labels and indices of batches on a GPU, where one that is out of range ends all use of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ...recording.kernel_asserts import IGNORED, KernelChecks, known_limits, limits_but_ignored
from .batches import tensors_in


class LabelsSeen:
    """`with seen.checked(batch):` around each step on a batch: an index or a label out of range
    raises what it raises on the CPU, before the GPU gets it.

    The numbers of a batch are read on the CPU, before it is moved (see `placed`). Only where a
    tensor has smaller or larger ones than in the steps before, whose numbers were in range, are the
    calls of the step checked. What a step makes of the batch is read there too, which waits for
    the GPU. Not covered is data that is on it from the start, what a step makes up, and labels
    between the classes and an ignore_index that is neither next to them nor torch's own.
    """

    def __init__(self) -> None:
        self._limits: dict[tuple[int, bool], tuple[float, float]] = {}
        """Of each tensor, by its place in the batch and whether it has IGNORED: the numbers that
        were in range."""

    @contextmanager
    def checked(self, batch: Any) -> Iterator[None]:
        beyond: dict[tuple[int, bool], tuple[float, float]] = {}
        for place, t in enumerate(tensors_in(batch)):
            found = known_limits(t)
            if found is None:
                continue
            key = place, found[0] == IGNORED
            if key[1]:
                found = limits_but_ignored(t)
            least, most = self._limits.get(key, found)
            if key not in self._limits or found[0] < least or found[1] > most:
                beyond[key] = min(least, found[0]), max(most, found[1])
        if not beyond:
            yield
            return
        with KernelChecks():
            yield
        self._limits.update(beyond)
