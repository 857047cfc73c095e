"""The buttons that move a pass forward and back."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QAction, QKeySequence, QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QToolButton, QWidget

from widgets import make
from widgets.icons import set_icon

_GAP = 2


class Move(NamedTuple):
    """A button: its text, icon and tooltip ({one} is the thing that a step runs), and when it is
    enabled: `back` after the start, `on` before the end, or with a `target`.

    `keys` act in the panel, `window_keys` are those by which the window's menu does the same. Where
    there is no room for all buttons, those with the largest `folds` go into a menu first, those
    with 0 never.
    """

    text: str
    icon: str
    tip: str
    needs: str
    keys: str = ""
    window_keys: str = ""
    folds: int = 0


_RESET = Move("Reset", "skip-backward", "Return before the first {one}", "back", "Ctrl+Home", "", 1)
_BACK = Move("Back", "step-backward", "Undo the last {one}", "back", "Ctrl+Left")
_STEP = Move("Step", "step-forward", "Run the next {one}", "on", "Ctrl+Right", "F10")
_TO_HERE = Move(
    "To here", "debug-step-over", "Run to the selected {one} (Enter)", "target", folds=3
)
_END = Move("Run all", "skip-forward", "Run all {one}s that are left", "on", "Ctrl+End", "", 2)
_BACK_RUN = Move("", "rewind", "Run back to the previous breakpoint", "back")
_RUN = Move("Run", "play", "Run to the next breakpoint", "on", "Ctrl+Shift+Right", "F12")
_LEAF = Move("", "leaf", "Run to the next leaf: a .grad is filled", "on", "Ctrl+Down", folds=3)
_REST_OF_MODULE = Move(
    "", "debug-step-out", "Finish this module: run its {one}s that are left", "on"
)

MOVES = {"reset": _RESET, "back": _BACK, "step": _STEP, "to": _TO_HERE, "end": _END}
"""The moves of every pass."""

DEBUG_MOVES = {
    "reset": _RESET,
    "back_run": _BACK_RUN._replace(keys="Ctrl+Shift+Left", window_keys="Shift+F12", folds=6),
    "back": _BACK._replace(text="", window_keys="Shift+F10"),
    "step": _STEP._replace(window_keys="F11"),
    "run": _RUN,
    "leaf": _LEAF,
    "out": _REST_OF_MODULE._replace(keys="Ctrl+Up", window_keys="Shift+F11", folds=5),
    "to": _TO_HERE._replace(text="", folds=4),
    "end": _END._replace(text="", tip="Run all {one}s that are left, past breakpoints"),
}
"""The moves of a pass with breakpoints: few have a text, so that they stay in one row."""


class StepBar(QWidget):
    """`moved(move)` with a key of `moves`. `one` says what a step runs.

    The shortcuts act while the focus is inside `scope`, the panel that the bar drives. Where the
    row is too narrow for all, the rarer moves are in the menu `more`.
    """

    moved = Signal(str)

    def __init__(
        self, name: str, one: str, scope: QWidget, moves: Mapping[str, Move] = MOVES
    ) -> None:
        super().__init__()
        self._moves = moves
        self.buttons: dict[str, QToolButton] = {}
        self._actions: dict[str, QAction] = {}
        self._fold_order = sorted(
            (key for key in moves if moves[key].folds), key=lambda key: -moves[key].folds
        )
        self._text_place = (
            Qt.ToolButtonStyle.ToolButtonTextUnderIcon
            if all(move.text for move in moves.values())
            else Qt.ToolButtonStyle.ToolButtonTextBesideIcon
        )
        self._row = make.row(on=self, gap=_GAP)
        for key, move in moves.items():
            tip = move.tip.format(one=one)
            action = QAction(tip, self)
            action.setIconText(move.text)
            keys = [known for known in (move.window_keys, move.keys) if known]
            action.setToolTip(f"{tip} ({', '.join(keys)})" if keys else tip)
            if move.keys:
                action.setShortcut(QKeySequence(move.keys))
                action.setShortcutContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
                scope.addAction(action)
            set_icon(action, f"mdi6.{move.icon}", "accent" if key == "step" else "text")
            action.triggered.connect(lambda _=False, key=key: self.moved.emit(key))
            self.buttons[key] = self._button(f"{name}_{key}", tip, bool(move.text))
            self.buttons[key].setDefaultAction(action)
            self._actions[key] = action
        self.more = self._button(f"{name}_more", "More moves", False)
        self.more.setToolTip("The moves that do not fit in the bar")
        set_icon(self.more, "mdi6.dots-horizontal")
        make.menu(self.more, accessible="More moves")
        self.more.hide()
        self.show_position(0, 0, False)

    def _button(self, name: str, words: str, has_text: bool) -> QToolButton:
        button = make.tool_button(name, accessible=words)
        icon_only = Qt.ToolButtonStyle.ToolButtonIconOnly
        button.setToolButtonStyle(self._text_place if has_text else icon_only)
        button.setIconSize(QSize(20, 20))
        button.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._row.addWidget(button)
        return button

    def show_position(
        self, position: int, length: int, can_run_to: bool, without: Collection[str] = ()
    ) -> None:
        """Enable the moves that are possible at `position` of `length`, but none in `without`."""
        possible = {"back": position > 0, "on": position < length, "target": can_run_to}
        for key, move in self._moves.items():
            enabled = possible[move.needs] and key not in without
            self._actions[key].setEnabled(enabled)

    def trigger(self, move: str) -> None:
        """Make the move of a button; nothing if it is disabled."""
        self._actions[move].trigger()

    # -- its width -------------------------------------------------------------------------------

    def minimumSizeHint(self) -> QSize:
        """Room for the buttons that never fold."""
        hint = super().minimumSizeHint()
        hint.setWidth(self._width_without(self._fold_order))
        return hint

    def sizeHint(self) -> QSize:
        hint = super().sizeHint()
        hint.setWidth(self._width_without(()))
        return hint

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        folded = 0
        while (
            folded < len(self._fold_order)
            and self._width_without(self._fold_order[:folded]) > self.width()
        ):
            folded += 1
        self._fold(self._fold_order[:folded])

    def _fold(self, folded: Collection[str]) -> None:
        for key, button in self.buttons.items():
            button.setHidden(key in folded)
        self.more.setHidden(not folded)
        menu = self.more.menu()
        for key, action in self._actions.items():
            menu.removeAction(action)
            if key in folded:
                menu.addAction(action)

    def _width_without(self, folded: Collection[str]) -> int:
        shown = [button for key, button in self.buttons.items() if key not in folded]
        if folded:
            shown.append(self.more)
        return sum(button.sizeHint().width() + _GAP for button in shown) - _GAP
