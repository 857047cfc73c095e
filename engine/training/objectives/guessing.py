"""How far guessing gets: the accuracy of always guessing the most frequent class."""

from __future__ import annotations

from collections.abc import Iterator
from math import nan
from typing import Any, NamedTuple

import torch
from torch import Tensor

from .batch_parts import target_of

MAX_CLASSES = 1 << 16
"""Whole numbers above this are no classes."""


class Guess(NamedTuple):
    """`accuracy` is that of always guessing the most frequent class; NaN if it is not known, or if
    targets are no classes. `labels` is the number of labels that were counted."""

    accuracy: float = nan
    labels: int = 0


def guess_of(counts: Tensor) -> Guess:
    """The guess for classes with these numbers of labels, int64 (C,)."""
    labels = int(counts.sum())
    return Guess(int(counts.max()) / labels, labels) if labels else Guess()


class TargetsSeen:
    """`guess` is known after the first whole pass over batches."""

    def __init__(self) -> None:
        self.guess = Guess()
        self._is_over = False

    def of(self, batches: Iterator[Any]) -> Iterator[Any]:
        """These batches, of a whole pass; their targets are counted if no pass was before."""
        return batches if self._is_over else self._counted(batches)

    def _counted(self, batches: Iterator[Any]) -> Iterator[Any]:
        counts: Tensor | None = torch.zeros(1, dtype=torch.int64)
        for batch in batches:
            counts = None if counts is None else _added(counts, target_of(batch))
            yield batch
        self._is_over = True
        self.guess = Guess() if counts is None else guess_of(counts)


def _added(counts: Tensor, target: Any) -> Tensor | None:
    """The counts with those of a batch; None if its target is not of classes. Labels below 0, which
    losses ignore, do not count. Truth values, and floats that are 0 or 1, are classes if there is
    one a sample."""
    if not isinstance(target, Tensor) or not target.ndim or target.is_complex():
        return None
    labels = target.flatten()
    if labels.dtype == torch.bool or labels.is_floating_point():
        if len(labels) != len(target) or not ((labels == 0) | (labels == 1)).all():
            return None
        labels = labels.long()
    labels = labels[labels >= 0]
    if labels.numel() and int(labels.max()) >= MAX_CLASSES:
        return None
    found = labels.bincount(minlength=len(counts)).cpu()
    found[: len(counts)] += counts
    return found
