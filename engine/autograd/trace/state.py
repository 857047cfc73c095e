"""The state of the trace between commands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .trace import Trace

if TYPE_CHECKING:
    from ...console.namespace import Namespace


@dataclass
class TraceState:
    """The trace that is stepped through, and the namespace that its code ran in."""

    current: Trace | None = None
    namespace: Namespace | None = None

    def drop(self) -> None:
        """Drop the trace and the values in its recording."""
        old, self.current = self.current, None
        if old is not None:
            old.recording.drop_values()  # the console still has this recording
