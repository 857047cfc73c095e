"""The buttons that move a pass: what they say, when they are enabled, and which have no room."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QWidget

from widgets.backward.step_bar import DEBUG_MOVES, MOVES, StepBar

TIPS = {
    "reset": "Return before the first node (Ctrl+Home)",
    "back_run": "Run back to the previous breakpoint (Shift+F12, Ctrl+Shift+Left)",
    "back": "Undo the last node (Shift+F10, Ctrl+Left)",
    "step": "Run the next node (F11, Ctrl+Right)",
    "run": "Run to the next breakpoint (F12, Ctrl+Shift+Right)",
    "leaf": "Run to the next leaf: a .grad is filled (Ctrl+Down)",
    "out": "Finish this module: run its nodes that are left (Shift+F11, Ctrl+Up)",
    "to": "Run to the selected node (Enter)",
    "end": "Run all nodes that are left, past breakpoints (Ctrl+End)",
}
FOLDED_FIRST = ["back_run", "out", "to", "leaf", "end", "reset"]


@pytest.fixture
def scope(qtbot) -> QWidget:
    scope = QWidget()
    qtbot.addWidget(scope)
    scope.resize(900, 60)
    scope.show()
    return scope


@pytest.fixture
def bar(scope) -> StepBar:
    bar = StepBar("pass", "node", scope, DEBUG_MOVES)
    bar.setParent(scope)
    bar.resize(900, 40)
    bar.show()
    return bar


def test_each_button_says_what_it_does_and_by_which_keys(bar, scope) -> None:
    assert {key: bar.buttons[key].toolTip() for key in bar.buttons} == TIPS
    assert list(bar.buttons) == list(DEBUG_MOVES)
    for key, button in bar.buttons.items():
        assert button.objectName() == f"pass_{key}"
        words = TIPS[key] if key == "to" else TIPS[key].rpartition(" (")[0]
        assert button.accessibleName() == words
        beside = Qt.ToolButtonStyle.ToolButtonTextBesideIcon
        has_text = button.toolButtonStyle() == beside
        assert has_text == bool(button.text() and DEBUG_MOVES[key].text)
    keys = {action.toolTip(): action.shortcut().toString() for action in scope.actions()}
    assert keys == {TIPS[key]: move.keys for key, move in DEBUG_MOVES.items() if move.keys}


def test_a_bar_of_texts_has_them_under_its_icons(scope) -> None:
    bar = StepBar("pass", "block", scope, MOVES)
    bar.setParent(scope)
    assert [button.text() for button in bar.buttons.values()] == [
        "Reset", "Back", "Step", "To here", "Run all",
    ]  # fmt: skip
    styles = {button.toolButtonStyle() for button in bar.buttons.values()}
    assert styles == {Qt.ToolButtonStyle.ToolButtonTextUnderIcon}
    assert bar.buttons["step"].toolTip() == "Run the next block (F10, Ctrl+Right)"
    assert bar.buttons["end"].toolTip() == "Run all blocks that are left (Ctrl+End)"


BACK, ON = {"reset", "back_run", "back"}, {"step", "run", "leaf", "out", "end"}


@pytest.mark.parametrize(
    ("position", "length", "can_run_to", "without", "enabled"),
    [
        (0, 0, False, (), set()), (0, 3, False, (), ON), (1, 3, False, (), BACK | ON),
        (3, 3, False, (), BACK), (1, 3, True, (), BACK | ON | {"to"}), (0, 0, True, (), {"to"}),
        (1, 3, True, ("to", "back", "leaf"), (BACK | ON) - {"back", "leaf"}),
    ],
)  # fmt: skip
def test_moves_are_enabled_where_they_are_possible(
    bar, position, length, can_run_to, without, enabled
) -> None:
    moved: list[str] = []
    bar.moved.connect(moved.append)
    bar.show_position(position, length, can_run_to, without)
    assert {key for key, button in bar.buttons.items() if button.isEnabled()} == enabled
    for key in bar.buttons:
        bar.trigger(key)
    assert moved == [key for key in bar.buttons if key in enabled]


def test_its_keys_act_in_the_panel(bar, scope, qtbot) -> None:
    moved: list[str] = []
    bar.moved.connect(moved.append)
    bar.show_position(1, 3, True)
    scope.activateWindow()
    scope.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
    scope.setFocus()
    qtbot.waitUntil(scope.hasFocus)
    both = Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier
    QTest.keyClick(scope, Qt.Key.Key_Left, both)
    QTest.keyClick(scope, Qt.Key.Key_Left, Qt.KeyboardModifier.ControlModifier)
    QTest.keyClick(scope, Qt.Key.Key_F11)  # the window's menu has this one
    assert moved == ["back_run", "back"]


def test_moves_without_room_go_into_the_menu_one_by_one(bar) -> None:
    whole = bar.sizeHint().width()
    shown = [button.sizeHint().width() + 2 for button in bar.buttons.values()]
    assert whole == sum(shown) - 2
    menu = bar.more.menu()
    seen = set()
    for width in range(whole + 4, bar.minimumSizeHint().width() - 1, -1):
        bar.resize(width, 40)
        folded = [key for key in bar.buttons if bar.buttons[key].isHidden()]
        assert sorted(folded) == sorted(FOLDED_FIRST[: len(folded)])
        assert [action.toolTip() for action in menu.actions()] == [TIPS[key] for key in folded]
        assert bar.more.isHidden() == (not folded) == (width >= whole)
        left = [each for each in (*bar.buttons.values(), bar.more) if not each.isHidden()]
        assert sum(each.sizeHint().width() + 2 for each in left) - 2 <= width
        if len(folded) > 1:  # with one button more it would not fit
            again = bar.buttons[FOLDED_FIRST[len(folded) - 1]].sizeHint().width()
            assert sum(each.sizeHint().width() + 2 for each in left) + again > width
        seen.add(len(folded))
    assert seen == {0, 2, 3, 4, 5, 6}  # the menu's own button takes the room of the first
    bar.resize(whole, 40)
    assert menu.actions() == [] and bar.more.isHidden()
