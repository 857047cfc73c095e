"""The pieces of the console's transcript."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from engine.protocol import FailedOperands, Finding, OutputTailSnapshot

Kind = Literal[
    "input", "stdout", "stderr", "result", "error", "hint", "note", "operands", "tail", "finding"
]
ROLES: dict[Kind, str] = {
    "input": "text",
    "stdout": "text",
    "stderr": "warning",
    "result": "accent",
    "error": "error",
    "hint": "text",
    "note": "muted",
    "operands": "text",
    "tail": "text",
    "finding": "text",
}


@dataclass
class Entry:
    """A piece of the transcript. `faulty_line` is the 1-based line of an input that failed;
    `operands` are those of a failed operation, shown as a picture; a `tail` is below its note; a
    `finding` may be open. The lines of an input are those of `file` from `first_line` on; "" while
    that is not known."""

    kind: Kind
    text: str = ""
    faulty_line: int | None = None
    operands: FailedOperands | None = None
    tail: OutputTailSnapshot | None = None
    finding: Finding | None = None
    is_open: bool = False
    file: str = ""
    first_line: int = 1
