"""A model of a tree whose rows are known by number."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from PySide6.QtCore import QAbstractItemModel, QModelIndex, QObject, QPersistentModelIndex, Qt

from widgets.columns import Column, header_data

Index = QModelIndex | QPersistentModelIndex


class TreeModel(QAbstractItemModel):
    """Each index carries the number of its row. Subclasses give `data`, and call `grow` inside
    `beginResetModel` and `endResetModel`."""

    def __init__(self, columns: Sequence[Column], parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._columns = columns
        self._around: list[int] = []
        self._places: list[int] = []
        self._children: list[list[int]] = []
        self._tops: list[int] = []

    def grow(self, around: Iterable[int]) -> None:
        """Arrange the rows. `around` has for each row the number of the row that it lies in, which
        comes before it; -1 for a top row."""
        self._around = list(around)
        self._children = [[] for _ in self._around]
        self._tops, self._places = [], []
        for number, holder in enumerate(self._around):
            siblings = self._tops if holder < 0 else self._children[holder]
            self._places.append(len(siblings))
            siblings.append(number)

    def index_of(self, number: int, column: int = 0) -> QModelIndex:
        return self.createIndex(self._places[number], column, number)

    # -- Qt's interface --------------------------------------------------------------------------

    def index(self, row: int, column: int, parent: Index | None = None) -> QModelIndex:
        siblings = self._below(parent)
        if not 0 <= row < len(siblings) or not 0 <= column < len(self._columns):
            return QModelIndex()
        return self.createIndex(row, column, siblings[row])

    def parent(self, index: Index | None = None) -> QModelIndex:  # pyright: ignore
        if index is None or not index.isValid():
            return QModelIndex()
        around = self._around[index.internalId()]
        return QModelIndex() if around < 0 else self.index_of(around)

    def rowCount(self, parent: Index | None = None) -> int:
        return 0 if parent is not None and parent.column() > 0 else len(self._below(parent))

    def columnCount(self, parent: Index | None = None) -> int:
        return len(self._columns)

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> object:
        return header_data(self._columns, section, orientation, role)

    def _below(self, parent: Index | None) -> list[int]:
        if parent is None or not parent.isValid():
            return self._tops
        return self._children[parent.internalId()]
