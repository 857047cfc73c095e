"""The images of some steps, side by side: a column for each step."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QKeyEvent, QMouseEvent, QPainter, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from engine.protocol import LoggedImages
from widgets import make, theme
from widgets.painted_widget import PaintedWidget, set_small_font
from widgets.sample_picture import pixmap_of
from widgets.theme import GRID

SIDE = 12 * GRID
"""The side of the square that an image is in, in pixels."""
HEAD = 2 * GRID


class ImageStrip(PaintedWidget):
    """`pointed(column)`: the step under the pointer, or the one that the arrow keys have reached;
    -1 outside."""

    pointed = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        make.named(
            self,
            "image_strip",
            "Images over steps",
            "A column for each step, the newest at the right: of more steps, some spread evenly."
            " Left and Right go from step to step.",
        )
        self._steps: tuple[LoggedImages, ...] = ()
        self.column = -1
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Minimum, QSizePolicy.Policy.Minimum)

    def show_images(self, steps: Sequence[LoggedImages]) -> None:
        self._steps = tuple(steps)
        self.column = min(self.column, len(steps) - 1)
        self.setMinimumSize(self.sizeHint())
        self.updateGeometry()
        self.update()

    def sizeHint(self) -> QSize:
        rows = max((len(each.images) for each in self._steps), default=0)
        return QSize(len(self._steps) * (SIDE + GRID), HEAD + rows * (SIDE + GRID))

    def place_of(self, column: int, row: int) -> QRectF:
        """The square that an image is in."""
        return QRectF(column * (SIDE + GRID), HEAD + row * (SIDE + GRID), SIDE, SIDE)

    def paint(self, painter: QPainter) -> None:
        colors = theme.current()
        set_small_font(painter, self.font())
        for column, step in enumerate(self._steps):
            painter.setPen(colors.color("text" if column == self.column else "muted"))
            head = QRectF(self.place_of(column, 0).x(), 0, SIDE, HEAD)
            painter.drawText(head, Qt.AlignmentFlag.AlignCenter, f"step {step.step:,}")
            for row, image in enumerate(step.images):
                pixmap = pixmap_of(image, SIDE)
                place = QRectF(pixmap.rect())
                place.moveCenter(self.place_of(column, row).center())
                painter.drawPixmap(place.topLeft(), pixmap)
                painter.setPen(QPen(colors.color("border")))
                painter.drawRect(place.adjusted(-0.5, -0.5, 0.5, 0.5))

    # -- pointing --------------------------------------------------------------------------------

    def point_at(self, column: int) -> None:
        if column != self.column:
            self.column = column
            self.update()
            self.pointed.emit(column)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        self.point_at(self._column_at(event.position()))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        moves = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}
        move = moves.get(Qt.Key(event.key()))
        if move is None or not self._steps:
            super().keyPressEvent(event)
        else:
            self.point_at(min(max(self.column + move, 0), len(self._steps) - 1))

    def _column_at(self, place: QPointF) -> int:
        column = int(place.x() // (SIDE + GRID))
        return column if 0 <= column < len(self._steps) else -1
