"""One tensor on a card: its name, shape, statistics and picture."""

from __future__ import annotations

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
    """The NaN and infinity counts in words (`3 NaN, 1 inf`); empty when all is finite."""
    counts = ((summary.nans, "NaN"), (summary.infs, "inf"))
    return ", ".join(f"{count:,} {what}" for count, what in counts if count)


def kind_of(summary: TensorSummary) -> str:
    """Shape, dtype, place and size in one line (`64 × 10 · float32 · cpu · 2.5 KiB`)."""
    size = format_bytes(summary.size_bytes)
    return f"{format_shape(summary.shape)} · {summary.dtype} · {summary.device} · {size}"


class ValueCard(QFrame):
    """Shows one `Value`, or why there is none (`show_value(None, "why")`)."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("role", "card")
        self.setObjectName("value_card")
        self._label = make.text("value_label", "heading", width="own")
        self._kind = make.text("value_kind", "muted", width="own")
        self._kind.setToolTip("Shape · element type · device · bytes (elements × bytes of each)")
        self._bad = make.text("value_bad", "error", tip=BAD_TIP, width="own")
        self._text = make.text("value_text", mono=9, width="own")
        self._numbers: dict[str, QLabel] = {}
        self.picture = PictureView()

        self._statistics = QWidget()
        grid = make.grid(self._statistics, down=2)
        for index, (name, tip, _) in enumerate(_STATISTICS):
            row, column = divmod(index, 2)
            title = make.label(name, "muted", tip=tip)
            number = make.text(f"value_{name}", tip=tip, width="own")
            number.setAccessibleName(tip)
            # One width for all numbers, so that nothing moves from step to step.
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
            (self.picture, 1),
            make.Stretch(0),  # keeps the lines together when there is no picture
            on=self,
            gap=GRID // 2,
            margins=GRID,
        )
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
        make.tell(self._bad, bad_numbers(summary))
        self._text.setText(value.text)
        for name, _, text in _STATISTICS:
            self._numbers[name].setText(text(summary))
        self.setAccessibleName(f"{value.label}: {kind_of(summary)}")
