"""All checks of one cell or run. A recorder and the loop's hooks call them."""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from math import inf
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from ..loops.hooks import Passed, Steps
from ..loops.rest import Rest
from ..protocol import Finding
from ..recording.modes import Running, Tell
from .keeping import Keeping
from .losses import Losses
from .modes import Modes
from .notes import Names, Notes
from .trained import Trained
from .units import FEW_UNTIL, LOOKED_AT, Units
from .unstepped import Unstepped
from .waiting import Waiting
from .zeroing import Zeroing

FIRST = 32
"""The first steps: all of them are checked."""
FIRST_TURN, EVERY = 64, 128
"""The next step that is checked is number FIRST_TURN; all later ones are multiples of EVERY. The
steps of `units.LOOKED_AT` after FIRST are among these."""


LOOKED_OVER = 8
"""Calls of modules in what may be an evaluation."""


class Adviser(Steps):
    """Looks at what one cell or one run does, and tells each finding once.

    `told` are the functions of torch whose calls the recorder is to report to it now (see
    `recording.modes.Tell`). It keeps no tensor alive, draws no random number and changes nothing.
    `variables` are those of the code's module. `rest` decides which steps it is shown;
    without one it is shown all.
    """

    def __init__(
        self,
        tell: Callable[[Finding], None],
        variables: Mapping[str, Any] | None = None,
        rest: Rest | None = None,
    ) -> None:
        self._rest = rest or Rest()
        self._notes = Notes(tell, variables)
        names = Names(self._notes)
        self._losses = Losses(self._notes)
        self._zeroing = Zeroing(self._notes, names)
        self._unstepped = Unstepped(self._notes)
        self._keeping = Keeping(self._notes, names)
        self._trained = Trained(self._notes, names)
        self._modes = Modes(self._notes, self._trained.is_held, lambda: self._look_on(True))
        self._units = Units(self._notes, names)
        self._waiting = Waiting(self._notes)
        self._looks = True  # at this step and its losses
        self._is_early = True  # all steps are looked at
        self._looks_at_units = False
        self._forwards = 0  # calls of modules since the last backward
        self._usual = 2  # so many of them, and some more, there are in the first steps
        self._backwards = 0  # those that the gate had counted at the last of these
        self._done: list[weakref.ref[Optimizer]] = []  # enough of their steps were seen
        self._watched = weakref.WeakSet[Optimizer]()  # each of their steps is to be shown
        self._is_broken = False
        wanted: dict[Callable, list[Tell]] = {}
        for tells in (self._losses.told, self._modes.told, self._keeping.outputs):
            for func, look in tells.items():
                wanted.setdefault(func, []).append(look)
        self._of_losses = {func: self._unbroken(*looks) for func, looks in wanted.items()}
        self._of_units = {f: self._unbroken(look) for f, look in self._units.told.items()}
        always = {**self._keeping.told, **self._modes.layers, **self._waiting.told}
        self.told: dict[Callable, Tell] = {f: self._unbroken(look) for f, look in always.items()}
        self.told.update(self._of_losses)

    @property
    def steps(self) -> int:
        """The optimizer steps that it was shown."""
        return self._notes.steps

    @property
    def is_short(self) -> bool:
        """Whether it has seen too little of some units yet."""
        return self._units.wants(self.steps)

    # -- what the hooks call ---------------------------------------------------------------------

    def looks(self) -> bool:
        """Whether all is to be seen that the call of a module runs, which begins now: it wants to,
        or the code is to be held."""
        gate = self._rest.gate
        if gate.backwards != self._backwards:
            self._backwards, self._forwards = gate.backwards, 0
        self._forwards += 1
        if self._looks:
            return True
        if self._usual < self._forwards <= self._usual + LOOKED_OVER and self._modes.matters:
            self._look_on(True)  # so many without a backward are an evaluation
            return True
        return self._looks_at_units or (not gate.is_shut and bool(self._rest.is_asked()))

    def needed_from(self) -> tuple[float, float]:
        if self._is_broken:
            return inf, inf
        is_needed = self._is_early or self._looks or self._looks_at_units or self._watched
        if is_needed or self._notes.is_waiting or self._zeroing.active:
            return -inf, 0
        if self._units.wants(self.steps + 1):
            return -inf, 0
        return inf, _until_turn(self.steps) - 1

    def count(self, passed: Passed) -> None:
        self._notes.steps += passed.steps

    def saw_loss(self, loss: Tensor, root: Tensor) -> None:
        if self._is_broken:
            return
        if self._is_early and self._notes.steps:
            self._usual = max(self._usual, 2 * self._forwards)
        self._forwards = 0
        is_watched = self._looks or self._notes.is_waiting
        if is_watched or self._zeroing.active:
            with self._sheltered():
                self._zeroing.saw_loss(root)
                if not is_watched:
                    return
                self._notes.is_waiting = False
                self._losses.saw_loss(root)
                self._modes.saw_loss()
                self._unstepped.saw_loss(root)
                self._trained.saw_loss(root)
                self._keeping.saw_loss(root)

    def before_step(self, optimizer: Optimizer, has_closure: bool) -> None:
        steps = self._notes.steps = self._notes.steps + 1
        if self._is_broken:
            return
        is_turn = _until_turn(steps - 1) == 1
        if not self._is_early and self._looks != is_turn:
            self._look_on(is_turn)
        self._looks_at_units = steps in LOOKED_AT or (
            steps <= FEW_UNTIL and self._units.wants(steps)
        )
        if self._looks_at_units:
            self.told.update(self._of_units)
        is_done = False
        for done in self._done:
            if done() is optimizer:
                is_done = True
                break
        if is_done and not self._zeroing.active:
            return
        with self._sheltered():
            self._zeroing.before_step(optimizer, has_closure)
            if not is_done:
                self._unstepped.before_step(optimizer)
                self._watched.discard(optimizer)
                if self._trained.before_step(optimizer, has_closure):
                    self._done.append(weakref.ref(optimizer))
                elif self._trained.looks_at(optimizer):
                    self._watched.add(optimizer)
            self._is_early = (
                steps <= FIRST or self._zeroing.is_early or self._trained.walks_left > 0
            )
            self._looks = self._looks or self._is_early

    def _look_on(self, looks: bool) -> None:
        """From now on check all calls, or only those of layers that differ between train and
        eval."""
        self._looks = looks
        if looks:
            self.told.update(self._of_losses)
            self._rest.gate.open()
        else:
            for func in (*self._of_losses, *self._of_units):
                self.told.pop(func, None)

    def after_step(self, optimizer: Optimizer, has_closure: bool) -> None:
        if not self._is_broken and (self._looks or has_closure or self._zeroing.active):
            with self._sheltered():
                self._zeroing.after_step(optimizer, has_closure)
                self._trained.after_step(optimizer, has_closure)

    def end(self) -> None:
        """The code has ended."""
        if self._is_broken:
            return
        with self._sheltered():
            self._keeping.look()
            self._trained.decide()
            self._unstepped.end()

    # -- our code inside the user's --------------------------------------------------------------

    def _unbroken(self, *looks: Tell) -> Tell:
        def told(
            func: Callable, args: tuple, kwargs: dict[str, Any], result: Any, modules: Running
        ) -> None:
            if not self._is_broken:
                try:
                    self._rest.reach()
                    for look in looks:
                        look(func, args, kwargs, result, modules)
                    if self._notes.is_waiting:  # for the next backward
                        self._rest.gate.open()
                except Exception:
                    self._break()

        return told

    @contextmanager
    def _sheltered(self) -> Iterator[None]:
        """Our code inside the user's: no mode sees it, and its errors end the advice only."""
        try:
            with torch.DisableTorchFunction(), torch.no_grad():
                yield
        except Exception:
            self._break()

    def _break(self) -> None:
        self._is_broken = True
        logging.getLogger(__name__).exception("No more advice is given about this code.")


def _until_turn(steps: int) -> int:
    """The number of steps until the next one that is checked, once the first ones have passed."""
    return FIRST_TURN - steps if steps < FIRST_TURN else EVERY - steps % EVERY
