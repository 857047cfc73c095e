"""The state of backward debugging between commands."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ...system.errors import LabError
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
    is_apart: bool = False
    """Whether the user's code is held, so that passes are between two of its lines."""
    is_own_call: bool = False
    """Whether the pass under way is a call of backward() in that code."""

    @contextmanager
    def apart(self) -> Iterator[None]:
        """While this context is open, the pass under way waits. Of the passes that begin meanwhile,
        the steps are taken back, except those of a call in the user's code."""
        before = self.under_way, self.namespace
        self.under_way, self.is_apart = None, True
        try:
            yield
        finally:
            if self.under_way is not None and not self.is_own_call:
                self.under_way.take_back()
            self.close()
            self.is_apart = self.is_own_call = False
            self.under_way, self.namespace = before

    def begin_own_call(self, stepped: BackwardPass) -> None:
        """A call of backward() in the user's code is the pass under way."""
        self.under_way, self.is_own_call = stepped, True

    def check_again(self) -> None:
        """Raises LabError if no second pass over the graph may begin now."""
        if self.is_apart:
            raise LabError(
                "While your code is held, one pass over the graph can be taken.",
                hint="Go back to its start to take it again.",
            )

    def check_start(self, real_engine: bool) -> None:
        """Raises LabError if no pass may begin now."""
        if self.is_own_call:
            raise LabError(
                "The backward() of your code is held here.",
                hint="Let it go on, or step it to its end, before another pass starts.",
            )
        if self.is_apart and real_engine:
            raise LabError(
                "While your code is held, steps must be taken back before it goes on.",
                hint="Step node by node, or let the code go on.",
            )

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
