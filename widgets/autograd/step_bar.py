"""The five buttons that move a pass: reset, back, step, run to, run all."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QToolButton, QWidget

from widgets.icons import set_icon

_BUTTONS = {
    "reset": ("Reset", "mdi6.skip-backward", "Return before the first {one}", "Ctrl+Home"),
    "back": ("Back", "mdi6.step-backward", "Undo the last {one}", "Ctrl+Left"),
    "step": ("Step", "mdi6.step-forward", "Run the next {one}", "Ctrl+Right"),
    "to": ("To here", "mdi6.debug-step-over", "Run to the selected {one} (Enter)", ""),
    "end": ("Run all", "mdi6.skip-forward", "Run all {one}s that are left", "Ctrl+End"),
}


class StepBar(QWidget):
    """`moved(move)` with move one of reset, back, step, to, end. `one` says what a step runs.

    The shortcuts act while the focus is inside `scope`, the panel that the bar drives.
    """

    moved = Signal(str)

    def __init__(self, name: str, one: str, scope: QWidget) -> None:
        super().__init__()
        self.buttons: dict[str, QToolButton] = {}
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(2)
        for move, (text, icon, words, keys) in _BUTTONS.items():
            tip = words.format(one=one)
            button = QToolButton()
            button.setObjectName(f"{name}_{move}")
            button.setAccessibleName(tip)
            button.setToolTip(f"{tip} ({keys})" if keys else tip)
            button.setText(text)
            button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextUnderIcon)
            button.setIconSize(QSize(20, 20))
            button.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
            button.setAutoRaise(True)
            set_icon(button, icon, "accent" if move == "step" else "text")
            button.clicked.connect(lambda _=False, move=move: self.moved.emit(move))
            layout.addWidget(button)
            self.buttons[move] = button
            if keys:
                shortcut = QShortcut(QKeySequence(keys), scope)
                shortcut.setContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
                shortcut.activated.connect(button.click)
        self.show_position(0, 0, False)

    def show_position(self, position: int, length: int, can_run_to: bool) -> None:
        """Enable what makes sense at `position` of `length`."""
        for move in ("reset", "back"):
            self.buttons[move].setEnabled(position > 0)
        for move in ("step", "end"):
            self.buttons[move].setEnabled(position < length)
        self.buttons["to"].setEnabled(can_run_to)
