"""The segments of CUDA's caching allocator, cut into blocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QBrush, QColor, QMouseEvent, QPainter, QPen
from PySide6.QtWidgets import QWidget

from engine.protocol import AllocatorBlock, AllocatorSegment
from widgets import make, theme
from widgets.painted_widget import PaintedWidget, set_small_font
from widgets.text import format_bytes
from widgets.training.memory.words import color_of_kind

ROW, BAR = 24, 16
LABEL = 88
"""Pixels of the sizes at the left."""
LEAST = 12
"""The width of the smallest segment in pixels."""


class SegmentPicture(PaintedWidget):
    """One bar for each segment, the largest first, its blocks in the colours of what they hold and
    as wide as their bytes. `pointed(segment, block)`: their places, -1 and -1 outside;
    `chosen(segment, block)`: a click."""

    pointed = Signal(int, int)
    chosen = Signal(int, int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        make.named(
            self,
            "step_memory_segments",
            "Segments of the allocator",
            "Each bar is memory that CUDA's caching allocator has of the driver. Coloured blocks"
            " hold a storage, empty ones are free for later ones. Click a block to choose what it"
            " holds in all views.",
        )
        self.segments: tuple[AllocatorSegment, ...] = ()
        self._more = 0
        self._at = (-1, -1)
        self.setMouseTracking(True)

    def show_segments(self, segments: Sequence[AllocatorSegment], in_all: int) -> None:
        """`in_all`: how many there are, if not all are told."""
        self.segments, self._more = tuple(segments), in_all - len(segments)
        self._at = (-1, -1)
        self.setMinimumHeight(self.sizeHint().height())
        self.updateGeometry()
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(480, ROW * (len(self.segments) + bool(self._more)) + 4)

    def blocks(self) -> Iterator[tuple[int, int, AllocatorBlock, QRectF]]:
        """Place of the segment, place of the block in it, block, and where it is painted."""
        if not self.segments:
            return
        room = self.width() - LABEL - 4
        largest = self.segments[0].size
        for row, segment in enumerate(self.segments):
            wide = max(LEAST, room * segment.size / largest)
            x, y = float(LABEL), row * ROW + (ROW - BAR) / 2
            for place, block in enumerate(segment.blocks):
                width = wide * block.size / segment.size
                yield row, place, block, QRectF(x, y, width, BAR)
                x += width

    def paint(self, painter: QPainter) -> None:
        colors = theme.current()
        set_small_font(painter, self.font())
        painter.setPen(colors.color("muted"))
        for row, segment in enumerate(self.segments):
            words = f"{'small' if segment.is_small else 'large'} {format_bytes(segment.size)}"
            painter.drawText(QRectF(0, row * ROW, LABEL - 8, ROW), _RIGHT, words)
        if self._more:
            area = QRectF(LABEL, len(self.segments) * ROW, self.width() - LABEL, ROW)
            painter.drawText(area, _LEFT, f"and {self._more:,} smaller segments")
        for row, place, block, rect in self.blocks():
            edge = colors.color("muted", 150)
            painter.fillRect(rect, colors.color("surface"))
            if block.state == "held":
                ground = QColor(color_of_kind(block.kind))
                ground.setAlpha(190)
                painter.fillRect(rect, ground)
            elif block.state == "waiting":
                painter.fillRect(rect, QBrush(edge, Qt.BrushStyle.BDiagPattern))
            lit = (row, place) == self._at
            painter.setPen(QPen(colors.color("text") if lit else edge, 2 if lit else 1))
            if rect.width() > 2 or lit:
                painter.drawRect(rect.adjusted(0.5, 0.5, -0.5, -0.5))

    # -- pointing --------------------------------------------------------------------------------

    def block_at(self, pixel: QPointF) -> tuple[int, int]:
        """The places of the segment and of the block under a pixel; -1 and -1 outside."""
        hits = (found[:2] for found in self.blocks() if found[3].contains(pixel))
        return next(hits, (-1, -1))

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        self._point(self.block_at(event.position()))

    def leaveEvent(self, event) -> None:
        self._point((-1, -1))
        super().leaveEvent(event)

    def _point(self, at: tuple[int, int]) -> None:
        if at != self._at:
            self._at = at
            self.pointed.emit(*at)
            self.update()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        at = self.block_at(event.position())
        if event.button() == Qt.MouseButton.LeftButton and at[0] >= 0:
            self.chosen.emit(*at)
        super().mousePressEvent(event)


_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
