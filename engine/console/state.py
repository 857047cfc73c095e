"""The state of the console between commands."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from torch import nn

from ..importing.console_modules import ConsoleModules
from ..system.errors import LabError
from .held import HeldCode
from .namespace import Namespace
from .output import Output


@dataclass
class ConsoleState:
    """The namespace that cells run in, and those of the examples that ran last, one for each tab of
    the window that has examples. `canvas` is what the console knows under this name, and `named`
    what is reached through it, by its expression; `subject` gives the module that is `lab.subject`
    there; cells import `modules`."""

    canvas: object
    named: Callable[[], Mapping[str, object]]
    subject: Callable[[], nn.Module]
    modules: ConsoleModules = field(default_factory=ConsoleModules)
    namespace: Namespace = field(init=False)
    examples: dict[str, Namespace] = field(default_factory=dict)
    held: tuple[HeldCode, Output] | None = field(default=None, init=False)
    """The user's code that is held, and where it prints."""

    def __post_init__(self) -> None:
        self.namespace = Namespace(
            canvas=self.canvas, named=self.named, subject=self.subject, modules=self.modules
        )

    @contextmanager
    def held_at(self, code: HeldCode, output: Output) -> Iterator[None]:
        """While this context is open, `namespace` has the variables of the frame that is held."""
        before, self.namespace = self.namespace, code.namespace
        self.held = code, output
        try:
            yield
        finally:
            self.namespace, self.held = before, None

    def begin_example(self, tab: str) -> Namespace:
        """A new namespace for an example of this tab, with a journal of its own."""
        self.examples[tab] = Namespace()
        return self.examples[tab]

    def of(self, tab: str) -> Namespace:
        """The namespace of this tab's example; of "", the console's. Raises LabError if no example
        of the tab has run in this engine."""
        if not tab:
            return self.namespace
        if tab not in self.examples:
            raise LabError("The example's tensors are gone.", hint="Run the example again.")
        return self.examples[tab]

    def begin_namespace(self) -> None:
        """Replace the namespace by a new one, but keep the journal and the folder."""
        old = self.namespace
        self.namespace = Namespace(
            old.journal, old.folder, self.canvas, self.named, self.subject, self.modules
        )
        self.namespace.records = old.records
