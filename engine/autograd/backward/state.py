"""The state of backward debugging between commands."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ...errors import LabError
from .backward_pass import BackwardPass
from .breakpoints import Breakpoints

if TYPE_CHECKING:
    from ...console.namespace import Namespace


@dataclass
class BackwardState:
    """The pass under way, the namespace that it looks names up in (None before the first pass), and
    the breakpoints, which outlive it."""

    under_way: BackwardPass | None = None
    namespace: Namespace | None = None
    breakpoints: Breakpoints = field(default_factory=Breakpoints)

    def require(self) -> BackwardPass:
        """The pass under way. Raises LabError when there is none."""
        if self.under_way is None:
            raise LabError(
                "No backward pass is under way on this forward pass.",
                hint="Start one: it runs the forward pass to the loss if need be.",
            )
        return self.under_way

    def close(self) -> None:
        """Close the pass under way, if any: it may hold the real engine."""
        under_way, self.under_way = self.under_way, None
        if under_way is not None:
            under_way.close()
