"""The canvas on which a model is built. It shows frozen data and emits the user's requests."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QContextMenuEvent, QHelpEvent, QKeyEvent, QMouseEvent
from PySide6.QtWidgets import QToolTip

from widgets import make

from . import keyboard, menus, pointer
from .gestures import DropBlock
from .items import TITLE_HEIGHT
from .model_view import ModelView
from .wiring_gestures import KeyboardWire


class ModelCanvas(ModelView):
    """A model's view with all gestures: mouse and key events begin and end them."""

    # -- dragging in from the palette ------------------------------------------------------------

    def ghost(self, kind: str, global_pos: QPoint) -> None:
        """Show a new block under the cursor while the cursor is over the canvas."""
        if not self._over_viewport(global_pos):
            self.end_ghost()
            return
        gesture = self._gesture
        if not isinstance(gesture, DropBlock) or gesture.kind != kind:
            self.end_gesture()
            gesture = DropBlock(self, kind)
            self.begin(gesture)
        gesture.move(self._scene_from_global(global_pos), keyboard.NONE)

    def drop(self, kind: str, global_pos: QPoint) -> bool:
        """End the drag: emit `block_dropped` or `block_dropped_on_wire`. Returns False if the point
        is outside of the canvas."""
        self.ghost(kind, global_pos)
        gesture = self.end_gesture(cancel=False)
        if gesture is None:
            return False
        gesture.finish(self._scene_from_global(global_pos))
        self.setFocus()
        return True

    def end_ghost(self) -> None:
        """Remove the new block: the drag was cancelled or left the canvas."""
        if isinstance(self._gesture, DropBlock):
            self.end_gesture()

    def _over_viewport(self, global_pos: QPoint) -> bool:
        return self.viewport().rect().contains(self.viewport().mapFromGlobal(global_pos))

    def _scene_from_global(self, global_pos: QPoint) -> QPointF:
        return self.scene_point(QPointF(self.viewport().mapFromGlobal(global_pos)))

    # -- events ----------------------------------------------------------------------------------

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self._hide_note()
        if self.pan_event(event):
            return
        self.end_gesture()
        if event.button() == Qt.MouseButton.LeftButton:
            pos = self.scene_point(event.position())
            self.begin(pointer.press(self, pos, event.modifiers()))

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        self._mouse = event.position()
        if self.pan_event(event):
            return
        if self._gesture is not None:
            self._move_gesture(event.position(), event.modifiers())
            self._edge_pan.follow(event.position())
        elif event.buttons() == Qt.MouseButton.NoButton:
            pos = self.scene_point(event.position())
            self._hover(pointer.thing_at(self, pos))
            if (shape := pointer.cursor_at(self, pos)) is not None:
                self.viewport().setCursor(shape)
            else:
                self.rest_cursor()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if self.pan_event(event) or event.button() != Qt.MouseButton.LeftButton:
            return
        if isinstance(self._gesture, KeyboardWire):
            return
        if (gesture := self.end_gesture(cancel=False)) is not None:
            gesture.finish(self.scene_point(event.position()))

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        if self.pan_event(event) or event.button() != Qt.MouseButton.LeftButton:
            return
        pos = self.scene_point(event.position())
        if (block := self.model_scene.block_at(pos)) is not None:
            if pos.y() < block.rect().top() + TITLE_HEIGHT:
                self.select([block.block.id])
                self.rename_selected()
            else:
                self.block_activated.emit(block.block.id)
        elif pointer.thing_at(self, pos) is None:
            self.insert_requested.emit(pos.x(), pos.y())

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if self._gesture is not None and event.key() != Qt.Key.Key_Escape:
            if not self._gesture.key(event):
                super().keyPressEvent(event)
        elif (command := keyboard.command_for(self, event)) is not None:
            command()
        else:
            super().keyPressEvent(event)

    def event(self, event: QEvent) -> bool:
        # While the canvas has focus, its own keys win over shortcuts of the window.
        if (
            event.type() == QEvent.Type.ShortcutOverride
            and isinstance(event, QKeyEvent)
            and (self._gesture is not None or keyboard.command_for(self, event) is not None)
        ):
            event.accept()
            return True
        return super().event(event)

    def focusNextPrevChild(self, forward: bool) -> bool:
        """Tab goes from block to block, then to the next widget. On an empty canvas it opens the
        search for a block to insert."""
        if forward and not self.model_scene.blocks:
            self.request_insert()
            return True
        return keyboard.cycle(self, forward) or super().focusNextPrevChild(forward)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        self.end_gesture()
        pos = self.scene_point(QPointF(event.pos()))
        where = event.globalPos()
        if event.reason() == QContextMenuEvent.Reason.Keyboard and (ids := self.selected_blocks()):
            pos = self.model_scene.blocks[ids[0]].rect().center()
            where = self.viewport().mapToGlobal(self.mapFromScene(pos))
        make.pop_up(menus.menu_at(self, pos), where)

    def viewportEvent(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            pos = self.scene_point(QPointF(event.pos()))
            text = "" if self._gesture else pointer.tooltip_at(self, pos)
            QToolTip.showText(event.globalPos(), text, self.viewport())
            return True
        if event.type() == QEvent.Type.Leave:
            self._mouse = None
            self._hover(None)
        return super().viewportEvent(event)
