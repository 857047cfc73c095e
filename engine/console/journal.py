"""What was done in a lab, in order, as plain facts: cells of the console and backward passes.

It keeps no graph and no tensor; a script is written from it.
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
    """Code that ran in the console `world`. `error` names the exception that ended it. `before`
    and `after` are the states of the random numbers."""

    world: weakref.ref[Any]
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
class Given:
    """The gradient that backward starts with at a root: Python with the places {root}, and {text}
    for the expression that was typed."""

    code: str = "None"
    text: str = ""


@dataclass(frozen=True)
class Roots:
    """Where passes start: at the values of `expressions` of the console; at the gradient that the
    pass before has found for the tensor `of`; else at the model's loss, made by forward run
    `run`."""

    expressions: tuple[str, ...] = ()
    gradients: tuple[Given, ...] = (Given(),)
    of: str = ""
    run: int = 0


@dataclass(frozen=True)
class Place:
    """How a node is found again: it is number `number` of the nodes called `name` on the way down
    from the roots, level by level. `word` is short for it; `label` is the tensor or the module
    that it belongs to."""

    name: str
    number: int
    word: str
    label: str = ""


@dataclass(frozen=True)
class Edit:
    """`expression` replaced the gradient for output `output` of the node's `outputs`. `copies`: it
    may write into what it gets. `seed`: it draws random numbers, as after torch.manual_seed.
    `names` are its variables."""

    place: Place
    expression: str
    output: int
    outputs: int
    copies: bool
    seed: int | None
    names: tuple[str, ...]


@dataclass(frozen=True)
class Leaf:
    """A tensor whose `.grad` a pass shows: its node, and at which turn of the plan that runs."""

    place: Place | None
    turn: int | None


@dataclass(frozen=True)
class Event:
    """What was done while a pass stood at `position`, and how far the pass has gone back since.
    `at`: see Pass."""

    done: Cell | ZeroGrad
    position: int
    lowest: int
    at: Place | None = None


@dataclass(frozen=True, eq=False)
class Pass:
    """A pass of `world`, a console or a forward pass; it stands at `position` of `size` nodes.

    `parent` is the pass from which it starts: `again` from the same roots, else from a gradient
    that the parent has found. `clears`: every `.grad` was set to None when it began. `at` is the
    last node that has run; with the real engine, the next node to run. `found` says which of
    `inputs` have a gradient. `trouble` is why the pass cannot be repeated.
    """

    world: weakref.ref[Any]
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
        """The pass whose roots come from no other pass."""
        return self.parent.start if self.parent else self

    @property
    def cells(self) -> list[Cell]:
        """The cells that ran in its midst."""
        return [event.done for event in self.events if isinstance(event.done, Cell)]


@dataclass(eq=False)
class Journal:
    """`threads` is how many share a sum in this lab, which decides its last bits."""

    entries: list[Cell | Pass] = field(default_factory=list)
    """What has ended; a pass comes with all that was done in its midst."""
    events: list[Event] | None = None
    """What was done in the pass under way, if there is one."""
    position: int = 0
    """Where the pass under way stands."""
    states: States = field(default_factory=dict)
    """The states of the random numbers when they were last read."""
    threads: int = field(default_factory=torch.get_num_threads)

    def read_states(self) -> States:
        """The states as they are. Those that have not changed are held once."""
        held, new = self.states, random_states()
        self.states = {k: held[k] if held.get(k) == state else state for k, state in new.items()}
        return self.states

    @contextmanager
    def cell(self, world: object, source: str, title: str) -> Iterator[None]:
        """A cell runs inside this."""
        before, error = self.read_states(), ""
        try:
            yield
        except BaseException as raised:
            error = type(raised).__name__
            raise
        finally:
            self.add(Cell(weakref.ref(world), source, title, before, self.read_states(), error))

    def add(self, done: Cell | ZeroGrad) -> None:
        """Something was done, in the midst of a pass or between passes."""
        if self.events is not None:
            self.events.append(Event(done, self.position, self.position))
        elif isinstance(done, Cell):
            self.entries.append(done)

    def begin_pass(self) -> None:
        self.events, self.position = [], 0

    def move_pass(self, position: int) -> None:
        """The pass under way stands at `position` now."""
        self.position = position
        self.events = [replace(e, lowest=min(e.lowest, position)) for e in self.events or ()]

    def end_pass(self, done: Pass) -> None:
        self.entries.append(done)
        self.events = None
