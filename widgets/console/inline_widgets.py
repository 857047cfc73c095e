"""Widgets between the lines of a plain text. Each covers empty lines that make room for it."""

from __future__ import annotations

import math

from PySide6.QtCore import QEvent, QObject, QSize
from PySide6.QtGui import QTextBlock, QTextBlockFormat, QTextCursor, QTextFormat
from PySide6.QtWidgets import QPlainTextEdit, QWidget

from widgets.theme import GRID

MAX_WIDGETS = 50
"""The largest number of widgets. Older ones are removed; their empty lines stay."""

_WIDGET = QTextFormat.Property.UserProperty + 2


class InlineWidgets(QObject):
    """Moves the widgets in `editor` with their lines when it scrolls, and removes a widget whose
    lines the editor has removed."""

    def __init__(self, editor: QPlainTextEdit) -> None:
        super().__init__(editor)
        self._editor = editor
        self._placed: dict[int, tuple[QTextCursor, QWidget]] = {}
        self._lines: dict[int, int] = {}  # the empty lines that each widget covers
        self._last = 0
        editor.updateRequest.connect(lambda *_: self._arrange())
        editor.viewport().installEventFilter(self)

    def widgets(self) -> list[QWidget]:
        """All widgets, from the top."""
        return [widget for _, widget in self._placed.values()]

    def insert(self, cursor: QTextCursor, widget: QWidget) -> None:
        """Insert `widget` at `cursor`, which must be in an empty line. Afterwards the cursor is at
        the beginning of the line after the widget."""
        self._last += 1
        marked = QTextBlockFormat()
        marked.setProperty(_WIDGET, self._last)
        cursor.setBlockFormat(marked)
        anchor = QTextCursor(cursor.block())
        anchor.setKeepPositionOnInsert(True)
        for _ in range(self._lines_for(widget)):
            cursor.insertBlock(QTextBlockFormat())
        widget.setParent(self._editor.viewport())
        self._placed[self._last] = anchor, widget
        self._lines[self._last] = self._lines_for(widget)
        while len(self._placed) > MAX_WIDGETS:
            self._remove(next(iter(self._placed)))
        self._arrange()

    def fit(self, widget: QWidget) -> None:
        """Make room for the widget's new height."""
        for number, (anchor, placed) in self._placed.items():
            if placed is widget:
                self._set_lines(number, anchor, self._lines_for(widget))
        self._arrange()

    def bring_up(self, widget: QWidget) -> None:
        """Scroll down until all of the widget is in sight, or as much as there is room for."""
        line = self._editor.fontMetrics().lineSpacing()
        below = widget.geometry().bottom() + 1 - self._editor.viewport().height()
        lines = min(math.ceil(below / line), widget.y() // line)
        if lines > 0:
            bar = self._editor.verticalScrollBar()
            bar.setValue(bar.value() + lines)

    def remove(self, widget: QWidget) -> None:
        """Remove a widget and its lines."""
        for number, (anchor, placed) in list(self._placed.items()):
            if placed is widget:
                lines = self._lines[number]
                self._remove(number)
                _delete_lines(anchor.block(), lines)

    def _lines_for(self, widget: QWidget) -> int:
        height = self._size(widget).height() + GRID
        return math.ceil(height / self._editor.fontMetrics().lineSpacing())

    def _set_lines(self, number: int, anchor: QTextCursor, lines: int) -> None:
        """Let the widget cover this many `lines`."""
        more = lines - self._lines[number]
        self._lines[number] = lines
        cursor = QTextCursor(anchor.block())
        for _ in range(more):
            cursor.movePosition(QTextCursor.MoveOperation.EndOfBlock)
            cursor.insertBlock(QTextBlockFormat())
        _delete_lines(anchor.block().next(), -more)

    def _size(self, widget: QWidget) -> QSize:
        """The size that it gets."""
        left = round(self._editor.document().documentMargin())
        hint = widget.sizeHint()
        width = min(hint.width(), self._editor.viewport().width() - 2 * left)
        high = widget.heightForWidth(width) if widget.hasHeightForWidth() else hint.height()
        return QSize(width, high)

    def clear(self) -> None:
        for number in list(self._placed):
            self._remove(number)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() in (QEvent.Type.Resize, QEvent.Type.Show):
            for widget in self.widgets():
                if widget.hasHeightForWidth():
                    self.fit(widget)
            self._arrange()
        return super().eventFilter(watched, event)

    def _arrange(self) -> None:
        editor = self._editor
        shown = editor.viewport().rect()
        for number, (anchor, widget) in list(self._placed.items()):
            block = anchor.block()
            if block.blockFormat().property(_WIDGET) != number:  # the editor has removed the line
                self._remove(number)
                continue
            place = editor.blockBoundingGeometry(block).translated(editor.contentOffset())
            size = self._size(widget)
            left = round(editor.document().documentMargin())
            top = round(place.top()) + GRID // 2
            widget.setGeometry(left, top, size.width(), size.height())
            in_sight = widget.geometry().intersects(shown)
            # Qt has not laid out blocks far above, so their geometry is wrong: hide their widgets.
            first = editor.firstVisibleBlock().blockNumber()
            ahead = widget.height() // max(1, editor.fontMetrics().lineSpacing()) + 2
            widget.setVisible(in_sight and block.blockNumber() + ahead >= first)

    def _remove(self, number: int) -> None:
        _, widget = self._placed.pop(number)
        del self._lines[number]
        widget.hide()
        widget.deleteLater()


def _delete_lines(first: QTextBlock, count: int) -> None:
    """Delete empty lines from `first` on; the line after them keeps its looks."""
    cursor = QTextCursor(first)
    for _ in range(count):
        kept = cursor.block().next().blockFormat()
        cursor.deleteChar()
        cursor.setBlockFormat(kept)
