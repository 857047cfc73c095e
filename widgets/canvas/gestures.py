"""One class per gesture. Each shows a preview and ends in one signal; Esc cancels any of them."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtWidgets import QApplication

from engine.project import catalogue
from engine.project.document import Block
from widgets.layout import snap

from .items import BlockItem
from .model_view import Gesture, ModelView
from .overlays import Guides, MarqueeBox, ProblemItem
from .snapping import snap_move
from .wires import WireItem

SNAP_PX = 8.0


class MoveBlocks(Gesture):
    """Drag the selected blocks: they snap to the grid and into line with others.

    Alt switches snapping off. Emits `blocks_moved` once, at the end. A click without a drag
    selects the block `clicked` alone (`""`: leaves the selection).
    """

    def __init__(self, canvas: ModelView, start: QPointF, clicked: str) -> None:
        super().__init__(canvas)
        self._start = start
        self._clicked = clicked
        self._from = {
            key: item.pos() for key, item in self.scene.blocks.items() if item.isSelected()
        }
        self._rect = QRectF()
        for key in self._from:
            self._rect |= self.scene.blocks[key].rect()
        self._others = [
            item.rect() for key, item in self.scene.blocks.items() if key not in self._from
        ]
        self._offset = QPointF()
        self._moving = False
        self._guides = Guides()
        self.scene.addItem(self._guides)

    def move(self, pos: QPointF, modifiers: Qt.KeyboardModifier) -> None:
        offset = pos - self._start
        if not self._moving:
            distance_px = offset.manhattanLength() * self.canvas.zoom
            self._moving = distance_px >= QApplication.startDragDistance()
            if not self._moving:
                return
        lines = []
        if not modifiers & Qt.KeyboardModifier.AltModifier:
            seen = self.canvas.visible_rect()
            others = [rect for rect in self._others if rect.intersects(seen)]
            moving = self._rect.translated(offset)
            dx, dy, lines = snap_move(moving, others, SNAP_PX / max(self.canvas.zoom, 0.5))
            offset += QPointF(dx, dy)
        self._offset = offset
        self._guides.show_lines(lines)
        self.scene.preview_moves({key: pos + offset for key, pos in self._from.items()})

    def finish(self, pos: QPointF) -> None:
        self.scene.removeItem(self._guides)
        if not self._moving:
            # A click, not a drag: it selects this one of several selected blocks.
            if self._clicked:
                self.canvas.select([self._clicked])
            return
        if self._offset.isNull():
            return
        moved = {key: pos + self._offset for key, pos in self._from.items()}
        self.canvas.blocks_moved.emit({key: (p.x(), p.y()) for key, p in moved.items()})

    def cancel(self) -> None:
        self.scene.removeItem(self._guides)
        self.scene.end_previews()


class Marquee(Gesture):
    """Select the blocks that a rectangle touches; with Shift, add them to the selection."""

    def __init__(self, canvas: ModelView, start: QPointF, add: bool) -> None:
        super().__init__(canvas)
        self._start = start
        self._before = canvas.selection_state()
        self._selected_before = set(canvas.selected_blocks()) if add else set()
        self._box = MarqueeBox()
        self.scene.addItem(self._box)

    def move(self, pos: QPointF, modifiers: Qt.KeyboardModifier) -> None:
        rect = QRectF(self._start, pos).normalized()
        self._box.show_rect(rect)
        touched = {key for key, item in self.scene.blocks.items() if rect.intersects(item.rect())}
        self.canvas.select(self._selected_before | touched)

    def finish(self, pos: QPointF) -> None:
        self.scene.removeItem(self._box)

    def cancel(self) -> None:
        self.scene.removeItem(self._box)
        self.canvas.restore_selection(self._before)


class PressFix(Gesture):
    """Click the fix button of a problem: emits `fix_requested` if released on it."""

    def __init__(self, canvas: ModelView, problem: ProblemItem) -> None:
        super().__init__(canvas)
        self._problem = problem

    def finish(self, pos: QPointF) -> None:
        if self.scene.fix_at(pos) is self._problem:
            self.canvas.fix_requested.emit(self._problem.problem.fix)


class DropBlock(Gesture):
    """A new block under the cursor, dragged in from the palette.

    Emits `block_dropped`, or `block_dropped_on_wire` when it can go between the wire's ends.
    """

    def __init__(self, canvas: ModelView, kind: str) -> None:
        super().__init__(canvas)
        self.kind = kind
        self._ghost = BlockItem(
            Block("", kind, catalogue.kind(kind).stem, catalogue.defaults(kind))
        )
        self._ghost.setOpacity(0.9)
        self._ghost.setZValue(10)
        self._wire: WireItem | None = None
        self.scene.addItem(self._ghost)

    def move(self, pos: QPointF, modifiers: Qt.KeyboardModifier) -> None:
        corner = pos - QPointF(self._ghost.width, self._ghost.height) / 2
        self._ghost.setPos(snap(corner.x()), snap(corner.y()))
        passes = bool(self._ghost.ports["in"] and self._ghost.ports["out"])
        wire = self.scene.wire_at(pos, SNAP_PX / self.canvas.zoom) if passes else None
        self._light(wire)
        self.canvas.note.say("Insert into this wire" if wire else "", "accent", pos)

    def finish(self, pos: QPointF) -> None:
        self.move(pos, Qt.KeyboardModifier.NoModifier)
        corner, wire = self._ghost.pos(), self._wire
        self.cancel()
        if wire is None:
            self.canvas.block_dropped.emit(self.kind, corner.x(), corner.y())
        else:
            self.canvas.block_dropped_on_wire.emit(self.kind, corner.x(), corner.y(), wire.wire)

    def cancel(self) -> None:
        self._light(None)
        self.scene.removeItem(self._ghost)
        self.canvas.note.say("", "accent", QPointF())

    def _light(self, wire: WireItem | None) -> None:
        for item, lit in ((self._wire, False), (wire, True)):
            if item is not None:
                item.hovered = lit
                item.update()
        self._wire = wire
