"""The Python of the model, read-only, each line tied to the block it came from."""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtCore import QSize, Qt, QTimer, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QHBoxLayout, QLabel, QToolButton, QVBoxLayout, QWidget

from widgets import theme
from widgets.icons import set_icon
from widgets.model.code_editor import CodeEditor

COLUMNS = 64
"""How many columns the panel opens with: the longest line of most models."""


class CodeView(QWidget):
    """Shows code and a map from block ids to their 1-based lines.

    A click on a line that belongs to a block asks to select it. Copy puts the whole file on the
    clipboard (and tells so), Save asks the program to.
    """

    block_selected = Signal(str)
    copy_requested = Signal()
    save_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("code_view")
        self.editor = CodeEditor(
            "code_text",
            "Python of the model",
            "The model as an ordinary nn.Module. Click a line to select its block.",
            self,
        )
        self.editor.line_clicked.connect(self._select_block_of)
        self.copy_button = _button(
            "code_copy", "mdi6.content-copy", "Copy", "Copy the whole file to the clipboard."
        )
        self.save_button = _button(
            "code_save",
            "mdi6.content-save-outline",
            "Save…",
            "Save as a Python file. It runs by itself: it needs torch, not this program.",
        )
        self.copy_button.clicked.connect(self.copy)
        self.save_button.clicked.connect(self.save_requested)
        self._caption = QLabel("model.py")
        self._caption.setProperty("role", "muted")
        self.empty = QLabel("The model's Python appears here as you build it.")
        self.empty.setObjectName("code_empty")
        self.empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.empty.setWordWrap(True)
        self.empty.setProperty("role", "muted")

        bar = QHBoxLayout()
        bar.setContentsMargins(theme.GRID, theme.GRID // 2, theme.GRID, theme.GRID // 2)
        bar.setSpacing(theme.GRID)
        bar.addWidget(self._caption, 1)
        bar.addWidget(self.copy_button)
        bar.addWidget(self.save_button)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addLayout(bar)
        layout.addWidget(self.editor, 1)
        layout.addWidget(self.empty, 1)
        self._lines: dict[str, tuple[int, ...]] = {}
        self._block: str | None = None
        self._copied = QTimer(self)
        self._copied.setSingleShot(True)
        self._copied.setInterval(1500)
        self._copied.timeout.connect(lambda: self.copy_button.setText("Copy"))
        self.show_code("", {})

    def sizeHint(self) -> QSize:
        """As wide as COLUMNS, whether there is code yet or not."""
        return QSize(self.editor.width_of(COLUMNS), super().sizeHint().height())

    def show_code(self, source: str, lines: Mapping[str, tuple[int, ...]]) -> None:
        """Show `source`; `lines` gives the 1-based lines of each block. The place scrolled to and
        the highlighted block stay."""
        self._lines = dict(lines)
        if source != self.editor.toPlainText():
            place = self.editor.verticalScrollBar().value()
            self.editor.setPlainText(source)
            self.editor.verticalScrollBar().setValue(place)
        self.editor.setVisible(bool(source))
        self.empty.setVisible(not source)
        self.copy_button.setEnabled(bool(source))
        self.save_button.setEnabled(bool(source))
        self.editor.highlight(self._lines.get(self._block or "", ()), scroll=False)

    def highlight_block(self, block: str | None) -> None:
        """Mark the lines of a block and scroll to the first; None marks nothing."""
        self._block = block
        self.editor.highlight(self._lines.get(block or "", ()), scroll=True)

    def copy(self) -> None:
        QGuiApplication.clipboard().setText(self.editor.toPlainText())
        self.copy_button.setText("Copied")
        self._copied.start()
        self.copy_requested.emit()

    def _select_block_of(self, line: int) -> None:
        for block, lines in self._lines.items():
            if line in lines:
                self.block_selected.emit(block)
                return


def _button(object_name: str, icon_name: str, text: str, hint: str) -> QToolButton:
    button = QToolButton()
    button.setObjectName(object_name)
    button.setText(text)
    button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
    button.setAutoRaise(True)
    button.setToolTip(hint)
    button.setAccessibleName(hint.split(".")[0])
    set_icon(button, icon_name)
    return button
