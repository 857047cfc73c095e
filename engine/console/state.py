"""What the console keeps between commands."""

from __future__ import annotations

from dataclasses import dataclass, field

from .namespace import Namespace


@dataclass
class ConsoleState:
    """The namespace that cells run in, and that of the example that ran last."""

    namespace: Namespace = field(default_factory=Namespace)
    example: Namespace | None = None

    def begin_example(self) -> Namespace:
        """A new namespace for an example, with a journal of its own."""
        self.example = Namespace()
        return self.example

    def begin_namespace(self) -> None:
        """Replace the namespace by a new one, but keep the journal and the folder."""
        self.namespace = Namespace(self.namespace.journal, self.namespace.folder)
