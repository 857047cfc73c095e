"""Units behind a ReLU that give 0 for every sample."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..recording.modes import Running, Tell
from ..recording.recording import Place
from .notes import Names, Notes, counted, is_plain

LOOKED_AT = frozenset({*range(16, 33, 2), 64, *range(128, 2049, 128)})
"""The optimizer steps after which outputs are looked at."""
FEW_UNTIL = 192
_FOR_FEW = range(33, FEW_UNTIL + 1)
"""Those after which outputs of a few samples are looked at as well, until there are MIN_VALUES."""
TOLD_AFTER = 3
"""Looks in which the units gave nothing but 0."""
TOLD_FROM = 64
"""The first of the steps at which it is told: units that were 0 in the first steps may learn."""
MIN_VALUES = 128
"""Values of each unit, over all these looks."""
DEAD_SHARE = 0.5
"""A finding needs at least this share of a layer's units to be dead."""

_RELUS = (F.relu, torch.relu, Tensor.relu, torch.relu_, Tensor.relu_)


@dataclass
class _Layer:
    """`alive` tells which units gave another value than 0 (U,); `looked` the steps at which they
    were looked at."""

    alive: Tensor
    looked: set[int] = field(default_factory=set)
    values: int = 0
    is_decided: bool = False

    @property
    def is_short(self) -> bool:
        """Whether what was seen of it so far decides nothing."""
        return self.values < MIN_VALUES and not self.is_decided

    def begin(self) -> None:
        """Look anew: units that were alive may die."""
        self.alive, self.values, self.is_decided = torch.zeros_like(self.alive), 0, True
        self.looked.clear()


class Units:
    """Looks at the outputs of ReLUs at a few steps of the loop only. A unit is a feature: a channel
    of images, or the last dimension."""

    def __init__(self, notes: Notes, names: Names) -> None:
        self._notes, self._names = notes, names
        self._by_module = weakref.WeakKeyDictionary[nn.Module, _Layer]()
        self._by_place: dict[Place | None, _Layer | None] = {}
        self._is_short = False  # of a layer, what was seen at the last look decides nothing
        self.told: Mapping[Callable, Tell] = dict.fromkeys(_RELUS, self._relu)

    def wants(self, steps: int) -> bool:
        """Whether it looks at outputs after so many steps."""
        if steps in LOOKED_AT or steps not in _FOR_FEW:
            return steps in LOOKED_AT
        return self._is_short

    def _relu(
        self, func: Callable, args: tuple, kwargs: dict[str, Any], result: Any, modules: Running
    ) -> None:
        if not self.wants(self._notes.steps) or not is_plain(result) or result.ndim < 2:
            return
        if not result.requires_grad or result.device.type == "meta" or not result.numel():
            return
        place = self._notes.place()
        layer = self._layer(modules, place, result)
        if layer is None:
            return
        with torch.no_grad():
            unit = _unit_dim(result)
            others = tuple(dim for dim in range(result.ndim) if dim != unit)
            layer.alive |= result.detach().ne(0).sum(others).ne(0)
            layer.looked.add(self._notes.steps)
            layer.values += result.numel() // result.shape[unit]
            places = (each for each in self._by_place.values() if each is not None)
            layers = (*self._by_module.values(), *places)
            self._is_short = any(each.is_short for each in layers)
            if len(layer.looked) < TOLD_AFTER or layer.values < MIN_VALUES:
                return
            if self._notes.steps < TOLD_FROM:
                return
            dead = int(layer.alive.logical_not().sum())
            if dead >= DEAD_SHARE * len(layer.alive):
                self._tell(layer, dead, modules, place)
            layer.begin()

    def _layer(self, modules: Running, place: Place | None, result: Tensor) -> _Layer | None:
        """What is known of the ReLU: by its module if it is one, else by its line."""
        units = result.shape[_unit_dim(result)]
        relu = modules[-1] if modules and isinstance(modules[-1], nn.ReLU) else None
        known = self._by_place.get(place) if relu is None else self._by_module.get(relu)
        if known is None:
            alive = torch.zeros(units, dtype=torch.bool, device=result.device)
            known = _Layer(alive)
            if relu is None:
                self._by_place[place] = known
            else:
                self._by_module[relu] = known
        elif len(known.alive) != units:  # one ReLU for layers of different widths
            return None
        return known

    def _tell(self, layer: _Layer, dead: int, modules: Running, place: Place | None) -> None:
        total = len(layer.alive)
        owner = next((m for m in reversed(modules) if m is not None), None)
        name = "" if owner is None else self._names.module(owner)
        of = f" of `{name}`" if name else ""
        which = "All" if dead == total else f"{dead} of the"
        self._notes.find(
            "dead_units",
            f"{which} {counted(total, 'unit')}{of} behind a ReLU give 0 for every sample: no"
            " gradient passes them, so they learn nothing.",
            (
                f"{dead} of {total} outputs were 0 for all of {layer.values:,} values each, at"
                f" {len(layer.looked)} steps from {min(layer.looked)} to {max(layer.looked)}",
            ),
            "optimizer.param_groups[0]['lr'] /= 10  # and start again; or use nn.LeakyReLU()",
            place,
            name,
        )


def _unit_dim(t: Tensor) -> int:
    """The dimension of the features: 1 of images (N, C, H, W), else the last."""
    return 1 if t.ndim >= 4 else t.ndim - 1
