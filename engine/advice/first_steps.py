"""The first steps of a run are looked over; later ones run as they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from torch import nn

from ..loops.hooks import steps_shown
from ..protocol import Finding
from ..recording.light.light_recorder import LightRecorder
from .adviser import Adviser

STEPS = 24
"""So many steps are looked over."""


class FirstSteps:
    """`with first.looked_over():` around each step of a run that trains `model`."""

    def __init__(self, model: nn.Module, tell: Callable[[Finding], None]) -> None:
        self._adviser = Adviser(tell, {"model": model})
        self._steps = 0

    @contextmanager
    def looked_over(self) -> Iterator[None]:
        if self._steps >= STEPS:
            yield
            return
        self._steps += 1
        with steps_shown(self._adviser), LightRecorder(told=self._adviser.told, max_calls=1):
            yield
        if self._steps == STEPS:
            self._adviser.end()

    def end(self) -> None:
        """The run has ended."""
        if self._steps < STEPS:
            self._steps = STEPS
            self._adviser.end()
