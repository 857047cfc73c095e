"""Fields for operands. Each takes a variable's name or a shape."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from PySide6.QtCore import QSignalBlocker, QStringListModel, Qt, QTimer, Signal
from PySide6.QtWidgets import QCompleter, QLabel, QLineEdit, QWidget

from widgets.make import label, named, row, tool_button
from widgets.theme import GRID, mono_font

NAMES = "abcd"


def name_of(text: str, letter: str) -> str:
    """The name of an operand: its variable, or `letter` if a shape was typed."""
    return text if text[:1].isalpha() or text[:1] == "_" else letter


class ExpressionField(QLineEdit):
    """A line of Python, with completion of the variables' names."""

    def __init__(self, name: str, title: str, tip: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        named(self, name, title, tip)
        self.setFont(mono_font())
        self.setMinimumWidth(12 * GRID)
        self._names = QStringListModel(self)
        completer = QCompleter(self._names, self)
        completer.setCaseSensitivity(Qt.CaseSensitivity.CaseSensitive)
        self.setCompleter(completer)
        self.textEdited.connect(lambda: QTimer.singleShot(0, self, self._close_idle_popup))

    def _close_idle_popup(self) -> None:
        """Close the list of completions if it offers only the name that is typed already: it would
        take the next click."""
        completer = self.completer()
        idle = completer.completionCount() == 1 and completer.currentCompletion() == self.text()
        popup = completer.popup()
        if idle and popup is not None:
            popup.hide()

    def show_names(self, names: Sequence[str]) -> None:
        self._names.setStringList(list(names))

    def show_text(self, text: str) -> None:
        """Set the text without emitting."""
        with QSignalBlocker(self):
            self.setText(text)
            self.setCursorPosition(0)


class OperandFields(QWidget):
    """From `fewest` to `most` fields. `changed()` is emitted at each edit by the user."""

    changed = Signal()

    def __init__(
        self, texts: Sequence[str], fewest: int, most: int, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._fewest, self._most = fewest, most
        self._fields: list[ExpressionField] = []
        self._labels: list[QLabel] = []
        self._shown = len(texts)
        self._suggested = texts[1]
        for k, letter in enumerate(NAMES):
            field = ExpressionField(
                f"operand_{letter}",
                f"Operand {letter}",
                f"Operand {letter}: a variable (x, layer.weight), or only a shape, such as (8, 1,"
                " 6, 1). () is a scalar.",
            )
            field.setText(texts[k] if k < len(texts) else "(1,)")
            field.textChanged.connect(self.changed)
            self._labels.append(label(letter, "muted", of=field))
            self._fields.append(field)
        self._more = tool_button(
            "operand_add", "mdi6.plus", "Add an operand.", partial(self._count_by, 1)
        )
        self._fewer = tool_button(
            "operand_remove", "mdi6.minus", "Remove the last operand.", partial(self._count_by, -1)
        )
        pairs = zip(self._labels, self._fields, strict=True)
        fields = [part for name, field in pairs for part in (name, (field, 1))]
        row(*fields, self._more, self._fewer, on=self, gap=GRID // 2)
        self._show_fields()

    def texts(self) -> tuple[str, ...]:
        return tuple(field.text() for field in self._fields[: self._shown])

    def show_texts(self, texts: Sequence[str]) -> None:
        """Set the operands' texts without emitting."""
        for field, text in zip(self._fields, texts, strict=False):
            field.show_text(text)
        self._shown = len(texts)
        self._show_fields()

    def follow(self, expression: str, partner: Sequence[int] | None) -> None:
        """Make an expression the first operand, unless one of the operands is it already. The
        second becomes a shape that goes with it, `partner`, as long as the user has typed nothing
        there. Nothing is emitted."""
        if expression in self.texts():
            return
        _, *others = self.texts()
        if partner is not None and others and others[0] == self._suggested:
            others[0] = self._suggested = str(tuple(partner))
        self.show_texts((expression, *others))

    def show_names(self, names: Sequence[str]) -> None:
        """Set the names of tensors that completion offers."""
        for field in self._fields:
            field.show_names(names)

    def set_limits(self, fewest: int, most: int) -> None:
        """Set the smallest and the largest number of fields."""
        self._fewest, self._most = fewest, most
        self._shown = min(max(self._shown, fewest), most)
        self._show_fields()

    def _count_by(self, by: int) -> None:
        self._shown = min(max(self._shown + by, self._fewest), self._most)
        self._show_fields()
        self.changed.emit()

    def _show_fields(self) -> None:
        for k, (name, field) in enumerate(zip(self._labels, self._fields, strict=True)):
            name.setVisible(k < self._shown)
            field.setVisible(k < self._shown)
        several = self._fewest < self._most
        self._more.setVisible(several)
        self._fewer.setVisible(several)
        self._more.setEnabled(self._shown < self._most)
        self._fewer.setEnabled(self._shown > self._fewest)
