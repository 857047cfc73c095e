"""The list of completions at the cursor."""

from __future__ import annotations

from PySide6.QtCore import QAbstractListModel, QModelIndex, QPoint, QRect, QSize, Qt, Signal
from PySide6.QtGui import QPainter, QPalette
from PySide6.QtWidgets import (
    QFrame,
    QListView,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QWidget,
)

from engine.protocol import Completion
from widgets import make, theme

MAX_ROWS = 9
WIDTH = 460

_LETTERS = {
    "variable": ("x", "storage"),
    "attribute": ("a", "intermediate"),
    "function": ("ƒ", "accent"),
    "class": ("C", "leaf"),
    "module": ("M", "gradient"),
    "keyword": ("k", "muted"),
    "parameter": ("=", "warning"),
}
_ITEM = Qt.ItemDataRole.UserRole


class CompletionPopup(QListView):
    """A list over the editor. It is a child of the window, not a window of its own, and never takes
    the focus: the editor gets all keys and calls `step` and `accept`. `chosen(text)` is emitted
    with the text to insert."""

    chosen = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        make.named(self, "console_completions", "Completions")
        self.setToolTip("Up and Down choose, Enter or Tab inserts, Esc closes.")
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setFrameShape(QFrame.Shape.Box)
        self.setFrameShadow(QFrame.Shadow.Plain)
        self.setForegroundRole(QPalette.ColorRole.Mid)
        self.setUniformItemSizes(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._model = _Completions(self)
        self.setModel(self._model)
        self.setItemDelegate(_Row(self))
        self.clicked.connect(lambda index: self.chosen.emit(index.data()))
        self.hide()

    def show_at(self, caret: QRect, completions: tuple[Completion, ...]) -> None:
        """Show `completions` above or below `caret`, where there is more room. `caret` is in global
        coordinates. Without completions, hide."""
        self._model.set_items(completions)
        host = self.parentWidget()
        if not completions or host is None:
            self.hide()
            return
        row_height = self.sizeHintForRow(0)
        height = row_height * min(MAX_ROWS, len(completions)) + 2 * self.frameWidth()
        top_left = host.mapFromGlobal(caret.bottomLeft())
        above = host.mapFromGlobal(caret.topLeft()).y()
        width = min(WIDTH, host.width())
        x = max(0, min(top_left.x(), host.width() - width))
        fits_below = top_left.y() + height <= host.height()
        y = top_left.y() if fits_below or above < height else above - height
        self.setGeometry(QRect(QPoint(x, y), QSize(width, height)))
        self.setCurrentIndex(self._model.index(0))
        self.scrollToTop()
        self.show()
        self.raise_()

    def texts(self) -> list[str]:
        """The texts of the completions in the list."""
        return [completion.text for completion in self._model.items]

    def step(self, rows: int) -> None:
        """Move the current row by a number of rows, at most to an end of the list."""
        row = max(0, min(self.currentIndex().row() + rows, self._model.rowCount() - 1))
        self.setCurrentIndex(self._model.index(row))

    def accept(self) -> None:
        """Choose the current row."""
        if self.currentIndex().isValid():
            self.chosen.emit(self.currentIndex().data())


class _Completions(QAbstractListModel):
    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.items: tuple[Completion, ...] = ()

    def set_items(self, items: tuple[Completion, ...]) -> None:
        self.beginResetModel()
        self.items = items
        self.endResetModel()

    def rowCount(self, parent: QModelIndex | None = None) -> int:
        return 0 if parent is not None and parent.isValid() else len(self.items)

    def data(self, index: QModelIndex, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        item = self.items[index.row()]
        if role == Qt.ItemDataRole.DisplayRole:
            return item.text
        if role == Qt.ItemDataRole.ToolTipRole:
            return f"{item.kind} {item.text}{item.detail if item.detail[:1] == '(' else ''}"
        return item if role == _ITEM else None


class _Row(QStyledItemDelegate):
    """Paints a row: a letter for the kind, the name, and the type or signature."""

    def sizeHint(self, option: QStyleOptionViewItem, index: QModelIndex) -> QSize:
        return QSize(WIDTH, 22)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex) -> None:
        colors = theme.current()
        item: Completion = index.data(_ITEM)
        rect: QRect = option.rect  # pyright: ignore[reportAttributeAccessIssue]
        state: QStyle.StateFlag = option.state  # pyright: ignore[reportAttributeAccessIssue]
        painter.save()
        if state & QStyle.StateFlag.State_Selected:
            painter.fillRect(rect, colors.color("accent", 60))
        letter, role = _LETTERS[item.kind]
        inside = rect.adjusted(theme.GRID, 0, -theme.GRID, 0)
        middle = Qt.AlignmentFlag.AlignVCenter
        painter.setFont(theme.mono_font(9))
        painter.setPen(colors.color(role))
        painter.drawText(inside, middle, letter)
        name = inside.adjusted(2 * theme.GRID, 0, 0, 0)
        painter.setPen(colors.color("text"))
        painter.drawText(name, middle, item.text)
        used = painter.fontMetrics().horizontalAdvance(item.text) + 2 * theme.GRID
        detail = name.adjusted(used, 0, 0, 0)
        painter.setPen(colors.color("muted"))
        elided = painter.fontMetrics().elidedText(
            item.detail, Qt.TextElideMode.ElideRight, max(0, detail.width())
        )
        painter.drawText(detail, middle | Qt.AlignmentFlag.AlignRight, elided)
        painter.restore()
