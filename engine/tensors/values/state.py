"""What the views of values keep between commands: long looks through large tensors."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import Generic, TypeVar

from torch import Tensor

from .line_points import Lines
from .statistics import Statistics

W = TypeVar("W", Lines, Statistics)

MOMENT_S = 0.015
"""Seconds of looking through a tensor before the next command has its turn: less than a frame."""


@dataclass
class UnderWay(Generic[W]):
    """A look through all of the tensor `of`, a moment at each command. `key` is the question."""

    key: tuple[object, ...]
    of: Tensor
    work: W
    note: str

    def answers(self, key: tuple[object, ...], t: Tensor) -> bool:
        return self.key == key and self.of is t

    def advance(self) -> bool:
        """Work for MOMENT_S; whether all is done."""
        until = perf_counter() + MOMENT_S
        while self.work.advance():
            if perf_counter() > until:
                break
        return self.work.done == self.work.total


@dataclass
class ValuesState:
    """Looks that have not come to their end; a finished one is dropped with its tensor."""

    statistics: UnderWay[Statistics] | None = None
    lines: UnderWay[Lines] | None = None
