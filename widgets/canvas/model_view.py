"""The view of one model: its blocks and wires, the selection, and the signals of gestures."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING

from PySide6.QtCore import QPoint, QPointF, QRectF, Qt, QTimer, Signal
from PySide6.QtGui import QKeyEvent, QResizeEvent
from PySide6.QtWidgets import QLabel, QWidget

from engine.project import wiring
from engine.project.document import Model, Wire
from widgets import make, theme
from widgets.diagram.edge_pan import EdgePan
from widgets.diagram.view import DiagramView
from widgets.diagram.zoom_bar import ZoomBar
from widgets.layout import GRID, Side

from .minimap import Minimap
from .name_editor import NameEditor
from .overlays import Note
from .scene import ModelScene, Thing

if TYPE_CHECKING:  # the window shows before messages are needed
    from engine.protocol import ModelSnapshot

NOTE_MS = 3000
EMPTY = (
    "<p style='font-size:14pt'>Build your model here</p>"
    "<p>Drag a block from the palette, or press / to search for one.<br>"
    "Then drag from a block's right edge to the next block's left edge to wire them.</p>"
)

Selection = tuple[frozenset[str], frozenset[Wire]]


class ModelView(DiagramView):
    """Blocks and wires, the selection among them, and the gesture in progress.

    The view does not change the model. A gesture shows a preview and ends in one signal; the owner
    answers with `show_model` (the old model, if it refused the edit). Scene coordinates are pixels;
    a block's place is its top left corner. A docstring names the type of each signal's `object`.
    """

    block_dropped = Signal(str, float, float)
    """(kind, x, y): dragged in from the palette."""
    block_dropped_on_wire = Signal(str, float, float, object)
    """(kind, x, y, Wire): as `block_dropped`, onto a wire into which the block fits."""
    blocks_moved = Signal(object)
    """dict[block id, (x, y)], once per drag: one undo step."""
    wire_requested = Signal(object)
    """Wire. It replaces a wire that ends at the same input."""
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
    """Block id: double click under the title, or Enter."""
    rename_requested = Signal(str, str)
    """(block id, new name): after F2 or a double click on the title."""
    fix_requested = Signal(object)
    """engine.protocol.Fix."""
    layout_requested = Signal()
    insert_requested = Signal(float, float)
    """(x, y): search for a block to put here."""

    FIT_BOTTOM_PX = 24
    COVERED_BOTTOM_PX = 112  # the minimap and its margin, less the margin that `reveal` adds

    def __init__(
        self,
        parent: QWidget | None = None,
        can_connect: Callable[[Model, Wire], str | None] = wiring.can_connect,
    ) -> None:
        self.model_scene = ModelScene()
        super().__init__(self.model_scene, parent)
        self.model_scene.setParent(self)
        self.can_connect = can_connect
        make.named(self, "model_canvas", "Model canvas")
        self._gesture: Gesture | None = None
        self._hovered: Thing | None = None
        self._selected: tuple[str, ...] = ()
        self._fits = False
        self._mouse: QPointF | None = None  # in the viewport; None while it is elsewhere
        self.note = Note()
        self.model_scene.addItem(self.note)
        self._note_timer = QTimer(self, singleShot=True, interval=NOTE_MS)
        self._note_timer.timeout.connect(self._hide_note)
        self._edge_pan = EdgePan(self, self._move_gesture)
        self.minimap = Minimap(self, self.model_scene)
        self.zoom_bar = ZoomBar(self)
        self.name_editor = NameEditor(self)
        self.name_editor.renamed.connect(self.rename_requested)
        self._empty = QLabel(EMPTY, self)
        self._empty.setObjectName("canvas_empty")
        self._empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._empty.setWordWrap(True)
        self._empty.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self._restyle()
        theme.notifier.changed.connect(self._restyle)
        self.view_changed.connect(self._forget_fit)
        self.show_model(Model())

    # -- what is shown ---------------------------------------------------------------------------

    def show_model(self, model: Model) -> None:
        """Show a model. Selected blocks that are still there stay selected.

        A model that differs from the last one ends the gesture in progress.
        """
        if self._gesture is not None and model == self.model_scene.model:
            return
        self.end_gesture()
        self._hover(None)
        if model != self.model_scene.model:
            self._forget_fit()
        self.model_scene.show_model(model)
        self.name_editor.keep_to(self.model_scene.blocks)
        self._empty.setVisible(not model.blocks)
        self.minimap.follow()
        self._tell_selection()

    def fit(self, rect: QRectF | None = None) -> None:
        """As in every diagram. What is shown whole stays so when the view gets another size, as by
        a banner, until the user moves it or edits the model."""
        super().fit(rect)
        self._fits = rect is None

    def _forget_fit(self, *_view: float) -> None:
        self._fits = False

    def show_report(self, snapshot: ModelSnapshot | None) -> None:
        """Show shapes, parameter counts and problems; None removes them."""
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
        """The selected blocks and wires, for `restore_selection`."""
        return frozenset(self.selected_blocks()), frozenset(self.selected_wires())

    def restore_selection(self, state: Selection) -> None:
        """Select these blocks and wires and nothing else."""
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
        """Emit `block_activated` for the first selected block, if any."""
        if blocks := self.selected_blocks():
            self.block_activated.emit(blocks[0])

    def rename_selected(self) -> None:
        """Edit the name of the selected block over its title, if one block is selected."""
        blocks = self.selected_blocks()
        if len(blocks) == 1:
            item = self.model_scene.blocks[blocks[0]]
            self.reveal(item.rect())
            self.name_editor.edit(item)

    def _pointed_at(self) -> QPointF:
        """The scene point under the mouse, or in the middle when the mouse is elsewhere."""
        return self.center() if self._mouse is None else self.scene_point(self._mouse)

    # -- the gesture in progress -----------------------------------------------------------------

    def begin(self, gesture: Gesture | None) -> None:
        """Begin a gesture. The one before must have ended."""
        self._gesture = gesture

    def end_gesture(self, cancel: bool = True) -> Gesture | None:
        """End the gesture in progress and return it; by default it is cancelled."""
        gesture, self._gesture = self._gesture, None
        self._edge_pan.stop()
        if gesture is not None and cancel:
            gesture.cancel()
        return gesture

    def escape(self) -> None:
        """Cancel the gesture in progress; without one, clear the selection."""
        if self.end_gesture() is None:
            self._hide_note()
            self.select(())

    def _move_gesture(
        self, pointer_px: QPointF, modifiers: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier
    ) -> None:
        if self._gesture is not None:
            self._gesture.move(self.scene_point(pointer_px), modifiers)

    def say_briefly(self, text: str, role: str, pos: QPointF | None = None) -> None:
        """Show words beside a scene point (the middle: None) for a few seconds."""
        self.note.say(text, role, self.center() if pos is None else pos)
        self._note_timer.start()

    def _hide_note(self) -> None:
        self._note_timer.stop()
        self.note.say("", "error", QPointF())

    # -- inner -----------------------------------------------------------------------------------

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if self._fits:
            self.fit()
        edge = 2 * GRID
        size = self.viewport().size()
        self.zoom_bar.adjustSize()
        self.zoom_bar.move(edge, size.height() - self.zoom_bar.height() - edge)
        self.minimap.follow()
        self._empty.setGeometry(self.viewport().rect().adjusted(GRID, 0, -GRID, 0))

    def _hover(self, item: Thing | None) -> None:
        if item is not self._hovered:
            for each, hovered in ((self._hovered, False), (item, True)):
                if each is not None:
                    each.hovered = hovered
                    each.update()
            self._hovered = item

    def _restyle(self) -> None:
        self._empty.setStyleSheet(f"color: {theme.current().muted};")


class Gesture:
    """A gesture in progress. The canvas calls `move` and `finish` with scene points, or `key`.
    Exactly one of `finish` and `cancel` ends it; both remove its previews."""

    def __init__(self, canvas: ModelView) -> None:
        self.canvas = canvas
        self.scene = canvas.model_scene

    def move(self, pos: QPointF, modifiers: Qt.KeyboardModifier) -> None:
        """Follow the pointer to the scene point `pos`."""

    def finish(self, pos: QPointF) -> None:
        """End the gesture: the button was released at the scene point `pos`. Emit its signal."""

    def cancel(self) -> None:
        """End the gesture: remove its previews, emit nothing."""

    def key(self, event: QKeyEvent) -> bool:
        """Handle a key; False leaves it to the canvas."""
        return False
