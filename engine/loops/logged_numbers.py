"""The numbers that a loop's code logs, each at the step that it belongs to."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from ..protocol import LoggedPoints
from ..runs.parameter_figures import spread

MAX_POINTS = 200
"""The most points of one name between two snapshots. Of more points this many stay, evenly over the
steps."""


class LoggedNumbers:
    """`add` gives a number to a step; a step has the newest of a name. `read` gives what was added
    since it was last called: a row of the step may have been told long before."""

    def __init__(self) -> None:
        self._waiting: dict[str, dict[int, Tensor | float]] = {}

    def add(self, step: int, numbers: Mapping[str, Tensor | float]) -> None:
        """`numbers` are 0-dim tensors without a graph, which nobody else changes, or floats. No
        step of a name is less than the one before."""
        for name, value in numbers.items():
            points = self._waiting.setdefault(name, {})
            points[step] = value
            if len(points) > 2 * MAX_POINTS:
                self._waiting[name] = _thin(points)

    def take(self, name: str) -> Tensor | float | None:
        """The newest number of this name that is not read yet, which is not told then."""
        points = self._waiting.pop(name, None)
        return None if points is None else list(points.values())[-1]

    def read(self, but: str = "") -> dict[str, LoggedPoints]:
        """All names but this one. Waits for the device, once for each that has some numbers."""
        waiting, self._waiting = self._waiting, {}
        if but in waiting:
            self._waiting[but] = waiting.pop(but)
        points = {name: _thin(of_name) for name, of_name in list(waiting.items())}
        of_device: dict[torch.device, list[Tensor]] = {}
        for of_name in points.values():
            for value in of_name.values():
                if isinstance(value, Tensor):
                    of_device.setdefault(value.device, []).append(value)
        known = {
            id(tensor): number
            for tensors in of_device.values()
            for tensor, number in zip(tensors, torch.stack(tensors).tolist(), strict=True)
        }
        return {
            name: LoggedPoints(
                tuple(of_name),
                tuple(known.get(id(value), value) for value in of_name.values()),  # pyright: ignore
            )
            for name, of_name in points.items()
        }

    def forget(self) -> None:
        self._waiting.clear()


def _thin(points: dict[int, Tensor | float]) -> dict[int, Tensor | float]:
    return {step: points[step] for step in spread(list(points), MAX_POINTS)}
