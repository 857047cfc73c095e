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

from ..control import Control
from ..runs.parameter_figures import LookTables
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
    which `spent(seconds)` tells what a look took. `variables` are those of the loop, in which the
    modules are that name the parameters. `begun(tables)` is called at the first look.
    `steps_done()` is the number of steps before the one that begins, over all optimizers.

    A look changes nothing, and draws no random number. An optimizer that takes its first step after
    step EARLY is looked at from the next step on at which another one is due.
    """

    def __init__(
        self,
        control: Control,
        variables: Mapping[str, object],
        spent: Callable[[float], object],
        begun: Callable[[Tables], object],
        steps_done: Callable[[], int],
    ) -> None:
        self._control, self._variables = control, variables
        self._spent, self._begun, self._steps_done = spent, begun, steps_done
        self._of = weakref.WeakKeyDictionary[Optimizer, Looks]()
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
                named = named_parameters(optimizer, self._variables)
                looks = self._of[optimizer] = Looks(named, FREE_S)
        step = self._steps_done()
        if looks is not None and step >= FREE_STEPS:
            looks.end_free()
        look = None if looks is None else looks.begin(step, by_hand=False)
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
        if step >= EARLY:
            self.shown_from_s = min((looks.due_s for looks in self._of.values()), default=-inf)

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


def named_parameters(
    optimizer: Optimizer, variables: Mapping[str, object]
) -> dict[str, nn.Parameter]:
    """The parameters that learn, by their names in the modules that the variables hold; with the
    variable's name before, if there are several such modules. One that is in none has a number."""
    wanted = [
        parameter
        for group in optimizer.param_groups
        for parameter in group["params"]
        if isinstance(parameter, nn.Parameter) and parameter.requires_grad
    ]
    places: dict[int, tuple[str, str]] = {}
    for variable, module in list(variables.items()):
        if isinstance(module, nn.Module):
            for name, parameter in module.named_parameters():
                places.setdefault(id(parameter), (variable, name))
    modules = {places[id(each)][0] for each in wanted if id(each) in places}
    found: dict[str, nn.Parameter] = {}
    for number, parameter in enumerate(wanted, 1):
        variable, name = places.get(id(parameter), ("", f"parameter {number}"))
        found[f"{variable}.{name}" if variable and len(modules) > 1 else name] = parameter
    return found
