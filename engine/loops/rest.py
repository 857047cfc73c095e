"""Lets the hooks of a loop rest: of many short steps, few are shown."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from math import inf
from time import perf_counter

from torch import Tensor
from torch.optim import Optimizer

from .hooks import Gate, Passed, Steps

MAX_KNOWN = 64
"""Optimizers that are remembered before the dead among them are forgotten."""


class Rest(Steps):
    """Shuts `gate` while none of `watching` needs to be shown a step, and tells them how many have
    passed: `with steps_shown(rest, *rest.watching, gate=rest.gate):`, as the first of them.

    `is_asked()`: whether each step is to be shown now. Whoever asks in another thread opens the
    gate.
    """

    def __init__(self, is_asked: Callable[[], object] = lambda: False) -> None:
        self.watching: list[Steps] = []
        self._known: dict[int, weakref.ref[Optimizer]] = {}
        self.gate = Gate(ended=self._ended, known=self._known)
        self.is_asked = is_asked
        self._told = 0  # of the gate's steps
        self._was_shut = False  # when the last step had ended

    def reach(self) -> None:
        """Tell of the steps that have passed. For the thread whose steps these are."""
        gate = self.gate
        if not self._was_shut:
            return
        self._was_shut = gate.is_shut
        has_begun = gate.backwards != gate.backwards_before
        passed = Passed(gate.steps - self._told, gate.made, has_begun)
        self._told = gate.steps
        for each in self.watching:
            each.count(passed)

    def saw_loss(self, loss: Tensor, root: Tensor) -> None:
        self.reach()

    def before_step(self, optimizer: Optimizer, has_closure: bool) -> None:
        self.reach()

    def after_step(self, optimizer: Optimizer, has_closure: bool) -> None:
        gate = self.gate
        gate.steps += 1
        self._told += 1
        gate.backwards_before = gate.backwards
        known = self._known
        known[id(optimizer)] = weakref.ref(optimizer)
        if len(known) > MAX_KNOWN:
            for key in [key for key, each in known.items() if each() is None]:
                del known[key]

    def _ended(self, optimizer: Optimizer, is_missed: bool) -> None:
        """A step has ended: decide whether the next ones are shown."""
        gate = self.gate
        if is_missed:
            gate.steps += 1
            self._was_shut = True
            self.reach()
        gate.is_shut = True  # before anything is asked: who comes later opens it
        from_s, from_step = inf, inf
        for each in self.watching:
            a_time, a_step = each.needed_from()
            from_s, from_step = min(from_s, a_time), min(from_step, a_step)
        gate.due_s, gate.due_step = from_s, gate.steps + from_step
        if self.is_asked() or from_s <= perf_counter() or from_step < 1:
            gate.open()
            if is_missed:
                self._was_shut = False
                for each in self.watching:
                    each.begin_step()
        else:
            self._was_shut = True
