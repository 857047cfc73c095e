"""Reads DOT by its grammar (graphviz.org/doc/info/lang.html): what we write of it, and no more."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

TOKEN = re.compile(
    r'\s*(?:"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<word>[A-Za-z_]\w*|-?(?:\.\d+|\d+(?:\.\d*)?))'
    r"|(?P<sign>->|[{}\[\]=;,]))",
    re.DOTALL | re.ASCII,
)
"""A backslash keeps the character after it from ending a quoted string."""


@dataclass
class Dot:
    """A digraph: nodes and edges with their attributes, and the names of its subgraphs."""

    name: str
    nodes: dict[str, dict[str, str]] = field(default_factory=dict)
    edges: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)
    subgraphs: list[str] = field(default_factory=list)


def read_dot(text: str) -> Dot:
    """Raises ValueError at the first thing that the grammar has no place for."""
    tokens = [("end", ""), *reversed(list(_tokens(text)))]

    def take(*wanted: str) -> str:
        kind, value = tokens.pop()
        if wanted and (kind == "id" or value not in wanted):
            raise ValueError(f"{value!r} where {wanted} should stand")
        if not wanted and kind != "id":
            raise ValueError(f"{value!r} where an ID should stand")
        return value

    def is_next(sign: str) -> bool:
        return tokens[-1] == ("sign", sign)

    def attributes() -> dict[str, str]:
        found = {}
        if is_next("["):
            take("[")
            while not is_next("]"):
                name = take()
                take("=")
                found[name] = take()
                if not is_next("]"):
                    take(",", ";")
            take("]")
        return found

    def statements() -> None:
        take("{")
        while not is_next("}"):
            first = take()
            if first == "subgraph":
                dot.subgraphs.append(take())
                statements()
            elif is_next("="):
                take("=")
                take()
            elif is_next("->"):
                take("->")
                dot.edges.append((first, take(), attributes()))
            elif first in ("node", "edge", "graph"):
                attributes()
            else:
                dot.nodes.setdefault(first, {}).update(attributes())
            if is_next(";"):
                take(";")
        take("}")

    if take() != "digraph":
        raise ValueError("no digraph")
    dot = Dot(take())
    statements()
    if len(tokens) > 1:
        raise ValueError(f"{tokens[-1][1]!r} after the end")
    return dot


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    text = text.rstrip()
    place = 0
    while place < len(text):
        match = TOKEN.match(text, place)
        if match is None:
            raise ValueError(f"no DOT: {text[place : place + 20]!r}")
        place = match.end()
        if match["quoted"] is not None:
            yield "id", match["quoted"].replace('\\"', '"')
        else:
            yield ("sign", match["sign"]) if match["sign"] else ("id", match["word"])
