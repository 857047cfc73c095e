"""The line that wrote or made a tensor, in words."""

from __future__ import annotations

from engine.project.cells import source_title
from engine.protocol import WrittenBy


def written_words(where: WrittenBy) -> str:
    """The line in words: `add_ in cell 3, line 1: x.add_(1)`."""
    op = where.op or "backward, or a write that was not recorded,"
    line = f", line {where.line}" if where.line is not None else ""
    text = f": {where.text}" if where.text else ""
    return f"{op} in {source_title(where.cell)}{line}{text}"
