"""Positions of the blocks of a model, and of boxes within boxes with their links. Imports no Qt.

Not here: which boxes there are (`boxes`), and their painting (`canvas`, `graph`).

Who places blocks imports `model_layout`. Boxes within boxes are arrays: who needs them imports
`nested_layout` and `outline`, and numpy with them.
"""

from .blocks import (
    BLOCK_WIDTH,
    BODY_HEIGHT,
    GRID,
    LAYER_GAP,
    PORT_LINE,
    SIDES,
    Side,
    block_size,
    port_y,
    snap,
)
from .without_collection import without_collection

__all__ = [
    "BLOCK_WIDTH",
    "BODY_HEIGHT",
    "GRID",
    "LAYER_GAP",
    "PORT_LINE",
    "SIDES",
    "Side",
    "block_size",
    "port_y",
    "snap",
    "without_collection",
]
