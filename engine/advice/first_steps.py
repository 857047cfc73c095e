"""Checks the first steps of a run for mistakes; later steps run unchecked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from torch import nn

from ..loops.hooks import steps_shown
from ..protocol import Finding
from ..recording.light.light_recorder import LightRecorder
from .adviser import Adviser

STEPS = 65
"""The number of optimizer steps that are checked: the last of them can show dead units. More steps
are checked where those have too few samples to tell."""


class FirstSteps:
    """`with first.looked_over():` around each step of a run that trains `model`."""

    def __init__(self, model: nn.Module, tell: Callable[[Finding], None]) -> None:
        self._adviser = Adviser(tell, {"model": model})
        self._is_over = False

    @contextmanager
    def looked_over(self) -> Iterator[None]:
        if self._adviser.steps >= STEPS and not self._adviser.is_short:
            self.end()
            yield
            return
        with steps_shown(self._adviser), LightRecorder(told=self._adviser.told, max_calls=1):
            yield

    def end(self) -> None:
        """The run has ended, or enough of it was seen."""
        if not self._is_over:
            self._is_over = True
            self._adviser.end()
