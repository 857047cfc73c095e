"""Layout of boxes within boxes, level by level. Pure: it runs in the layout worker, without Qt."""

from __future__ import annotations

from .boxes import Direction, EdgeStyle, NestedLayout, VisibleGraph

NODE_WIDTH = 184.0
NODE_HEIGHT = 44.0
TITLE_HEIGHT = 28.0
"""The bar at the top of an open box; its children begin below."""
PADDING = 16.0
"""Between an open box's border and its children."""


def layout_nested(
    visible: VisibleGraph, direction: Direction = "backward", style: EdgeStyle = "smooth"
) -> NestedLayout:
    """Place all boxes and route all links. `"backward"` has the root at the top and the leaves at
    the bottom, `"forward"` the other way round."""
    raise NotImplementedError
