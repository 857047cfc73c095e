"""Widgets between the lines of a plain text. Each covers empty lines that make room for it."""

from __future__ import annotations

import math

from PySide6.QtCore import QEvent, QObject
from PySide6.QtGui import QTextBlockFormat, QTextCursor, QTextFormat
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
        line_height = self._editor.fontMetrics().lineSpacing()
        for _ in range(math.ceil((widget.sizeHint().height() + GRID) / line_height)):
            cursor.insertBlock(QTextBlockFormat())
        widget.setParent(self._editor.viewport())
        self._placed[self._last] = anchor, widget
        while len(self._placed) > MAX_WIDGETS:
            self._remove(next(iter(self._placed)))
        self._arrange()

    def clear(self) -> None:
        for number in list(self._placed):
            self._remove(number)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() in (QEvent.Type.Resize, QEvent.Type.Show):
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
            size = widget.sizeHint()
            left = round(editor.document().documentMargin())
            width = min(size.width(), shown.width() - 2 * left)
            widget.setGeometry(left, round(place.top()) + GRID // 2, width, size.height())
            in_sight = widget.geometry().intersects(shown)
            # Qt has not laid out blocks far above, so their geometry is wrong: hide their widgets.
            first = editor.firstVisibleBlock().blockNumber()
            ahead = widget.height() // max(1, editor.fontMetrics().lineSpacing()) + 2
            widget.setVisible(in_sight and block.blockNumber() + ahead >= first)

    def _remove(self, number: int) -> None:
        _, widget = self._placed.pop(number)
        widget.hide()
        widget.deleteLater()
