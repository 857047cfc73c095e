"""How data of the console is found: the session says it for the time of a command. No torch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Find = Callable[[str], object]
"""Gives the value of an expression of the console."""
Stamp = Callable[[], object]
"""Gives a value that is equal as long as the console's data is the same."""
_current: ContextVar[tuple[Find, Stamp] | None] = ContextVar("console_values", default=None)


@contextmanager
def values_of(find: Find, stamp: Stamp) -> Iterator[None]:
    """In this context data of the console is found so."""
    token = _current.set((find, stamp))
    try:
        yield
    finally:
        _current.reset(token)


def current() -> tuple[Find, Stamp]:
    """The result of `values_of`. Raises DataProblem without a console."""
    found = _current.get()
    if found is None:
        from .samples import DataProblem

        raise DataProblem(
            "There is no console here that the data could be of.",
            hint="Train in the window, or take data of a file.",
        )
    return found
