"""All checks of one cell or run, behind the calls that a recorder and the loop's hooks make."""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from ..protocol import Finding
from ..recording.modes import Running, Tell
from .keeping import Keeping
from .losses import Losses
from .modes import Modes
from .notes import Names, Notes
from .trained import Trained
from .units import Units
from .zeroing import Zeroing

LOOKED_EVERY = 8
"""Of many backward calls, one in so many is looked at."""


class Adviser:
    """Looks at what one cell or one run does, and tells each finding once.

    `told` are the functions of torch whose calls it wants to be told (see `recording.modes.Tell`).
    It keeps no tensor alive, draws no random number and changes nothing. `variables` are those of
    the code's module.
    """

    def __init__(
        self, tell: Callable[[Finding], None], variables: Mapping[str, Any] | None = None
    ) -> None:
        self._notes = Notes(tell, variables)
        names = Names(self._notes)
        self._losses = Losses(self._notes)
        self._zeroing = Zeroing(self._notes, names)
        self._keeping = Keeping(self._notes, names)
        self._trained = Trained(self._notes, names)
        self._modes = Modes(self._notes, self._trained.is_held)
        self._backwards = 0
        self._done: list[weakref.ref[Optimizer]] = []  # enough of their steps were seen
        self._is_broken = False
        wanted: dict[Callable, list[Tell]] = {}
        for check in (self._losses, self._keeping, self._modes, Units(self._notes, names)):
            for func, check_call in check.told.items():
                wanted.setdefault(func, []).append(check_call)
        self.told: Mapping[Callable, Tell] = {
            func: self._unbroken(tells) for func, tells in wanted.items()
        }

    def saw_loss(self, loss: Tensor, root: Tensor) -> None:
        self._backwards += 1
        if self._modes.is_waiting:
            self._modes.saw_loss()
        is_first = self._zeroing.is_active or self._trained.walks_left
        if is_first or self._losses.is_waiting or self._backwards % LOOKED_EVERY == 0:
            with self._sheltered():
                self._losses.saw_loss(root)
                self._zeroing.saw_loss(root)
                self._trained.saw_loss(root)
                self._keeping.saw_loss(root)

    def before_step(self, optimizer: Optimizer, has_closure: bool) -> None:
        self._notes.steps += 1
        for done in self._done:
            if done() is optimizer:
                return
        with self._sheltered():
            self._zeroing.before_step(optimizer, has_closure)
            if self._trained.before_step(optimizer, has_closure):
                self._done.append(weakref.ref(optimizer))

    def after_step(self, optimizer: Optimizer, has_closure: bool) -> None:
        if self._zeroing.is_active or has_closure:
            with self._sheltered():
                self._zeroing.after_step(optimizer, has_closure)
                self._trained.after_step(optimizer, has_closure)

    def end(self) -> None:
        """The code has ended."""
        with self._sheltered():
            self._keeping.look()
            self._trained.decide()

    def _unbroken(self, tells: list[Tell]) -> Tell:
        first, *others = tells

        def told(
            func: Callable, args: tuple, kwargs: dict[str, Any], result: Any, modules: Running
        ) -> None:
            if not self._is_broken:
                try:
                    first(func, args, kwargs, result, modules)
                    for tell in others:
                        tell(func, args, kwargs, result, modules)
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
