"""Two ways of doing one thing, measured in turns: the ratio, block by block, and how sure it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from math import comb
from statistics import median
from time import process_time
from types import ModuleType
from typing import NamedTuple
from unittest import mock


class Ratio(NamedTuple):
    """The median of ratios, with the bounds that hold the true median in 95 of 100 runs."""

    median: float
    low: float
    high: float

    def row(self, name: str) -> dict[str, float | str]:
        """The fields of a benchmark's row."""
        return {name: self.median, f"{name}_95": f"{self.low:.3f}-{self.high:.3f}"}


def ratio(ours: Sequence[float], others: Sequence[float], less: Sequence[float] = ()) -> Ratio:
    """Of `ours` to `others`, block by block: whatever slows a block slows both. With `less`, of
    `ours` above `less`."""
    less = less or [0.0] * len(ours)
    found = sorted((a - c) / b for a, b, c in zip(ours, others, less, strict=True))
    outside = _outside(len(found))
    return Ratio(median(found), found[outside], found[-1 - outside])


def _outside(count: int) -> int:
    """How many of the lowest values lie below the bounds for the median (by the binomial
    distribution of how many values are below it), and as many above."""
    share, place = 1 / 2**count, 0
    while place < (count - 1) // 2 and 2 * (share + comb(count, place + 1) / 2**count) <= 0.05:
        place += 1
        share += comb(count, place) / 2**count
    return place


class OwnTime:
    """A clock of the CPU time, in s, that passes in its `with` blocks: it stands still while others
    have their turn, as if one way ran alone."""

    def __init__(self) -> None:
        self._passed_s = 0.0
        self._began_s: float | None = None

    def __call__(self) -> float:
        began_s = self._began_s
        return self._passed_s + (0.0 if began_s is None else process_time() - began_s)

    def __enter__(self) -> None:
        self._began_s = process_time()

    def __exit__(self, *error: object) -> None:
        self._passed_s, self._began_s = self(), None


@contextmanager
def paced_by_cpu_time(
    *modules: ModuleType, clock: Callable[[], float] = process_time
) -> Iterator[None]:
    """What these modules do so many times a second of the wall clock, they do as often a second of
    CPU time, as on an idle machine: a busy one would have it done between fewer steps. `clock` is
    the clock of that time."""
    with ExitStack() as stack:
        for module in modules:
            stack.enter_context(mock.patch.object(module, "perf_counter", clock))
        yield
