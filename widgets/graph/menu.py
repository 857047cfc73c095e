"""The context menu of the autograd graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QPointF
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QMenu

from engine.protocol import GraphNode
from widgets.boxes.boxes import Box

if TYPE_CHECKING:
    from widgets.graph.view import GraphView


def fill(menu: QMenu, view: GraphView, place: int | None, at: QPointF | None) -> None:
    """What can be done with the box at `place` (None: beside all boxes), then with the picture;
    `at` is the cursor in the viewport."""
    facts = view.facts
    if facts is not None and place is not None:
        box = facts.visible.boxes[place]
        if box.kind == "node" and box.node is not None:
            _add_node(menu, view, facts.graph.nodes[box.node])
        elif box.kind != "cut":
            menu.addAction("Close" if box.open else "Open", lambda: view.toggle(place, at))
            menu.addAction("Open all inside", lambda: view.open_inside(place, at))
        if box.kind != "cut":
            menu.addAction("Toggle breakpoint", lambda: view.breakpoint_toggled.emit(box.key))
        menu.addAction("Copy name", lambda: QGuiApplication.clipboard().setText(name_of(view, box)))
        menu.addSeparator()
    if facts is not None:
        menu.addAction("Open all", view.open_all)
        menu.addAction("Close all", view.close_all)
    menu.addAction("Fit\tF", view.fit)
    view.add_picture_actions(menu)


def _add_node(menu: QMenu, view: GraphView, node: GraphNode) -> None:
    menu.addAction("Run to here", lambda: view.run_to_requested.emit(node.id))
    if node.source is not None or node.block is not None:
        menu.addAction("Show in code", lambda: view.code_requested.emit(node.id))


def name_of(view: GraphView, box: Box) -> str:
    """What a reader types to find the box again: a parameter's or node's name, a module's path."""
    if box.kind == "node" and view.facts is not None:
        return view.facts.title(view.facts.index_of[box.key])
    return box.title if box.kind == "cut" else box.key
