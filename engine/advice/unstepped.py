"""Gradients that are computed, and that no step of an optimizer uses."""

from __future__ import annotations

import linecache
import re
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from ..recording.recording import Place
from .notes import Notes, all_zero, is_plain

TOLD_AFTER = 16
"""Backward passes that gave the optimizer's parameters a gradient."""
_CLEARED = re.compile(r"([A-Za-z_][\w.]*)\.zero_grad\(")
_MADE = re.compile(r"([A-Za-z_][\w.]*)\s*=[^=\n]*\b(?:optim\b|[A-Z]\w*\()")


@dataclass(eq=False)
class _Watched:
    """An optimizer of the file that calls backward. `weight` is the smallest of its first
    parameters, with its `version` and its value `before`. `clears`: the file clears the optimizer's
    own gradients; else it only makes the optimizer, and writes no step of it."""

    name: str
    optimizer: weakref.ref[Optimizer]
    weight: weakref.ref[Tensor]
    version: int
    before: Tensor
    place: Place | None
    clears: bool
    passes: int = 0
    cleared: int = 0

    @property
    def is_moved(self) -> bool:
        """Whether its weight is gone, or code of the user's own writes to it."""
        weight = self.weight()
        return weight is None or weight._version != self.version


class Unstepped:
    """Watches the optimizers that the file which calls backward makes, or clears the gradients of,
    until they step."""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes
        self._watched: list[_Watched] | None = None
        self._steps = 0

    def saw_loss(self, loss: Tensor) -> None:
        if self._watched is None:
            self._watched = list(self._found())
            return
        for watched in list(self._watched):
            weight = watched.weight()
            if watched.is_moved:
                self._watched.remove(watched)
            elif weight is not None and watched.passes < TOLD_AFTER:
                is_clear = weight.grad is None or all_zero(weight.grad)
                watched.cleared += is_clear
                watched.passes += is_clear or not watched.clears

    def before_step(self, optimizer: Optimizer) -> None:
        self._steps += 1
        self._watched = [w for w in self._watched or () if w.optimizer() is not optimizer]

    def end(self) -> None:
        for watched in self._watched or ():
            weight = watched.weight()
            if watched.is_moved or weight is None or weight.grad is None:
                continue
            if self._steps and not watched.clears:  # it may be for later
                continue
            if watched.passes >= TOLD_AFTER and torch.equal(weight, watched.before):
                self._tell(watched)
        self._watched = []

    def _tell(self, watched: _Watched) -> None:
        name = watched.name
        then = "and no step uses them"
        if watched.clears:
            then = f"`{name}.zero_grad()` clears them"
        evidence = (
            f"the gradients of {watched.cleared} backward passes were cleared, and no step ran"
            if watched.cleared
            else f"{watched.passes} backward passes added to the gradients, and no step ran"
        )
        others = f"; other optimizers took {self._steps:,} steps" if self._steps else ""
        self._notes.find(
            "not_trained",
            f"backward() computes gradients, {'and ' if watched.clears else ''}{then}"
            f"{', but' if watched.clears else ':'} `{name}.step()` does not run: the weights do not"
            " change.",
            (f"{evidence}{others}",),
            f"{name}.step()  # after loss.backward()",
            watched.place,
            name,
        )

    def _found(self) -> Iterator[_Watched]:
        """The optimizers to watch, at the first backward."""
        place = self._notes.place()
        source = "" if place is None else "".join(linecache.getlines(place[0]))
        cleared = set(_CLEARED.findall(source))
        made = {name for name in _MADE.findall(source) if f"{name}.step(" not in source}
        seen: list[Optimizer] = []
        for name in dict.fromkeys((*sorted(cleared), *sorted(made))):
            held = self._held(name)
            if not issubclass(type(held), Optimizer) or any(held is each for each in seen):
                continue
            seen.append(held)
            weights = [p for group in held.param_groups for p in group["params"][:16]]
            weights = [p for p in weights if p.requires_grad and is_plain(p)]
            if weights:
                weight = min(weights, key=Tensor.numel)
                yield _Watched(
                    name,
                    weakref.ref(held),
                    weakref.ref(weight),
                    weight._version,
                    weight.detach().clone(),
                    place,
                    name in cleared,
                )

    def _held(self, name: str) -> Any:
        """What the user's code calls so: a variable, or an attribute that is no property."""
        first, *rest = name.split(".")
        for scope in self._notes.scopes():
            if first in scope:
                held = scope[first]
                for part in rest:
                    held = getattr(held, "__dict__", {}).get(part)
                return held
        return None
