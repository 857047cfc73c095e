"""What a view has read of the console, to tell when that is old."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from engine.protocol import Variable

_NAME = re.compile(r"(?<![\w.])[^\W\d]\w*")


@dataclass(frozen=True)
class ConsoleReading:
    """The expressions that were read, and the variables that they name, as they were then."""

    expressions: tuple[str, ...]
    variables: tuple[Variable, ...]

    def is_old(self, now: Sequence[Variable]) -> bool:
        """Whether a variable has been bound to another value, or written into, or is gone."""
        return _named(self.expressions, now) != self.variables


def read_of(expressions: Iterable[str], now: Sequence[Variable]) -> ConsoleReading:
    """What these expressions read, while the console has these variables."""
    expressions = tuple(expressions)
    return ConsoleReading(expressions, _named(expressions, now))


def _named(expressions: Sequence[str], variables: Sequence[Variable]) -> tuple[Variable, ...]:
    names = {name for text in expressions for name in _NAME.findall(text)}
    return tuple(variable for variable in variables if variable.name in names)
