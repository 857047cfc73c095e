"""Editors for parameters, one for each type. They show a value, and emit what the user typed."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QRectF, QSignalBlocker, Qt, Signal
from PySide6.QtGui import (
    QFocusEvent,
    QKeyEvent,
    QKeySequence,
    QPainter,
    QPaintEvent,
    QPen,
    QValidator,
    QWheelEvent,
)
from PySide6.QtWidgets import QAbstractSpinBox, QCheckBox, QComboBox, QWidget

from engine.project.catalogue import Param, parse_value
from engine.project.document import ParamValue
from widgets import make, theme


def asks_for_undo(event: QEvent) -> bool:
    """Whether a field is asked whether it wants the keys of Undo or Redo for itself. It does only
    while it has typed text to take back; otherwise the window undoes its last edit."""
    return (
        event.type() == QEvent.Type.ShortcutOverride
        and isinstance(event, QKeyEvent)
        and (
            event.matches(QKeySequence.StandardKey.Undo)
            or event.matches(QKeySequence.StandardKey.Redo)
        )
    )


def value_text(value: ParamValue) -> str:
    """A value as Python code, strings without quotes: `3`, `0.001`, `(3, 3)`, `None`, `mean`."""
    return value if isinstance(value, str) else repr(value)


class TextField(QAbstractSpinBox):
    """A field for a number, tuple or word. The arrow keys step integers by 1, and floats between
    0 and 1 by 0.05.

    `typed` is emitted at each change of the text. `committed` is emitted at Enter, at the loss of
    focus and after an arrow key. Esc restores the value last shown.
    """

    typed = Signal(str)
    committed = Signal(str)

    def __init__(self, param: Param, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._param = param
        self._shown = ""
        self._faulty = False
        self._step = _step(param)
        if self._step is None:
            self.setButtonSymbols(QAbstractSpinBox.ButtonSymbols.NoButtons)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.lineEdit().textChanged.connect(self.typed)

    def show_value(self, value: ParamValue) -> None:
        self._shown = value_text(value)
        self.lineEdit().setText(self._shown)
        self.lineEdit().setCursorPosition(0)

    def text_value(self) -> str:
        return self.lineEdit().text()

    def set_faulty(self, faulty: bool) -> None:
        """Outline the field in the error colour, or remove the outline."""
        self._faulty = faulty
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if self._faulty:
            painter = QPainter(self)
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(QPen(theme.current().color("error"), 1.5))
            painter.drawRoundedRect(QRectF(self.rect()).adjusted(1, 1, -1, -1), 2, 2)

    def stepBy(self, steps: int) -> None:
        value = self._number()
        if value is None or self._step is None:
            return
        value = round(value + steps * self._step, 6)
        low, high = self._param.minimum, self._param.maximum
        value = value if low is None else max(value, low)
        value = value if high is None else min(value, high)
        text = f"{value:g}" if self._param.type == "float" else str(int(value))
        if text != self.text_value():
            self.lineEdit().setText(text)
            self.committed.emit(text)

    def stepEnabled(self) -> QAbstractSpinBox.StepEnabledFlag:
        flags = QAbstractSpinBox.StepEnabledFlag.StepNone
        value = self._number()
        if value is None or self._step is None:
            return flags
        low, high = self._param.minimum, self._param.maximum
        if high is None or value < high:
            flags |= QAbstractSpinBox.StepEnabledFlag.StepUpEnabled
        if low is None or value > low:
            flags |= QAbstractSpinBox.StepEnabledFlag.StepDownEnabled
        return flags

    def validate(self, text: str, position: int) -> object:
        # Any text may be typed: errors are shown under the field.
        return (QValidator.State.Acceptable, text, position)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape and self.text_value() != self._shown:
            self.lineEdit().setText(self._shown)
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.committed.emit(self.text_value())
        else:
            super().keyPressEvent(event)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        if event.reason() != Qt.FocusReason.PopupFocusReason:
            self.committed.emit(self.text_value())

    def wheelEvent(self, event: QWheelEvent) -> None:
        # Scrolling through a form must not change the field under the pointer.
        event.ignore()

    def event(self, event: QEvent) -> bool:
        if asks_for_undo(event) and self.text_value() == self._shown:
            event.ignore()
            return False
        # While the text differs from the value, Esc belongs to the field, not to a shortcut.
        if (
            event.type() == QEvent.Type.ShortcutOverride
            and isinstance(event, QKeyEvent)
            and event.key() == Qt.Key.Key_Escape
            and self.text_value() != self._shown
        ):
            event.accept()
            return True
        return super().event(event)

    def _number(self) -> float | None:
        try:
            value = parse_value(self._param, self.text_value())
        except ValueError:
            return None
        if isinstance(value, int | float) and not isinstance(value, bool):
            return value
        return None


class CheckField(QCheckBox):
    """A field for True or False; `committed` is emitted at each change by the user."""

    committed = Signal(object)

    def __init__(self, param: Param, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.clicked.connect(lambda checked: self.committed.emit(checked))

    def show_value(self, value: ParamValue) -> None:
        self.setChecked(bool(value))


class ChoiceField(QComboBox):
    """A field for one of a parameter's choices. An optional parameter also offers None."""

    committed = Signal(object)

    def __init__(self, param: Param, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        choices: list[ParamValue] = list(param.choices)
        if param.type == "bool":
            choices = [True, False]
        if param.optional:
            choices.append(None)
        for choice in choices:
            self.addItem(value_text(choice), choice)
        self.activated.connect(lambda: self.committed.emit(self.currentData()))

    def show_value(self, value: ParamValue) -> None:
        with QSignalBlocker(self):
            self.setCurrentIndex(self.findText(value_text(value)))

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()


Field = TextField | CheckField | ChoiceField


def field_for(param: Param, parent: QWidget) -> Field:
    """The editor for a parameter, with its tooltip and accessible name."""
    if param.type == "bool" and not param.optional:
        field: Field = CheckField(param, parent)
    elif param.type in ("bool", "choice", "dtype"):
        field = ChoiceField(param, parent)
    else:
        field = TextField(param, parent)
    make.named(field, f"param_{param.name}", param.name)
    field.setAccessibleDescription(param.doc)
    field.setToolTip(tooltip(param))
    return field


def tooltip(param: Param) -> str:
    """The parameter's meaning, its default, its range, and how to type it."""
    lines = [param.doc] if param.doc else []
    if not param.required:
        lines.append(f"Default: {value_text(param.default)}")
    low, high = param.minimum, param.maximum
    if low is not None and high is not None:
        lines.append(f"Between {_bound(low)} and {_bound(high)}.")
    elif low is not None:
        lines.append(f"At least {_bound(low)}.")
    elif high is not None:
        lines.append(f"At most {_bound(high)}.")
    if param.type == "ints":
        lines.append("One number for all dimensions, or one each: 3 or (3, 5).")
    elif param.type == "shape":
        lines.append("Sizes with commas, such as 1, 8, 8.")
    elif param.type == "floats":
        lines.append("Numbers with commas, such as 0.9, 0.999.")
    if param.choices and param.type not in ("choice", "dtype", "bool"):
        lines.append("Or one of " + ", ".join(param.choices) + ".")
    if param.optional:
        lines.append("None, or empty, leaves it out.")
    return f"{param.name}\n" + "\n".join(lines)


def _bound(bound: float) -> str:
    return f"{bound:,.0f}" if bound == int(bound) else f"{bound:g}"


def _step(param: Param) -> float | None:
    if param.type in ("int", "ints"):
        return 1
    if param.type == "float" and (param.minimum, param.maximum) == (0, 1):
        return 0.05
    return None
