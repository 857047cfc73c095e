"""The state of the trace between commands."""

from __future__ import annotations

from dataclasses import dataclass

from .trace import Trace


@dataclass
class TraceState:
    """The trace that is stepped through."""

    current: Trace | None = None

    def drop(self) -> None:
        """Drop the trace and the values in its recording."""
        old, self.current = self.current, None
        if old is not None:
            old.recording.drop_values()  # the console still has this recording
