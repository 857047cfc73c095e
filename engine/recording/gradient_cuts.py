"""Why a tensor requires no grad. This is noted while the code runs: it cannot be seen later."""

from __future__ import annotations

import weakref
from collections.abc import Callable

import torch
from torch import Tensor, nn

from ..protocol import CutReason
from .recording import GradientCut, Place, Slot
from .remembered import Remembered
from .writes import Given

_DETACHING = frozenset({"detach", "detach_", "data", "aten::detach", "aten::detach_"})

_CHANGING = frozenset({"requires_grad_", "detach_", "aten::detach_"})
"""Calls that change whether their own argument requires grad."""


class GradientCuts:
    """Remembers for each living tensor that requires no grad which call made it so."""

    def __init__(self) -> None:
        self._cuts = Remembered[GradientCut]()
        self._integer: GradientCut | None = None  # the last of an integer tensor: often a target

    def slot(self, t: Tensor, requires_grad: bool) -> Slot:
        """The note in a call's recording on the argument `t`."""
        return True if requires_grad else self.why(t)

    def why(self, t: Tensor) -> GradientCut:
        """Why `t` requires no grad."""
        found = self._cuts.values.get(id(t))  # as `get`, without a call
        if found is not None and found[0]() is t:
            return found[1]
        if type(t) is not Tensor and (known := self._known(t)) is not None:
            return known
        if self._integer is not None and self._integer.tensor() is t:
            return self._integer
        if t.is_floating_point() or t.is_complex():
            return GradientCut("input", weakref.ref(t))
        self._integer = GradientCut("integer", weakref.ref(t))
        return self._integer

    def note_result(
        self, name: str, given: Given, result: Tensor, place: Callable[[], Place | None]
    ) -> None:
        """The call `name` returned `result`, which requires no grad. `place` gives its line."""
        if name not in _CHANGING and any(result is t for t, _, _ in given):
            return
        of = weakref.ref(result)
        reason = self._reason(name, given, result)
        if reason is not None:
            cut = GradientCut(reason, of, place())
        else:  # the result has the cut of its argument
            cuts = (self._known(t) for t, _, _ in given)
            cut = next((known for known in cuts if known and known.reason != "input"), None)
            if cut is None:
                if not _can_require_grad(result):
                    self._cuts.forget(result)
                    return
                cut = GradientCut("input", of, place())
        self._cuts.set(result, cut)

    def know(self, t: Tensor, cut: GradientCut) -> None:
        """`t` requires no grad for a known reason."""
        self._cuts.set(t, cut)

    def forget_the_dead(self) -> None:
        self._cuts.forget_the_dead()

    def _known(self, t: Tensor) -> GradientCut | None:
        known = self._cuts.get(t)
        if known is not None:
            return known
        if type(t) is not Tensor and isinstance(t, nn.Parameter):  # isinstance takes long
            return GradientCut("frozen", weakref.ref(t))
        return None

    @staticmethod
    def _reason(name: str, given: Given, result: Tensor) -> CutReason | None:
        if not any(required for _, _, required in given):
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
