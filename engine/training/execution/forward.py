"""The context in which a run calls its model."""

from __future__ import annotations

from contextlib import AbstractContextManager, ExitStack
from typing import Any

from torch import nn

from ...project.document import TrainingSetup
from ...system.errors import LabError
from .compiling import Compiled
from .recomputing import Recomputing


class Forward(AbstractContextManager[None]):
    """In this context the model runs as the set-up says: under `autocast`, compiled, with modules
    whose activations are computed again. `is_plain`: it changes nothing, and may be left out.
    Raises LabError for what does not go together, and for a module that is not there."""

    def __init__(
        self, setup: TrainingSetup, model: nn.Module, autocast: AbstractContextManager[Any] | None
    ) -> None:
        if setup.compile and setup.recomputed:
            raise LabError(
                "A compiled model decides itself which activations it computes again.",
                hint="Turn compile off under More, or take the modules off that compute again.",
            )
        self.compiled = Compiled(model) if setup.compile else None
        self._contexts: list[AbstractContextManager[Any]] = [] if autocast is None else [autocast]
        if self.compiled is not None:
            self._contexts.append(self.compiled)
        if setup.recomputed:
            self._contexts.append(Recomputing(model, setup.recomputed))
        self.is_plain = not self._contexts
        self._entered = ExitStack()

    def __enter__(self) -> None:
        with ExitStack() as stack:
            for context in self._contexts:
                stack.enter_context(context)
            self._entered = stack.pop_all()

    def __exit__(self, *error: Any) -> None:
        self._entered.close()
