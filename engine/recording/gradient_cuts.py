"""Why a tensor requires no grad. This is noted while the code runs: it cannot be seen later."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, nn

from ..protocol import CutReason
from .recording import GradientCut, Place, Slot

_DETACHING = frozenset({"detach", "detach_", "data", "aten::detach", "aten::detach_"})

_CHANGING = frozenset({"requires_grad_", "detach_", "aten::detach_"})
"""Calls that change whether their own argument requires grad."""


class GradientCuts:
    """Remembers for each living tensor that requires no grad which call made it so."""

    def __init__(self) -> None:
        self._cuts: dict[int, tuple[weakref.ref[Tensor], GradientCut]] = {}

    def slot(self, t: Tensor, requires_grad: bool) -> Slot:
        """What a call's recording says of the argument `t`."""
        return True if requires_grad else self.why(t)

    def why(self, t: Tensor) -> GradientCut:
        """Why `t` requires no grad."""
        known = self._known(t)
        if known is not None:
            return known
        return GradientCut("input" if _can_require_grad(t) else "integer", weakref.ref(t))

    def note_result(
        self, name: str, given: Sequence[tuple[Tensor, bool]], result: Tensor, place: Place | None
    ) -> None:
        """The call `name` returned `result`, which requires no grad. `given` has each argument, and
        whether it required grad."""
        if any(result is t for t, _ in given) and name not in _CHANGING:
            return
        reason = self._reason(name, given, result)
        if reason is not None:
            stop = GradientCut(reason, weakref.ref(result), place)
        else:  # the result has the cut of its argument
            stops = (self._known(t) for t, _ in given)
            stop = next((known for known in stops if known and known.reason != "input"), None)
            stop = stop or GradientCut("input", weakref.ref(result), place)
        if stop.reason == "input" and not _can_require_grad(result):
            self._cuts.pop(id(result), None)
        else:
            self._cuts[id(result)] = weakref.ref(result), stop

    def forget_the_dead(self) -> None:
        self._cuts = {key: pair for key, pair in self._cuts.items() if pair[0]() is not None}

    def _known(self, t: Tensor) -> GradientCut | None:
        known = self._cuts.get(id(t))
        if known is not None and known[0]() is t:
            return known[1]
        return GradientCut("frozen", weakref.ref(t)) if isinstance(t, nn.Parameter) else None

    @staticmethod
    def _reason(
        name: str, given: Iterable[tuple[Tensor, bool]], result: Tensor
    ) -> CutReason | None:
        if not any(requires_grad for _, requires_grad in given):
            return None
        if name == "requires_grad_":
            return "frozen"
        if name in _DETACHING:
            return "detach"
        if not torch.is_grad_enabled():
            return "no_grad"
        return "unknown" if _can_require_grad(result) else "integer"


def _can_require_grad(t: Tensor) -> bool:
    return t.is_floating_point() or t.is_complex()
