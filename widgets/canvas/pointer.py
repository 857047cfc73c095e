"""The item under the pointer: its gesture, cursor and tooltip."""

from __future__ import annotations

from PySide6.QtCore import QPointF, Qt

from widgets.layout import Side

from . import describe
from .gestures import Marquee, MoveBlocks, PressFix
from .items import BlockItem
from .model_view import Gesture, ModelView
from .overlays import ProblemItem
from .scene import Thing
from .wires import WireItem
from .wiring_gestures import DrawWire

PORT_REACH_PX = 12.0
WIRE_REACH_PX = 7.0
ADD = Qt.KeyboardModifier.ShiftModifier | Qt.KeyboardModifier.ControlModifier


def press(canvas: ModelView, pos: QPointF, modifiers: Qt.KeyboardModifier) -> Gesture | None:
    """Select what lies at a scene point and return the gesture that begins there.

    Ports lie above blocks and blocks above wires. Shift or Ctrl adds to the selection.
    """
    scene = canvas.model_scene
    add = bool(modifiers & ADD)
    if (problem := scene.fix_at(pos)) is not None:
        return PressFix(canvas, problem)
    if (port := port_at(canvas, pos)) is not None:
        item, side, name = port
        old = scene.incoming(item.block.id, name) if side == "in" else None
        if old is not None:
            return DrawWire(canvas, (old.source, "out", old.source_port), old)
        return DrawWire(canvas, (item.block.id, side, name))
    thing = thing_at(canvas, pos)
    blocks, wires = canvas.selection_state()
    if isinstance(thing, ProblemItem):
        canvas.select([thing.block_id])
        return None
    if isinstance(thing, BlockItem):
        key = thing.block.id
        if add:
            canvas.restore_selection((blocks ^ {key}, wires))
        elif not thing.isSelected():
            canvas.select([key])
        return MoveBlocks(canvas, pos, "" if add else key) if thing.isSelected() else None
    if isinstance(thing, WireItem):
        wire = frozenset([thing.wire])
        canvas.restore_selection((blocks, wires ^ wire) if add else (frozenset(), wire))
        return None
    if not add:
        canvas.select(())
    return Marquee(canvas, pos, add)


def port_at(canvas: ModelView, pos: QPointF) -> tuple[BlockItem, Side, str] | None:
    """The port near a scene point. The reach is in viewport pixels, but at small zooms at most a
    number of scene pixels, so that the reaches of two ports do not overlap."""
    return canvas.model_scene.port_at(pos, PORT_REACH_PX / max(canvas.zoom, 0.5))


def thing_at(canvas: ModelView, pos: QPointF) -> Thing | None:
    """The topmost item at a scene point: a problem, a block or a wire; None without one."""
    scene = canvas.model_scene
    for problem in scene.problems.values():
        if problem.rect().contains(problem.mapFromScene(pos)):
            return problem
    return scene.block_at(pos) or scene.wire_at(pos, WIRE_REACH_PX / canvas.zoom)


def cursor_at(canvas: ModelView, pos: QPointF) -> Qt.CursorShape | None:
    """The cursor that shows what a press would do; None for the ordinary one."""
    if canvas.model_scene.fix_at(pos) is not None:
        return Qt.CursorShape.PointingHandCursor
    return Qt.CursorShape.CrossCursor if port_at(canvas, pos) is not None else None


def tooltip_at(canvas: ModelView, pos: QPointF) -> str:
    """The rich tooltip of the item at a scene point; empty without one."""
    scene = canvas.model_scene
    if (port := port_at(canvas, pos)) is not None:
        item, side, name = port
        found = next(each for each in item.ports[side] if each.name == name)
        wire = scene.incoming(item.block.id, name) if side == "in" else None
        source = (item.block.id, name) if side == "out" else None
        source = (wire.source, wire.source_port) if wire else source
        spec = scene.spec(*source) if source else None
        return describe.port_tooltip(found, spec, side == "in")
    thing = thing_at(canvas, pos)
    if isinstance(thing, ProblemItem):
        return describe.problem_html(thing.problem)
    if isinstance(thing, BlockItem):
        return describe.block_tooltip(thing.block, thing.report)
    if isinstance(thing, WireItem):
        names = {block.id: block.name for block in scene.model.blocks}
        return describe.wire_tooltip(thing.wire, names, thing.spec)
    return ""
