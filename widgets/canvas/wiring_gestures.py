"""Drawing wires, with the mouse and with the keyboard."""

from __future__ import annotations

from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import QKeyEvent

from engine.project.document import Model, Wire, replace
from widgets.layout import SIDES, Side

from .items import BlockItem
from .model_view import Gesture, ModelView
from .overlays import PendingWire

SNAP_PX = 24.0
"""A wire snaps to a port where it may end if that is this near to the cursor, in viewport
pixels."""
TOUCH_PX = 10.0
"""A port this near to the cursor, in viewport pixels, is the target; if the wire may not end there,
the note says why."""

End = tuple[str, Side, str]
"""(block id, side, port)."""


class WireRules:
    """Says at which ports the free end of a wire may end, and why not at others. A wire that is
    being re-routed (`old`) is first removed from the model."""

    def __init__(self, canvas: ModelView, fixed: End, old: Wire | None) -> None:
        self.fixed, self.old = fixed, old
        self.wanted: Side = "in" if fixed[1] == "out" else "out"
        self._can_connect = canvas.can_connect
        self._model = canvas.model_scene.model
        if old is not None:
            wires = tuple(wire for wire in self._model.wires if wire != old)
            self._model = replace(self._model, wires=wires)
        self._reasons: dict[End, str | None] = {}

    @property
    def model(self) -> Model:
        return self._model

    def wire_to(self, end: End) -> Wire:
        """The wire between the fixed end and another one."""
        source, target = (self.fixed, end) if self.wanted == "in" else (end, self.fixed)
        return Wire(source[0], source[2], target[0], target[2])

    def reason(self, end: End) -> str | None:
        """Why the wire may not end at this port; None if it may."""
        if end[1] != self.wanted:
            one, other = ("output", "input") if self.wanted == "in" else ("input", "output")
            return f"Both ends are {one}s. A wire runs from an output to an {other}."
        if end not in self._reasons:
            self._reasons[end] = self._can_connect(self._model, self.wire_to(end))
        return self._reasons[end]


class DrawWire(Gesture):
    """Drag a wire from a port, or re-route the wire at an input by dragging its end.

    Emits `wire_requested` or `wire_rerouted` when dropped on a port or block, and
    `delete_requested` when the end of an existing wire is dropped on empty canvas.
    """

    def __init__(self, canvas: ModelView, fixed: End, old: Wire | None = None) -> None:
        super().__init__(canvas)
        self.rules = WireRules(canvas, fixed, old)
        self._old = old
        self._end: End | None = None
        self._reason = ""
        self._pending = PendingWire()
        self.scene.addItem(self._pending)
        if old is not None:
            self.scene.wires[old].hide()
        for item in self.scene.blocks.values():
            for side in SIDES:
                for port in item.ports[side]:
                    end = (item.block.id, side, port.name)
                    fits = end != fixed and self.rules.reason(end) is None
                    item.port_looks[side, port.name] = "open" if fits else "refused"
            item.update()
        self.scene.blocks[fixed[0]].port_looks.pop((fixed[1], fixed[2]))

    def move(self, pos: QPointF, modifiers: Qt.KeyboardModifier) -> None:
        end, reason = self._aim(pos)
        if self._end != end:
            self._mark(self._end, "open")
            self._mark(end, "target")
        self._end, self._reason = end, reason
        free = self._port_pos(end) if end else pos
        fixed = self._port_pos(self.rules.fixed)
        start, stop = (fixed, free) if self.rules.wanted == "in" else (free, fixed)
        self._pending.show_wire(start, stop, "error" if reason else "accent", end is not None)
        self.canvas.note.say(reason, "error", pos)

    def finish(self, pos: QPointF) -> None:
        # The point of the release may be another than that of the last move.
        self.move(pos, Qt.KeyboardModifier.NoModifier)
        refused, end = self._reason, self._end
        self.cancel()
        if refused:
            self.canvas.say_briefly(refused, "error", pos)
        elif end is not None:
            wire = self.rules.wire_to(end)
            if self._old is None:
                self.canvas.wire_requested.emit(wire)
            elif wire != self._old:
                self.canvas.wire_rerouted.emit(self._old, wire)
        elif self._old is not None and self.scene.block_at(pos) is None:
            self.canvas.delete_requested.emit((), (self._old,))

    def cancel(self) -> None:
        self.scene.removeItem(self._pending)
        self.canvas.note.say("", "error", QPointF())
        self.scene.end_previews()

    def _aim(self, pos: QPointF) -> tuple[End | None, str]:
        """The port that a release at `pos` would connect, or else the reason for refusing."""
        zoom = self.canvas.zoom
        near = sorted(self.scene.ports_near(pos, SNAP_PX / zoom), key=lambda each: each[0])
        ends = [(far, self._end_of(item, side, port)) for far, item, side, port in near]
        ends = [(far, end) for far, end in ends if end != self.rules.fixed]
        touched = [end for far, end in ends if far <= TOUCH_PX / zoom]
        for end in touched or [end for _, end in ends]:
            if self.rules.reason(end) is None:
                return end, ""
        if touched:
            return None, self.rules.reason(touched[0]) or ""
        block = self.scene.block_at(pos)
        return self._aim_at_block(block) if block else (None, "")

    def _aim_at_block(self, block: BlockItem) -> tuple[End | None, str]:
        """The block's first free port where the wire may end, else its first occupied one, whose
        wire is then replaced; or the reason for refusing."""
        side = self.rules.wanted
        ends = [self._end_of(block, side, port.name) for port in block.ports[side]]
        if block.block.id == self.rules.fixed[0] and self.rules.fixed not in ends:
            return None, ""  # still over the block that the wire starts from
        if not ends:
            kind = "input" if side == "in" else "output"
            return None, f"“{block.block.name}” has no {kind}."
        fitting = [end for end in ends if self.rules.reason(end) is None]
        if not fitting:
            return None, self.rules.reason(ends[0]) or ""
        taken = {(wire.target, wire.target_port) for wire in self.rules.model.wires}
        free = [end for end in fitting if side == "out" or (end[0], end[2]) not in taken]
        return (free or fitting)[0], ""

    @staticmethod
    def _end_of(item: BlockItem, side: Side, port: str) -> End:
        return item.block.id, side, port

    def _port_pos(self, end: End) -> QPointF:
        pos = self.scene.blocks[end[0]].port_pos(end[1], end[2])
        assert pos is not None  # ends are made from the items' own ports
        return pos

    def _mark(self, end: End | None, look) -> None:
        if end is not None:
            item = self.scene.blocks[end[0]]
            item.port_looks[end[1], end[2]] = look
            item.update()


class KeyboardWire(DrawWire):
    """Wire the selected block by keyboard: arrows choose among the inputs where the wire may end, W
    chooses the block's next output, Enter connects, Esc cancels."""

    def __init__(self, canvas: ModelView, block: BlockItem, output: int = 0) -> None:
        self._block, self._output = block, output % len(block.ports["out"])
        super().__init__(canvas, (block.block.id, "out", block.ports["out"][self._output].name))
        taken = {(wire.target, wire.target_port) for wire in self.scene.model.wires}
        self._choices = sorted(
            (
                end
                for item in self.scene.blocks.values()
                for port in item.ports["in"]
                if self.rules.reason(end := self._end_of(item, "in", port.name)) is None
            ),
            key=lambda end: ((end[0], end[2]) in taken, self._distance(end)),
        )
        self._choice = 0
        self._show()

    @property
    def possible(self) -> bool:
        """Whether there is any input where the wire may end."""
        return bool(self._choices)

    def move(self, pos: QPointF, modifiers: Qt.KeyboardModifier) -> None:
        """Ignore the pointer."""

    def finish(self, pos: QPointF) -> None:
        """Cancel: the user clicked elsewhere."""
        self.cancel()

    def key(self, event: QKeyEvent) -> bool:
        key = event.key()
        if key in (Qt.Key.Key_Right, Qt.Key.Key_Down, Qt.Key.Key_Left, Qt.Key.Key_Up):
            forward = key in (Qt.Key.Key_Right, Qt.Key.Key_Down)
            self._choice = (self._choice + (1 if forward else -1)) % len(self._choices)
            self._show()
        elif key in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            wire = self.rules.wire_to(self._choices[self._choice])
            self.canvas.end_gesture()
            self.canvas.wire_requested.emit(wire)
        elif key == Qt.Key.Key_W:
            self.canvas.end_gesture()
            start_keyboard_wire(self.canvas, self._block, self._output + 1)
        return True

    def _show(self) -> None:
        if not self._choices:
            return
        self._mark(self._end, "open")
        self._end = end = self._choices[self._choice]
        self._mark(end, "target")
        stop = self._port_pos(end)
        self._pending.show_wire(self._port_pos(self.rules.fixed), stop, "accent", True)
        target = self.scene.blocks[end[0]]
        self.canvas.reveal(target.rect())
        self.canvas.note.say(
            f"{self._block.block.name}.{self.rules.fixed[2]} → {target.block.name}.{end[2]}"
            f"\n{self._choice + 1} of {len(self._choices)}: arrows choose, Enter connects, "
            "Esc cancels",
            "accent",
            stop,
        )

    def _distance(self, end: End) -> float:
        off = self._port_pos(end) - self._port_pos(self.rules.fixed)
        return off.x() ** 2 + off.y() ** 2


def start_keyboard_wire(canvas: ModelView, block: BlockItem | None = None, output: int = 0) -> None:
    """Wire the selected block's outputs by keyboard; see KeyboardWire."""
    selected = canvas.selected_blocks()
    if block is None:
        if not selected:
            canvas.say_briefly("Select a block first: Tab or the arrow keys.", "accent")
            return
        block = canvas.model_scene.blocks[selected[0]]
    words = f"“{block.block.name}” has no output to draw a wire from."
    if block.ports["out"]:
        gesture = KeyboardWire(canvas, block, output)
        if gesture.possible:
            canvas.begin(gesture)
            return
        gesture.cancel()
        words = f"No free input can take the output of “{block.block.name}”."
    canvas.say_briefly(words, "error", block.rect().center())
