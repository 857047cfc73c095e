"""Numbers that are read from the GPU in every step."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor

from ..recording.modes import Running, Tell
from ..recording.recording import Place
from .notes import Notes, is_plain

TOLD_AFTER = 16
"""Steps in a row."""


class Waiting:
    """Counts in how many steps one after the other a line has read a number from the GPU."""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes
        self._reads: dict[Place | None, tuple[int, int]] = {}
        """By line: the last step in which it read a number, and the number of such steps in a
        row."""
        self._is_told = False
        self.told: Mapping[Callable, Tell] = dict.fromkeys(
            (Tensor.item, Tensor.tolist, Tensor.__float__), self._read
        )

    def _read(
        self, func: Callable, args: tuple, kwargs: dict[str, Any], result: Any, modules: Running
    ) -> None:
        steps = self._notes.steps
        if self._is_told or not steps or not is_plain(args[0]) or not is_on_gpu(args[0]):
            return
        place = self._notes.place()
        last, count = self._reads.get(place, (0, 0))
        if last == steps:
            return
        count = count + 1 if last == steps - 1 else 1
        self._reads[place] = steps, count
        if count == TOLD_AFTER:
            self._is_told = True
            name = self._notes.name_of(args[0], "loss")
            self._notes.find(
                "waiting",
                f"A number is read from the {args[0].device.type.upper()} device in every step:"
                " Python waits until all that was asked of the device is computed, and the device"
                " then waits for Python.",
                (f"`{self._notes.source(place)}` ran in each of the last {count} steps",),
                f"total += {name}.detach()  # and total.item() after the epoch, or every 100 steps",
                place,
            )


def is_on_gpu(t: Tensor) -> bool:
    """Whether Python has to wait for the tensor's device to read it."""
    return t.is_cuda
