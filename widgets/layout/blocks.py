"""The size of a block and the places of its ports, in scene pixels."""

from __future__ import annotations

from math import ceil
from typing import Literal

from engine.project import catalogue
from engine.project.document import Block

Side = Literal["in", "out"]
SIDES: tuple[Side, Side] = ("in", "out")

BLOCK_WIDTH = 192.0
BODY_HEIGHT = 72.0
"""The height of title, parameters and shape: that of a block with at most one port on each side."""
PORT_LINE = 36.0
"""A lone port's distance from the top: blocks with equal tops have straight wires."""
PORT_SPACING = 20.0
GRID = 8
LAYER_GAP = 112.0
"""The gap between layers, with room for a shape such as `(B, 64, 28, 28)` on the wire."""


def snap(value: float, step: float = GRID) -> float:
    """The nearest multiple of `step`."""
    return round(value / step) * step


def block_size(block: Block) -> tuple[float, float]:
    """(width, height); raises KeyError for an unknown kind."""
    inputs, outputs = catalogue.ports(block)
    rows = max(len(inputs), len(outputs))
    if rows < 2:
        return BLOCK_WIDTH, BODY_HEIGHT
    return BLOCK_WIDTH, ceil((BODY_HEIGHT + rows * PORT_SPACING) / GRID) * GRID


def port_y(index: int, count: int) -> float:
    """Distance of port `index` of `count` on one side from the block's top.

    Two ports or more stand in rows under the body, where there is room for their names.
    """
    if count == 1:
        return PORT_LINE
    return BODY_HEIGHT + (index + 0.5) * PORT_SPACING
