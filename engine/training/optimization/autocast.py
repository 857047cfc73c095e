"""Autocast, and the scaler of the loss that float16 needs."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor

from ...project.document import Precision
from ...system.errors import LabError
from ..checkpoints.checkpoint_fields import FieldProblem, Number
from ..components.optimizers import step


class Autocast(AbstractContextManager[None]):
    """A context for the forward pass in which torch chooses dtypes, and the steps around it.

    With float16, gradients of a plain loss would vanish: the loss is scaled up, and `step` scales
    the gradients down again. It skips the step where one is not finite, as
    torch.amp.GradScaler does. Raises LabError for LBFGS with float16.
    """

    def __init__(
        self, precision: Precision, device: torch.device, optimizer: torch.optim.Optimizer
    ) -> None:
        self.optimizer = optimizer
        self._context: AbstractContextManager[Any] = nullcontext()
        self.is_on = precision != "float32"
        self._scaler: torch.amp.GradScaler | None = None
        if self.is_on:
            self._context = torch.autocast(device.type, getattr(torch, precision))
        if precision == "float16":
            if isinstance(optimizer, torch.optim.LBFGS):
                raise LabError(
                    "LBFGS cannot train with float16: it needs the gradients of several points.",
                    hint="Choose bfloat16 or float32, or another optimizer.",
                )
            self._scaler = torch.amp.GradScaler(device.type)

    def __enter__(self) -> None:
        self._context.__enter__()

    def __exit__(self, *error: Any) -> None:
        self._context.__exit__(*error)

    def scaled(self, loss: Tensor) -> Tensor:
        return loss if self._scaler is None else self._scaler.scale(loss)

    @property
    def scale(self) -> float:
        """The factor by which gradients are too large between backward and `unscale`."""
        return 1.0 if self._scaler is None else self._scaler.get_scale()

    def unscale(self) -> None:
        """Scale the gradients down, at most once before `step`."""
        if self._scaler is not None:
            self._scaler.unscale_(self.optimizer)

    def step(self) -> None:
        """The optimizer's step."""
        if self._scaler is None:
            step(self.optimizer)
        else:
            self._scaler.step(self.optimizer)
            self._scaler.update()

    def state(self) -> dict[str, Number]:
        """The scaler's state; empty without one."""
        return {} if self._scaler is None else self._scaler.state_dict()

    def restore(self, state: dict[str, Number]) -> None:
        """Take over a `state`. Raises FieldProblem if it is not one of this scaler."""
        if state.keys() != self.state().keys():
            raise FieldProblem("scaler", "its entries are not those of a GradScaler")
        if self._scaler is not None:
            self._scaler.load_state_dict(state)
