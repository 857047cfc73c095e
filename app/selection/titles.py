"""The title of a reference in a menu."""

from __future__ import annotations

from app.selection.known import Known
from app.selection.references import (
    Blocks,
    Call,
    Element,
    Line,
    Module,
    Node,
    Parameter,
    Reference,
    StorageCell,
)
from engine.project.cells import source_title

MAX_CHARACTERS = 40


def title_of(reference: Reference, known: Known) -> str:
    """`linear1.weight`, `h[0, 1]`, `line 7 of net.py`; long ones are cut in the middle."""
    text = _title_of(reference, known)
    half = MAX_CHARACTERS // 2
    return text if len(text) <= MAX_CHARACTERS else f"{text[: half - 1]}…{text[-half:]}"


def _title_of(reference: Reference, known: Known) -> str:
    match reference:
        case Blocks(ids):
            names = [block.name for block in known.project.model.blocks if block.id in ids]
            return names[0] if len(names) == 1 else f"{len(names)} blocks"
        case Module(path):
            return path or "the subject"
        case Parameter(name):
            return name
        case Node():
            node = known.node(reference)
            return "this node" if node is None else node.label or node.name
        case Call():
            return "this call"
        case Element(expression, index):
            return expression + (f"[{', '.join(map(str, index))}]" if index else "")
        case StorageCell(_, cell):
            return f"cell {cell}"
        case Line(file, line):
            name = source_title(file)
            return f"line {line} of {name}" if line else name
