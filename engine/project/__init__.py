"""The project that a user makes: its document, the catalogue of blocks, edits and files, and the
examples. No torch, no messages: what runs a model is in engine.models, what asks for it in
engine.protocol.

What others use are these modules; the rest (how the tables are read, how values are checked) is
for this folder alone, and an import contract holds it.
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
    steps,
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
    "steps",
    "updates",
    "wiring",
]
