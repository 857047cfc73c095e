"""The canvas on which a model is built. It shows frozen data and says what the user asks for."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from PySide6.QtCore import QEvent, QPoint, QPointF, QRectF, Qt, QTimer, Signal
from PySide6.QtGui import QContextMenuEvent, QHelpEvent, QKeyEvent, QMouseEvent, QResizeEvent
from PySide6.QtWidgets import QLabel, QToolTip, QWidget

from engine.project import wiring
from engine.project.document import Model, Wire
from engine.protocol import ModelSnapshot
from widgets import theme
from widgets.layout import GRID, Side

from . import keyboard, menus, pointer
from .edge_pan import EdgePan
from .gestures import DropBlock, Gesture
from .items import BlockItem
from .minimap import Minimap
from .overlays import Note
from .scene import ModelScene
from .view import CanvasView
from .wiring_gestures import KeyboardWire
from .zoom_bar import ZoomBar

NOTE_MS = 3000
EMPTY = (
    "<p style='font-size:14pt'>Build your model here</p>"
    "<p>Drag a block from the palette, or press / to search for one.<br>"
    "Then drag from a block's right edge to the next block's left edge to wire them.</p>"
)

Selection = tuple[frozenset[str], frozenset[Wire]]


class ModelCanvas(CanvasView):
    """Blocks and wires, and every gesture on them.

    It owns no model. A gesture shows a preview and ends in one signal; the `show_model` that
    follows settles it (the old model, if the edit was refused). Scene coordinates are pixels; a
    block's place is its top left corner. Signals that carry `object` say what it is.
    """

    block_dropped = Signal(str, float, float)
    """(kind, x, y): dragged in from the palette."""
    block_dropped_on_wire = Signal(str, float, float, object)
    """(kind, x, y, Wire): as `block_dropped`, onto a wire that it could go between."""
    blocks_moved = Signal(object)
    """dict[block id, (x, y)], once per drag: one undo step."""
    wire_requested = Signal(object)
    """Wire. A wire that ends at the same input gives way."""
    wire_rerouted = Signal(object, object)
    """(old Wire, new Wire)."""
    delete_requested = Signal(object, object)
    """(tuple of block ids, tuple of Wires)."""
    duplicate_requested = Signal(object)
    """tuple of block ids; so too `copy_requested` and `cut_requested`."""
    copy_requested = Signal(object)
    cut_requested = Signal(object)
    paste_requested = Signal(float, float)
    """(x, y): where the middle of what is pasted should lie."""
    selection_changed = Signal(object)
    """tuple of block ids, in the model's order."""
    block_activated = Signal(str)
    """Block id: double click or Enter."""
    fix_requested = Signal(object)
    """engine.protocol.Fix."""
    layout_requested = Signal()
    insert_requested = Signal(float, float)
    """(x, y): search for a block to put here."""

    FIT_BOTTOM_PX = 24
    COVERED_BOTTOM_PX = 112  # minimap and its margin, less the margin of what is revealed

    def __init__(
        self,
        parent: QWidget | None = None,
        can_connect: Callable[[Model, Wire], str | None] = wiring.can_connect,
    ) -> None:
        self.model_scene = ModelScene()
        super().__init__(self.model_scene, parent)
        self.model_scene.setParent(self)
        self.can_connect = can_connect
        self.setObjectName("model_canvas")
        self.setAccessibleName("Model canvas")
        self._gesture: Gesture | None = None
        self._hovered: pointer.Thing | None = None
        self._selected: tuple[str, ...] = ()
        self._mouse: QPointF | None = None  # in the viewport; None while it is elsewhere
        self.note = Note()
        self.model_scene.addItem(self.note)
        self._note_timer = QTimer(self, singleShot=True, interval=NOTE_MS)
        self._note_timer.timeout.connect(self._hide_note)
        self._edge_pan = EdgePan(self, self._move_gesture)
        self.minimap = Minimap(self, self.model_scene)
        self.zoom_bar = ZoomBar(self)
        self._empty = QLabel(EMPTY, self)
        self._empty.setObjectName("canvas_empty")
        self._empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._empty.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self._restyle()
        theme.notifier.changed.connect(self._restyle)
        self.show_model(Model())

    # -- what is shown ---------------------------------------------------------------------------

    def show_model(self, model: Model) -> None:
        """Show a model; the selection stays with the blocks that are still there.

        Another model than before ends the gesture in progress.
        """
        if self._gesture is not None and model == self.model_scene.model:
            return
        self.cancel_gesture()
        self._hover(None)
        self.model_scene.show_model(model)
        self._empty.setVisible(not model.blocks)
        self.minimap.setVisible(bool(model.blocks))
        self._tell_selection()

    def show_report(self, snapshot: ModelSnapshot | None) -> None:
        """Show shapes, parameter counts and problems; None takes them away."""
        self._hover(None)
        self.model_scene.show_report(snapshot)

    def show_progress(self, done: Collection[str], current: str | None) -> None:
        """Mark the blocks that a forward pass has run, and the one it ran last."""
        self.model_scene.show_progress(done, current)

    def content_rect(self) -> QRectF:
        return self.model_scene.content_rect()

    def block_center(self, block_id: str) -> QPoint:
        """The middle of a block in viewport coordinates; raises KeyError when it is not there."""
        return self.mapFromScene(self.model_scene.blocks[block_id].rect().center())

    def port_center(self, block_id: str, port: str, side: Side) -> QPoint:
        """A port's centre in viewport coordinates; raises KeyError when it is not there."""
        pos = self.model_scene.blocks[block_id].port_pos(side, port)
        if pos is None:
            raise KeyError(f"{block_id}.{port}")
        return self.mapFromScene(pos)

    # -- selection -------------------------------------------------------------------------------

    def select(self, ids: Iterable[str]) -> None:
        """Select these blocks and nothing else."""
        self.restore_selection((frozenset(ids), frozenset()))

    def select_wires(self, wires: Iterable[Wire]) -> None:
        """Select these wires and nothing else."""
        self.restore_selection((frozenset(), frozenset(wires)))

    def select_all(self) -> None:
        self.select(self.model_scene.blocks)

    def selected_blocks(self) -> tuple[str, ...]:
        """Ids in the model's order."""
        scene = self.model_scene
        ids = (block.id for block in scene.model.blocks if block.id in scene.blocks)
        return tuple(key for key in ids if scene.blocks[key].isSelected())

    def selected_wires(self) -> tuple[Wire, ...]:
        return tuple(w for w, item in self.model_scene.wires.items() if item.isSelected())

    def selection_state(self) -> Selection:
        return frozenset(self.selected_blocks()), frozenset(self.selected_wires())

    def restore_selection(self, state: Selection) -> None:
        blocks, wires = state
        for key, item in self.model_scene.blocks.items():
            item.setSelected(key in blocks)
            item.restack()
        for wire, item in self.model_scene.wires.items():
            item.setSelected(wire in wires)
        self._tell_selection()

    def _tell_selection(self) -> None:
        selected = self.selected_blocks()
        if selected == self._selected:
            return
        self._selected = selected
        self.minimap.update()
        blocks = [self.model_scene.blocks[key] for key in selected]
        names = ", ".join(f"{item.kind.title} {item.block.name}" for item in blocks)
        self.setAccessibleDescription(f"Selected: {names}" if names else "Nothing selected")
        self.selection_changed.emit(selected)

    # -- what the user asks for ------------------------------------------------------------------

    def request_delete(self) -> None:
        blocks, wires = self.selected_blocks(), self.selected_wires()
        if blocks or wires:
            self.delete_requested.emit(blocks, wires)

    def request_copy(self) -> None:
        self._request_for_selected(self.copy_requested)

    def request_cut(self) -> None:
        self._request_for_selected(self.cut_requested)

    def request_duplicate(self) -> None:
        self._request_for_selected(self.duplicate_requested)

    def _request_for_selected(self, signal) -> None:
        if blocks := self.selected_blocks():
            signal.emit(blocks)

    def request_paste(self) -> None:
        pos = self._pointed_at()
        self.paste_requested.emit(pos.x(), pos.y())

    def request_insert(self) -> None:
        pos = self._pointed_at()
        self.insert_requested.emit(pos.x(), pos.y())

    def activate_selected(self) -> None:
        if blocks := self.selected_blocks():
            self.block_activated.emit(blocks[0])

    def _pointed_at(self) -> QPointF:
        """The scene point under the mouse, or the middle when it is elsewhere."""
        return self.center() if self._mouse is None else self.scene_point(self._mouse)

    # -- dragging in from the palette ------------------------------------------------------------

    def ghost(self, kind: str, global_pos: QPoint) -> None:
        """Show a new block under the cursor, while that is over the canvas."""
        if not self._over_viewport(global_pos):
            self.end_ghost()
            return
        if not isinstance(self._gesture, DropBlock) or self._gesture.kind != kind:
            self.cancel_gesture()
            self._gesture = DropBlock(self, kind)
        self._gesture.move(self._scene_from_global(global_pos), keyboard.NONE)

    def drop(self, kind: str, global_pos: QPoint) -> bool:
        """End the drag here: emits `block_dropped` (or `..._on_wire`); false off the canvas."""
        self.ghost(kind, global_pos)
        gesture = self.end_gesture(cancel=False)
        if gesture is None:
            return False
        gesture.finish(self._scene_from_global(global_pos))
        self.setFocus()
        return True

    def end_ghost(self) -> None:
        """Take the ghost away: the drag was cancelled or left the canvas."""
        if isinstance(self._gesture, DropBlock):
            self.cancel_gesture()

    def _over_viewport(self, global_pos: QPoint) -> bool:
        return self.viewport().rect().contains(self.viewport().mapFromGlobal(global_pos))

    def _scene_from_global(self, global_pos: QPoint) -> QPointF:
        return self.scene_point(QPointF(self.viewport().mapFromGlobal(global_pos)))

    # -- gestures --------------------------------------------------------------------------------

    def end_gesture(self, cancel: bool = True) -> Gesture | None:
        """Let go of the gesture in progress and return it; by default it is cancelled."""
        gesture, self._gesture = self._gesture, None
        self._edge_pan.stop()
        if gesture is not None and cancel:
            gesture.cancel()
        return gesture

    def cancel_gesture(self) -> None:
        self.end_gesture()

    def escape(self) -> None:
        """Cancel the gesture in progress; without one, select nothing."""
        if self.end_gesture() is None:
            self._hide_note()
            self.select(())

    def _move_gesture(
        self, pointer_px: QPointF, modifiers: Qt.KeyboardModifier = keyboard.NONE
    ) -> None:
        if self._gesture is not None:
            self._gesture.move(self.scene_point(pointer_px), modifiers)

    def start_keyboard_wire(self, block: BlockItem | None = None, output: int = 0) -> None:
        """Wire the selected block's outputs by keyboard; see KeyboardWire."""
        selected = self.selected_blocks()
        if block is None:
            if not selected:
                self.say_briefly("Select a block first: Tab or the arrow keys.", "accent")
                return
            block = self.model_scene.blocks[selected[0]]
        words = f"“{block.block.name}” has no output to draw a wire from."
        if block.ports["out"]:
            gesture = KeyboardWire(self, block, output)
            if gesture.possible:
                self._gesture = gesture
                return
            gesture.cancel()
            words = f"There is no input left that could take “{block.block.name}”'s output."
        self.say_briefly(words, "error", block.rect().center())

    def say_briefly(self, text: str, role: str, pos: QPointF | None = None) -> None:
        """Show words beside a scene point (the middle: None) for a few seconds."""
        self.note.say(text, role, self.center() if pos is None else pos)
        self._note_timer.start()

    def _hide_note(self) -> None:
        self._note_timer.stop()
        self.note.say("", "error", QPointF())

    # -- events ----------------------------------------------------------------------------------

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self._hide_note()
        if self.pan_event(event):
            return
        self.cancel_gesture()
        if event.button() == Qt.MouseButton.LeftButton:
            self._gesture = pointer.press(
                self, self.scene_point(event.position()), event.modifiers()
            )

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
        # What the canvas does itself, no shortcut of the window takes away while it has focus.
        if (
            event.type() == QEvent.Type.ShortcutOverride
            and isinstance(event, QKeyEvent)
            and (self._gesture is not None or keyboard.command_for(self, event) is not None)
        ):
            event.accept()
            return True
        return super().event(event)

    def focusNextPrevChild(self, forward: bool) -> bool:
        """Tab goes from block to block, then on to the next widget; on an empty canvas it
        searches for a block to insert."""
        if forward and not self.model_scene.blocks:
            self.request_insert()
            return True
        return keyboard.cycle(self, forward) or super().focusNextPrevChild(forward)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        self.cancel_gesture()
        pos = self.scene_point(QPointF(event.pos()))
        where = event.globalPos()
        if event.reason() == QContextMenuEvent.Reason.Keyboard and (ids := self.selected_blocks()):
            pos = self.model_scene.blocks[ids[0]].rect().center()
            where = self.viewport().mapToGlobal(self.mapFromScene(pos))
        menus.menu_at(self, pos).popup(where)

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

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        edge = 2 * GRID
        size = self.viewport().size()
        self.zoom_bar.adjustSize()
        self.zoom_bar.move(edge, size.height() - self.zoom_bar.height() - edge)
        self.minimap.move(
            size.width() - self.minimap.width() - edge,
            size.height() - self.minimap.height() - edge,
        )
        self._empty.setGeometry(self.viewport().rect())

    def _hover(self, item: pointer.Thing | None) -> None:
        if item is not self._hovered:
            for each, hovered in ((self._hovered, False), (item, True)):
                if each is not None:
                    each.hovered = hovered
                    each.update()
            self._hovered = item

    def _restyle(self) -> None:
        self._empty.setStyleSheet(f"color: {theme.current().muted};")
