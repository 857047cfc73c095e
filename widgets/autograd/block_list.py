"""The blocks in the order in which they run, with statistics of those that have run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QFont, QFontMetrics, QKeyEvent, QPainter, QPen, QResizeEvent
from PySide6.QtWidgets import (
    QListWidget,
    QListWidgetItem,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QWidget,
)

from engine.protocol import Activation, ForwardSnapshot, TensorSummary
from widgets import make, theme
from widgets.text import format_number, format_shape
from widgets.theme import GRID
from widgets.values.value_card import bad_numbers

ROW_HEIGHT = 44
GLYPH_WIDTH = 72
_ROW = Qt.ItemDataRole.UserRole


@dataclass(frozen=True)
class BlockRow:
    """One line of the list. `state`: done, current (ran last), next or waiting."""

    block: str
    name: str
    state: str
    activation: Activation | None
    scale: float
    """The largest absolute value of the whole pass, the common scale of the range bars."""

    @property
    def summary(self) -> TensorSummary | None:
        return self.activation.outputs[0] if self.activation and self.activation.outputs else None

    def shape_text(self) -> str:
        if self.activation is None:
            return ""
        return ", ".join(format_shape(output.shape) for output in self.activation.outputs)

    def numbers_text(self) -> str:
        """Mean and standard deviation, or the counts of NaN and inf."""
        if self.summary is None:
            return "next" if self.state == "next" else ""
        bad = bad_numbers(self.summary)
        if bad:
            return bad
        if not self.summary.shape:
            return f"= {format_number(self.summary.mean, 6)}"
        mean, std = format_number(self.summary.mean, 3), format_number(self.summary.std, 3)
        return f"mean {mean} · std {std}"


def rows_of(snapshot: ForwardSnapshot, names: Mapping[str, str]) -> tuple[BlockRow, ...]:
    activations = {activation.block: activation for activation in snapshot.activations}
    extremes = [
        abs(number)
        for activation in snapshot.activations
        for output in activation.outputs
        for number in (output.minimum, output.maximum)
        if number is not None
    ]
    scale = max(extremes, default=0.0)
    rows = []
    for index, block in enumerate(snapshot.order):
        if index == snapshot.position - 1:
            state = "current"
        elif index < snapshot.position:
            state = "done"
        else:
            state = "next" if index == snapshot.position else "waiting"
        rows.append(BlockRow(block, names.get(block, block), state, activations.get(block), scale))
    return tuple(rows)


class BlockList(QListWidget):
    """`chosen(block)`: show the block. `run_to(block)`: run to it (Enter or a double click)."""

    chosen = Signal(str)
    run_to = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        make.named(self, "forward_blocks", "Blocks in the order they run")
        self.setToolTip(
            "Blocks in the order they run. The bar shows from the smallest to the largest number,"
            " the thick part is mean ± standard deviation, all on one scale. Enter runs to here."
        )
        self.setItemDelegate(_RowDelegate(self))
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setVerticalScrollMode(QListWidget.ScrollMode.ScrollPerPixel)
        self.currentRowChanged.connect(self._on_row)
        self.itemDoubleClicked.connect(lambda item: self.run_to.emit(item.data(_ROW).block))
        theme.notifier.changed.connect(self.viewport().update)

    def show_rows(self, rows: tuple[BlockRow, ...]) -> None:
        """Show the rows and select the block that ran last, without emitting."""
        self.blockSignals(True)
        while self.count() > len(rows):
            self.takeItem(self.count() - 1)
        while self.count() < len(rows):
            self.addItem(QListWidgetItem())
        current = -1
        for index, row in enumerate(rows):
            item = self.item(index)
            item.setData(_ROW, row)
            item.setData(
                Qt.ItemDataRole.AccessibleTextRole,
                f"{row.name}, {row.state}, {row.shape_text()} {row.numbers_text()}",
            )
            if row.state == "current":
                current = index
        if current >= 0:
            self.setCurrentRow(current)
            self.scrollToItem(self.item(min(current + 1, self.count() - 1)))
        self.blockSignals(False)
        self.viewport().update()

    def rows(self) -> list[BlockRow]:
        return [self.item(index).data(_ROW) for index in range(self.count())]

    def selected_block(self) -> str | None:
        item = self.currentItem()
        return item.data(_ROW).block if item is not None else None

    def _on_row(self, row: int) -> None:
        if row >= 0:
            self.chosen.emit(self.item(row).data(_ROW).block)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        block = self.selected_block()
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and block is not None:
            self.run_to.emit(block)
        else:
            super().keyPressEvent(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Keep the selected block in sight."""
        super().resizeEvent(event)
        self.scrollTo(self.currentIndex())


class _RowDelegate(QStyledItemDelegate):
    def sizeHint(
        self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> QSize:
        return QSize(0, ROW_HEIGHT)

    def paint(
        self,
        painter: QPainter,
        option: QStyleOptionViewItem,
        index: QModelIndex | QPersistentModelIndex,
    ) -> None:
        row: BlockRow | None = index.data(_ROW)
        if row is None:
            return
        colors = theme.current()
        rect = QRectF(option.rect)  # type: ignore[attr-defined] - missing in the stubs
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if option.state & QStyle.StateFlag.State_Selected:  # type: ignore[attr-defined]
            painter.fillRect(rect, colors.color("accent", 40))
        _paint_mark(painter, QPointF(rect.x() + 14, rect.center().y()), row.state)
        left = rect.x() + 28
        room = rect.width() - 28 - GRID
        bold = QFont(painter.font())
        bold.setBold(row.state in ("done", "current"))
        painter.setFont(bold)
        painter.setPen(colors.color("muted" if row.state == "waiting" else "text"))
        shape = row.shape_text()
        plain = QFont(bold)
        plain.setBold(False)
        shape_width = QFontMetrics(plain).horizontalAdvance(shape)
        name_room = int(room - shape_width - GRID)
        name = QFontMetrics(bold).elidedText(row.name, Qt.TextElideMode.ElideRight, name_room)
        numbers = row.numbers_text()
        painter.drawText(QPointF(left, rect.y() + (18 if numbers else 27)), name)
        painter.setFont(plain)
        painter.setPen(colors.color("muted"))
        painter.drawText(QPointF(left + room - shape_width, rect.y() + 18), shape)
        bad = row.summary is not None and bool(bad_numbers(row.summary))
        painter.setPen(colors.color("error" if bad else "muted"))
        painter.drawText(QPointF(left, rect.y() + 36), numbers)
        if row.summary is not None:
            glyph = QRectF(left + room - GLYPH_WIDTH, rect.y() + 26, GLYPH_WIDTH, 12)
            _paint_range(painter, glyph, row.summary, row.scale)
        painter.setPen(QPen(colors.color("grid"), 1))
        painter.drawLine(rect.bottomLeft(), rect.bottomRight())
        painter.restore()


def _paint_mark(painter: QPainter, at: QPointF, state: str) -> None:
    """Filled: has run; ringed: ran last; open: next; dot: waiting."""
    colors = theme.current()
    painter.setPen(Qt.PenStyle.NoPen)
    if state in ("done", "current"):
        painter.setBrush(colors.color("intermediate" if state == "done" else "accent"))
        painter.drawEllipse(at, 5, 5)
    elif state == "next":
        painter.setPen(QPen(colors.color("accent"), 2))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawEllipse(at, 5, 5)
    else:
        painter.setBrush(colors.color("border"))
        painter.drawEllipse(at, 3, 3)


def _paint_range(painter: QPainter, rect: QRectF, summary: TensorSummary, scale: float) -> None:
    """Paint the range of a block's numbers: a line from minimum to maximum, a bar for mean ± std, a
    tick at zero. The width stands for -scale to scale."""
    low, high = summary.minimum, summary.maximum
    if low is None or high is None or scale <= 0:
        return
    colors = theme.current()
    middle, half = rect.center(), rect.width() / 2

    def at(value: float) -> float:
        return middle.x() + max(-1.0, min(1.0, value / scale)) * half

    painter.setPen(QPen(colors.color("border"), 1))
    painter.drawLine(QPointF(middle.x(), rect.top()), QPointF(middle.x(), rect.bottom()))
    painter.setPen(QPen(colors.color("intermediate"), 1.5))
    painter.drawLine(QPointF(at(low), middle.y()), QPointF(at(high), middle.y()))
    if summary.mean is not None:
        std = summary.std or 0.0
        left, right = at(summary.mean - std), at(summary.mean + std)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(colors.color("intermediate"))
        painter.drawRect(QRectF(left, middle.y() - 3, max(2.0, right - left), 6))
