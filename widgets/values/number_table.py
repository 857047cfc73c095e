"""A table of any size whose cells can be selected and edited."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QPointF, Qt, Signal
from PySide6.QtGui import (
    QContextMenuEvent,
    QFocusEvent,
    QFontMetrics,
    QGuiApplication,
    QKeyEvent,
    QKeySequence,
    QMouseEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QLineEdit, QWidget

from widgets import make, theme
from widgets.values.number_grid import NumberGrid


class NumberTable(NumberGrid):
    """A NumberGrid with a selected cell. Pointer and keys select; a double click, Enter, F2 or
    typing opens an editor on the cell, if `set_editing` allows it."""

    cell_selected = Signal(int, int)
    cell_edited = Signal(int, int, str)
    """(row, column, value); the value is what the check made of the typed text."""
    edit_refused = Signal(str)
    """The reason why the typed text is refused. The editor stays open."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        make.named(self, "number_table", "Elements of the tensor")
        self.setToolTip(
            "One number per cell, with its indices at the edges. Click a cell to select the"
            " element in every view; double-click or type to change it."
        )
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self._check: Callable[[str], str] | None = None
        self._editor: _CellEditor | None = None
        self.reshaped.connect(self._close_editor)
        self.window_changed.connect(self._place_editor)

    # -- selecting -------------------------------------------------------------------------------

    def select(self, cell: tuple[int, int] | None) -> None:
        """Select a cell and scroll to it, without emitting."""
        if cell is not None and not self._holds(*cell):
            cell = None
        if cell != self._selected:
            self._close_editor()
        self._selected = cell
        if cell is not None:
            self._reveal(*cell)
        self.viewport().update()

    def selected(self) -> tuple[int, int] | None:
        """The (row, column) of the selected cell; None without one."""
        return self._selected

    def mousePressEvent(self, event: QMouseEvent) -> None:
        cell = self._cell_at(event.position())
        if cell is not None and event.button() == Qt.MouseButton.LeftButton:
            self._choose(*cell)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        cell = self._cell_at(event.position())
        if cell is None:
            return
        if cell != self._selected:
            self._choose(*cell)
        self.edit_selected()

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        cell = self._cell_at(QPointF(event.pos()))
        if cell is not None and cell != self._selected:
            self._choose(*cell)
        make.pop_up(make.context_menu(self), event.globalPos())

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Scroll; a table of one row scrolls sideways."""
        if self._rows == 1 and not event.angleDelta().x():
            QGuiApplication.sendEvent(self.horizontalScrollBar(), event)
        else:
            super().wheelEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key = Qt.Key(event.key())
        if event.matches(QKeySequence.StandardKey.Copy):
            self._copy()
        elif key in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_F2):
            self.edit_selected()
        elif (target := self._target(event)) is not None:
            self._choose(*target)
        elif event.text().isprintable() and event.text().strip():
            self.edit_selected(event.text())
        else:
            super().keyPressEvent(event)

    def _target(self, event: QKeyEvent) -> tuple[int, int] | None:
        if not self._rows or not self._columns:
            return None
        row, column = self._selected or (0, 0)
        page = self._layout().whole[0]
        whole = bool(event.modifiers() & Qt.KeyboardModifier.ControlModifier)
        targets = {
            Qt.Key.Key_Up: (row - 1, column),
            Qt.Key.Key_Down: (row + 1, column),
            Qt.Key.Key_Left: (row, column - 1),
            Qt.Key.Key_Right: (row, column + 1),
            Qt.Key.Key_PageUp: (row - page, column),
            Qt.Key.Key_PageDown: (row + page, column),
            Qt.Key.Key_Home: (0 if whole else row, 0),
            Qt.Key.Key_End: (self._rows if whole else row, self._columns),
        }
        target = targets.get(Qt.Key(event.key()))
        if target is None or self._selected is None:
            return None if target is None else (row, column)
        return min(max(target[0], 0), self._rows - 1), min(max(target[1], 0), self._columns - 1)

    def _choose(self, row: int, column: int) -> None:
        self._close_editor()
        self.select((row, column))
        self.setAccessibleDescription(self.text_at(row, column) or "")
        self.cell_selected.emit(row, column)

    def _copy(self) -> None:
        """Copy the selected cell, or without one all visible cells, tab-separated."""
        text = None if self._selected is None else self.text_at(*self._selected)
        if text is None:
            text = "\n".join("\t".join(row) for row in self._cells)
        QGuiApplication.clipboard().setText(text)

    # -- editing ---------------------------------------------------------------------------------

    def set_editing(self, check: Callable[[str], str] | None) -> None:
        """Allow editing. `check` returns the value to emit for a typed text, or raises ValueError
        with the reason why there is none. None forbids editing."""
        self._check = check

    def edit_selected(self, typed: str = "") -> None:
        """Open the editor on the selected cell. It starts with the cell's text, or with `typed`."""
        if self._check is None or self._selected is None:
            return
        self._close_editor()
        self._reveal(*self._selected)
        editor = _CellEditor(self.viewport())
        make.named(editor, "cell_editor", "New value of the element")
        editor.setFont(self.font())
        editor.setText(typed or self.text_at(*self._selected) or "")
        editor.entered.connect(self._finish_edit)
        editor.cancelled.connect(self._cancel_edit)
        editor.left.connect(self._close_editor)
        if not typed:
            editor.selectAll()
        self._editor = editor
        self._place_editor()
        editor.show()
        editor.setFocus()

    def _place_editor(self) -> None:
        """Move the editor over its cell."""
        if self._editor is None or self._selected is None:
            return
        rect = self.cell_rect(*self._selected)
        rect.setWidth(max(rect.width(), QFontMetrics(self.font()).horizontalAdvance("0" * 14)))
        self._editor.setGeometry(rect)

    def _finish_edit(self) -> None:
        assert self._editor is not None and self._selected is not None and self._check is not None
        try:
            checked = self._check(self._editor.text())
        except ValueError as error:
            self._editor.setStyleSheet(f"color: {theme.current().error}")
            self.edit_refused.emit(str(error))
            return
        cell = self._selected
        self._close_editor()
        self.setFocus()
        self.cell_edited.emit(*cell, checked)

    def _cancel_edit(self) -> None:
        self._close_editor()
        self.setFocus()
        self.edit_refused.emit("")

    def _close_editor(self) -> None:
        editor, self._editor = self._editor, None
        if editor is not None:
            editor.hide()
            editor.deleteLater()


class _CellEditor(QLineEdit):
    """Emits `entered` at Enter, `cancelled` at Esc, `left` when it loses the focus."""

    entered = Signal()
    cancelled = Signal()
    left = Signal()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.entered.emit()  # the table must not get this Enter: it would edit again
        elif event.key() == Qt.Key.Key_Escape:
            self.cancelled.emit()
        else:
            super().keyPressEvent(event)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self.left.emit()
