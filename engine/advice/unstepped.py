"""Gradients that are computed and cleared, and that no step of an optimizer uses."""

from __future__ import annotations

import linecache
import re
import weakref

import torch
from torch import Tensor
from torch.optim import Optimizer

from ..recording.recording import Place
from .notes import Notes, all_zero, is_plain

TOLD_AFTER = 16
"""Backward passes whose gradients were cleared."""


class Unstepped:
    """Watches an optimizer whose `zero_grad()` is in the file that calls backward, until any
    optimizer steps."""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes
        self._is_over = False
        self._name = ""
        self._weight: weakref.ref[Tensor] | None = None
        self._version = 0
        self._before: Tensor | None = None
        self._cleared = 0
        self._place: Place | None = None

    def saw_loss(self, loss: Tensor) -> None:
        if self._is_over:
            return
        if self._weight is None:
            self._begin()
            return
        weight = self._weight()
        if weight is None or weight._version != self._version:
            self._is_over = True  # code of the user's own writes to it
        elif self._cleared < TOLD_AFTER and (weight.grad is None or all_zero(weight.grad)):
            self._cleared += 1

    def before_step(self) -> None:
        self._is_over = True

    def end(self) -> None:
        weight = None if self._weight is None else self._weight()
        if self._is_over or weight is None or weight.grad is None or self._cleared < TOLD_AFTER:
            return
        if self._before is None or not torch.equal(weight, self._before):
            return
        self._is_over = True
        name = self._name
        self._notes.find(
            "not_trained",
            f"backward() computes gradients and `{name}.zero_grad()` clears them, but"
            f" `{name}.step()` does not run: the weights do not change.",
            (f"the gradients of {self._cleared} backward passes were cleared, and no step ran",),
            f"{name}.step()  # after loss.backward()",
            self._place,
            name,
        )

    def _begin(self) -> None:
        """Choose the optimizer, at the first backward."""
        self._is_over = True
        place = self._notes.place()
        source = "" if place is None else "".join(linecache.getlines(place[0]))
        cleared = set(re.findall(r"\b(\w+)\.zero_grad\(", source))
        if not cleared:
            return
        for scope in self._notes.scopes():
            for name, held in list(scope.items()):
                if name not in cleared or not issubclass(type(held), Optimizer):
                    continue
                weights = [p for group in held.param_groups for p in group["params"][:16]]
                weights = [p for p in weights if p.requires_grad and is_plain(p)]
                if weights:
                    weight = min(weights, key=Tensor.numel)
                    self._name, self._place, self._is_over = name, place, False
                    self._weight, self._version = weakref.ref(weight), weight._version
                    self._before = weight.detach().clone()
                return
