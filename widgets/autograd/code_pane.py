"""A few lines of Python to read, with a button that runs them."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPlainTextEdit, QPushButton, QVBoxLayout, QWidget

from widgets.icons import set_icon
from widgets.model.python_highlighter import PythonHighlighter
from widgets.theme import GRID, mono_font


class CodePane(QWidget):
    """`run_requested(source)` when the button is pressed. The pane is as high as its code."""

    run_requested = Signal(str)

    def __init__(self, name: str, title: str, run_tip: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        heading = QLabel(title)
        heading.setProperty("role", "heading")
        self.run = QPushButton("Run in console")
        self.run.setObjectName(f"{name}_run")
        self.run.setAccessibleName(f"Run: {title}")
        self.run.setToolTip(run_tip)
        set_icon(self.run, "mdi6.console-line")
        self.run.clicked.connect(lambda: self.run_requested.emit(self.code()))
        self._text = QPlainTextEdit(readOnly=True)
        self._text.setObjectName(name)
        self._text.setAccessibleName(title)
        self._text.setFont(mono_font())
        self._text.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self._highlighter = PythonHighlighter(self._text.document())
        head = QHBoxLayout()
        head.setSpacing(GRID)
        head.addWidget(heading, 1)
        head.addWidget(self.run)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(GRID // 2)
        layout.addLayout(head)
        layout.addWidget(self._text)

    def code(self) -> str:
        return self._text.toPlainText()

    def show_code(self, code: str) -> None:
        code = code.rstrip("\n")
        self._text.setPlainText(code)
        line = self._text.fontMetrics().lineSpacing()
        self._text.setFixedHeight((code.count("\n") + 1) * line + 3 * GRID)
