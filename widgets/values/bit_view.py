"""One element in the bits of its dtype."""

from __future__ import annotations

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFontMetrics, QGuiApplication, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from engine.protocol import BitField, BitsPart, BitsSnapshot
from widgets import make, theme
from widgets.theme import GRID, mono_font

_ROLES = {"sign": "error", "exponent": "leaf", "mantissa": "storage", "integer": "storage"}
_BIT_HEIGHT = 20
_PART_HEIGHT = 68
_HEAD = 20


class BitView(QWidget):
    """Shows a box for each bit, coloured by its field (sign, exponent, mantissa), and the sum that
    gives the value."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        make.named(self, "bit_view", "Bits of the selected element")
        self.setToolTip(
            "How the element is stored. A float is sign × significand × 2^exponent; an integer is"
            " two's complement. Select an element in the table."
        )
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._bits: BitsSnapshot | None = None
        theme.notifier.changed.connect(self.update)

    def show_bits(self, bits: BitsSnapshot | None) -> None:
        """Show the bits of an element; None shows nothing."""
        self._bits = bits
        self.setAccessibleDescription("; ".join(self.words()))
        self.updateGeometry()
        self.update()

    def words(self) -> tuple[str, ...]:
        """The lines of text beside the bits."""
        if self._bits is None:
            return ("Select an element to see its bits.",)
        lines = [_value_line(part) for part in self._bits.parts]
        return tuple(lines + ([self._bits.note] if self._bits.note else []))

    def sizeHint(self) -> QSize:
        if self._bits is None:
            return QSize(320, _HEAD)
        noted = _HEAD if self._bits.note else 0
        return QSize(320, max(_HEAD, len(self._bits.parts) * _PART_HEIGHT + noted))

    def minimumSizeHint(self) -> QSize:
        return QSize(160, self.sizeHint().height())

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        colors = theme.current()
        if self._bits is None:
            painter.setPen(colors.color("muted"))
            painter.drawText(self.rect(), Qt.AlignmentFlag.AlignVCenter, self.words()[0])
            return
        y = 0
        for part in self._bits.parts:
            self._paint_part(painter, part, y)
            y += _PART_HEIGHT
        if self._bits.note:
            painter.setFont(QGuiApplication.font())
            painter.setPen(colors.color("muted"))
            painter.drawText(
                QRectF(0, y, self.width(), _HEAD), Qt.AlignmentFlag.AlignVCenter, self._bits.note
            )

    def _paint_part(self, painter: QPainter, part: BitsPart, top: float) -> None:
        colors = theme.current()
        painter.setFont(mono_font(9))
        metrics = QFontMetrics(painter.font())
        count = sum(len(field.bits) for field in part.fields)
        gaps = GRID * (len(part.fields) - 1)
        width = min(18.0, max(5.0, (self.width() - gaps - 2) / count))
        painter.setPen(colors.color("text"))
        line = QRectF(0, top, self.width(), _HEAD)
        text = metrics.elidedText(_value_line(part), Qt.TextElideMode.ElideRight, self.width())
        painter.drawText(line, Qt.AlignmentFlag.AlignVCenter, text)
        x = 0.0
        for field in part.fields:
            self._paint_bits(painter, field, x, top + _HEAD + 2, width)
            x += width * len(field.bits) + GRID
        x = 0.0
        painter.setFont(QGuiApplication.font())
        small = painter.font()
        small.setPixelSize(11)
        painter.setFont(small)
        for field in part.fields:
            text = f"{field.name}: {field.meaning}"
            painter.setPen(colors.color(_ROLES[field.kind]))
            rect = QRectF(x, top + _HEAD + _BIT_HEIGHT + 6, self.width() - x, 16)
            painter.drawText(rect, Qt.AlignmentFlag.AlignVCenter, text)
            x += QFontMetrics(small).horizontalAdvance(text) + 2 * GRID

    def _paint_bits(
        self, painter: QPainter, field: BitField, x: float, top: float, width: float
    ) -> None:
        colors = theme.current()
        color = colors.color(_ROLES[field.kind])
        for number, bit in enumerate(field.bits):
            rect = QRectF(x + number * width, top, width, _BIT_HEIGHT)
            fill = QColor(color)
            fill.setAlpha(90 if bit == "1" else 20)
            painter.fillRect(rect, fill)
            painter.setPen(QPen(color, 1))
            painter.drawRect(rect)
            if width >= 8:
                painter.setPen(colors.color("text" if bit == "1" else "muted"))
                painter.drawText(rect, Qt.AlignmentFlag.AlignCenter, bit)


def _value_line(part: BitsPart) -> str:
    name = f"{part.name}: " if part.name else ""
    if part.formula.endswith(part.exact):
        return f"{name}{part.formula}"
    return f"{name}{part.formula} = {part.exact}"
