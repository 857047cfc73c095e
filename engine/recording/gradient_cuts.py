"""Why tensors need no gradient: told apart while the code runs, since it cannot be seen later."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, nn

from ..protocol import CutReason
from .recording import Place, Slot, Stop

_DETACHING = frozenset({"detach", "detach_", "data", "aten::detach", "aten::detach_"})

_CHANGING = frozenset({"requires_grad_", "detach_", "aten::detach_"})
"""What changes whether the tensor itself requires grad."""


class Stops:
    """Remembers, for tensors that need no gradient, what made it so; as long as they live."""

    def __init__(self) -> None:
        self._stops: dict[int, tuple[weakref.ref[Tensor], Stop]] = {}

    def slot(self, t: Tensor, requires_grad: bool) -> Slot:
        """What a call's argument is for the gradient."""
        return True if requires_grad else self.why(t)

    def why(self, t: Tensor) -> Stop:
        """Why `t`, which requires no grad, does not."""
        known = self._known(t)
        if known is not None:
            return known
        return Stop("input" if _can_require_grad(t) else "integer", weakref.ref(t))

    def note_result(
        self, name: str, given: Sequence[tuple[Tensor, bool]], result: Tensor, place: Place | None
    ) -> None:
        """A call gave `result`, which requires no grad, for `given` (tensor, requires_grad)."""
        if any(result is t for t, _ in given) and name not in _CHANGING:
            return
        reason = self._reason(name, given, result)
        if reason is not None:
            stop = Stop(reason, weakref.ref(result), place)
        else:  # what stopped the gradient of an argument stops that of the result
            stops = (self._known(t) for t, _ in given)
            stop = next((known for known in stops if known and known.reason != "input"), None)
            stop = stop or Stop("input", weakref.ref(result), place)
        if stop.reason == "input" and not _can_require_grad(result):
            self._stops.pop(id(result), None)
        else:
            self._stops[id(result)] = weakref.ref(result), stop

    def forget_the_dead(self) -> None:
        self._stops = {key: pair for key, pair in self._stops.items() if pair[0]() is not None}

    def _known(self, t: Tensor) -> Stop | None:
        known = self._stops.get(id(t))
        if known is not None and known[0]() is t:
            return known[1]
        return Stop("frozen", weakref.ref(t)) if isinstance(t, nn.Parameter) else None

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
