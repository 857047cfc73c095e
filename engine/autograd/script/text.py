"""Python code laid out as by a formatter: long `with` statements, and blank lines."""

from __future__ import annotations

import ast
import keyword
from collections.abc import Iterable, Sequence

WIDTH = 88
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def with_statement(items: Sequence[str], body: str) -> str:
    """A `with` statement with these items around `body`; `body` alone if there are none."""
    if not items:
        return body
    head = f"with {', '.join(items)}:"
    if len(head) > WIDTH and len(items) > 1:
        head = "\n".join(["with (", *(f"    {item}," for item in items), "):"])
    return "\n".join([head, *(f"    {line}" for line in body.splitlines())])


def words(text: str) -> list[str]:
    """The names and numbers in any text."""
    return "".join(c if c.isalnum() or c == "_" else " " for c in text).split()


def identifier(text: str) -> str:
    """A Python name made from `text`: `net[0].weight` becomes net_0_weight."""
    name = "_".join(words(text)).strip("_")[:24].rstrip("_").lower()
    return f"_{name}" if not name or name[0].isdigit() or keyword.iskeyword(name) else name


def is_expression(text: str) -> bool:
    try:
        ast.parse(text, mode="eval")
    except (SyntaxError, ValueError):
        return False
    return True


def joined(blocks: Iterable[str]) -> str:
    """Blocks of code, separated by one blank line, or two around definitions."""
    text = ""
    after_definition = False
    for block in filter(None, blocks):
        body = ast.parse(block).body
        begins = bool(body) and isinstance(body[0], _DEFINITIONS)
        if text:
            text += "\n\n\n" if begins or after_definition else "\n\n"
        text += block
        after_definition = bool(body) and isinstance(body[-1], _DEFINITIONS)
    return text + "\n"
