"""The formats in two groups, one of them chosen."""

from __future__ import annotations

from collections.abc import Collection

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QListWidget, QListWidgetItem

from engine.protocol.exporting.formats import FORMATS, Format
from widgets import make, theme

_KEY = Qt.ItemDataRole.UserRole


class FormatList(QListWidget):
    """`format_chosen(format)`. A format that cannot hold the subject is written in grey; it can be
    chosen, to see why."""

    format_chosen = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        make.named(self, "export_formats", "Formats")
        self.setSpacing(3)
        group = ""
        for row in FORMATS.values():
            if row.group != group:
                group = row.group
                head = QListWidgetItem(group, self)
                head.setFlags(Qt.ItemFlag.NoItemFlags)
                font = self.font()
                font.setWeight(font.Weight.DemiBold)
                head.setFont(font)
            item = QListWidgetItem(f"   {row.title}", self)
            item.setData(_KEY, row.key)
            item.setData(Qt.ItemDataRole.AccessibleTextRole, f"{row.group}: {row.title}")
            item.setToolTip(row.words)
        self.currentItemChanged.connect(self._on_chosen)

    @property
    def chosen(self) -> Format:
        item = self.currentItem()
        return "pt" if item is None else item.data(_KEY)

    def choose(self, format: Format) -> None:
        for number in range(self.count()):
            if self.item(number).data(_KEY) == format:
                self.setCurrentRow(number)

    def show_refused(self, refused: Collection[str]) -> None:
        """Write these formats in grey."""
        for number in range(self.count()):
            item = self.item(number)
            if item.data(_KEY):
                is_muted = item.data(_KEY) in refused
                role = Qt.ItemDataRole.ForegroundRole
                item.setData(role, theme.current().color("muted") if is_muted else None)

    def _on_chosen(self) -> None:
        if self.currentItem() is not None:
            self.format_chosen.emit(self.chosen)
