"""The place of a new block: beside its neighbours, and not over another block."""

from __future__ import annotations

from PySide6.QtCore import QRectF

from engine.project import catalogue, edits, wiring
from engine.project.document import Block, Model, Project, Wire
from widgets.layout import BLOCK_WIDTH, LAYER_GAP, block_size, snap

_BESIDE_PX = BLOCK_WIDTH + LAYER_GAP
"""The distance between the left edges of neighbouring blocks."""
_DOWN_PX = 32.0


def add_clear(project: Project, kind: str, x: float, y: float) -> tuple[Project, str]:
    """Add a block at (x, y), or as far below as it must be to cover no other."""
    project, added = edits.add_block(project, kind, snap(x), snap(y))
    box = _box(project.model.block(added))
    while _covers(project, added, box):
        box.translate(0, _DOWN_PX)
    return edits.move_blocks(project, {added: (box.x(), box.y())}), added


def shift_clear(project: Project, piece: Model, dx: float, dy: float) -> tuple[float, float]:
    """Where to add blocks that shall be shifted by (dx, dy): as far below as they must be to cover
    no other block."""
    known = catalogue.kinds()
    taken = [_box(block) for block in project.model.blocks if block.kind in known]
    boxes = [_box(block).translated(dx, dy) for block in piece.blocks if block.kind in known]
    while any(box.intersects(other) for box in boxes for other in taken):
        dy += _DOWN_PX
        for box in boxes:
            box.translate(0, _DOWN_PX)
    return dx, dy


def add_after(project: Project, kind: str, before: Block) -> tuple[Project, str]:
    """Add a block to the right of another. The other's first output is wired to its first input, if
    both exist."""
    project, added = add_clear(project, kind, before.x + _BESIDE_PX, before.y)
    outputs = catalogue.ports(before)[1]
    inputs = catalogue.ports(project.model.block(added))[0]
    if outputs and inputs:
        wire = Wire(before.id, outputs[0].name, added, inputs[0].name)
        project = edits.connect(project, wire)
    return project, added


def insert(project: Project, kind: str, wire: Wire, x: float, y: float) -> tuple[Project, str]:
    """Insert a block into a wire at (x, y). If there is no room, it is put to the right of the
    wire's source, and the blocks after it move to the right."""
    before, after = project.model.block(wire.source), project.model.block(wire.target)
    moved = wiring.downstream(project.model, wire.target)
    project, added = edits.insert_on_wire(project, kind, wire, x, y)
    if not _covers(project, added, _box(project.model.block(added))):
        return project, added
    x, y = before.x + _BESIDE_PX, before.y
    shift = x + _BESIDE_PX - after.x if after.x > before.x else 0.0
    places = {
        block.id: (block.x + shift, block.y)
        for block in project.model.blocks
        if shift > 0 and block.id in moved and block.x >= after.x
    }
    return edits.move_blocks(project, {added: (x, y), **places}), added


def _covers(project: Project, block_id: str, box: QRectF) -> bool:
    """Whether a block with this box would cover another one."""
    known = catalogue.kinds()
    others = (b for b in project.model.blocks if b.id != block_id and b.kind in known)
    return any(box.intersects(_box(other)) for other in others)


def _box(block: Block) -> QRectF:
    return QRectF(block.x, block.y, *block_size(block))
