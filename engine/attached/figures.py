"""What the user's code logs while a window is attached."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from torch import Tensor

from ..console.users_lab import UsersLab
from ..loops.logged import as_logged


class Newest(Mapping[str, Tensor]):
    """The newest tensors that were logged, by name; `found()` gives those of now."""

    def __init__(self, found: Callable[[], Mapping[str, Tensor]]) -> None:
        self._found = found

    def __getitem__(self, name: str) -> Tensor:
        return self._found()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._found())

    def __len__(self) -> int:
        return len(self._found())


class LoggedFigures:
    def __init__(self, lab: UsersLab) -> None:
        self._lab = lab
        self.newest = lambda: lab.logged
        self._last: dict[str, int] = {}  # the last step after which a figure was logged

    def pass_by(self, figures: Mapping[str, Any], steps: int) -> bool:
        """Whether `add` would read none of these figures, as the step is not looked at. If so, it
        need not be called: this costs less."""
        last, before = self._last, steps - 1
        for name, value in figures.items():
            kind = type(value)
            is_number = kind is float or (kind is Tensor and value.numel() == 1)
            if not is_number or last.get(name, -2) < before:
                return False
        for name in figures:
            last[name] = steps
        return True

    def add(
        self, figures: Mapping[str, Any], steps: int, step: int | None, is_looked_at: bool
    ) -> None:
        """Draw figures that are logged after `steps` steps, as `UsersLab.log` does with `step`, and
        raise as it does. If what comes is not looked at, numbers that are logged in every step are
        not read."""
        kept = {
            name: value
            for name, value in figures.items()
            if is_looked_at
            or self._last.get(name, -2) < steps - 1
            or as_logged(name, value) is not None
        }
        if kept:
            self._lab.log(step, **kept)
        for name in figures:
            self._last[name] = steps
