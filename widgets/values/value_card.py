"""One tensor on a card: its name, shape, statistics and picture."""

from __future__ import annotations

import math

from PySide6.QtWidgets import QFrame, QLabel, QWidget

from engine.protocol import TensorSummary, Value
from widgets import make
from widgets.text import format_bytes, format_number, format_shape
from widgets.theme import GRID
from widgets.values.picture_view import PictureView

BAD_TIP = (
    "NaN and infinity spread through everything computed from them. Look for a division by zero,"
    " the log of zero, or a learning rate that is too high."
)
_STATISTICS = (
    ("min", "Smallest finite element", lambda s: format_number(s.minimum)),
    ("max", "Largest finite element", lambda s: format_number(s.maximum)),
    ("mean", "Mean of the finite elements", lambda s: format_number(s.mean)),
    ("std", "Standard deviation of the finite elements", lambda s: format_number(s.std)),
    ("norm", "2-norm: the square root of the sum of squares", lambda s: format_number(s.norm)),
    ("zeros", "Elements that are exactly zero", lambda s: format_number(s.zeros)),
)


def bad_numbers(summary: TensorSummary) -> str:
    """The numbers of NaN and infinities (`3 NaN, 1 inf`); empty if all elements are finite."""
    counts = ((summary.nans, "NaN"), (summary.infs, "inf"))
    return ", ".join(f"{count:,} {what}" for count, what in counts if count)


def kind_of(summary: TensorSummary) -> str:
    """Shape, dtype, device and size in one line (`(64, 10) · float32 · cpu · 2.5 KiB`)."""
    size = format_bytes(summary.size_bytes)
    return f"{format_shape(summary.shape)} · {summary.dtype} · {summary.device} · {size}"


def number_text(value: Value) -> str:
    """The number of a tensor of one element; empty for all others."""
    summary = value.summary
    if not value.text or math.prod(summary.shape) != 1:
        return ""
    if summary.dtype.startswith("float") and summary.mean is not None:
        return format_number(summary.mean, 6)
    return value.text.strip("[]")


def has_picture(value: Value) -> bool:
    """Whether a card paints the value: one number needs no picture."""
    return value.picture is not None and not number_text(value)


_NUMBER_POINTS, _NARROW_POINTS = 16, 12
"""Of one number; in a narrow card the longest, -1.23457e-05, fits."""
_KIND_TIP = "Shape · element type · device · bytes (elements × bytes of each)"


class ValueCard(QFrame):
    """Shows one `Value`, or a text that says why there is none. A tensor of one element is a
    number. A `narrow` card is half as wide: its statistics stand under each other."""

    def __init__(self, parent: QWidget | None = None, *, narrow: bool = False) -> None:
        super().__init__(parent)
        self.setProperty("role", "card")
        self.setObjectName("value_card")
        width = "any" if narrow else "own"
        self._label = make.text("value_label", "heading", width=width)
        self._kind = make.text("value_kind", "muted", width=width)
        self._kind.setToolTip(_KIND_TIP)
        self._narrow = narrow
        self._bad = make.text("value_bad", "error", tip=BAD_TIP, width="own")
        self._text = make.text("value_text", mono=9, width="own")
        points = _NARROW_POINTS if narrow else _NUMBER_POINTS
        self._number = make.text("value_number", mono=points, width=width)
        self._numbers: dict[str, QLabel] = {}
        self.picture = PictureView()

        self._statistics = QWidget()
        grid = make.grid(self._statistics, down=2)
        for index, (name, tip, _) in enumerate(_STATISTICS):
            row, column = divmod(index, 1 if narrow else 2)
            title = make.label(name, "muted", tip=tip)
            number = make.text(f"value_{name}", tip=tip, width="own")
            number.setAccessibleName(tip)
            # All numbers have one width, so that nothing moves from step to step.
            number.setMinimumWidth(number.fontMetrics().horizontalAdvance("-0.00012345"))
            self._numbers[name] = number
            grid.addWidget(title, row, 2 * column)
            grid.addWidget(number, row, 2 * column + 1)
            grid.setColumnStretch(2 * column + 1, 1)
        make.column(
            make.row(self._label, self._bad, make.STRETCH),
            self._kind,
            self._statistics,
            self._text,
            self._number,
            (self.picture, 1),
            make.Stretch(0),  # keeps the lines together when there is no picture
            on=self,
            gap=GRID // 2,
            margins=GRID,
        )
        self.show_value(None)

    def show_value(self, value: Value | None, empty_text: str = "Nothing to show yet") -> None:
        """Show `value`; without one, only `empty_text`."""
        number = "" if value is None else number_text(value)
        for part in (self._label, self._kind):
            part.setVisible(value is not None)
        self._statistics.setVisible(value is not None and not number)
        self.picture.show_picture(value.picture if value else None, empty_text)
        self.picture.setVisible(value is None or has_picture(value))
        lines = value is not None and value.picture is None and bool(value.text)
        self._text.setVisible(lines and not number)
        make.tell(self._number, number)
        if value is None:
            self._bad.hide()
            self.setAccessibleName(empty_text)
            return
        summary = value.summary
        self._label.setText(value.label)
        kind = kind_of(summary)
        shape, dtype, *_ = kind.split(" · ")
        self._kind.setText(f"{shape} · {dtype}" if self._narrow else kind)
        self._kind.setToolTip(f"{_KIND_TIP}\n{kind}")
        make.tell(self._bad, bad_numbers(summary))
        self._text.setText(value.text)
        for name, _, text in _STATISTICS:
            self._numbers[name].setText(text(summary))
        self.setAccessibleName(f"{value.label}: {kind}")
