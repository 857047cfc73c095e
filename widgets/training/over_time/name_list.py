"""Names with boxes to tick, of which only some can be ticked at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QListWidget, QListWidgetItem, QWidget

from widgets import make

_NAME = Qt.ItemDataRole.UserRole
WIDTH, SQUARE = 190, 12


class NameList(QListWidget):
    """`ticked_changed()`: the reader has ticked a name or removed a tick. `chosen(name)`: the
    reader has selected one. Of more than `most` ticks the oldest goes."""

    ticked_changed = Signal()
    chosen = Signal(str)

    def __init__(
        self, name: str, accessible: str, tip: str, most: int, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        make.named(self, name, accessible, tip)
        self._most = most
        self.setIconSize(QSize(SQUARE, SQUARE))
        self.ticked: list[str] = []
        self._is_told = False  # true while the code, not the reader, changes it
        self.itemChanged.connect(self._on_changed)
        self.currentItemChanged.connect(self._on_selected)

    def sizeHint(self) -> QSize:
        return QSize(WIDTH, 200)

    def show_names(
        self, names: Sequence[str], titles: Mapping[str, str], ticked: Sequence[str]
    ) -> None:
        """`titles` has those that are called otherwise than their name."""
        self._is_told = True
        known = [self.item(row).data(_NAME) for row in range(self.count())]
        if known != list(names):
            self.clear()
            for name in names:
                item = QListWidgetItem(titles.get(name, name), self)
                item.setData(_NAME, name)
                item.setFlags(item.flags() | Qt.ItemFlag.ItemIsUserCheckable)
        self.ticked = [name for name in ticked if name in set(names)]
        for row in range(self.count()):
            item = self.item(row)
            is_ticked = item.data(_NAME) in self.ticked
            item.setCheckState(Qt.CheckState.Checked if is_ticked else Qt.CheckState.Unchecked)
        self._is_told = False

    def show_colors(self, colors: Mapping[str, str]) -> None:
        """A square in the colour of its line stands before each name that has one."""
        self._is_told = True
        for row in range(self.count()):
            item = self.item(row)
            color = colors.get(item.data(_NAME))
            item.setData(Qt.ItemDataRole.DecorationRole, QColor(color) if color else None)
        self._is_told = False

    def choose(self, name: str) -> None:
        """Select a name that another view has chosen; none if it is not there. Emits nothing."""
        self._is_told = True
        rows = [row for row in range(self.count()) if self.item(row).data(_NAME) == name]
        self.setCurrentRow(rows[0] if rows else -1)
        self._is_told = False

    def _on_changed(self, item: QListWidgetItem) -> None:
        name = item.data(_NAME)
        is_ticked = item.checkState() == Qt.CheckState.Checked
        if self._is_told or is_ticked == (name in self.ticked):
            return
        if not is_ticked:
            self.ticked.remove(name)
        else:
            self.ticked.append(name)
            if len(self.ticked) > self._most:
                self._untick(self.ticked[0])
        self.ticked_changed.emit()

    def _untick(self, name: str) -> None:
        self.ticked.remove(name)
        for row in range(self.count()):
            if self.item(row).data(_NAME) == name:
                self.item(row).setCheckState(Qt.CheckState.Unchecked)

    def _on_selected(self, item: QListWidgetItem | None) -> None:
        if item is not None and not self._is_told:
            self.chosen.emit(item.data(_NAME))
