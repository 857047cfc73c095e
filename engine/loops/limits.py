"""The watchpoints of a loop of the user's own: why it is held before the update of a step."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.optim import Optimizer

from ..project.document import HoldWhen
from ..protocol import Hold
from ..training.watchpoints.loss_spike import LossSpikes
from .step_losses import Value

_HELD = "It is held before the update."
_NOT_FINITE_HINT = (
    "The weights are as they were. The variables are those of this step: look for the first that is"
    " not finite in Tensors, or let the next step be held in its backward."
)


class LoopLimits:
    """Looks at the loss and the gradients of each step. A limit that is passed holds the loop once,
    until it was kept again. `name_of` names a parameter, "" if it has no name."""

    def __init__(self, when: HoldWhen, name_of: Callable[[Tensor], str]) -> None:
        self.when, self._name_of = when, name_of
        self.are_set = bool(when.not_finite or when.loss_spike or when.gradient_norm)
        self._spikes = LossSpikes(when.loss_spike)
        self._is_not_finite = self._is_long = False

    def look(
        self, step: int, loss: Value | None, norms: Sequence[Tensor], optimizer: Optimizer | None
    ) -> Hold | None:
        """Why step `step` is held, if it is. `norms` are those of the gradients of the optimizer's
        parameters that have one, in their order. On other devices than the CPU this waits for the
        device."""
        value = math.nan if loss is None else float(loss)
        lengths = torch.stack([norm.double() for norm in norms]).tolist() if norms else []
        return (
            self._not_finite(step, value, loss is not None, lengths, optimizer)
            or self._spike(step, value)
            or self._gradient(step, lengths, optimizer)
        )

    def _not_finite(
        self,
        step: int,
        loss: float,
        has_loss: bool,
        lengths: list[float],
        optimizer: Optimizer | None,
    ) -> Hold | None:
        is_bad = has_loss and not math.isfinite(loss)
        worst = next((at for at, each in enumerate(lengths) if not math.isfinite(each)), None)
        was, self._is_not_finite = self._is_not_finite, is_bad or worst is not None
        if was or not self._is_not_finite or not self.when.not_finite:
            return None
        name = "" if worst is None else self._name(optimizer, worst)
        text = f"The loss is {loss}." if is_bad else f"The gradient of {name} is not finite."
        return Hold("not_finite", step, f"{text} {_HELD}", _NOT_FINITE_HINT)

    def _spike(self, step: int, loss: float) -> Hold | None:
        text = self._spikes.look(loss) if self.when.loss_spike else ""
        if not text:
            return None
        hint = "Look at this batch for bad samples; or clip the gradients, or lower the rate."
        return Hold("loss_spike", step, f"{text} {_HELD}", hint)

    def _gradient(
        self, step: int, lengths: list[float], optimizer: Optimizer | None
    ) -> Hold | None:
        norm, limit = math.hypot(*lengths), self.when.gradient_norm
        was, self._is_long = self._is_long, norm > limit
        if was or not self._is_long or not limit:
            return None
        largest = max(lengths)
        name = self._name(optimizer, lengths.index(largest))
        return Hold(
            "gradient_norm",
            step,
            f"The 2-norm of all gradients is {norm:.4g}, above {limit:g}; {name} has the largest"
            f" part of it, {largest:.4g}. {_HELD}",
            "torch.nn.utils.clip_grad_norm_ before the step bounds it; or lower the rate.",
        )

    def _name(self, optimizer: Optimizer | None, place: int) -> str:
        """The parameter whose gradient's norm is at this place."""
        groups = optimizer.param_groups if optimizer is not None else []
        graded = [p for group in groups for p in group["params"] if p.grad is not None]
        if place >= len(graded):
            return "a parameter"
        name = self._name_of(graded[place])
        return f"`{name}`" if name else f"a parameter of shape {tuple(graded[place].shape)}"
