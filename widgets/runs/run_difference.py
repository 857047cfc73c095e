"""The settings in which two runs differ."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QWidget

from engine.protocol import SettingRow
from widgets import make
from widgets.table import ReadTable


class RunDifference(QWidget):
    """`closed()`: the reader has seen enough."""

    closed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.compared: tuple[str, ...] = ()
        """The folders of the two runs; none while there is nothing to show."""
        self.table = ReadTable(
            "runs_difference",
            "Settings that differ",
            (("setting", "Where it is in the project"), ("first", ""), ("second", "")),
        )
        self._close = make.tool_button(
            "runs_difference_close",
            "mdi6.close",
            "Close the settings that differ (Esc)",
            self.closed,
        )
        make.shortcut(Qt.Key.Key_Escape, self, self.closed, inside=True)
        top = (self._close, 0, Qt.AlignmentFlag.AlignTop)
        make.row((self.table, 1), top, on=self, gap=0)
        self.hide()

    def show_rows(
        self, compared: tuple[str, str], heads: Sequence[str], rows: Sequence[SettingRow]
    ) -> None:
        """List the settings; `heads` are the names of the two runs."""
        self.compared = compared
        for column, head in enumerate(heads, 1):
            item = self.table.horizontalHeaderItem(column)
            if item is not None:
                item.setText(head)
        self.table.show_rows([(row.name, row.first, row.second) for row in rows])
