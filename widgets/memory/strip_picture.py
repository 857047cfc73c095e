"""Paints a storage: cells with values and numbers of readers, and strides as arcs."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QBrush, QColor, QPainter, QPainterPath, QPen

from engine.protocol import StorageSnapshot
from widgets import theme
from widgets.diagram.style import elided, font, text_width
from widgets.memory.layout_sums import Index, index_of_position, neighbours

MARGIN = 16
ARC_ROOM = 30
"""The height above a row of cells in which the arcs are, in pixels."""
CELL_HEIGHT = 28
OFFSET_HEIGHT = 16
ROW_HEIGHT = ARC_ROOM + CELL_HEIGHT + OFFSET_HEIGHT
MIN_CELL_WIDTH = 40
MAX_CELL_WIDTH = 88
FAR = 4096
"""An arc to a cell further below than this, in pixels, ends here: outside of the view."""
MAX_READERS = 99
"""The engine counts the readers of a cell up to this number."""
BY_POSITION = -1
"""In place of a dimension: colours cells by the number of their element, counted row by row."""


def cell_width_of(snapshot: StorageSnapshot | None) -> int:
    """The width in pixels of a cell that holds every value of the snapshot, within bounds."""
    face = font(12, mono=True)
    values = snapshot.values if snapshot else ()
    widest = max((text_width(value, face) for value in values), default=0)
    return int(min(max(widest + 12, MIN_CELL_WIDTH), MAX_CELL_WIDTH))


@dataclass(frozen=True)
class StripGeometry:
    """Rows of `columns` cells. Row `top_row` is the first visible one; all rows are scrolled to the
    left by `left` pixels."""

    columns: int
    cell_width: int
    top_row: int = 0
    left: int = 0

    def cell_rect(self, cell: int) -> QRectF:
        row, column = divmod(cell, self.columns)
        x = MARGIN + column * self.cell_width - self.left
        y = MARGIN + (row - self.top_row) * ROW_HEIGHT + ARC_ROOM
        return QRectF(x, y, self.cell_width, CELL_HEIGHT)

    def cell_at(self, point: QPointF) -> int | None:
        """The number of the cell at a point; the offset under a cell belongs to it. Rows go on
        beyond the storage: the number may be that of no cell. None between and beside the rows."""
        row, below = divmod(point.y() - MARGIN, ROW_HEIGHT)
        column = (point.x() - MARGIN + self.left) // self.cell_width
        if below < ARC_ROOM or not 0 <= column < self.columns:
            return None
        return (int(row) + self.top_row) * self.columns + int(column)


@dataclass(frozen=True)
class StripPicture:
    """All that a strip shows: a window of a storage, the dimension that colours it, the chosen
    cell, the element at which the arcs start (None: the first), and the changed cells."""

    snapshot: StorageSnapshot
    geometry: StripGeometry
    dim: int = BY_POSITION
    cell: int | None = None
    anchor: Index | None = None
    changed: frozenset[int] = frozenset()

    def paint(self, painter: QPainter, room: QRectF) -> None:
        """Paint the rows that fit into `room`."""
        columns = self.geometry.columns
        top = self.geometry.top_row * columns
        rows = int(room.height() // ROW_HEIGHT) + 2
        for cell in range(top, min(top + rows * columns, self.snapshot.cells or 0)):
            rect = self.geometry.cell_rect(cell)
            if rect.right() >= 0 and rect.left() <= room.right():
                self._paint_cell(painter, cell, rect)
        self._paint_start(painter)
        self._paint_arcs(painter)
        if self.cell is not None:
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(theme.current().color("accent"), 3))
            painter.drawRoundedRect(self.geometry.cell_rect(self.cell), 4, 4)

    def _paint_cell(self, painter: QPainter, cell: int, rect: QRectF) -> None:
        colors, snapshot = theme.current(), self.snapshot
        at = cell - snapshot.first
        known = 0 <= at < len(snapshot.values)
        box = rect.adjusted(1, 0, -1, 0)
        count = snapshot.readers[at] if known else 0
        painter.setPen(QPen(colors.color("border"), 1))
        if count:
            painter.setBrush(self.color_at(snapshot.positions[at]))
        elif known:
            painter.setBrush(QBrush(colors.color("border"), Qt.BrushStyle.BDiagPattern))
        else:
            painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawRoundedRect(box, 3, 3)
        if count > 1:
            self._paint_count(painter, box, count)
        if known:
            fresh = cell in self.changed
            face = font(12, bold=fresh, mono=True)
            painter.setFont(face)
            painter.setPen(colors.color("text" if count else "muted"))
            text = elided(snapshot.values[at], face, box.width() - 4)
            painter.drawText(box, Qt.AlignmentFlag.AlignCenter, text)
            if fresh:
                painter.setPen(QPen(colors.color("gradient"), 2))
                painter.drawLine(
                    box.bottomLeft() + QPointF(3, -2), box.bottomRight() - QPointF(3, 2)
                )
        painter.setFont(font(10, mono=True))
        painter.setPen(colors.color("accent" if cell == self.cell else "muted"))
        below = QRectF(rect.left(), rect.bottom(), rect.width(), OFFSET_HEIGHT)
        painter.drawText(below, Qt.AlignmentFlag.AlignCenter, str(cell))

    def _paint_count(self, painter: QPainter, box: QRectF, count: int) -> None:
        """Paint `×3` in the corner of a cell that three elements read."""
        colors = theme.current()
        face = font(9, bold=True)
        text = f"×{count}{'+' if count == MAX_READERS else ''}"
        width = text_width(text, face) + 6
        badge = QRectF(box.right() - width + 3, box.bottom() - 6, width, 13)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(colors.color("text"))
        painter.drawRoundedRect(badge, 6, 6)
        painter.setFont(face)
        painter.setPen(colors.color("surface"))
        painter.drawText(badge, Qt.AlignmentFlag.AlignCenter, text)

    def color_at(self, position: int) -> QColor:
        """The fill of the cell that element number `position` reads."""
        colors, shape = theme.current(), self.snapshot.shape
        if 0 <= self.dim < len(shape):
            index = index_of_position(shape, position)[self.dim]
            color = QColor(colors.series[index % len(colors.series)])
            color.setAlpha(90)
            return color
        share = position / max(prod(shape) - 1, 1)
        return colors.color("storage", round(25 + 130 * share))

    def _paint_start(self, painter: QPainter) -> None:
        """Paint a flag over the cell of the tensor's first element."""
        snapshot = self.snapshot
        if not snapshot.cells or snapshot.offset >= snapshot.cells or 0 in snapshot.shape:
            return
        rect = self.geometry.cell_rect(snapshot.offset)
        face = font(10, bold=True)
        painter.setFont(face)
        painter.setPen(theme.current().color("storage"))
        words = "start" if snapshot.offset == 0 else f"offset {snapshot.offset}"
        painter.drawText(QPointF(rect.left() + 1, rect.top() - ARC_ROOM + 8), words)
        painter.drawLine(
            QPointF(rect.left() + 1, rect.top() - ARC_ROOM + 11), rect.topLeft() + QPointF(1, 0)
        )

    def _paint_arcs(self, painter: QPainter) -> None:
        """Paint an arc for each dimension, from an element to the next one along the dimension."""
        shape = self.snapshot.shape
        if 0 in shape:
            return
        steps = neighbours(self.snapshot, self.anchor or (0,) * len(shape))
        for number, (dim, start, end) in enumerate(steps):
            color = dimension_color(dim)
            painter.setPen(QPen(color, 2))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            peak = 10 + 16 * (len(steps) - number) / max(len(steps), 1)
            painter.drawPath(self._arc(start, end, peak))
            painter.setBrush(color)
            painter.setPen(Qt.PenStyle.NoPen)
            tip = self._arc_ends(start, end)[1]
            painter.drawPolygon([tip, tip + QPointF(-4, -6), tip + QPointF(4, -6)])

    def _arc(self, start: int, end: int, peak: float) -> QPainterPath:
        a, b = self._arc_ends(start, end)
        path = QPainterPath(a)
        if start == end:
            path.cubicTo(a + QPointF(-16, -peak), a + QPointF(16, -peak), b)
        elif start // self.geometry.columns == end // self.geometry.columns:
            path.cubicTo(a + QPointF(0, -peak), b + QPointF(0, -peak), b)
        else:
            path.cubicTo(a + QPointF(0, ARC_ROOM), b - QPointF(0, ARC_ROOM), b)
        return path

    def _arc_ends(self, start: int, end: int) -> tuple[QPointF, QPointF]:
        """The ends of an arc: above two cells of one row, or from below a cell to a later row,
        beside the offset."""
        a, b = self.geometry.cell_rect(start), self.geometry.cell_rect(end)
        if start // self.geometry.columns == end // self.geometry.columns:
            return QPointF(a.center().x(), a.top()), QPointF(b.center().x(), b.top())
        below = min(b.top(), a.bottom() + FAR)
        return QPointF(a.right() - 7, a.bottom()), QPointF(b.right() - 7, below)


def dimension_color(dim: int) -> QColor:
    """The colour of a dimension's arc, and of its stride in texts."""
    series = theme.current().series
    return QColor(series[(dim + 1) % len(series)])
