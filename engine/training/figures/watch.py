"""The interface through which a loop calls what watches parts of its model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from torch import Tensor


class Watch(Protocol):
    """Figures of the model's parts in a step."""

    def begin(self, is_measured: bool) -> None:
        """A step begins, which has a row or not."""
        ...

    def take(self) -> Mapping[str, Tensor]:
        """The figures of the step, 0-dim."""
        ...
