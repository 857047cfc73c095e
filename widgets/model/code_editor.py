"""Python code, read-only: highlighting, line numbers, marked lines, clicks on lines."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QPoint, QRect, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QResizeEvent,
    QTextCursor,
    QTextFormat,
)
from PySide6.QtWidgets import QPlainTextEdit, QTextEdit, QWidget

from widgets import make, theme
from widgets.model.python_highlighter import PythonHighlighter

FONT_POINTS = 9


class CodeEditor(QPlainTextEdit):
    """Shows code. `line_clicked` is emitted with the 1-based line of a click that selects no
    text."""

    line_clicked = Signal(int)

    def __init__(self, name: str, title: str, tip: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        make.named(self, name, title, tip)
        self.setReadOnly(True)
        self.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse
            | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        self.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.setFrameShape(QPlainTextEdit.Shape.NoFrame)
        self._marked: tuple[int, ...] = ()
        self._role = "accent"
        self._numbers = _LineNumbers(self)
        self._highlighter = PythonHighlighter(self.document())
        self.blockCountChanged.connect(self._make_room)
        self.updateRequest.connect(lambda *_: self._numbers.update())
        theme.notifier.changed.connect(self._use_theme)
        self._use_theme()

    def highlight(self, lines: tuple[int, ...], *, scroll: bool, role: str = "accent") -> None:
        """Mark 1-based lines in the colour of a role. With `scroll`, scroll to the first unless one
        of them is visible."""
        self._marked, self._role = lines, role
        color = theme.current().color(role, 48)
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

    @property
    def role(self) -> str:
        """The theme's role of the colour of marked lines."""
        return self._role

    def marked_lines(self) -> tuple[int, ...]:
        return self._marked

    def line_rect(self, line: int) -> QRect:
        """The rect of a 1-based line in the viewport."""
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

    def _use_theme(self) -> None:
        self.setFont(theme.mono_font(FONT_POINTS))
        self.highlight(self._marked, scroll=False, role=self._role)
        self._make_room()


class _LineNumbers(QWidget):
    def __init__(self, editor: CodeEditor) -> None:
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
            color: QColor = (
                colors.color(editor.role) if line in marked else colors.color("muted", 170)
            )
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
