"""Modules that the reader names one by one, with a row of controls for each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from PySide6.QtCore import QStringListModel, Qt, Signal
from PySide6.QtWidgets import QCompleter, QWidget

from widgets import make
from widgets.theme import GRID

R = TypeVar("R", bound=QWidget)


class ModuleList(QWidget, Generic[R]):
    """`added(path)`: the reader has named a module that has no row yet. `row_of` makes the row of
    a module; rows stay while their module is shown. Controls are named after `name`."""

    added = Signal(str)

    def __init__(
        self,
        name: str,
        row_of: Callable[[str], R],
        *,
        title: str,
        field: str,
        tip: str,
        example: str,
        add_tip: str,
    ) -> None:
        super().__init__()
        self._row_of = row_of
        self.rows: dict[str, R] = {}
        self._names = QStringListModel(self)
        self.field = make.field(
            f"{name}_module", field, tip, placeholder=f"module, such as {example}", mono=True,
            entered=self._add,
        )  # fmt: skip
        completer = QCompleter(self._names, self.field)
        completer.setCaseSensitivity(Qt.CaseSensitivity.CaseInsensitive)
        self.field.setCompleter(completer)
        add = make.tool_button(f"{name}_add", "mdi6.plus", add_tip, slot=self._add)
        self._list = make.column(gap=GRID // 4)
        make.column(
            make.label(title, of=self.field), make.row((self.field, 1), add), self._list, on=self,
            gap=GRID // 2,
        )  # fmt: skip

    def offer(self, names: Sequence[str]) -> None:
        """The paths that the field completes."""
        self._names.setStringList(list(names))

    def show_modules(self, paths: Sequence[str]) -> None:
        for path in [path for path in self.rows if path not in paths]:
            row = self.rows.pop(path)
            self._list.removeWidget(row)
            row.hide()
            row.deleteLater()
        for path in paths:
            if path not in self.rows:
                row = self.rows[path] = self._row_of(path)
                self._list.addWidget(row)
                row.show()

    def _add(self) -> None:
        path = self.field.text().strip()
        if path and path not in self.rows:
            self.field.clear()
            self.added.emit(path)
