"""Where a run is held: its watchpoints, and the search for the step in which it diverges."""

from __future__ import annotations

from collections.abc import Iterator

from torch import nn

from ...project.document import HoldWhen
from ...protocol import Hold
from ...restoring.randomness import RandomStream
from ..optimization.training_step import TrainingStep
from .divergence import Divergence
from .watchpoints import Watchpoints


class Holding:
    """`hold` says why a run of `model` is held where it stands; None if it is not. While
    `is_on_way` is set, limits are looked at as ever, so that they fire later as they would have,
    but hold nothing. `random` is the run's.
    """

    def __init__(self, limits: HoldWhen, model: nn.Module, random: RandomStream) -> None:
        self._model, self._random = model, random
        self.hold: Hold | None = None
        self.is_on_way = False
        self._divergence: Divergence | None = None
        self.set_limits(limits)

    def set_limits(self, limits: HoldWhen) -> None:
        """Hold for these reasons from the next step on."""
        watchpoints = Watchpoints(limits, self._model)
        self._watchpoints = watchpoints if watchpoints.are_set else None

    def look_for_divergence(self) -> None:
        """Hold at the first phase that gives a number which is not finite."""
        self._divergence = Divergence(self._model, self._random)

    @property
    def looks_for_divergence(self) -> bool:
        return self._divergence is not None

    @property
    def looks(self) -> bool:
        """Whether steps are looked at."""
        return self._watchpoints is not None or self._divergence is not None

    def phases(self, step: TrainingStep) -> Iterator[None]:
        """Run the step's phases, and look at each. Where `hold` is set after one, the run is to be
        held there."""
        phases = step.phases() if self._watchpoints is None else self._watchpoints.seen(step)
        if self._watchpoints is not None:
            self._watchpoints.begin(step.number)
        if self._divergence is not None:
            self._divergence.begin()
        for _ in phases:
            self._look(step)
            yield
        self._look(step)
        if self._watchpoints is not None:
            self._hold(self._watchpoints.end(step))

    def leave(self) -> None:
        """The run goes on. Raises Diverged behind a number that is not finite."""
        self.hold = None
        if self._divergence is not None:
            self._divergence.raise_found()

    def _look(self, step: TrainingStep) -> None:
        if self._watchpoints is not None:
            self._hold(self._watchpoints.after_phase(step))
        if self._divergence is not None:
            self.hold = self._divergence.after_phase(step) or self.hold

    def _hold(self, hold: Hold | None) -> None:
        if hold is not None and not self.is_on_way:
            self.hold = hold
