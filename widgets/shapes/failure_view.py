"""The operands of an operation that torch refused, with a mark on what does not fit."""

from __future__ import annotations

from PySide6.QtCore import QRect, QSize, Qt
from PySide6.QtGui import QFontMetrics, QGuiApplication, QPainter, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from engine.protocol import FailedOperand, FailedOperands
from widgets import theme
from widgets.painted_widget import PaintedWidget
from widgets.shapes.size_box import paint_box, paint_text
from widgets.text import format_shape

BOX_WIDTH = 56
BOX_HEIGHT = 22
GAP = theme.GRID
ROW_GAP = theme.GRID // 2
HEADER = 16
MAX_NAME_WIDTH = 200
CHIP_PADDING = 6
TEXT_WIDTH = 560
"""The smallest width in pixels to which the sentence under the rows is wrapped."""
CROSS = "✗"

_KINDS = {
    "broadcast": "Shapes are aligned at their last dimension: sizes must be equal, or 1.",
    "product": (
        "Dimensions that are multiplied and summed are in one column: their sizes must be equal."
    ),
    "join": "Sizes that must be equal are in one column.",
    "elements": "The sizes asked for, under the sizes of the tensor.",
    "index": "The index, under the valid indices of each dimension.",
    "dimension": "The dimensions of the tensor, and the one that was asked for.",
    "dtype": "The operands with their dtypes.",
    "device": "The operands with their devices.",
    "other": "The operands of the operation that failed.",
}


class FailureView(PaintedWidget):
    """Paints a row for each operand: its name, a box for each dimension, its dtype and device. What
    does not fit has a cross and the colour of errors. The picture shrinks to the widget's width."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("failed_operands")
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self._failed: FailedOperands | None = None
        self.setFont(QGuiApplication.font())  # the console, its parent there, has a font for code

    @property
    def failed(self) -> FailedOperands | None:
        """The operands that are shown; None without any."""
        return self._failed

    def show_failed(self, failed: FailedOperands | None) -> None:
        """Show these operands; None shows nothing."""
        self._failed = failed
        if failed is not None:
            self.setAccessibleName(f"Operands of {failed.operation}, which failed")
            self.setAccessibleDescription(described(failed))
            menu = "Its context menu copies or saves the picture."
            self.setToolTip(f"{_KINDS[failed.kind]} {CROSS} marks what does not fit. {menu}")
        self.updateGeometry()
        self.update()

    def sizeHint(self) -> QSize:
        failed = self._failed
        if failed is None:
            return QSize(0, 0)
        left, columns = self._name_width(failed), _column_count(failed)
        chips = [
            sum(self._chip_width(text) + GAP for text, _ in _chips(row)) for row in failed.operands
        ]
        width = left + columns * (BOX_WIDTH + GAP) + max(chips, default=0) + GAP
        if failed.text:
            width = max(width, min(TEXT_WIDTH, self._sentence_width(failed) + GAP))
        rows = len(failed.operands) * (BOX_HEIGHT + ROW_GAP)
        return QSize(width, HEADER + rows + self._sentence_box(failed, width).height())

    def minimumSizeHint(self) -> QSize:
        return QSize(120, self.sizeHint().height())

    def box(self, row: int, cell: int) -> QRect:
        """The box, in pixels, of cell number `cell` of operand number `row`."""
        assert self._failed is not None
        return self._place(self._failed, row, self._failed.operands[row].columns[cell])

    # -- painting --------------------------------------------------------------------------------

    def paint(self, painter: QPainter) -> None:
        """Paint the widget's whole area."""
        failed = self._failed
        if failed is None:
            return
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        wanted = self.sizeHint()
        if 0 < self.width() < wanted.width():
            scale = self.width() / wanted.width()
            painter.scale(scale, scale)
        self._paint_headings(painter, failed)
        self._paint_links(painter, failed)
        for number, row in enumerate(failed.operands):
            self._paint_row(painter, failed, number, row)
        if failed.text:
            painter.setFont(self.font())
            painter.setPen(theme.current().color("text"))
            place = self._sentence_box(failed, wanted.width())
            place.moveTop(HEADER + len(failed.operands) * (BOX_HEIGHT + ROW_GAP))
            painter.drawText(place, Qt.TextFlag.TextWordWrap, failed.text)

    def _paint_headings(self, painter: QPainter, failed: FailedOperands) -> None:
        for column, heading in enumerate(failed.headings):
            left = self._place(failed, 0, column).left() - GAP // 2
            place = QRect(left, 0, BOX_WIDTH + GAP, HEADER)
            paint_text(painter, place, heading, "muted", 8)

    def _paint_links(self, painter: QPainter, failed: FailedOperands) -> None:
        """Paint a line from each failing cell to the next one below it."""
        painter.setPen(QPen(theme.current().color("error"), 1.5))
        above: dict[int, QRect] = {}
        for number, row in enumerate(failed.operands):
            for cell in row.failing:
                box = self.box(number, cell)
                if row.columns[cell] in above:
                    start = above[row.columns[cell]]
                    painter.drawLine(
                        start.center().x(), start.bottom(), box.center().x(), box.top()
                    )
                above[row.columns[cell]] = box

    def _paint_row(
        self, painter: QPainter, failed: FailedOperands, number: int, row: FailedOperand
    ) -> None:
        colors = theme.current()
        name = self._place(failed, number, 0)
        name = QRect(0, name.top(), self._name_width(failed) - GAP, BOX_HEIGHT)
        role, middle = "text" if row.dtype else "muted", Qt.AlignmentFlag.AlignVCenter
        paint_text(painter, name, row.text, role, 9, middle, Qt.TextElideMode.ElideMiddle)
        for cell, size in enumerate(row.cells):
            fails = cell in row.failing
            role = "conflict" if fails else "same" if row.dtype else "added"
            text = f"{size} {CROSS}" if fails else str(size)
            paint_box(painter, self.box(number, cell), text, role, 8 if len(text) > 5 else 10)
        left = self._place(failed, number, _column_count(failed)).left()
        for text, wrong in _chips(row):
            box = QRect(left, name.top() + 2, self._chip_width(text), BOX_HEIGHT - 4)
            painter.setPen(QPen(colors.color("error" if wrong else "border"), 1))
            painter.setBrush(colors.color("error", 60 if wrong else 0))
            painter.drawRoundedRect(box, box.height() / 2, box.height() / 2)
            paint_text(painter, box, text, "text" if wrong else "muted", 8)
            left = box.right() + GAP

    # -- places ----------------------------------------------------------------------------------

    def _place(self, failed: FailedOperands, row: int, column: int) -> QRect:
        return QRect(
            self._name_width(failed) + column * (BOX_WIDTH + GAP),
            HEADER + row * (BOX_HEIGHT + ROW_GAP),
            BOX_WIDTH,
            BOX_HEIGHT,
        )

    def _name_width(self, failed: FailedOperands) -> int:
        metrics = QFontMetrics(theme.mono_font(9))
        widest = max((metrics.horizontalAdvance(row.text) for row in failed.operands), default=0)
        return min(widest, MAX_NAME_WIDTH) + 2 * GAP

    def _chip_width(self, text: str) -> int:
        metrics = QFontMetrics(theme.mono_font(8))
        return metrics.horizontalAdvance(text) + 2 * CHIP_PADDING

    def _sentence_width(self, failed: FailedOperands) -> int:
        return QFontMetrics(self.font()).horizontalAdvance(failed.text) + GAP

    def _sentence_box(self, failed: FailedOperands, width: int) -> QRect:
        if not failed.text:
            return QRect()
        metrics = QFontMetrics(self.font())
        return metrics.boundingRect(
            QRect(0, 0, width, 1000), Qt.TextFlag.TextWordWrap.value, failed.text
        )


def described(failed: FailedOperands) -> str:
    """The picture in words, for screen readers: `x: (3, 4), float32, cpu; does not fit: 4.`"""
    told = []
    for row in failed.operands:
        parts = [format_shape(row.cells), *(text for text, _ in _chips(row))]
        wrong = [str(row.cells[cell]) for cell in row.failing]
        told.append(
            f"{row.text}: {', '.join(parts)}"
            + (f"; does not fit: {', '.join(wrong)}." if wrong else ".")
        )
    return " ".join([*told, failed.text]).strip()


def _column_count(failed: FailedOperands) -> int:
    used = max((column + 1 for row in failed.operands for column in row.columns), default=0)
    return max(used, len(failed.headings))


def _chips(row: FailedOperand) -> list[tuple[str, bool]]:
    """The words beside the shape, each with whether it names a fault."""
    texts = {"dtype": row.dtype, "device": row.device, "note": row.note}
    return [
        (f"{text} {CROSS}" if key in row.wrong else text, key in row.wrong)
        for key, text in texts.items()
        if text
    ]
