"""References to what a view can show: plain data, read without a view or the engine.

`Module` and `Parameter` are named as `named_modules()` and `named_parameters()` of the project's
subject name them. On the canvas that is the block's name: `linear1.weight`.
"""

from __future__ import annotations

from msgspec import Struct


class Blocks(Struct, frozen=True):
    """Blocks of the canvas, by id."""

    ids: tuple[str, ...]


class Module(Struct, frozen=True):
    """A module of the subject; "" is the subject itself."""

    path: str


class Parameter(Struct, frozen=True):
    """A parameter or buffer of the subject."""

    name: str


class Node(Struct, frozen=True):
    """A node of an autograd graph. `graph` is the command that the graph answered: another graph
    has other nodes with the same ids."""

    id: int
    graph: int


class Call(Struct, frozen=True):
    """A call of a trace. `trace` is the command that the trace answered."""

    number: int
    trace: int


class Element(Struct, frozen=True):
    """A tensor of the console, or one element of it. The expression is Python."""

    expression: str
    index: tuple[int, ...] | None = None


class StorageCell(Struct, frozen=True):
    """A cell of the storage under a tensor of the console, counted from the storage's start."""

    expression: str
    cell: int


class Line(Struct, frozen=True):
    """A line of code, counted from 1; 0 is the whole file. `file` is a path, a cell of the console
    (`<cell 3>`), the canvas's Python (`<model>`) or the step of Train (`<step>`)."""

    file: str
    line: int = 0


Reference = Blocks | Module | Parameter | Node | Call | Element | StorageCell | Line
