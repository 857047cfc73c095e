"""The head of the backward panel: start a pass, compare it, take it along as a script."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QLabel, QMenu, QPushButton, QToolButton, QWidget

from widgets.graph.operation_words import GRAD_FN
from widgets.icons import set_icon
from widgets.theme import GRID


class PassHead(QWidget):
    """`start`, `compare` and `script` can be disabled singly."""

    start_requested = Signal()
    compare_requested = Signal()
    script_requested = Signal(bool)
    """To a file (True) or to the clipboard."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        heading = QLabel("Backward")
        heading.setProperty("role", "heading")
        heading.setToolTip(GRAD_FN)
        self.start = QPushButton("Start")
        self.start.setObjectName("backward_start")
        self.start.setProperty("role", "primary")
        self.start.setAccessibleName("Start a backward pass")
        self.start.setToolTip("Read the graph from loss.grad_fn and stand before its root (F7)")
        set_icon(self.start, "mdi6.play", "on_accent")
        self.start.clicked.connect(self.start_requested)
        self.compare = QPushButton("Compare")
        self.compare.setObjectName("backward_compare")
        self.compare.setAccessibleName("Compare with loss.backward()")
        self.compare.setToolTip(
            "Run the same batch through plain loss.backward() and compare every .grad"
        )
        set_icon(self.compare, "mdi6.scale-balance")
        self.compare.clicked.connect(self.compare_requested)
        self.script = self._script_button()
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(GRID)
        row.addWidget(heading)
        row.addStretch(1)
        for button in (self.script, self.compare, self.start):
            row.addWidget(button)

    def _script_button(self) -> QToolButton:
        button = QToolButton()
        button.setObjectName("backward_script")
        button.setAccessibleName("All that was done as a Python script")
        button.setToolTip(
            "All that was done, to the end of this pass, as a Python script that runs by itself:"
            " edits become hooks on the right nodes, and .grad comes out the same to the bit"
        )
        button.setAutoRaise(True)
        button.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        set_icon(button, "mdi6.script-text-outline")
        menu = QMenu(button)
        for name, title, to_file in (
            ("copy", "Copy script", False),
            ("save", "Save script…", True),
        ):
            action = menu.addAction(title, lambda to=to_file: self.script_requested.emit(to))
            action.setObjectName(f"backward_script_{name}")
        button.setMenu(menu)
        return button
