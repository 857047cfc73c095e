"""Places the blocks of a model: layers from left to right, wires straight where they can be.

The layout of graphs does the work, turned on its side: down in the graph is right in the model.
"""

from __future__ import annotations

from collections import defaultdict

from engine.project import catalogue
from engine.project.document import Block, Model

from .blocks import LAYER_GAP, SIDES, Side, block_size, port_y, snap
from .columns import broken
from .level import Level, LevelEdge, PlacedLevel, Point, place_level

BLOCK_GAP = 40.0
MAX_ROWS = 8


def layout_model(model: Model, room: Point | None = None) -> dict[str, Point]:
    """The blocks' top left corners on the 8-px grid, with the ports of a chain in line.

    `room` is the (width, height) in pixels that the model shall fit into: a long model is broken
    into as many rows as show it largest. Raises KeyError for a block of unknown kind.
    """
    keys = _forward_order(model)
    blocks = {block.id: block for block in model.blocks}
    number = {key: place for place, key in enumerate(keys)}
    sizes = [block_size(blocks[key]) for key in keys]
    edges = tuple(
        LevelEdge(
            number[wire.source],
            number[wire.target],
            _port_y(blocks[wire.source], "out", wire.source_port),
            _port_y(blocks[wire.target], "in", wire.target_port),
        )
        for wire in model.wires
        if number[wire.source] < number[wire.target]  # else the wire closes a loop
    )
    lying = tuple((height, width) for width, height in sizes)
    placed = place_level(Level(lying, edges, layer_gap=LAYER_GAP, item_gap=BLOCK_GAP))
    places = _in_rows(placed, room).places if room and keys else placed.places
    left = min((y for _, y in places), default=0.0)
    top = min((x for x, _ in places), default=0.0)
    return {key: (snap(y - left), snap(x - top)) for key, (x, y) in zip(keys, places, strict=True)}


def _port_y(block: Block, side: Side, port: str) -> float:
    ports = catalogue.ports(block)[SIDES.index(side)]
    names = [each.name for each in ports]
    return port_y(names.index(port), len(names))


def _in_rows(placed: PlacedLevel, room: Point) -> PlacedLevel:
    """The level in the number of rows that shows it largest. More rows must make it a sixth
    larger."""

    def zoom(placed: PlacedLevel) -> float:
        down, across = placed.size
        return min(room[0] / across, room[1] / down, 1.0)

    best, length = placed, placed.size[1]
    for rows in range(2, MAX_ROWS + 1):
        found = broken(placed, length / rows + LAYER_GAP)
        if zoom(found) > zoom(best) * 7 / 6:
            best = found
    return best


def _forward_order(model: Model) -> list[str]:
    """The blocks' ids in the reverse postorder of a depth-first walk: all wires run forward, but
    for one in each loop."""
    targets: dict[str, list[str]] = defaultdict(list)
    for wire in model.wires:
        targets[wire.source].append(wire.target)
    begun: set[str] = set()
    ended: dict[str, None] = {}
    stack = [block.id for block in model.blocks]
    while stack:
        key = stack.pop()
        if key in begun:
            ended.setdefault(key)
        else:
            begun.add(key)
            stack += [key, *(target for target in targets[key] if target not in begun)]
    return list(ended)[::-1]
