"""A short table of nodes: edits, or pending gradients."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QSignalBlocker, QSize, Qt, Signal
from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import (
    QHeaderView,
    QTreeWidget,
    QTreeWidgetItem,
    QWidget,
)

from widgets import make
from widgets.theme import GRID


class NodeList(QWidget):
    """Rows of (node id, texts). Emits `chosen(node)` for the selected row and `removed(node)` when
    Delete is pressed on it. `empty` is shown if there are no rows, `note` below the rows."""

    chosen = Signal(int)
    removed = Signal(int)

    def __init__(
        self, name: str, title: str, columns: Sequence[str], tips: Sequence[str], empty: str
    ) -> None:
        super().__init__()
        self._list = make.named(QTreeWidget(), name, title)
        self._list.setHeaderLabels(list(columns))
        for column, tip in enumerate(tips):
            self._list.headerItem().setToolTip(column, tip)
        self._list.setRootIsDecorated(False)
        self._list.setUniformRowHeights(True)
        header = self._list.header()
        header.setStretchLastSection(True)
        header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        self._list.currentItemChanged.connect(self._on_current)
        make.shortcut(QKeySequence.StandardKey.Delete, self._list, self._on_delete)
        self._empty = make.label(empty, "muted", wrap=True)
        self._note = make.label("", "muted", f"{name}_note", wrap=True)
        parts = (self._empty, (self._list, 1), self._note, make.Stretch(0))
        make.column(*parts, on=self, gap=GRID // 2, margins=(0, GRID, 0, 0))
        self.show_rows(())

    def show_rows(self, rows: Sequence[tuple[int, Sequence[str]]], note: str = "") -> None:
        with QSignalBlocker(self._list):
            self._list.clear()
            for node, texts in rows:
                item = QTreeWidgetItem(list(texts))
                width = self._list.fontMetrics().horizontalAdvance(texts[0]) + 2 * GRID
                item.setSizeHint(0, QSize(width, 3 * GRID))
                item.setData(0, Qt.ItemDataRole.UserRole, node)
                for column, text in enumerate(texts):
                    item.setToolTip(column, text)
                self._list.addTopLevelItem(item)
        self._list.setVisible(bool(rows))
        self._empty.setVisible(not rows)
        make.tell(self._note, note)

    def rows(self) -> list[list[str]]:
        """The texts shown."""
        items = [self._list.topLevelItem(i) for i in range(self._list.topLevelItemCount())]
        columns = range(self._list.columnCount())
        return [[item.text(column) for column in columns] for item in items if item is not None]

    def _on_current(self, item: QTreeWidgetItem | None) -> None:
        if item is not None:
            self.chosen.emit(item.data(0, Qt.ItemDataRole.UserRole))

    def _on_delete(self) -> None:
        item = self._list.currentItem()
        if item is not None:
            self.removed.emit(item.data(0, Qt.ItemDataRole.UserRole))
