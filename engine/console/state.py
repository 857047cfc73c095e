"""What the console keeps between commands."""

from __future__ import annotations

from dataclasses import dataclass, field

from .namespace import Namespace


@dataclass
class ConsoleState:
    """The namespace that cells run in."""

    namespace: Namespace = field(default_factory=Namespace)

    def begin_namespace(self) -> None:
        """Replace the namespace by a new one, but keep the journal."""
        self.namespace = Namespace(self.namespace.journal)
