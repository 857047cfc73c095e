"""What the keys and the context menu of a graph's picture ask for."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QKeyEvent

from widgets.boxes.boxes import Box
from widgets.graph import commands

NONE, CTRL = Qt.KeyboardModifier.NoModifier, Qt.KeyboardModifier.ControlModifier
CLOSED = Box("layers", "module", None, False, "layers", "", nodes=3)
OPEN = replace(CLOSED, open=True)


def press(key: Qt.Key, box: Box | None, modifiers: Qt.KeyboardModifier = NONE) -> str:
    return commands.of_key(QKeyEvent(QEvent.Type.KeyPress, key, modifiers), box)


@pytest.mark.parametrize("direction", ["Up", "Down", "Left", "Right"])
def test_arrows_walk_with_and_without_a_selection(direction):
    key = Qt.Key[f"Key_{direction}"]
    assert press(key, None) == press(key, CLOSED) == direction.lower()


@pytest.mark.parametrize(
    ("key", "command"),
    [
        (Qt.Key.Key_Return, "activate"),
        (Qt.Key.Key_Enter, "activate"),
        (Qt.Key.Key_Plus, "toggle"),
        (Qt.Key.Key_Equal, "toggle"),
        (Qt.Key.Key_Minus, "close_around"),
        (Qt.Key.Key_Escape, "select_none"),
        (Qt.Key.Key_A, ""),
    ],
)
def test_keys_of_a_selected_box_do_nothing_without_one(key, command):
    assert press(key, CLOSED) == command
    assert press(key, None) == ""


def test_plus_is_used_up_on_an_open_box():
    assert press(Qt.Key.Key_Plus, OPEN) == "nothing"


def test_ctrl_with_plus_and_minus_zooms_whatever_is_selected():
    for box in (None, CLOSED):
        assert press(Qt.Key.Key_Plus, box, CTRL) == press(Qt.Key.Key_Equal, box, CTRL) == "zoom_in"
        assert press(Qt.Key.Key_Minus, box, CTRL) == "zoom_out"
        assert press(Qt.Key.Key_Left, box, CTRL) == ""
