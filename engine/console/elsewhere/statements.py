"""The statements of the cells that made what some names stand for, as Python of its own."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Sequence
from typing import NamedTuple


class Statement(NamedTuple):
    """A statement of a cell: what it makes or changes, and what it reads."""

    text: str
    makes: frozenset[str]
    reads: frozenset[str]
    binds: frozenset[str]
    """The names that it gives a whole value."""


class Statements(NamedTuple):
    """`used`: the statements, in their order. `makes`: the names that they give a value.
    `missing`: names that they read, and no cell makes."""

    used: tuple[Statement, ...]
    makes: frozenset[str]
    missing: tuple[str, ...]

    @property
    def source(self) -> str:
        return "\n".join(each.text for each in self.used)


def whole(cell: str) -> Statement:
    """All of a cell as one statement."""
    parts = [*_statements_in(cell)]
    makes, reads, binds = (
        frozenset().union(*(getattr(part, name) for part in parts))
        for name in ("makes", "reads", "binds")
    )
    return Statement(cell, makes, reads, binds)


def statements_of(names: Iterable[str], cells: Sequence[str | Statement]) -> Statements:
    """The statements at the top of the cells that give these names a value, or change an entry or
    an attribute of it, and those that make what they read, and so on. What a call changes is not
    seen. A cell that is one statement comes whole."""
    known = [
        statement
        for cell in cells
        for statement in ([cell] if isinstance(cell, Statement) else _statements_in(cell))
    ]
    wanted, before = set(names), set[str]()
    while wanted != before:
        before = set(wanted)
        for statement in known:
            if statement.makes & wanted or "*" in statement.makes:
                wanted |= statement.reads
    used = [each for each in known if each.makes & wanted or "*" in each.makes]
    made = frozenset().union(*(each.makes for each in used))
    unknown = () if "*" in made else tuple(sorted(wanted - made - set(dir(builtins))))
    return Statements(tuple(used), made, unknown)


def statements_making(name: str, cells: Sequence[str]) -> list[Statement]:
    """The statements at the top of the cells that give this name a value: the last that does so
    and all that change an entry or an attribute of it."""
    found = [each for cell in cells for each in _statements_in(cell) if name in each.makes]
    whole = [i for i, each in enumerate(found) if name in each.binds]
    return found[whole[-1] :] if whole else []


def _statements_in(cell: str) -> Iterable[Statement]:
    try:
        tree = ast.parse(cell)
    except SyntaxError:  # it never ran
        return
    for node in tree.body:
        text = ast.get_source_segment(cell, node) or ""
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
            first = min((each.lineno for each in node.decorator_list), default=node.lineno)
            lines = cell.splitlines()[first - 1 : node.end_lineno]
            text = "\n".join(lines)
        binds = frozenset(_bound_by(node))
        yield Statement(text, binds | frozenset(_changed_by(node)), names_in(node), binds)


def _bound_by(node: ast.stmt) -> Iterable[str]:
    """The names that a statement gives a value; "*" for an import of all names."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
        yield node.name
        return
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
            yield inner.id
        elif isinstance(inner, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
            yield inner.name
        elif isinstance(inner, ast.alias):
            yield (inner.asname or inner.name).split(".")[0]


def _changed_by(node: ast.stmt) -> Iterable[str]:
    """The names of which a statement gives an entry or an attribute a value."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
        return
    for inner in ast.walk(node):
        if isinstance(inner, ast.Attribute | ast.Subscript) and isinstance(inner.ctx, ast.Store):
            owner: ast.expr = inner
            while isinstance(owner, ast.Attribute | ast.Subscript):
                owner = owner.value
            if isinstance(owner, ast.Name):
                yield owner.id


def names_in(node: ast.AST) -> frozenset[str]:
    """The names that code reads from around it. One that a function has for itself, too, is not
    among them."""
    own: set[str] = set()
    for inner in ast.walk(node):
        if isinstance(inner, ast.arg):
            own.add(inner.arg)
        elif isinstance(inner, ast.FunctionDef | ast.Lambda | ast.ClassDef | ast.AsyncFunctionDef):
            own |= {
                each.id
                for each in ast.walk(inner)
                if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
            }
        elif isinstance(inner, ast.comprehension):
            own |= {each.id for each in ast.walk(inner.target) if isinstance(each, ast.Name)}
    return frozenset(
        inner.id
        for inner in ast.walk(node)
        if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Load) and inner.id not in own
    )
