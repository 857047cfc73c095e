"""Figures that the user's code logs while a window is attached."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from torch import Tensor

from ..console.users_lab import UsersLab

T = TypeVar("T")


class Found(Mapping[str, T]):
    """What there is at any time by its name: `found()` gives what is there now."""

    def __init__(self, found: Callable[[], Mapping[str, T]]) -> None:
        self._found = found

    def __getitem__(self, name: str) -> T:
        return self._found()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._found())

    def __len__(self) -> int:
        return len(self._found())


_Passed = tuple[int, int | None, float]
"""A number that was logged: after how many steps, at which step of the script's own naming, and the
number."""


class LoggedFigures:
    """Of a number that is logged in each of many short steps, those of the steps that are looked at
    are drawn, and the last one. All else is drawn as it is logged."""

    def __init__(self, lab: UsersLab) -> None:
        self._lab = lab
        self.newest = lambda: lab.logged
        self._last: dict[str, int] = {}  # the last step after which a figure was logged
        self._ahead: dict[str, int] = {}  # 1: it is logged before the step that it belongs to
        self._passed: dict[str, _Passed] = {}

    def pass_by(self, figures: Mapping[str, Any], steps: int, step: int | None) -> bool:
        """Keep figures of a step that is not looked at, in place of those of the step before, if
        that is all that is to be done with them. Else they must be given to `add`."""
        last, passed, before = self._last, self._passed, steps - 1
        for name, value in figures.items():
            kind = type(value)
            if last.get(name, -2) < before:
                return False
            if kind is Tensor and value.is_cpu and value.numel() == 1:
                value = value.item()
            elif kind is int:
                value = float(value)
            elif kind is not float:
                return False
            last[name] = steps
            passed[name] = steps, step, value
        return True

    def add(
        self, figures: Mapping[str, Any], steps: int, step: int | None, is_looked_at: bool
    ) -> None:
        """Draw figures that are logged after `steps` steps, as `UsersLab.log` does with `step`, and
        raise as it does; of a step that is not looked at, without those that are passed by."""
        if not is_looked_at:
            figures = {n: v for n, v in figures.items() if not self.pass_by({n: v}, steps, step)}
        for name in figures:
            passed = self._passed.pop(name, None)
            if passed is not None and passed[0] < steps - 1:
                self._draw(name, passed)
        at = self._lab.add(figures, step)
        for name in figures:
            self._last[name] = steps
            if step is None:
                self._ahead[name] = at - steps

    def catch_up(self) -> None:
        """Draw what was passed by last."""
        passed, self._passed = self._passed, {}
        for name, figure in passed.items():
            self._draw(name, figure)

    def _draw(self, name: str, passed: _Passed) -> None:
        steps, step, number = passed
        self._lab.add({name: number}, steps + self._ahead.get(name, 0) if step is None else step)
