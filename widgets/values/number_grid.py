"""A table of any size. It holds and paints the visible cells only."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from PySide6.QtCore import QPointF, QRect, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QFontMetrics,
    QGuiApplication,
    QPainter,
    QPaintEvent,
    QPen,
    QResizeEvent,
)
from PySide6.QtWidgets import QAbstractScrollArea, QWidget

from widgets import theme
from widgets.theme import GRID, mono_font

ROW_HEIGHT = 24
HEADER_HEIGHT = 24
_MAX_CHARACTERS = 26
_MAX_STEPS = 1 << 30
"""The most steps of a scroll bar, which counts in 32 bits. In a table with more rows, a step
scrolls several rows."""

Window = tuple[int, int, int, int]
"""A window of cells: first row, number of rows, first column, number of columns."""


class _Layout(NamedTuple):
    """Where the cells lie in the viewport, in pixels."""

    area: QRect
    """The viewport without the headers."""
    cell_width: int
    whole: tuple[int, int]
    """How many rows and columns are visible from edge to edge."""
    in_sight: Window
    """The visible cells."""

    def cell_rect(self, row: int, column: int) -> QRect:
        return QRect(
            self.area.x() + (column - self.in_sight[2]) * self.cell_width,
            self.area.y() + (row - self.in_sight[0]) * ROW_HEIGHT,
            self.cell_width,
            ROW_HEIGHT,
        )


class NumberGrid(QAbstractScrollArea):
    """Shows texts in rows and columns. `window_changed(window)` says which cells have become
    visible; the owner reads them and calls `show_cells`."""

    window_changed = Signal(object)
    reshaped = Signal()
    """Emitted when another table is shown. Its cells are not known yet."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFont(mono_font(9))
        self._rows = self._columns = 0
        self._block = 0
        self._characters = 5
        self._labels: tuple[Callable[[int], str], Callable[[int], str]] = (str, str)
        self._first = (0, 0)
        self._cells: tuple[tuple[str, ...], ...] = ()
        self._selected: tuple[int, int] | None = None
        self._shorten: Callable[[str], str] = str
        self._empty_text = ""
        self.verticalScrollBar().valueChanged.connect(self._moved)
        self.horizontalScrollBar().valueChanged.connect(self._moved)
        theme.notifier.changed.connect(self.viewport().update)

    # -- what it shows ---------------------------------------------------------------------------

    def show_size(
        self,
        rows: int,
        columns: int,
        row_label: Callable[[int], str],
        column_label: Callable[[int], str],
        block: int = 0,
    ) -> None:
        """Show a table of `rows` x `columns` whose cells are not known yet. A line is drawn after
        every `block` rows (0: no lines). The scroll position stays if the table is that large."""
        self.reshaped.emit()
        if (rows, columns) != (self._rows, self._columns):
            self._characters = 5
        self._rows, self._columns, self._block = rows, columns, block
        self._labels = (row_label, column_label)
        self._cells, self._empty_text = (), ""
        if self._selected is not None and not self._holds(*self._selected):
            self._selected = None
        self._measure()
        self.viewport().update()

    def show_cells(
        self, row_start: int, column_start: int, cells: tuple[tuple[str, ...], ...]
    ) -> None:
        """Show the texts of the cells from (row_start, column_start) on; forget all others."""
        self._first, self._cells = (row_start, column_start), cells
        longest = max((len(self._shorten(text)) for row in cells for text in row), default=0)
        if longest > self._characters:
            self._characters = min(longest, _MAX_CHARACTERS)
            self._measure()
        self.viewport().update()

    def show_empty(self, text: str) -> None:
        """Show `text` instead of cells."""
        self.show_size(0, 0, str, str)
        self._empty_text = text

    def set_shortening(self, shorten: Callable[[str], str]) -> None:
        """Set the function that shortens a cell's text for painting."""
        self._shorten = shorten

    def text_at(self, row: int, column: int) -> str | None:
        """The full text of a cell; None if it is not known."""
        row, column = row - self._first[0], column - self._first[1]
        if 0 <= row < len(self._cells) and 0 <= column < len(self._cells[row]):
            return self._cells[row][column]
        return None

    def cells_in_sight(self) -> Window:
        """The window of visible cells, whether known or not."""
        return self._layout().in_sight

    def cell_rect(self, row: int, column: int) -> QRect:
        """The rect of a cell, in the viewport's pixels."""
        return self._layout().cell_rect(row, column)

    def sizeHint(self) -> QSize:
        return QSize(480, 240)

    # -- geometry --------------------------------------------------------------------------------

    def _holds(self, row: int, column: int) -> bool:
        return 0 <= row < self._rows and 0 <= column < self._columns

    def _cell_width(self) -> int:
        return QFontMetrics(self.font()).horizontalAdvance("0" * self._characters) + 2 * GRID + 2

    def _header_width(self) -> int:
        if not self._rows:
            return 0
        metrics = QFontMetrics(self.font())
        longest = max(len(self._labels[0](row)) for row in (0, self._rows - 1))
        return metrics.horizontalAdvance("0") * longest + 2 * GRID if longest else GRID

    def _layout(self) -> _Layout:
        """The layout of the cells at this scroll position. It measures texts, which takes as long
        as painting a cell, so what is done for every cell must not ask for it."""
        area = self.viewport().rect().adjusted(self._header_width(), HEADER_HEIGHT, 0, 0)
        width = self._cell_width()
        fitting = (area.height() // ROW_HEIGHT, area.width() // width)
        whole = (max(1, fitting[0]), max(1, fitting[1]))
        units = self._units()
        row = min(self.verticalScrollBar().value() * units[0], max(0, self._rows - whole[0]))
        column = min(
            self.horizontalScrollBar().value() * units[1], max(0, self._columns - whole[1])
        )
        rows = max(0, min(self._rows - row, fitting[0] + 1))
        columns = max(0, min(self._columns - column, fitting[1] + 1))
        return _Layout(area, width, whole, (row, rows, column, columns))

    def _units(self) -> tuple[int, int]:
        """How many rows and columns a step of the scroll bars scrolls."""
        return -(-self._rows // _MAX_STEPS) or 1, -(-self._columns // _MAX_STEPS) or 1

    def _measure(self) -> None:
        """Fit the scroll bars to the table, and emit the window of visible cells."""
        bars = (self.verticalScrollBar(), self.horizontalScrollBar())
        sizes = (self._rows, self._columns)
        for bar, size, whole, unit in zip(
            bars, sizes, self._layout().whole, self._units(), strict=True
        ):
            blocked = bar.blockSignals(True)
            bar.setRange(0, -(-max(0, size - whole) // unit))
            bar.setPageStep(max(1, whole // unit))
            bar.setSingleStep(1)
            bar.blockSignals(blocked)
        self._moved()

    def _moved(self) -> None:
        self.viewport().update()
        self.window_changed.emit(self.cells_in_sight())

    def _reveal(self, row: int, column: int) -> None:
        layout, units = self._layout(), self._units()
        (high, wide), (first_row, _, first_column, _) = layout.whole, layout.in_sight
        places = (
            (self.verticalScrollBar(), first_row, row, high, units[0]),
            (self.horizontalScrollBar(), first_column, column, wide, units[1]),
        )
        for bar, first, at, whole, unit in places:
            if at < first:
                bar.setValue(at // unit)
            elif at >= first + whole:
                bar.setValue(-(-(at - whole + 1) // unit))

    def _cell_at(self, point: QPointF) -> tuple[int, int] | None:
        layout = self._layout()
        area, (first_row, _, first_column, _) = layout.area, layout.in_sight
        if not area.contains(point.toPoint()):
            return None
        row = first_row + int(point.y() - area.y()) // ROW_HEIGHT
        column = first_column + int(point.x() - area.x()) // layout.cell_width
        return (row, column) if self._holds(row, column) else None

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._measure()

    # -- painting --------------------------------------------------------------------------------

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self.viewport())
        colors = theme.current()
        painter.fillRect(self.viewport().rect(), colors.color("surface"))
        if not self._rows or not self._columns:
            painter.setPen(colors.color("muted"))
            flags = int(Qt.AlignmentFlag.AlignCenter) | int(Qt.TextFlag.TextWordWrap)
            text = self._empty_text or "No elements: one dimension has size 0."
            painter.setFont(QGuiApplication.font())
            painter.drawText(self.viewport().rect().adjusted(GRID, 0, -GRID, 0), flags, text)
            return
        painter.setFont(self.font())
        layout = self._layout()
        self._paint_headers(painter, layout)
        painter.setClipRect(layout.area)
        self._paint_cells(painter, layout)
        if self._selected is not None:
            rect = QRectF(layout.cell_rect(*self._selected)).adjusted(1, 1, -1, -1)
            painter.setPen(QPen(colors.color("accent"), 2))
            painter.setBrush(colors.color("accent", 40))
            painter.drawRect(rect)
        painter.setClipping(False)
        if self.hasFocus():
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(colors.color("accent"), 1))
            painter.drawRect(self.viewport().rect().adjusted(0, 0, -1, -1))

    def _paint_headers(self, painter: QPainter, layout: _Layout) -> None:
        colors = theme.current()
        row, rows, column, columns = layout.in_sight
        area, viewport = layout.area, self.viewport().rect()
        painter.fillRect(QRect(0, 0, viewport.width(), area.y()), colors.color("window"))
        painter.fillRect(QRect(0, 0, area.x(), viewport.height()), colors.color("window"))
        right = int(Qt.AlignmentFlag.AlignRight) | int(Qt.AlignmentFlag.AlignVCenter)
        chosen = self._selected or (-1, -1)
        painter.setClipRect(viewport.adjusted(area.x(), 0, 0, 0))
        for at in range(column, column + columns):
            painter.setPen(colors.color("text" if at == chosen[1] else "muted"))
            rect = QRect(layout.cell_rect(row, at).x(), 0, layout.cell_width - GRID, HEADER_HEIGHT)
            painter.drawText(rect, right, self._labels[1](at))
        painter.setClipRect(viewport.adjusted(0, area.y(), 0, 0))
        for at in range(row, row + rows):
            painter.setPen(colors.color("text" if at == chosen[0] else "muted"))
            rect = QRect(0, layout.cell_rect(at, column).y(), area.x() - GRID, ROW_HEIGHT)
            painter.drawText(rect, right, self._labels[0](at))
        painter.setClipping(False)
        painter.setPen(colors.color("border"))
        painter.drawLine(0, area.y() - 1, viewport.width(), area.y() - 1)
        painter.drawLine(area.x() - 1, 0, area.x() - 1, viewport.height())

    def _paint_cells(self, painter: QPainter, layout: _Layout) -> None:
        colors = theme.current()
        row, rows, column, columns = layout.in_sight
        inks = {name: colors.color(name) for name in ("text", "muted", "error", "border")}
        right = int(Qt.AlignmentFlag.AlignRight) | int(Qt.AlignmentFlag.AlignVCenter)
        metrics = QFontMetrics(self.font())
        width = layout.cell_width - 2 * GRID
        grid = colors.color("grid")
        for at in range(row, row + rows):
            block_ends = self._block and (at + 1) % self._block == 0
            first = layout.cell_rect(at, column)
            painter.setPen(inks["border"] if block_ends else grid)
            y = first.bottom()
            end = first.x() + columns * layout.cell_width
            painter.drawLine(first.x(), y, end, y)
            for across in range(column, column + columns):
                text = self.text_at(at, across)
                rect = layout.cell_rect(at, across).adjusted(GRID, 0, -GRID, 0)
                painter.setPen(_ink(text, inks))
                shown = "·" if text is None else self._shorten(text)
                if metrics.horizontalAdvance(shown) > width:
                    shown = metrics.elidedText(shown, Qt.TextElideMode.ElideMiddle, width)
                painter.drawText(rect, right, shown)


def _ink(text: str | None, inks: dict[str, QColor]) -> QColor:
    """The colour of a text: muted for zeros and False, the error colour for NaN and inf."""
    if text is None or text in ("0", "-0", "False", "0+0j"):
        return inks["muted"]
    return inks["error"] if "nan" in text or "inf" in text else inks["text"]
