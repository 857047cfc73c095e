"""The kinds of values in the text of a TorchScript program, for the walk through it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..contents.artifact import shortened

MAX_ITEMS = 10_000


@dataclass(frozen=True)
class ModuleAt:
    path: str


@dataclass(frozen=True)
class Value:
    name: str


@dataclass(frozen=True)
class Known:
    """A constant of the code or of a module."""

    value: Any


@dataclass(frozen=True)
class Named:
    """A dotted name: a function of torch or of the code."""

    name: str


@dataclass(frozen=True)
class Several:
    items: tuple[Any, ...]
    size: int

    @staticmethod
    def of(items: list[Any]) -> Several:
        """Lists may hold each other: their items are counted as often as they are named."""
        size = 1 + sum(each.size if isinstance(each, Several) else 1 for each in items)
        if size > MAX_ITEMS:
            raise TooLargeError
        return Several(tuple(items), size)


NOTHING = Known(None)


class TooLargeError(Exception):
    pass


def names_in(value: Any) -> list[str]:
    """The values in what an expression gives."""
    if isinstance(value, Value):
        return [value.name]
    if isinstance(value, Several):
        return [name for each in value.items for name in names_in(each)]
    return []


def constant_text(value: Any) -> str:
    """A constant argument in words; "" for a value."""
    if isinstance(value, Known):
        return shortened(repr(value.value), 200)
    if isinstance(value, Several) and not names_in(value):
        return shortened(f"[{', '.join(map(constant_text, value.items))}]", 500)
    return ""
