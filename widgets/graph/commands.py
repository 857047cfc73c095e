"""The commands of the keys and of the context menu of a graph's picture, as words for its view."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeyEvent

from widgets.boxes.boxes import Box
from widgets.boxes.facts import GraphFacts

_ARROWS = {
    Qt.Key.Key_Down: "down",
    Qt.Key.Key_Up: "up",
    Qt.Key.Key_Left: "left",
    Qt.Key.Key_Right: "right",
}
_ENTER = (Qt.Key.Key_Return, Qt.Key.Key_Enter)
_PLUS = (Qt.Key.Key_Plus, Qt.Key.Key_Equal)


def of_key(event: QKeyEvent, selected: Box | None) -> str:
    """The command of a key; empty if it has none.

    Arrows walk along the links and within a layer. With a box selected, Enter runs to a node or
    opens and closes, + opens, - closes (the box, or the one around it) and Esc clears the
    selection. Ctrl with + and - zooms. `nothing` is for a key without effect: + on an open box.
    """
    key = Qt.Key(event.key())
    if event.modifiers() & Qt.KeyboardModifier.ControlModifier:
        return "zoom_in" if key in _PLUS else "zoom_out" if key == Qt.Key.Key_Minus else ""
    if key in _ARROWS:
        return _ARROWS[key]
    if selected is None:
        return ""
    if key in _ENTER:
        return "activate"
    if key in _PLUS:
        return "nothing" if selected.open else "toggle"
    return {Qt.Key.Key_Minus: "close_around", Qt.Key.Key_Escape: "select_none"}.get(key, "")


def of_menu(facts: GraphFacts, place: int | None, steps: bool = True) -> list[tuple[str, str]]:
    """(title, command) for a box (None: outside all boxes), then for the picture; a separator has
    no title. `steps`: a pass steps through the graph."""
    rows: list[tuple[str, str]] = []
    if place is not None:
        box = facts.visible.boxes[place]
        if box.kind == "node" and box.node is not None:
            if steps:
                rows.append(("Run to here", "run_to"))
        elif box.kind != "cut":
            rows += [
                ("Close" if box.open else "Open", "toggle"),
                ("Open all inside", "open_inside"),
            ]
        if steps and box.kind != "cut":
            rows.append(("Toggle breakpoint", "breakpoint"))
        rows += [("Copy name", "copy_name"), ("", "")]
    return [*rows, ("Open all", "open_all"), ("Close all", "close_all")]


def name_of(facts: GraphFacts, place: int) -> str:
    """The search text that finds the box again: a parameter's or node's name, a module's path."""
    box = facts.visible.boxes[place]
    if box.kind == "node":
        return facts.title(place)
    return box.title if box.kind == "cut" else box.key
