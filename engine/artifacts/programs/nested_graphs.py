"""Graphs inside a node of a program: a branch of a choice, the body of a loop. Their operations
stand in a box of their own, and the names of their values begin with it."""

from __future__ import annotations

from itertools import chain, count


def inside(box: str, name: str) -> str:
    """The name in the whole program of a value that stands in a box; "" is the program itself, and
    no name stays none."""
    return f"{box}.{name}" if box and name else name


def own_box(modules: dict[str, str], around: str, name: str, kind: str) -> str:
    """Add a box with a path that no other has; returns the path."""
    name = name.rpartition("/")[2].replace(".", "_")[:100] or kind
    path = first = inside(around, name)
    numbers = chain(range(2, 10), count(len(modules)))
    while path in modules:
        path = f"{first}_{next(numbers)}"
    modules[path] = kind
    return path
