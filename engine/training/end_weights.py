"""The weights that the model of a run that has ended can have: the last, the best, the averaged."""

from __future__ import annotations

from torch import Tensor

from ..protocol import WhichWeights
from ..system.errors import LabError
from .loop import TrainingLoop


class EndWeights:
    """The weights at the end of one loop. Once others are chosen, the last ones are remembered."""

    def __init__(self, loop: TrainingLoop) -> None:
        self._loop = loop
        self._last: dict[str, Tensor] | None = None

    def choose(self, which: WhichWeights) -> str:
        """Load these weights into the model; returns words for them. Raises LabError if the run has
        none."""
        loop, model, best, averaged = self._loop, self._loop.model, self._loop.best, None
        if loop.averaged is not None and loop.averaged.has_begun:
            averaged = loop.averaged
        if which == "averaged" and averaged is None:
            raise LabError("The run has averaged no weights.", hint="Choose an averaging first.")
        if which == "best" and best is None:
            raise LabError("The run has no best epoch.", hint="It must end one epoch at least.")
        if self._last is None:
            self._last = {n: t.detach().clone() for n, t in model.state_dict().items()}
        if which == "averaged" and averaged is not None:
            model.load_state_dict(averaged.weights)
            return f"The model has the averaged weights ({loop.setup.averaging.kind})."
        if which == "best" and best is not None:
            model.load_state_dict(best.weights)
            return f"The model has the weights of epoch {best.epoch:,}, the best by {best.figure}."
        model.load_state_dict(self._last)
        return f"The model has the weights with which the run ended, at step {loop.step:,}."
