"""Context menus of blocks, wires and the empty canvas."""

from __future__ import annotations

from PySide6.QtCore import QPointF
from PySide6.QtWidgets import QMenu

from engine.project.document import Wire
from widgets import make

from .model_view import ModelView
from .wiring_gestures import start_keyboard_wire


def menu_at(canvas: ModelView, pos: QPointF) -> QMenu:
    """Select what lies at a scene point and return its menu."""
    menu = make.context_menu(canvas)
    menu.setToolTipsVisible(True)
    scene = canvas.model_scene
    if (block := scene.block_at(pos)) is not None:
        if not block.isSelected():
            canvas.select([block.block.id])
        _fill_for_block(menu, canvas)
    elif (wire := scene.wire_at(pos, 6 / canvas.zoom)) is not None:
        canvas.select_wires([wire.wire])
        _fill_for_wire(menu, canvas, wire.wire)
    else:
        canvas.select(())
        _fill_for_canvas(menu, canvas, pos)
    return menu


def _fill_for_block(menu: QMenu, canvas: ModelView) -> None:
    selected = canvas.selected_blocks()
    if len(selected) == 1:
        problem = canvas.model_scene.problems.get(selected[0])
        if problem is not None and problem.problem.fix is not None:
            fix = problem.problem.fix
            _add(menu, f"Fix: {fix.text}", "", lambda: canvas.fix_requested.emit(fix))
            menu.addSeparator()
        _add(menu, "Properties", "Return", canvas.activate_selected)
        _add(menu, "Rename", "F2", canvas.rename_selected)
        _add(menu, "Draw a wire from here", "W", lambda: start_keyboard_wire(canvas))
        menu.addSeparator()
    _add(menu, "Cut", "Ctrl+X", canvas.request_cut)
    _add(menu, "Copy", "Ctrl+C", canvas.request_copy)
    _add(menu, "Duplicate", "Ctrl+D", canvas.request_duplicate)
    _add(menu, "Delete", "Del", canvas.request_delete)


def _fill_for_wire(menu: QMenu, canvas: ModelView, wire: Wire) -> None:
    _add(menu, "Delete wire", "Del", canvas.request_delete)
    _add(menu, "Select both ends", "", lambda: canvas.select((wire.source, wire.target)))


def _fill_for_canvas(menu: QMenu, canvas: ModelView, pos: QPointF) -> None:
    _add(menu, "Insert block…", "/", lambda: canvas.insert_requested.emit(pos.x(), pos.y()))
    _add(menu, "Paste here", "Ctrl+V", lambda: canvas.paste_requested.emit(pos.x(), pos.y()))
    menu.addSeparator()
    _add(menu, "Select all", "Ctrl+A", canvas.select_all)
    _add(menu, "Arrange blocks", "L", canvas.layout_requested.emit)
    _add(menu, "Fit to window", "F", canvas.fit)
    _add(menu, "Actual size", "0", canvas.actual_size)
    menu.addSeparator()
    canvas.add_picture_actions(menu)


def _add(menu: QMenu, text: str, keys: str, act) -> None:
    """An entry that names its key. The key itself is the canvas's own: no QAction shortcut."""
    menu.addAction(f"{text}\t{keys}" if keys else text, act)
