"""The journal of a lab: its cells and backward passes in order, without tensors or graphs.

The script that repeats a backward pass is written from it.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from ..random_states import States, random_states


@dataclass(frozen=True, eq=False)
class Cell:
    """A cell that ran in the console `owner`. `before` and `after` are the states of the random
    generators. `error` is the class name of the exception that ended it."""

    owner: weakref.ref[Any]
    source: str
    title: str
    before: States
    after: States
    error: str = ""


@dataclass(frozen=True, eq=False)
class ZeroGrad:
    """The `.grad` of all tensors shown was set to None or to zero."""

    set_to_none: bool
    title: str = "zero_grad()"


@dataclass(frozen=True)
class RootGradient:
    """The gradient that backward starts with at a root. `code` is Python with the placeholders
    {root} and {text}; `text` is the expression that the user typed."""

    code: str = "None"
    text: str = ""


@dataclass(frozen=True)
class Roots:
    """Where a pass starts: at the values of the console's `expressions`; or at the gradient that
    the previous pass has found for the tensor `of`; or else at the model's loss, made by forward
    run number `run` (None for all others)."""

    expressions: tuple[str, ...] = ()
    gradients: tuple[RootGradient, ...] = (RootGradient(),)
    of: str = ""
    run: int | None = None


@dataclass(frozen=True)
class Place:
    """Where a node stands in its graph: it is number `number` of the nodes called `name`, counted
    level by level from the roots. `word` is a short name for it; `label` is the tensor or the
    module that it belongs to."""

    name: str
    number: int
    word: str
    label: str = ""


@dataclass(frozen=True)
class Edit:
    """`expression` replaced the gradient for output number `output` of a node with `outputs`
    outputs. `copies`: it may write into its variables, so it gets copies. `seed`: it draws random
    numbers, as after torch.manual_seed(seed). `names` are its variables."""

    place: Place
    expression: str
    output: int
    outputs: int
    copies: bool
    seed: int | None
    names: tuple[str, ...]


@dataclass(frozen=True)
class Leaf:
    """A tensor whose `.grad` a pass shows: its node, and the position of that node in the plan."""

    place: Place | None
    position: int | None


@dataclass(frozen=True)
class Event:
    """Something done while a pass stood at `position`. `lowest` is the lowest position that the
    pass has gone back to since. `at`: see Pass."""

    done: Cell | ZeroGrad
    position: int
    lowest: int
    at: Place | None = None


@dataclass(frozen=True, eq=False)
class Pass:
    """A backward pass from values of `owner`, a console or a forward pass; it is at `position` of
    `size`.

    `parent` is the pass from which it starts: if `again`, from the same roots, else from a gradient
    that the parent has found. `clears`: the pass began by setting every `.grad` to None. `at` is
    the last node that has run; with the real engine, the next node to run. `found` says which of
    `inputs` have a gradient. `trouble` is why the pass cannot be repeated.
    """

    owner: weakref.ref[Any]
    roots: Roots
    parent: Pass | None
    again: bool
    before: States
    after: States
    retain_graph: bool
    create_graph: bool
    real_engine: bool
    clears: bool
    position: int
    size: int
    at: Place | None
    events: tuple[Event, ...]
    edits: tuple[Edit, ...]
    leaves: Mapping[str, Leaf]
    inputs: tuple[str, ...]
    found: tuple[bool, ...]
    breakpoints: tuple[tuple[str, Place | None], ...]
    trouble: str

    @property
    def first(self) -> Pass:
        """The first pass from the same roots."""
        return self.parent.first if self.again and self.parent else self

    @property
    def start(self) -> Pass:
        """The pass at the start of the chain of parents: its roots come from no other pass."""
        return self.parent.start if self.parent else self

    @property
    def cells(self) -> list[Cell]:
        """The cells that ran during this pass."""
        return [event.done for event in self.events if isinstance(event.done, Cell)]


@dataclass(eq=False)
class Journal:
    """The cells and passes so far. `threads` is torch's number of threads, which decides the last
    bits of a sum."""

    entries: list[Cell | Pass] = field(default_factory=list)
    """Finished passes, and the cells that ran outside a pass."""
    events: list[Event] | None = None
    """The record of the pass under way; None without one."""
    position: int = 0
    """The position of the pass under way."""
    states: States = field(default_factory=dict)
    """The states of the random generators when they were last read."""
    threads: int = field(default_factory=torch.get_num_threads)

    def read_states(self) -> States:
        """The states as they are now. States that have not changed keep their old object."""
        held, new = self.states, random_states()
        self.states = {k: held[k] if held.get(k) == state else state for k, state in new.items()}
        return self.states

    @contextmanager
    def cell(self, owner: object, source: str, title: str) -> Iterator[None]:
        """Add the cell that runs in this context."""
        before, error = self.read_states(), ""
        try:
            yield
        except BaseException as raised:
            error = type(raised).__name__
            raise
        finally:
            self.add(Cell(weakref.ref(owner), source, title, before, self.read_states(), error))

    @property
    def sources(self) -> list[str]:
        return [cell.source for cell in self.cells]

    @property
    def cells(self) -> list[Cell]:
        """The cells that ran to their end, in their order: also those that ran during a pass."""
        during = [event.done for event in self.events or ()]
        done: list[Cell | ZeroGrad] = []
        for entry in self.entries:
            done += [entry] if isinstance(entry, Cell) else entry.cells
        cells = (entry for entry in [*done, *during] if isinstance(entry, Cell))
        return [cell for cell in cells if not cell.error]

    def add(self, done: Cell | ZeroGrad) -> None:
        """Add something that was done, during a pass or between passes."""
        if self.events is not None:
            self.events.append(Event(done, self.position, self.position))
        elif isinstance(done, Cell):
            self.entries.append(done)

    def begin_pass(self) -> None:
        self.events, self.position = [], 0

    def move_pass(self, position: int) -> None:
        """Set the position of the pass under way."""
        self.position = position
        self.events = [replace(e, lowest=min(e.lowest, position)) for e in self.events or ()]

    def end_pass(self, done: Pass) -> None:
        self.entries.append(done)
        self.events = None
