"""The project that a user makes: its document, the catalogue of blocks, edits and files, and the
examples. No torch.

Not here: messages (`protocol`), and what runs a model (`models`).

What others use are the modules below; the rest (how the tables are read, how values are checked)
is for this folder alone, and an import contract holds it. What comes from outside is checked once,
where it is decoded (`soundness`).
"""

from . import (
    atomic,
    catalogue,
    cells,
    document,
    edits,
    examples,
    files,
    limits,
    names,
    problems,
    step_order,
    updates,
    wiring,
)

__all__ = [
    "atomic",
    "catalogue",
    "cells",
    "document",
    "edits",
    "examples",
    "files",
    "limits",
    "names",
    "problems",
    "step_order",
    "updates",
    "wiring",
]
