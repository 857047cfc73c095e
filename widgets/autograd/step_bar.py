"""The buttons that move a pass forth and back."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QToolButton, QWidget

from widgets.icons import set_icon


class Move(NamedTuple):
    """A button: what it says, its icon, its tooltip ({one} is what a step runs), its keys, and
    where it makes sense: `before` the first, `after` the last, both, or with a `target`."""

    text: str
    icon: str
    tip: str
    keys: str
    needs: str


MOVES: Mapping[str, Move] = {
    "reset": Move(
        "Reset", "mdi6.skip-backward", "Return before the first {one}", "Ctrl+Home", "back"
    ),
    "back": Move("Back", "mdi6.step-backward", "Undo the last {one}", "Ctrl+Left", "back"),
    "step": Move("Step", "mdi6.step-forward", "Run the next {one}", "Ctrl+Right", "on"),
    "to": Move(
        "To here", "mdi6.debug-step-over", "Run to the selected {one} (Enter)", "", "target"
    ),
    "end": Move("Run all", "mdi6.skip-forward", "Run all {one}s that are left", "Ctrl+End", "on"),
}
"""The moves of every pass."""

DEBUG_MOVES: Mapping[str, Move] = {
    "reset": MOVES["reset"]._replace(text="Restart"),
    "back_run": Move(
        "",
        "mdi6.rewind",
        "Go back to the breakpoint before",
        "Ctrl+Shift+Left",
        "back",
    ),
    "back": MOVES["back"]._replace(text=""),
    "step": MOVES["step"],
    "run": Move("Run", "mdi6.play", "Run to the next breakpoint (F12)", "Ctrl+Shift+Right", "on"),
    "leaf": Move("", "mdi6.leaf", "Run to the next leaf: a .grad is filled", "Ctrl+Down", "on"),
    "out": Move(
        "",
        "mdi6.debug-step-out",
        "Run to the last {one} of the next {one}'s module",
        "Ctrl+Up",
        "on",
    ),
    "to": MOVES["to"]._replace(text=""),
    "end": MOVES["end"]._replace(text="", tip="Run all {one}s that are left, past breakpoints"),
}
"""Those of a pass with breakpoints: texts only where they are needed most, to stay in one row."""


class StepBar(QWidget):
    """`moved(move)` with a key of `moves`. `one` says what a step runs.

    The shortcuts act while the focus is inside `scope`, the panel that the bar drives.
    """

    moved = Signal(str)

    def __init__(
        self, name: str, one: str, scope: QWidget, moves: Mapping[str, Move] = MOVES
    ) -> None:
        super().__init__()
        self._moves = moves
        self.buttons: dict[str, QToolButton] = {}
        beside = any(not move.text for move in moves.values())
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(2)
        for key, move in moves.items():
            tip = move.tip.format(one=one)
            button = QToolButton()
            button.setObjectName(f"{name}_{key}")
            button.setAccessibleName(tip)
            button.setToolTip(f"{tip} ({move.keys})" if move.keys else tip)
            button.setText(move.text)
            style = Qt.ToolButtonStyle.ToolButtonTextUnderIcon
            if beside:
                style = Qt.ToolButtonStyle.ToolButtonTextBesideIcon
            button.setToolButtonStyle(style if move.text else Qt.ToolButtonStyle.ToolButtonIconOnly)
            button.setIconSize(QSize(20, 20))
            button.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
            button.setAutoRaise(True)
            set_icon(button, move.icon, "accent" if key == "step" else "text")
            button.clicked.connect(lambda _=False, key=key: self.moved.emit(key))
            layout.addWidget(button)
            self.buttons[key] = button
            if move.keys:
                shortcut = QShortcut(QKeySequence(move.keys), scope)
                shortcut.setContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
                shortcut.activated.connect(button.click)
        self.show_position(0, 0, False)

    def show_position(
        self, position: int, length: int, can_run_to: bool, without: Collection[str] = ()
    ) -> None:
        """Enable what makes sense at `position` of `length`, `without` some moves."""
        possible = {"back": position > 0, "on": position < length, "target": can_run_to}
        for key, move in self._moves.items():
            self.buttons[key].setEnabled(possible[move.needs] and key not in without)
