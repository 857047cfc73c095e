"""Whether gradients are cleared between the steps of an optimizer."""

from __future__ import annotations

import weakref
from dataclasses import dataclass, field

from torch import Tensor
from torch.optim import Optimizer

from .notes import Names, Notes, all_zero

MAX_WATCHED_STEPS = 16
"""An optimizer is no longer watched once its gradients were cleared before this many steps."""
TOLD_AFTER = 2
"""Steps with gradients that were not cleared."""
MAX_SENTINELS = 3


@dataclass
class _Watched:
    """An optimizer. `sentinels` are a few of its parameters that had a gradient at its last step;
    `is_clear`: since then, all of them had none when a backward began."""

    steps: int = 0
    is_clear: bool = True
    backwards: int = 0
    sentinels: list[weakref.ref[Tensor]] = field(default_factory=list)
    before: list[float] = field(default_factory=list)
    after: list[float] = field(default_factory=list)


class Zeroing:
    """Looks at a few `.grad` when backward begins. (How they were cleared does not matter, nor how
    many backward calls there are for one step.)"""

    def __init__(self, notes: Notes, names: Names) -> None:
        self._notes, self._names = notes, names
        self._watched = weakref.WeakKeyDictionary[Optimizer, _Watched]()
        self._active: list[_Watched] = []

    @property
    def is_active(self) -> bool:
        """Whether an optimizer is still watched."""
        return bool(self._active)

    def saw_loss(self, loss: Tensor) -> None:
        for watched in self._active:
            watched.backwards += 1
            if not watched.is_clear:
                self._look(watched)

    def before_step(self, optimizer: Optimizer, has_closure: bool) -> None:
        watched = self._watched.get(optimizer)
        if watched is None:
            watched = self._watched[optimizer] = _Watched()
            if not has_closure:  # a closure clears them inside the step
                self._active.append(watched)
        if watched not in self._active:
            return
        if watched.steps and watched.backwards and not watched.is_clear and watched.before:
            held = watched.sentinels[0]()
            if held is not None and held.grad is not None:
                watched.after.append(float(held.grad.norm()))
                if len(watched.after) >= TOLD_AFTER:
                    self._tell(optimizer, watched, held)
        watched.steps += 1
        if watched.steps > MAX_WATCHED_STEPS:
            self._active.remove(watched)

    def after_step(self, optimizer: Optimizer, has_closure: bool) -> None:
        watched = self._watched.get(optimizer)
        if watched is None or watched not in self._active:
            return
        watched.sentinels = [weakref.ref(p) for p in _with_gradients(optimizer)]
        watched.is_clear = not watched.sentinels
        watched.backwards = 0

    def _look(self, watched: _Watched) -> None:
        """Note whether the gradients that the last step has used are still there."""
        alive = [p for p in (reference() for reference in watched.sentinels) if p is not None]
        gradients = [p.grad for p in alive if p.grad is not None]
        if len(gradients) < len(watched.sentinels) or all(map(all_zero, gradients)):
            watched.is_clear = True
            watched.before.clear()
            watched.after.clear()
        elif watched.backwards == 1:
            watched.before.append(float(gradients[0].norm()))

    def _tell(self, optimizer: Optimizer, watched: _Watched, held: Tensor) -> None:
        self._active.remove(watched)
        name, (parameter,) = self._names.optimizer(optimizer), self._names.parameters([held])
        growth = zip(watched.before[-TOLD_AFTER:], watched.after[-TOLD_AFTER:], strict=False)
        self._notes.find(
            "zero_grad",
            f"The gradients of a step are still there when the next backward begins: it adds to"
            f" them, so `{name}.step()` uses the sum over all steps.",
            [
                f"`{parameter}.grad` before and after backward: norm {old:.4g}, then {new:.4g}"
                for old, new in growth
            ],
            f"{name}.zero_grad()  # before loss.backward()",
            self._notes.place(),
        )


def _with_gradients(optimizer: Optimizer) -> list[Tensor]:
    """The smallest of the first parameters that have a gradient."""
    held = [p for group in optimizer.param_groups for p in group["params"][:16]]
    return sorted((p for p in held if p.grad is not None), key=Tensor.numel)[:MAX_SENTINELS]
