"""The keys of the canvas. They can do everything that the mouse can."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import QKeyEvent, QKeySequence

from engine.project import wiring
from engine.project.document import replace
from widgets.layout import GRID

from .items import BlockItem
from .model_view import ModelView
from .wiring_gestures import start_keyboard_wire

DIRECTIONS = {
    Qt.Key.Key_Left: QPointF(-1, 0),
    Qt.Key.Key_Right: QPointF(1, 0),
    Qt.Key.Key_Up: QPointF(0, -1),
    Qt.Key.Key_Down: QPointF(0, 1),
}
NONE = Qt.KeyboardModifier.NoModifier
CONTROL = Qt.KeyboardModifier.ControlModifier
ALT = Qt.KeyboardModifier.AltModifier
SHIFT = Qt.KeyboardModifier.ShiftModifier


def command_for(canvas: ModelView, event: QKeyEvent) -> Callable[[], object] | None:
    """The action of a key on the canvas; None if it has none."""
    key, modifiers = Qt.Key(event.key()), event.modifiers()
    standard = QKeySequence.StandardKey
    if (direction := DIRECTIONS.get(key)) is not None:
        if not modifiers & (CONTROL | ALT):
            return lambda: go(canvas, direction)
        step = GRID * (8 if modifiers & SHIFT else 1)
        return lambda: nudge(canvas, direction * step)
    # Not StandardKey.Delete: on X11 that is Ctrl+D too, which duplicates here.
    if key in (Qt.Key.Key_Delete, Qt.Key.Key_Backspace):
        return canvas.request_delete
    if event.matches(standard.SelectAll):
        return canvas.select_all
    if event.matches(standard.Copy):
        return canvas.request_copy
    if event.matches(standard.Cut):
        return canvas.request_cut
    if event.matches(standard.Paste):
        return canvas.request_paste
    if modifiers & CONTROL and key == Qt.Key.Key_D:
        return canvas.request_duplicate
    if modifiers & (CONTROL | ALT):
        return None
    if key == Qt.Key.Key_W and modifiers & SHIFT:
        return lambda: select_next_wire(canvas)
    return {
        Qt.Key.Key_Return: canvas.activate_selected,
        Qt.Key.Key_Enter: canvas.activate_selected,
        Qt.Key.Key_F2: canvas.rename_selected,
        Qt.Key.Key_Escape: canvas.escape,
        Qt.Key.Key_Slash: canvas.request_insert,
        Qt.Key.Key_L: canvas.layout_requested.emit,
        Qt.Key.Key_W: lambda: start_keyboard_wire(canvas),
    }.get(key)


def cycle(canvas: ModelView, forward: bool) -> bool:
    """Select the next (or previous) block in the order of computation, parallel ones from left to
    right; while the wiring has a loop, all from left to right. Returns False past the last block:
    there Tab leaves the canvas."""
    scene = canvas.model_scene
    across = tuple(sorted(scene.model.blocks, key=lambda block: (block.x, block.y)))
    try:
        order = wiring.topological_order(replace(scene.model, blocks=across))
    except wiring.WiringError:
        order = tuple(block.id for block in across)
    keys = [key for key in order if key in scene.blocks]
    selected = canvas.selected_blocks()
    if selected:
        index = keys.index(selected[0]) + (1 if forward else -1)
    else:
        index = 0 if forward else len(keys) - 1
    if not 0 <= index < len(keys):
        return False
    canvas.select([keys[index]])
    canvas.reveal(scene.blocks[keys[index]].rect())
    return True


def go(canvas: ModelView, direction: QPointF) -> None:
    """Select the nearest block in a direction from the selected one."""
    selected = canvas.selected_blocks()
    if not selected:
        cycle(canvas, forward=True)
        return
    here = canvas.model_scene.blocks[selected[0]]
    found = neighbour(here, canvas.model_scene.blocks.values(), direction)
    if found is not None:
        canvas.select([found.block.id])
        canvas.reveal(found.rect())


def neighbour(here: BlockItem, items, direction: QPointF) -> BlockItem | None:
    """The nearest block that lies in a direction; sideways distance counts double."""

    def cost(item: BlockItem) -> float | None:
        off = item.rect().center() - here.rect().center()
        ahead = QPointF.dotProduct(off, direction)
        aside = abs(off.x() * direction.y() - off.y() * direction.x())
        return ahead + 2 * aside if ahead > 0 and ahead * 3 > aside else None

    costs = [(each, item) for item in items if item is not here and (each := cost(item))]
    return min(costs, key=lambda pair: pair[0])[1] if costs else None


def nudge(canvas: ModelView, offset: QPointF) -> None:
    """Move the selected blocks; one `blocks_moved` per key press."""
    items = [canvas.model_scene.blocks[key] for key in canvas.selected_blocks()]
    moved = {item.block.id: item.pos() + offset for item in items}
    if moved:
        canvas.model_scene.preview_moves(moved)
        canvas.blocks_moved.emit({key: (pos.x(), pos.y()) for key, pos in moved.items()})


def select_next_wire(canvas: ModelView) -> None:
    """Select the next of the wires at the selected block, or after the selected wire."""
    wires = list(canvas.model_scene.wires)
    selected = canvas.selected_wires()
    blocks = set(canvas.selected_blocks())
    if selected:
        following = wires.index(selected[0]) + 1
        canvas.select_wires([wires[following % len(wires)]])
        return
    mine = [wire for wire in wires if not blocks or {wire.source, wire.target} & blocks]
    if mine:
        canvas.select_wires(mine[:1])
