"""Whether gradients are cleared between the steps of an optimizer."""

from __future__ import annotations

import weakref
from dataclasses import dataclass, field

from torch import Tensor
from torch.optim import Optimizer

from .notes import Names, Notes, all_zero

MAX_WATCHED_STEPS = 16
"""An optimizer whose gradients were cleared before this many steps is watched only now and then."""
TOLD_AFTER = 2
"""Steps with gradients that were not cleared."""
MAX_SENTINELS = 3
AGAIN_AFTER = 48
"""Steps of the code, of any optimizer, before an optimizer is watched again."""
LEFT_AFTER, LEFT_AGAIN_AFTER = 64, 8
"""If it takes no step of its own in so many, it is not watched any longer."""


@dataclass
class _Watched:
    """An optimizer. `sentinels` are a few of its parameters that had a gradient at its last step;
    `is_clear`: since then, all of them had none when a backward began. `seen_at`: the step of the
    code at which its own last step was seen."""

    steps: int = 0
    seen_at: int = 0
    is_clear: bool = True
    backwards: int = 0
    sentinels: list[weakref.ref[Tensor]] = field(default_factory=list)
    is_again: bool = False
    is_told: bool = False
    before: list[float] = field(default_factory=list)
    after: list[float] = field(default_factory=list)


class Zeroing:
    """Looks at a few `.grad` when backward begins. (How they were cleared does not matter, nor how
    many backward calls there are for one step.) After the first steps of an optimizer it looks at a
    few of its steps again, whenever it is told of one, until gradients were cleared in one."""

    def __init__(self, notes: Notes, names: Names) -> None:
        self._notes, self._names = notes, names
        self._watched = weakref.WeakKeyDictionary[Optimizer, _Watched]()
        self.active: list[_Watched] = []
        """Of the optimizers that are watched."""

    @property
    def is_early(self) -> bool:
        """Whether one is watched in its first steps."""
        return any(not watched.is_again for watched in self.active)

    def saw_loss(self, loss: Tensor) -> None:
        for watched in self.active:
            watched.backwards += 1
            if not watched.is_clear:
                self._look(watched)

    def before_step(self, optimizer: Optimizer, has_closure: bool) -> None:
        watched = self._watched.get(optimizer)
        if watched is None:
            watched = self._watched[optimizer] = _Watched(seen_at=self._notes.steps)
            if not has_closure:  # a closure clears them inside the step
                self.active.append(watched)
        self.active = [w for w in self.active if not self._is_left(w)]
        if watched not in self.active:
            return
        watched.seen_at = self._notes.steps
        if watched.steps and watched.backwards and not watched.is_clear and watched.before:
            held = watched.sentinels[0]()
            if held is not None and held.grad is not None:
                watched.after.append(float(held.grad.norm()))
                if len(watched.after) >= TOLD_AFTER:
                    self._tell(optimizer, watched, held)
                    return
        watched.steps += 1
        is_cleared = watched.is_again and watched.is_clear and watched.backwards > 0
        if is_cleared or watched.steps > MAX_WATCHED_STEPS:
            self.active.remove(watched)

    def after_step(self, optimizer: Optimizer, has_closure: bool) -> None:
        watched = self._watched.get(optimizer)
        if watched is None or has_closure:
            return
        if watched not in self.active:
            if watched.is_told or self._notes.steps - watched.seen_at < AGAIN_AFTER:
                return
            watched.steps, watched.is_again = MAX_WATCHED_STEPS + 1 - TOLD_AFTER, True
            watched.seen_at = self._notes.steps
            watched.before.clear()
            watched.after.clear()
            self.active.append(watched)
        watched.sentinels = [weakref.ref(p) for p in _with_gradients(optimizer)]
        watched.is_clear = not watched.sentinels
        watched.backwards = 0

    def _is_left(self, watched: _Watched) -> bool:
        """Whether it takes no steps while it is watched."""
        limit = LEFT_AGAIN_AFTER if watched.is_again else LEFT_AFTER
        return self._notes.steps - watched.seen_at > limit

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
        self.active.remove(watched)
        watched.is_told = True
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
