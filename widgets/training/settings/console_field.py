"""The name of data of the console."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QStringListModel, Qt, Signal
from PySide6.QtWidgets import QCompleter, QWidget

from widgets import make
from widgets.theme import GRID

_EXAMPLES = 2


class ConsoleField(QWidget):
    """A field with an expression of the console, which completes the names of its data."""

    chosen = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._shown = ""
        self._names = QStringListModel(self)
        self._field = make.field(
            "setup_data_name",
            "Data of the console",
            "What the model learns from: (x, y) of two tensors, a Dataset or DataLoader of such"
            " pairs, or a function that returns them. Write a name of the console, or FILE.py:NAME."
            " It is read once, and again after a cell has run.",
            placeholder="(x, y), or dataset",
            mono=True,
        )
        completer = QCompleter(self._names, self._field)
        completer.setCaseSensitivity(Qt.CaseSensitivity.CaseInsensitive)
        self._field.setCompleter(completer)
        self._field.editingFinished.connect(self._edit)
        # Queued: the field takes the name that was picked after this signal.
        completer.activated.connect(self._edit, Qt.ConnectionType.QueuedConnection)
        make.column(make.label("data", of=self._field), self._field, on=self, gap=GRID // 2)

    def show_name(self, expression: str) -> None:
        if expression != self._shown or not self._field.hasFocus():
            self._field.setText(expression)
        self._shown = expression

    def offer_names(self, names: Sequence[str]) -> None:
        """The names that the field completes."""
        self._names.setStringList(list(names))
        shown = ", ".join(names[:_EXAMPLES]) or "(x, y), or dataset"
        self._field.setPlaceholderText(f"{shown}, …" if len(names) > _EXAMPLES else shown)

    def _edit(self) -> None:
        text = self._field.text().strip()
        if text != self._shown:
            self._shown = text
            self.chosen.emit(text)
