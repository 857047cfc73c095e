"""The step in which a run diverges: each phase is looked at, until one is not finite."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor, nn

from ...protocol import Hold
from ...restoring.randomness import RandomStream
from ..figures.metrics import Diverged
from ..optimization.training_step import TrainingStep
from .origin import Origin, is_finite, origin_of_gradient, origin_of_loss

_UNKNOWN = Origin(
    "Its forward and backward, run once more, gave finite numbers: they do not repeat exactly.",
    "Look at the weights and the batch in Tensors and Model.",
)


class Divergence:
    """Looks at all phases of the steps of `model`. It costs a copy of the random states and a look
    at each gradient per step, so it is for a run that repeats steps to find the one at fault."""

    def __init__(self, model: nn.Module, random: RandomStream) -> None:
        self._model, self._random = model, random
        self._states: list[dict[str, Tensor]] = []
        self._found: Diverged | None = None

    def begin(self) -> None:
        """A step begins."""
        self._states = [self._random.state()]

    def after_phase(self, step: TrainingStep) -> Hold | None:
        """A phase of the step is done: why to hold there, if it gave a number that is not
        finite."""
        self._states.append(self._random.state())
        phase = step.done[-1]
        if phase == "loss" and not is_finite(step.loss):
            value = float(step.loss.detach())
            self._found = Diverged(step.number, value)
            batch = step.batches[len(step.outcomes) - 1]
            origin = self._rerun(
                step, lambda: origin_of_loss(self._model, batch, lambda: step.run_again(batch))
            )
            text = f"The loss is {value}. {origin.text} It is held before its backward."
            return _hold(step, text, origin)
        scaled = step.setup.precision == "float16"  # there the scaler skips such a step
        if phase == "backward" and not scaled:
            name = self._parameter_at_fault()
            if name is None:
                return None
            self._found = Diverged(step.number, float("nan"), f"The gradient of {name}")
            batch = step.batches[len(step.outcomes) - 1]
            origin = self._rerun(
                step, lambda: origin_of_gradient(self._model, lambda: step.run_again(batch))
            )
            text = f"The gradient of `{name}` is not finite. {origin.text} It is held before the"
            return _hold(step, f"{text} update.", origin, name)
        return None

    def raise_found(self) -> None:
        """Raise Diverged if a number was found that is not finite: the run cannot go on past it."""
        if self._found is not None:
            raise self._found

    def _parameter_at_fault(self) -> str | None:
        named = [(n, p.grad) for n, p in self._model.named_parameters() if p.grad is not None]
        return next((n for n, gradient in named if not is_finite(gradient)), None)

    def _rerun(self, step: TrainingStep, look: Callable[[], Origin | None]) -> Origin:
        """The result of `look`, which runs phases of the step again, with the random numbers of the
        step's last forward."""
        forward = max(i for i, phase in enumerate(step.done) if phase == "forward")
        now = self._random.state()
        self._random.restore(self._states[forward])
        try:
            return look() or _UNKNOWN
        finally:
            self._random.restore(now)


def _hold(step: TrainingStep, text: str, origin: Origin, parameter: str = "") -> Hold:
    return Hold(
        "not_finite",
        step.number,
        text,
        origin.hint,
        origin.module,
        origin.parameter or parameter,
        origin.file,
        origin.line,
    )
