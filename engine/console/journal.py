"""The journal of a console: the cells that ran, in order, without tensors or graphs."""

from __future__ import annotations

import ast
import builtins
import weakref
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from ..restoring.random_states import States, random_states

_REACH_EVERYTHING = frozenset(("exec", "eval", "globals", "locals", "vars", "gc", "setattr"))
"""Functions through which code reaches variables that it does not name."""
_PREDEFINED = frozenset(("torch", "nn", "F", "np")).union(dir(builtins)) - _REACH_EVERYTHING
"""Names that every console defines: they do not make one cell depend on another."""
_CHANGES_TORCH = ("set_", "use_", "enable_", "disable_", "manual_seed", "seed", "backends")
"""The first letters of attributes that change what later cells do."""


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


@dataclass(eq=False)
class Journal:
    """The cells so far, in the order in which they ended."""

    entries: list[Cell] = field(default_factory=list)
    states: States = field(default_factory=dict)
    """The states of the random generators when they were last read."""

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
            self.entries.append(
                Cell(weakref.ref(owner), source, title, before, self.read_states(), error)
            )

    @property
    def sources(self) -> list[str]:
        return [cell.source for cell in self.cells]

    @property
    def cells(self) -> list[Cell]:
        """The cells that ran to their end."""
        return [cell for cell in self.entries if not cell.error]

    def cells_behind(self, owner: object, expressions: Iterable[str]) -> list[Cell]:
        """The cells of `owner` on which the values of `expressions` may depend, in order: those
        that share a variable with an expression or with another such cell, and those that draw
        random numbers or may change anything."""
        names = {cell: _names_in(cell.source) for cell in self.cells if cell.owner() is owner}
        wanted = frozenset[str]().union(*map(_names_in, expressions))
        needed = {cell for cell in names if _may_matter(cell, names[cell])}
        known = None
        while known != needed:
            known = set(needed)
            wanted = wanted.union(*(names[cell] for cell in needed))
            needed |= {cell for cell in names if names[cell] & wanted}
        return [cell for cell in names if cell in needed]


def _names_in(code: str) -> frozenset[str]:
    """The names in `code` that not every console defines; none if it is not Python."""
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError):
        return frozenset()
    names = set[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            names.add(node.id)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.alias):
            names.add((node.asname or node.name).partition(".")[0])
    return frozenset(names) - _PREDEFINED


def _may_matter(cell: Cell, names: frozenset[str]) -> bool:
    """Whether a cell draws random numbers, or may change modes of torch or variables that it does
    not name."""
    if cell.before != cell.after or not names or "*" in names or names & _REACH_EVERYTHING:
        return True
    nodes = ast.walk(ast.parse(cell.source))
    attributes = (node.attr for node in nodes if isinstance(node, ast.Attribute))
    return any(name.startswith(_CHANGES_TORCH) for name in attributes)
