"""One tensor on a card: what it is called, its shape, its statistics, its picture."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QGridLayout, QHBoxLayout, QLabel, QVBoxLayout, QWidget

from engine.protocol import TensorSummary, Value
from widgets.text import format_bytes, format_number, format_shape
from widgets.theme import GRID, mono_font
from widgets.values.picture_view import PictureView

_STATISTICS = (
    ("min", "Smallest finite element", lambda s: format_number(s.minimum)),
    ("max", "Largest finite element", lambda s: format_number(s.maximum)),
    ("mean", "Mean of the finite elements", lambda s: format_number(s.mean)),
    ("std", "Standard deviation of the finite elements", lambda s: format_number(s.std)),
    ("norm", "2-norm: the square root of the sum of squares", lambda s: format_number(s.norm)),
    ("zeros", "Elements that are exactly zero", lambda s: format_number(s.zeros)),
)


def bad_numbers(summary: TensorSummary) -> str:
    """The NaN and infinity counts in words (`3 NaN, 1 inf`); empty when all is finite."""
    counts = ((summary.nans, "NaN"), (summary.infs, "inf"))
    return ", ".join(f"{count:,} {what}" for count, what in counts if count)


def kind_of(summary: TensorSummary) -> str:
    """Shape, dtype, place and size in one line (`64 × 10 · float32 · cpu · 2.5 KiB`)."""
    size = format_bytes(summary.size_bytes)
    return f"{format_shape(summary.shape)} · {summary.dtype} · {summary.device} · {size}"


class ValueCard(QFrame):
    """Shows one `Value`, or says what is missing (`show_value(None, "why")`)."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("role", "card")
        self.setObjectName("value_card")
        self._label = _line("value_label", "heading")
        self._kind = _line("value_kind", "muted")
        self._kind.setToolTip("Shape · element type · device · bytes (elements × bytes of each)")
        self._bad = _line("value_bad", "error")
        self._bad.setToolTip(
            "NaN and infinity spread through everything computed from them. Look for a division by"
            " zero, the log of zero, or a learning rate that is too high."
        )
        self._text = _line("value_text")
        self._text.setFont(mono_font(9))
        self._numbers: dict[str, QLabel] = {}
        self.picture = PictureView()

        head = QHBoxLayout()
        head.setSpacing(GRID)
        head.addWidget(self._label)
        head.addWidget(self._bad)
        head.addStretch(1)
        self._statistics = QWidget()
        grid = QGridLayout(self._statistics)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setHorizontalSpacing(GRID)
        grid.setVerticalSpacing(2)
        for index, (name, tip, _) in enumerate(_STATISTICS):
            row, column = divmod(index, 2)
            title = QLabel(name)
            title.setProperty("role", "muted")
            title.setToolTip(tip)
            number = _line(f"value_{name}")
            number.setToolTip(tip)
            number.setAccessibleName(tip)
            # One width for all numbers, so that nothing moves from step to step.
            number.setMinimumWidth(number.fontMetrics().horizontalAdvance("-0.00012345"))
            self._numbers[name] = number
            grid.addWidget(title, row, 2 * column)
            grid.addWidget(number, row, 2 * column + 1)
            grid.setColumnStretch(2 * column + 1, 1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(GRID, GRID, GRID, GRID)
        layout.setSpacing(GRID // 2)
        layout.addLayout(head)
        layout.addWidget(self._kind)
        layout.addWidget(self._statistics)
        layout.addWidget(self._text)
        layout.addWidget(self.picture, 1)
        layout.addStretch(0)  # keeps the lines together when there is no picture
        self.show_value(None)

    def show_value(self, value: Value | None, empty_text: str = "Nothing to show yet") -> None:
        """Show `value`; without one, only `empty_text`."""
        for part in (self._label, self._kind, self._statistics):
            part.setVisible(value is not None)
        self.picture.show_picture(value.picture if value else None, empty_text)
        self.picture.setVisible(value is None or value.picture is not None)
        self._text.setVisible(value is not None and value.picture is None and bool(value.text))
        if value is None:
            self._bad.hide()
            self.setAccessibleName(empty_text)
            return
        summary = value.summary
        self._label.setText(value.label)
        self._kind.setText(kind_of(summary))
        self._bad.setText(bad_numbers(summary))
        self._bad.setVisible(bool(self._bad.text()))
        self._text.setText(value.text)
        for name, _, text in _STATISTICS:
            self._numbers[name].setText(text(summary))
        self.setAccessibleName(f"{value.label}: {kind_of(summary)}")


def _line(name: str, role: str = "") -> QLabel:
    label = QLabel()
    label.setObjectName(name)
    label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
    label.setTextFormat(Qt.TextFormat.PlainText)
    if role:
        label.setProperty("role", role)
    return label
