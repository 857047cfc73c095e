"""Looks at the parameters that a loop of the user's own code trains, as those at a run of Train."""

from __future__ import annotations

import logging
import sqlite3
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from math import inf
from time import perf_counter

from torch import nn
from torch.optim import Optimizer

from ..runs.parameter_figures import LookTables
from ..system.control import Control
from ..training.figures.pace import FREE_STEPS
from ..training.looks.looks import EARLY, Looks, StepLook
from .hooks import Steps, quiet

Tables = sqlite3.Connection
"""The tables of looks, in memory: a loop has no folder."""


FREE_S = 0.01
"""The time that looks at a loop's first FREE_STEPS steps take together: many loops are over in a
second."""


class LoopLooks(Steps):
    """Looks at some steps of each optimizer: `with steps_shown(looks, loop):` around the loop,
    which `spent(seconds)` tells what a look took. `names()` are those of the parameters that have
    one, by their ids; others have numbers. `begun(tables)` is called at the first look.
    `steps_done()` is the number of steps before the one that begins, over all optimizers.

    A look changes nothing, and draws no random number. An optimizer that takes its first step late
    is looked at from the next step on at which another one is due.
    """

    def __init__(
        self,
        control: Control,
        names: Callable[[], Mapping[int, str]],
        spent: Callable[[float], object],
        begun: Callable[[Tables], object],
        steps_done: Callable[[], int],
    ) -> None:
        self._control, self._names = control, names
        self._unnamed: list[weakref.ref[nn.Parameter]] = []
        self._spent, self._begun, self._steps_done = spent, begun, steps_done
        self._of = weakref.WeakKeyDictionary[Optimizer, Looks]()
        self._own_steps = weakref.WeakKeyDictionary[Optimizer, int]()  # those that were shown
        self._look: StepLook | None = None
        self._tables: LookTables | None = None
        self._is_broken = False

    def before_step(self, optimizer: Optimizer, has_closure: bool) -> None:
        self._look = None
        if self._is_broken:
            return
        looks = self._of.get(optimizer)
        if looks is None:
            with self._sheltered():
                looks = self._of[optimizer] = Looks(self._named(optimizer), FREE_S)
        step = self._steps_done()
        if looks is not None and step >= FREE_STEPS:
            looks.end_free()
        own = self._own_steps.get(optimizer, 0)
        self._own_steps[optimizer] = own + 1
        look = None if looks is None else looks.begin(step, by_hand=False, own=own)
        if look is None:
            self._wait(step)
            return
        with self._sheltered():
            if not has_closure:
                scale = getattr(optimizer, "grad_scale", None)  # a fused step unscales them itself
                look.see_gradients(1.0 if scale is None else float(scale))
            look.see_weights()
            self._look = look

    def after_step(self, optimizer: Optimizer, has_closure: bool) -> None:
        look, self._look = self._look, None
        if look is None:
            return
        began_s, before_s = perf_counter(), look.spent_s
        with self._sheltered():
            if has_closure:
                look.see_gradients(1.0)
            look.see_update()
            looks = self._of[optimizer]
            looks.end(look)
            if self._tables is None:
                connection = sqlite3.connect(":memory:", check_same_thread=False)
                self._tables = LookTables(connection)
                self._begun(connection)
            self._tables.append(looks.drain())
            self._tables.thin_out()
            kept_s = perf_counter() - began_s - (look.spent_s - before_s)
            looks.spend(kept_s)
            self._spent(look.spent_s + kept_s)
        self._wait(self._steps_done())

    def _wait(self, step: int) -> None:
        """No step needs to be shown before a look is due."""
        if step >= EARLY * len(self._of):
            self.shown_from_s = min((looks.due_s for looks in self._of.values()), default=-inf)

    def _named(self, optimizer: Optimizer) -> dict[str, nn.Parameter]:
        """The parameters that learn, by their names in the user's code."""
        names = self._names()
        wanted = [
            parameter
            for group in optimizer.param_groups
            for parameter in group["params"]
            if isinstance(parameter, nn.Parameter) and parameter.requires_grad
        ]
        return {names.get(id(each)) or self._number(each): each for each in wanted}

    def _number(self, parameter: nn.Parameter) -> str:
        """`parameter 3` is one and the same for all optimizers."""
        known = [each() for each in self._unnamed]
        place = next((i for i, each in enumerate(known) if each is parameter), len(known))
        if place == len(known):
            self._unnamed.append(weakref.ref(parameter))
        return f"parameter {place + 1}"

    @contextmanager
    def _sheltered(self) -> Iterator[None]:
        """Code of ours inside the user's, not interrupted midway. An error of ours ends the looks,
        but never the user's loop."""
        with self._control.own_code():
            try:
                with quiet():
                    yield
            except Exception:
                self._is_broken, self._look, self.shown_from_s = True, None, inf
                logging.getLogger(__name__).exception("A loop's parameters cannot be looked at.")
