"""The effect of an optimizer step on each parameter: its gradient's norm, and how far it moves."""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from math import inf

import torch
from msgspec import Struct
from torch import Tensor, nn
from torch.optim import Optimizer

from .hooks import Steps, quiet

COPIED_BYTES = 2**26
"""The copies of parameters that one step makes stay below this, unless one alone is larger. The
other parameters wait for the next step."""


class Update(Struct, frozen=True):
    """A step of one parameter: the 2-norm of its gradient (None: it had none), and the 2-norm of
    its change as a share of its own before; None where that was 0."""

    gradient: float | None
    ratio: float | None


class Updates(Steps):
    """Measures a step of each parameter of one module after `ask`: `with steps_shown(updates):`
    around the steps. Until `ask` is called again, steps then cost next to nothing.

    `sheltered` is entered around code of ours inside the user's.
    """

    def __init__(self, sheltered: Callable[[], AbstractContextManager[None]] = nullcontext) -> None:
        self._sheltered = sheltered
        self._module: weakref.ref[nn.Module] | None = None
        self._names: dict[int, str] = {}
        self._waiting: set[str] = set()
        self._before: list[tuple[str, Tensor, Tensor, float | None]] = []
        self._known: dict[str, Update] = {}
        self._held_by = weakref.WeakKeyDictionary[Optimizer, set[str]]()
        self.shown_from_s = inf

    @property
    def is_asked(self) -> bool:
        """Whether steps are measured."""
        return bool(self._waiting)

    def ask(self, module: nn.Module) -> None:
        """Measure the next step of each parameter of this module."""
        names = {id(p): name for name, p in module.named_parameters()}
        if self._module is None or self._module() is not module or names != self._names:
            self._module, self._names = weakref.ref(module), names
            self._known, self._before = {}, []
            self._held_by.clear()
        self._waiting = set(names.values())
        self.shown_from_s = -inf

    def of(self, module: nn.Module) -> dict[str, Update]:
        """The last measurements, by the name of the parameter; nothing of another module."""
        is_same = self._module is not None and self._module() is module
        return dict(self._known) if is_same else {}

    @property
    def optimizers(self) -> list[Optimizer]:
        """The optimizers that have stepped since the first `ask` for the module, and live."""
        return list(self._held_by)

    # -- what the hooks call ---------------------------------------------------------------------

    def before_step(self, optimizer: Optimizer, has_closure: bool) -> None:
        if not self._waiting:
            return
        with self._inside():
            self._before, copied = [], 0
            scale = getattr(optimizer, "grad_scale", None)  # a fused step unscales them itself
            for parameter in [p for group in optimizer.param_groups for p in group["params"]]:
                name = self._names.get(id(parameter))
                if name is None:
                    continue
                self._held_by.setdefault(optimizer, set()).add(name)
                if name not in self._waiting:
                    continue
                copied += parameter.nbytes
                if not self._before or copied <= COPIED_BYTES:
                    norm = None if has_closure else _gradient_norm(parameter, scale)
                    self._before.append((name, parameter, parameter.detach().clone(), norm))

    def after_step(self, optimizer: Optimizer, has_closure: bool) -> None:
        if not self._before:
            return
        with self._inside():
            before, self._before = self._before, []
            for name, parameter, was, norm in before:
                if has_closure:
                    norm = _gradient_norm(parameter, None)
                length = float(torch.linalg.vector_norm(was))
                moved = float(torch.linalg.vector_norm(parameter.detach() - was))
                self._known[name] = Update(norm, moved / length if length else None)
                self._waiting.discard(name)
        if not self._waiting:
            self.shown_from_s = inf

    @contextmanager
    def _inside(self) -> Iterator[None]:
        """An error of ours ends the measuring, but never the user's loop."""
        with self._sheltered():
            try:
                with quiet():
                    yield
            except Exception:
                self._waiting, self._before = set(), []
                logging.getLogger(__name__).exception("A step cannot be measured.")


def _gradient_norm(parameter: Tensor, scale: Tensor | None) -> float | None:
    gradient = parameter.grad
    if gradient is None:
        return None
    numbers = gradient.coalesce().values() if gradient.is_sparse else gradient
    norm = float(torch.linalg.vector_norm(numbers))
    return norm if scale is None else norm / float(scale)
