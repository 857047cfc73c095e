"""The lines that a loop's losses are drawn as: one for each optimizer, by the user's names."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from math import isfinite

import torch
from torch import Tensor
from torch.optim import Optimizer

from ..protocol import LOSS_PART, LoopLine
from .step_losses import StepLoss, Value

MAX_LINES = 8
"""The optimizers beyond the first ones share the last line."""
MAX_NAMES = 8
"""The most names of losses on one line."""


class _Line:
    """`unknown_from` is the first of the last steps if their losses are not known, else 0."""

    def __init__(self, optimizer: str, unknown_from: int) -> None:
        self.optimizer = optimizer
        self.losses: list[str] = []
        self.is_sum = False
        self.first_bad = self.bad_from = self.bad_steps = self.bad_since = 0
        self._unknown_from = unknown_from

    def add(self, step: int, losses: Sequence[float | None]) -> None:
        known = [loss for loss in losses if loss is not None]
        if not known or len(known) < len(losses):
            self._unknown_from = self._unknown_from or step
            return
        self.is_sum |= len(known) > 1
        unknown_from, self._unknown_from = self._unknown_from, 0
        if isfinite(sum(known)):
            self.bad_since = 0
            return
        self.bad_steps += 1
        self.bad_from = self.bad_from or unknown_from or step
        self.first_bad = self.first_bad or step
        self.bad_since = self.bad_since or step


class LossLines:
    """`name_of` as in `OwnLoop`. Optimizers with one name have one line: one that is made anew goes
    on with it. `is_late()`: there were steps before those that are shown."""

    def __init__(self, name_of: Callable[[object], str], is_late: Callable[[], bool]) -> None:
        self._name_of, self._is_late = name_of, is_late
        self._lines: list[_Line] = []
        self._of = weakref.WeakKeyDictionary[Optimizer, int]()
        self._unnamed = 0

    def __len__(self) -> int:
        return len(self._lines)

    def of(self, optimizer: Optimizer) -> int:
        """The number of the line of an optimizer, from 0."""
        line = self._of.get(optimizer)
        if line is None:
            name = self._name_of(optimizer)
            if not name:
                self._unnamed += 1
                name = f"optimizer {self._unnamed}"
            names = [each.optimizer for each in self._lines]
            if name not in names and len(names) < MAX_LINES:
                is_last = len(names) == MAX_LINES - 1
                name_shown = "other optimizers" if is_last else name
                self._lines.append(_Line(name_shown, unknown_from=int(self._is_late())))
                names.append(name)
            line = self._of[optimizer] = names.index(name) if name in names else MAX_LINES - 1
        return line

    def suffix(self, optimizer: Optimizer) -> str:
        """What tells its figures from those of the others; "" while there are none."""
        return f" of {self._lines[self.of(optimizer)].optimizer}" if len(self._lines) > 1 else ""

    def parts(self, learned: StepLoss) -> dict[str, Value]:
        """The losses of a step by name, if the line has several; of the first MAX_NAMES names."""
        found, names = learned.by_name(), self._lines[learned.line].losses
        names += [name for name in found if name not in names][: MAX_NAMES - len(names)]
        parts = {f"{LOSS_PART}{name}": found[name] for name in found if name in names}
        return parts if len(names) > 1 else {}

    def add(self, steps: Sequence[StepLoss], ahead: int) -> None:
        """These steps, whose numbers are less by `ahead`, have ended. Waits for the device, once
        for each that has some of their losses."""
        values = [loss.value for step in steps for loss in step.losses]
        numbers = iter(_read(values))
        for step in steps:
            losses = [next(numbers) for _ in step.losses]
            self._lines[step.line].add(step.step + ahead, losses)

    def lines(self) -> tuple[LoopLine, ...]:
        return tuple(
            LoopLine(
                line.optimizer,
                tuple(line.losses),
                line.is_sum,
                line.first_bad,
                line.bad_from,
                line.bad_steps,
                line.bad_since,
            )
            for line in self._lines
        )


def _read(values: Sequence[Value | None]) -> list[float | None]:
    """The values as numbers: those on one device are read together."""
    of_device: dict[torch.device, list[int]] = {}
    for place, value in enumerate(values):
        if isinstance(value, Tensor):
            of_device.setdefault(value.device, []).append(place)
    found: list[float | None] = [None if isinstance(v, Tensor) else v for v in values]
    for places in of_device.values():
        tensors = [torch.as_tensor(values[place]).double() for place in places]
        for place, number in zip(places, torch.stack(tensors).tolist(), strict=True):
            found[place] = number
    return found
