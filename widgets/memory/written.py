"""The line that wrote or made a tensor, in words."""

from __future__ import annotations

from pathlib import PurePath

from engine.protocol import WrittenBy


def cell_words(cell: str) -> str:
    """The name of a cell without brackets (`<cell 3>` -> `cell 3`); the name of a file."""
    if cell.startswith("<") and cell.endswith(">"):
        return cell[1:-1]
    return PurePath(cell).name


def written_words(where: WrittenBy) -> str:
    """The line in words: `add_ in cell 3, line 1: x.add_(1)`."""
    op = where.op or "backward, or a write that was not recorded,"
    line = f", line {where.line}" if where.line is not None else ""
    text = f": {where.text}" if where.text else ""
    return f"{op} in {cell_words(where.cell)}{line}{text}"
