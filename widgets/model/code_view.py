"""The Python of the model, read-only, with the block of each line."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from PySide6.QtCore import QPoint, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QFontMetrics, QGuiApplication
from PySide6.QtWidgets import QWidget

from widgets import make, theme

if TYPE_CHECKING:
    from widgets.model.code_editor import CodeEditor

COLUMNS = 48
"""The panel's width at the start, in columns. Longer lines scroll: the canvas needs the room."""
_DIGITS = 3
_MARGINS_PX = 38  # of the line numbers and of the text, and a scroll bar


class CodeView(QWidget):
    """Shows the code of a model, and marks the lines of a block.

    A click on a line asks to select its block. Copy puts the whole file on the clipboard and says
    so; Save asks the program to write it.
    """

    block_selected = Signal(str)
    copy_requested = Signal()
    save_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("code_view")
        self.copy_button = make.tool_button(
            "code_copy",
            "mdi6.content-copy",
            "Copy the whole file to the clipboard.",
            self.copy,
            text="Copy",
            accessible="Copy the whole file to the clipboard",
        )
        self.save_button = make.tool_button(
            "code_save",
            "mdi6.content-save-outline",
            slot=self.save_requested,
            text="Save…",
            accessible="Save as a Python file",
        )
        self.save_button.setToolTip(
            "Save as a Python file. It runs by itself: it needs torch, not this program."
        )
        caption = make.label("model.py", "muted")
        self.empty = make.empty("The model's Python appears here as you build it.", "code_empty")

        margins = (theme.GRID, theme.GRID // 2, theme.GRID, theme.GRID // 2)
        bar = make.row((caption, 1), self.copy_button, self.save_button, margins=margins)
        self._column = make.column(bar, (self.empty, 1), on=self, gap=0)
        self._lines: dict[str, tuple[int, ...]] = {}
        self._block: str | None = None
        self._copied = QTimer(self, singleShot=True, interval=1500)
        self._copied.timeout.connect(lambda: self.copy_button.setText("Copy"))
        self.show_code("", {})

    @cached_property
    def editor(self) -> CodeEditor:
        """Made for the first code, which the window does not wait for."""
        from widgets.model.code_editor import CodeEditor

        editor = CodeEditor(
            "code_text",
            "Python of the model",
            "The model as an ordinary nn.Module. Click a line to select its block.",
            self,
        )
        editor.line_clicked.connect(self._select_block_of)
        editor.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        editor.customContextMenuRequested.connect(self._open_menu)
        editor.hide()
        self._column.insertWidget(1, editor, 1)
        return editor

    def sizeHint(self) -> QSize:
        """As wide as COLUMNS, with or without code."""
        text = QFontMetrics(theme.mono_font(9)).horizontalAdvance("9" * (COLUMNS + _DIGITS))
        return QSize(text + _MARGINS_PX, super().sizeHint().height())

    def show_code(self, source: str, lines: Mapping[str, tuple[int, ...]]) -> None:
        """Show `source`; `lines` maps ids of blocks to their 1-based lines. The scroll position and
        the marked block stay."""
        self._lines = dict(lines)
        self.empty.setVisible(not source)
        self.copy_button.setEnabled(bool(source))
        self.save_button.setEnabled(bool(source))
        if not source and "editor" not in vars(self):
            return
        if source != self.editor.toPlainText():
            place = self.editor.verticalScrollBar().value()
            self.editor.setPlainText(source)
            self.editor.verticalScrollBar().setValue(place)
        self.editor.setVisible(bool(source))
        self.editor.highlight(self._lines.get(self._block or "", ()), scroll=False)

    def highlight_block(self, block: str | None) -> None:
        """Mark the lines of a block and scroll to the first of them; None marks nothing."""
        self._block = block
        if "editor" in vars(self):
            self.editor.highlight(self._lines.get(block or "", ()), scroll=True)

    def copy(self) -> None:
        QGuiApplication.clipboard().setText(self.editor.toPlainText())
        self.copy_button.setText("Copied")
        self._copied.start()
        self.copy_requested.emit()

    def _open_menu(self, at: QPoint) -> None:
        self._select_block_of(self.editor.cursorForPosition(at).blockNumber() + 1)
        menu = make.context_menu(self.editor)
        menu.addAction("Copy the whole file", self.copy)
        make.pop_up(menu, self.editor.viewport().mapToGlobal(at))

    def _select_block_of(self, line: int) -> None:
        for block, lines in self._lines.items():
            if line in lines:
                self.block_selected.emit(block)
                return
