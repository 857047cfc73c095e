"""Names of the user's code: data of the console, and arguments of the DataLoader."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QStringListModel, Qt, Signal
from PySide6.QtWidgets import QCompleter, QWidget

from engine.project.document import Loading, ParamValue, replace
from widgets import make
from widgets.fields import TextField
from widgets.forms import ParamForm
from widgets.theme import GRID
from widgets.training.settings.choices import set_text
from widgets.training.settings.loading_fields import GIVEN

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


class GivenForm(QWidget):
    """Shows the objects of a `Loading`, folded while there are none. Each edit emits the whole new
    one; the fields complete the names of the console."""

    edited = Signal(object, str)
    """(the new Loading, what was done)"""

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._loading = Loading()
        self._names = QStringListModel(self)
        self._form = make.named(ParamForm(), f"{name}_form")
        self._form.value_edited.connect(self._edit)
        words = make.label(
            "Names of the console or of the model's file. A DataLoader then gives the batches.",
            "muted",
            f"{name}_words",
            wrap=True,
        )
        body = make.page(words, self._form, gap=GRID // 2)
        self._more = make.fold(
            f"{name}_more",
            "Objects of your code",
            "A sampler, a collate_fn and other arguments of torch's DataLoader that your code has.",
            body,
        )
        make.column(self._more, body, on=self, gap=GRID // 2)
        self._form.show_params(GIVEN, {})
        for param in GIVEN:
            field = self._form.field(param.name)
            assert isinstance(field, TextField)
            completer = QCompleter(self._names, field)
            completer.setCaseSensitivity(Qt.CaseSensitivity.CaseInsensitive)
            field.lineEdit().setCompleter(completer)
            field.lineEdit().setPlaceholderText("torch's own")

    def show_loading(self, loading: Loading) -> None:
        self._loading = loading
        self._form.show_params(GIVEN, {param.name: getattr(loading, param.name) for param in GIVEN})
        if loading.given:
            self._more.setChecked(True)

    def offer_names(self, names: Sequence[str]) -> None:
        """The names that the fields complete."""
        self._names.setStringList(list(names))

    def _edit(self, name: str, value: ParamValue) -> None:
        text = str(value).strip()
        self.edited.emit(replace(self._loading, **{name: text}), set_text(name, text or "torch's"))
