"""A few lines of read-only Python with a button that runs them."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QPlainTextEdit, QWidget

from widgets import make
from widgets.model.python_highlighter import PythonHighlighter
from widgets.theme import GRID, mono_font


class CodePane(QWidget):
    """The button emits `run_requested(source)`. The pane is as high as its code."""

    run_requested = Signal(str)

    def __init__(self, name: str, title: str, run_tip: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.run = make.button(f"{name}_run", "Run", "mdi6.play", self._run, tip=run_tip)
        self.run.setAccessibleName(f"Run: {title}")
        self._text = make.named(QPlainTextEdit(readOnly=True), name, title)
        self._text.setFont(mono_font())
        self._text.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self._highlighter = PythonHighlighter(self._text.document())
        head = make.row((make.label(title, "heading"), 1), self.run)
        make.column(head, self._text, on=self, gap=GRID // 2)

    def _run(self) -> None:
        self.run_requested.emit(self.code())

    def code(self) -> str:
        return self._text.toPlainText()

    def show_code(self, code: str) -> None:
        code = code.rstrip("\n")
        self._text.setPlainText(code)
        line = self._text.fontMetrics().lineSpacing()
        self._text.setFixedHeight((code.count("\n") + 1) * line + 3 * GRID)
