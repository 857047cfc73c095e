"""Positions of the blocks of a model, and of boxes within boxes with their links. Imports no Qt.

Not here: which boxes there are (`boxes`), and their painting (`canvas`, `graph`).
"""

from .blocks import (
    BLOCK_WIDTH,
    BODY_HEIGHT,
    GRID,
    PORT_LINE,
    SIDES,
    Side,
    block_size,
    port_y,
    snap,
)
from .model_layout import LAYER_GAP, layout_model
from .nested_layout import TITLE_HEIGHT, layout_nested
from .outline import Direction, EdgeStyle, NestedLayout, Outline
from .without_collection import without_collection

__all__ = [
    "BLOCK_WIDTH",
    "BODY_HEIGHT",
    "GRID",
    "LAYER_GAP",
    "PORT_LINE",
    "SIDES",
    "TITLE_HEIGHT",
    "Direction",
    "EdgeStyle",
    "NestedLayout",
    "Outline",
    "Side",
    "block_size",
    "layout_model",
    "layout_nested",
    "port_y",
    "snap",
    "without_collection",
]
