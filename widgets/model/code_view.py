"""The Python of the model, read-only, each line tied to the block it came from."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil

from PySide6.QtCore import QEvent, QPoint, QRect, QSize, Qt, QTimer, Signal
from PySide6.QtGui import (
    QColor,
    QGuiApplication,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QResizeEvent,
    QTextCursor,
    QTextFormat,
)
from PySide6.QtWidgets import (
    QHBoxLayout,
    QLabel,
    QPlainTextEdit,
    QTextEdit,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from widgets import theme
from widgets.icons import set_icon
from widgets.model.python_highlighter import PythonHighlighter

FONT_POINTS = 9
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
        self.editor = _CodeEditor(self)
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


class _CodeEditor(QPlainTextEdit):
    """`line_clicked` tells the 1-based line of a click that selected no text."""

    line_clicked = Signal(int)

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("code_text")
        self.setAccessibleName("Python of the model")
        self.setToolTip("The model as an ordinary nn.Module. Click a line to select its block.")
        self.setReadOnly(True)
        self.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse
            | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        self.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.setFrameShape(QPlainTextEdit.Shape.NoFrame)
        self._marked: tuple[int, ...] = ()
        self._numbers = _LineNumbers(self)
        self._highlighter = PythonHighlighter(self.document())
        self.blockCountChanged.connect(self._make_room)
        self.updateRequest.connect(self._follow)
        theme.notifier.changed.connect(self._use_theme)
        self._use_theme()

    def highlight(self, lines: tuple[int, ...], *, scroll: bool) -> None:
        """Mark 1-based lines; with `scroll`, bring the first into view unless one of them is."""
        self._marked = lines
        color = theme.current().color("accent", 48)
        marks = []
        for line in lines:
            block = self.document().findBlockByNumber(line - 1)
            if not block.isValid():
                continue
            mark = QTextEdit.ExtraSelection()
            mark.cursor = QTextCursor(block)  # pyright: ignore[reportAttributeAccessIssue]
            mark.format.setBackground(color)  # pyright: ignore[reportAttributeAccessIssue]
            mark.format.setProperty(  # pyright: ignore[reportAttributeAccessIssue]
                QTextFormat.Property.FullWidthSelection, True
            )
            marks.append(mark)
        self.setExtraSelections(marks)
        seen = self.viewport().rect()
        if scroll and marks and not any(seen.contains(self.line_rect(line)) for line in lines):
            cursor = QTextCursor(self.document().findBlockByNumber(lines[0] - 1))
            self.setTextCursor(cursor)
            self.ensureCursorVisible()
        self._numbers.update()

    def marked_lines(self) -> tuple[int, ...]:
        return self._marked

    def width_of(self, columns: int) -> int:
        """Pixels that the editor needs to show so many columns beside its line numbers."""
        text = self.fontMetrics().horizontalAdvance("9" * columns)
        margins = 2 * ceil(self.document().documentMargin())
        scroll_bar = self.verticalScrollBar().sizeHint().width()
        return self._numbers.sizeHint().width() + text + margins + scroll_bar

    def line_rect(self, line: int) -> QRect:
        """Where a 1-based line lies in the viewport."""
        block = self.document().findBlockByNumber(line - 1)
        return self.blockBoundingGeometry(block).translated(self.contentOffset()).toRect()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        super().mouseReleaseEvent(event)
        if event.button() == Qt.MouseButton.LeftButton and not self.textCursor().hasSelection():
            cursor = self.cursorForPosition(event.position().toPoint())
            self.line_clicked.emit(cursor.blockNumber() + 1)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        inside = self.contentsRect()
        self._numbers.setGeometry(
            inside.left(), inside.top(), self._numbers.sizeHint().width(), inside.height()
        )

    def _make_room(self) -> None:
        self.setViewportMargins(self._numbers.sizeHint().width(), 0, 0, 0)

    def _follow(self, rect: QRect, moved_y: int) -> None:
        if moved_y:
            self._numbers.scroll(0, moved_y)
        else:
            self._numbers.update(0, rect.y(), self._numbers.width(), rect.height())

    def _use_theme(self) -> None:
        self.setFont(theme.mono_font(FONT_POINTS))
        self._highlighter.use_theme()
        self.highlight(self._marked, scroll=False)
        self._make_room()


class _LineNumbers(QWidget):
    def __init__(self, editor: _CodeEditor) -> None:
        super().__init__(editor)
        self._editor = editor

    def sizeHint(self) -> QSize:
        digits = max(3, len(str(self._editor.blockCount())))
        advance = self._editor.fontMetrics().horizontalAdvance("9")
        return QSize(digits * advance + 2 * theme.GRID, 0)

    def paintEvent(self, event: QPaintEvent) -> None:
        editor = self._editor
        colors = theme.current()
        painter = QPainter(self)
        painter.fillRect(event.rect(), colors.color("surface"))
        painter.setFont(editor.font())
        marked = set(editor.marked_lines())
        block = editor.firstVisibleBlock()
        while block.isValid():
            line = block.blockNumber() + 1
            rect = editor.line_rect(line)
            if rect.top() > event.rect().bottom():
                break
            color: QColor = colors.color("accent") if line in marked else colors.color("muted", 170)
            painter.setPen(color)
            box = QRect(QPoint(0, rect.top()), QSize(self.width() - theme.GRID, rect.height()))
            painter.drawText(box, Qt.AlignmentFlag.AlignRight, str(line))
            block = block.next()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        cursor = self._editor.cursorForPosition(QPoint(0, event.position().toPoint().y()))
        self._editor.line_clicked.emit(cursor.blockNumber() + 1)

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Wheel:
            event.ignore()
            return False
        return super().event(event)


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
