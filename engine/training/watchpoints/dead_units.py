"""Units behind a ReLU that give 0 for every sample, seen in every tenth step."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .seen_calls import Call, seen_calls

EVERY = 10
"""The outputs of one step in this many are looked at."""
LOOKS = 3
"""A unit counts as dead if it gave only 0 in this many looks."""
_RELUS = (F.relu, F.relu_, torch.relu, torch.relu_, Tensor.relu, Tensor.relu_)


@dataclass
class Layer:
    """A ReLU: `alive` (U,) tells which units gave another value than 0 in the last looks, of
    `values` values each."""

    call: Call
    alive: Tensor
    values: int = 0

    @property
    def units(self) -> int:
        return len(self.alive)

    @property
    def dead(self) -> int:
        return int(self.alive.logical_not().sum())

    @property
    def share(self) -> float:
        return self.dead / self.units


class DeadUnits:
    """A unit is a feature: dimension 1 of images (N, C, H, W), else the last."""

    def __init__(self, model: nn.Module) -> None:
        self._model = model
        self._layers: dict[tuple[Call, int], Layer] = {}
        self._looks = 0
        self.is_looking = False

    def begin(self, number: int) -> None:
        """Step `number` begins."""
        self.is_looking = number % EVERY == 0

    def looking(self) -> AbstractContextManager[None]:
        """In this context, that of the step's forward, outputs are looked at."""
        return seen_calls(self._model, self._saw)

    def end(self) -> list[Layer]:
        """The step is done: all layers, after enough looks."""
        if not self.is_looking:
            return []
        self.is_looking = False
        self._looks += 1
        if self._looks < LOOKS:
            return []
        layers = list(self._layers.values())
        self._looks, self._layers = 0, {}
        return layers

    def _saw(
        self,
        call: Callable[[], Call],
        func: Callable,
        args: tuple,
        kwargs: dict[str, Any],
        result: Any,
    ) -> None:
        if func not in _RELUS or not isinstance(result, Tensor) or result.ndim < 2:
            return
        if not result.numel() or not torch.is_grad_enabled():
            return
        unit = 1 if result.ndim >= 4 else result.ndim - 1
        others = tuple(dim for dim in range(result.ndim) if dim != unit)
        found, units = call(), result.shape[unit]
        layer = self._layers.get((found, units))
        if layer is None:
            nothing = torch.zeros(units, dtype=torch.bool, device=result.device)
            layer = self._layers[found, units] = Layer(found, nothing)
        layer.alive |= result.detach().ne(0).sum(others).ne(0)
        layer.values += result.numel() // units
