"""What was done in a lab, in order: cells of the console and backward passes, as plain facts.

It keeps no graph and no tensor; a script is written from it.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch

from ..random_states import States, random_states

if TYPE_CHECKING:
    from ..autograd.backward.pass_record import Pass
    from ..lab import Lab


@dataclass(eq=False)
class Cell:
    """Code that ran in the console. `error` names what ended it, on line `line` of `source`;
    line 0 if nothing of it ran. `inside` is the pass under way, which stood at `position`;
    `lowest` is how far that has gone back since."""

    world: weakref.ref[Any]
    source: str
    title: str
    before: States
    after: States
    inside: Pass | None = None
    position: int = 0
    lowest: int = 0
    error: str = ""
    line: int = 0

    def failed(self, error: BaseException, name: str) -> None:
        """`error` ended it; `name` is the one that its frames carry."""
        self.error = type(error).__name__
        place = error.__traceback__
        while place is not None:
            code = place.tb_frame.f_code
            if code.co_filename == name and code.co_name == "<module>":
                self.line = place.tb_lineno
            place = place.tb_next


@dataclass(eq=False)
class Journal:
    """`threads` is how many share a sum in this lab, which decides its last bits."""

    entries: list[Cell | Pass] = field(default_factory=list)
    threads: int = field(default_factory=torch.get_num_threads)
    current: Pass | None = None
    """The pass under way."""
    _states: States = field(default_factory=dict)

    @contextmanager
    def cell(self, world: object, source: str, title: str) -> Iterator[Cell]:
        """A cell runs inside this; `world` is the namespace whose variables it sees."""
        before = self.states()
        cell = Cell(weakref.ref(world), source, title, before, before)
        if self.current is not None:
            cell.inside, cell.position = self.current, self.current.position
            cell.lowest = cell.position
            self.current.events.append(cell)
        self.entries.append(cell)
        try:
            yield cell
        finally:
            cell.after = self.states()

    def states(self) -> States:
        """The generators as they stand; what is as it was at the last call is held once."""
        held, new = self._states, random_states()
        self._states = {k: held[k] if held.get(k) == state else state for k, state in new.items()}
        return self._states

    @property
    def cells(self) -> int:
        return sum(isinstance(entry, Cell) for entry in self.entries)


def journal_of(lab: Lab) -> Journal:
    """The lab's journal, begun at its first use."""
    if lab.journal is None:
        lab.journal = Journal()
    return lab.journal
