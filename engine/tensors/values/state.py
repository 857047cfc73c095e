"""The state of the views of values between commands: large tensors that are being read."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import Generic, TypeVar

from torch import Tensor

from .line_points import LinePoints
from .statistics import Statistics

W = TypeVar("W", LinePoints, Statistics)

MOMENT_S = 0.015
"""Seconds of reading before the next command is handled: less than a frame."""


@dataclass
class ReadInPieces(Generic[W]):
    """A whole tensor, `of`, that is read in pieces. `key` identifies the question it answers."""

    key: tuple[object, ...]
    of: Tensor
    work: W
    note: str

    def answers(self, key: tuple[object, ...], t: Tensor) -> bool:
        return self.key == key and self.of is t

    def advance(self) -> bool:
        """Read for MOMENT_S; returns whether all is read."""
        until = perf_counter() + MOMENT_S
        while self.work.advance():
            if perf_counter() > until:
                break
        return self.work.done == self.work.total


@dataclass
class ValuesState:
    """The reads that are not finished; a finished one is dropped with its tensor."""

    statistics: ReadInPieces[Statistics] | None = None
    lines: ReadInPieces[LinePoints] | None = None
