"""What the trace keeps between commands."""

from __future__ import annotations

from dataclasses import dataclass

from .trace import Trace


@dataclass
class TraceState:
    """The trace that is stepped through."""

    current: Trace | None = None

    def drop(self) -> None:
        """Let go of the trace and of the values that its recording kept."""
        old, self.current = self.current, None
        if old is not None:
            old.recording.drop_values()  # the console's history still holds the rest of it
