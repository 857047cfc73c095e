"""The keys of the autograd graph's picture."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeyEvent

from widgets.canvas.view import WHEEL_STEP

if TYPE_CHECKING:
    from widgets.graph.view import GraphView

_ARROWS = {
    Qt.Key.Key_Down: "down",
    Qt.Key.Key_Up: "up",
    Qt.Key.Key_Left: "left",
    Qt.Key.Key_Right: "right",
}
_ENTER = (Qt.Key.Key_Return, Qt.Key.Key_Enter)
_PLUS = (Qt.Key.Key_Plus, Qt.Key.Key_Equal)


def press(view: GraphView, event: QKeyEvent) -> bool:
    """Act on a key; false when the graph has no use for it.

    Arrows walk along the links and within a layer. With a box selected, Enter runs to a node or
    opens and closes, + opens, - closes (the box, or the one around it) and Esc selects nothing.
    Ctrl with + and - zooms.
    """
    key, box = Qt.Key(event.key()), view.selected_box
    if view.facts is None or not view.facts.atom.size:
        return False
    if event.modifiers() & Qt.KeyboardModifier.ControlModifier:
        if key in _PLUS:
            view.zoom_by(WHEEL_STEP)
        elif key == Qt.Key.Key_Minus:
            view.zoom_by(1 / WHEEL_STEP)
        else:
            return False
    elif key in _ARROWS:
        view.walk(_ARROWS[key])
    elif box is None:
        return False
    elif key in _ENTER:
        view.activate(box)
    elif key in _PLUS:
        if not view.facts.visible.boxes[box].open:
            view.toggle(box)
    elif key == Qt.Key.Key_Minus:
        view.close_around(box)
    elif key == Qt.Key.Key_Escape:
        view.select_none()
    else:
        return False
    return True
