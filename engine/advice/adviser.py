"""All checks of one cell or run. A recorder and the loop's hooks call them."""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from ..loops.hooks import Steps
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
"""The first steps: all of them are checked. Checks of later steps (`Units.wants`) are at
multiples of EVERY."""
EVERY = 64
"""After the first steps, one step in this many is checked."""


LOOKED_OVER = 8
"""Calls of modules in what may be an evaluation."""


class Adviser(Steps):
    """Looks at what one cell or one run does, and tells each finding once.

    `told` are the functions of torch whose calls the recorder is to report to it now (see
    `recording.modes.Tell`). It keeps no tensor alive, draws no random number and changes nothing.
    `variables` are those of the code's module.
    """

    def __init__(
        self, tell: Callable[[Finding], None], variables: Mapping[str, Any] | None = None
    ) -> None:
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
        self._done: list[weakref.ref[Optimizer]] = []  # enough of their steps were seen
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
        """Whether it wants to see all that the call of a module runs, which begins now."""
        self._forwards += 1
        if self._looks:
            return True
        if self._usual < self._forwards <= self._usual + LOOKED_OVER and self._modes.matters:
            self._look_on(True)  # so many without a backward are an evaluation
            return True
        return self._looks_at_units

    def saw_loss(self, loss: Tensor, root: Tensor) -> None:
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
        is_turn = steps % EVERY == 0
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
                if self._trained.before_step(optimizer, has_closure):
                    self._done.append(weakref.ref(optimizer))
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
        else:
            for func in (*self._of_losses, *self._of_units):
                self.told.pop(func, None)

    def after_step(self, optimizer: Optimizer, has_closure: bool) -> None:
        if self._looks or has_closure or self._zeroing.active:
            with self._sheltered():
                self._zeroing.after_step(optimizer, has_closure)
                self._trained.after_step(optimizer, has_closure)

    def end(self) -> None:
        """The code has ended."""
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
                    for look in looks:
                        look(func, args, kwargs, result, modules)
                except Exception:
                    self._break()

        return told

    @contextmanager
    def _sheltered(self) -> Iterator[None]:
        """Our code inside the user's: no mode sees it, and its errors end the advice only."""
        if self._is_broken:
            yield
            return
        try:
            with torch._C.DisableTorchFunction(), torch.no_grad():
                yield
        except Exception:
            self._break()

    def _break(self) -> None:
        self._is_broken = True
        logging.getLogger(__name__).exception("No more advice is given about this code.")
