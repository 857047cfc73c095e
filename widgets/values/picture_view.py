"""A tensor as a picture: a heat map or a grid of images, with the number under the cursor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QContextMenuEvent,
    QGuiApplication,
    QKeyEvent,
    QKeySequence,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
)
from PySide6.QtWidgets import QMenu, QSizePolicy, QWidget

from engine.protocol import Picture
from widgets import colormap, make, theme
from widgets.painted_widget import set_small_font
from widgets.save_picture import add_picture_actions, copy_picture
from widgets.text import format_number
from widgets.values import picture_paint
from widgets.values.picture_grid import Cell, Grid, fit_grid, source_index, values_of
from widgets.values.picture_paint import LEGEND_HEIGHT

_ARROWS = {
    Qt.Key.Key_Left: (0, -1),
    Qt.Key.Key_Right: (0, 1),
    Qt.Key.Key_Up: (-1, 0),
    Qt.Key.Key_Down: (1, 0),
}


class PictureView(QWidget):
    """Paints a `Picture`. The pointer or the arrow keys choose a cell, and its index and value are
    shown. NaN and infinities are hatched in the error colour."""

    cell_changed = Signal(object)
    """The cell under the cursor, (row, column) or (image, row, column), or None."""
    cell_chosen = Signal(object)
    """A cell on which the user clicked or pressed Enter."""

    def __init__(self, legend: bool = True, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._legend = legend
        self._picture: Picture | None = None
        self._values: NDArray[np.float32] = np.zeros((0, 0), np.float32)
        self._rgb: NDArray[np.uint8] = np.zeros((0, 0, 3), np.uint8)
        self._range = (0.0, 0.0)
        self._cell: Cell | None = None
        self._marked: Cell | None = None
        self._mark_role = "accent"
        self._shared_range: tuple[float, float] | None = None
        self._empty_text = "Nothing to show yet"
        self._name_cell: Callable[[Cell], str] | None = None
        make.named(self, "picture_view", "Picture of a tensor")
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        if legend:
            self.setToolTip(
                "Each cell is one number. Move the pointer or the arrow keys over the cells to"
                " read them; right-click to copy or save."
            )
            self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
            self.setMouseTracking(True)
        theme.notifier.changed.connect(self._recolour)

    # -- what it shows ---------------------------------------------------------------------------

    def show_picture(self, picture: Picture | None, empty_text: str = "") -> None:
        """Show `picture`; without one, `empty_text`. Raises ValueError on a damaged picture."""
        if empty_text:
            self._empty_text = empty_text
        if picture is not None and 0 in picture.shape:
            picture = None
        if picture == self._picture:
            self.update()
            return
        self._picture = picture
        self._values = np.zeros((0, 0), np.float32) if picture is None else values_of(picture)
        if self._cell is not None and not self._inside(self._cell):
            self._set_cell(None)
        if self._marked is not None and not self._inside(self._marked):
            self._marked = None
        self._recolour()

    def set_cell_names(self, name_cell: Callable[[Cell], str] | None) -> None:
        """Set the function that names a cell in the readout; None names it by `source_index`."""
        self._name_cell = name_cell

    def mark_cell(self, cell: Cell | None, role: str = "accent") -> None:
        """Frame a cell in the colour of a role; None removes the frame. A cell outside of the
        picture gets no frame."""
        self._marked = cell if cell is not None and self._inside(cell) else None
        self._mark_role = role
        self.update()

    def marked_cell(self) -> Cell | None:
        return self._marked

    def set_shared_range(self, ends: tuple[float, float] | None) -> None:
        """Set the (smallest, largest) number of the colour map, so that several pictures have the
        same colours; None takes those of this picture."""
        if ends != self._shared_range:
            self._shared_range = ends
            self._recolour()

    def value_range(self) -> tuple[float, float]:
        """(smallest, largest) finite number; (0, 0) without any."""
        return self._range

    def colour_range(self) -> tuple[float, float]:
        """The numbers at the ends of the colour map: -a and a if both signs occur."""
        low, high = self._shared_range or self._range
        if low < 0 < high:
            reach = max(-low, high)
            return -reach, reach
        return low, high

    def current_cell(self) -> Cell | None:
        return self._cell

    def readout(self) -> str:
        """The cell under the cursor in words (`[3, 5] = 0.25`); empty without one."""
        if self._picture is None or self._cell is None:
            return ""
        value = float(self._values[self._cell])
        name = self._name_cell(self._cell) if self._name_cell else None
        name = name or source_index(self._picture, self._cell)
        return f"{name} = {format_number(value, 5)}"

    def color_at(self, cell: Cell) -> QColor:
        """The colour in which a cell is painted."""
        return QColor(*self._rgb[cell].tolist())

    def sizeHint(self) -> QSize:
        return QSize(240, 200) if self._legend else QSize(64, 32)

    def minimumSizeHint(self) -> QSize:
        return QSize(120, 96) if self._legend else QSize(32, 16)

    # -- colours ---------------------------------------------------------------------------------

    def _recolour(self) -> None:
        finite = np.isfinite(self._values)
        shown = self._values[finite]
        self._range = (float(shown.min()), float(shown.max())) if shown.size else (0.0, 0.0)
        low, high = self.colour_range()
        scale = (colormap.SIZE - 1) / (high - low) if high > low else 0.0
        # float64: low and high may be the float32 extremes, whose difference overflows. If all
        # numbers are equal, they have the colour in the middle of the map.
        steps = (np.where(finite, self._values, low).astype(np.float64) - low) * scale
        steps = np.rint(steps if scale else steps + colormap.SIZE // 2)
        steps = np.clip(steps, 0, colormap.SIZE - 1).astype(np.intp)
        self._rgb = self._table()[steps]
        error = theme.current().color("error")
        self._rgb[~finite] = (error.red(), error.green(), error.blue())
        self.update()

    def _table(self) -> NDArray[np.uint8]:
        low, high = self.colour_range()
        if low < 0 < high:
            return colormap.diverging(theme.current())
        return colormap.sequential()

    # -- painting --------------------------------------------------------------------------------

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        self.paint(painter)
        if self.hasFocus():
            painter.setPen(QPen(theme.current().color("accent"), 1))
            painter.drawRect(self.rect().adjusted(0, 0, -1, -1))
        painter.end()

    def paint(self, painter: QPainter) -> None:
        """Paint the picture, legend included, at the widget's size."""
        colors = theme.current()
        if self._legend:
            painter.fillRect(self.rect(), colors.color("surface"))
        if self._picture is None:
            painter.setPen(colors.color("muted"))
            flags = int(Qt.AlignmentFlag.AlignCenter) | int(Qt.TextFlag.TextWordWrap)
            if self._legend:
                painter.drawText(
                    QRectF(self.rect()).adjusted(8, 8, -8, -8), flags, self._empty_text
                )
            return
        grid = self._grid()
        picture_paint.paint_cells(painter, grid, self._rgb)
        picture_paint.paint_hatch(painter, grid, self._values)
        picture_paint.paint_numbers(painter, grid, self._values, self._rgb, self.font())
        painter.setBrush(Qt.BrushStyle.NoBrush)
        if self._marked is not None:
            frame = QRectF(*grid.cell_rect(self._marked))
            picture_paint.paint_mark(painter, frame, self._mark_role)
        if self._cell is not None:
            painter.setPen(QPen(colors.color("text"), 2))
            painter.drawRect(QRectF(*grid.cell_rect(self._cell)))
        if self._legend:
            area = QRectF(0, self.height() - LEGEND_HEIGHT, self.width(), LEGEND_HEIGHT)
            set_small_font(painter, self.font())
            picture_paint.paint_legend(
                painter, area, self.colour_range(), self._table(), self.readout()
            )

    def _grid(self) -> Grid:
        margin = 8.0 if self._legend else 0.0
        foot = LEGEND_HEIGHT if self._legend else 0
        width = max(1.0, self.width() - 2 * margin)
        height = max(1.0, self.height() - foot - 2 * margin)
        grid = fit_grid(self._values.shape, width, height)
        return replace(grid, x=grid.x + margin, y=grid.y + margin)

    # -- the cursor ------------------------------------------------------------------------------

    def _inside(self, cell: Cell) -> bool:
        return len(cell) == self._values.ndim and all(
            0 <= i < n for i, n in zip(cell, self._values.shape, strict=True)
        )

    def _set_cell(self, cell: Cell | None) -> None:
        if cell == self._cell:
            return
        self._cell = cell
        self.setAccessibleDescription(self.readout())
        self.cell_changed.emit(cell)
        self.update()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        self._set_cell(self._cell_at(event.position()))

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if not self._legend:
            event.ignore()
            return
        self._set_cell(self._cell_at(event.position()))
        if self._cell is not None:
            self.cell_chosen.emit(self._cell)

    def _cell_at(self, point: QPointF) -> Cell | None:
        if self._picture is None:
            return None
        cell = self._grid().cell_at(point.x(), point.y())
        return cell if cell is None or self._values.ndim == 3 else cell[1:]

    def keyPressEvent(self, event: QKeyEvent) -> None:
        step = _ARROWS.get(Qt.Key(event.key()))
        if event.matches(QKeySequence.StandardKey.Copy) and self._picture is not None:
            copy_picture(self.size(), self.paint)
        elif step is not None and self._picture is not None:
            self._move_cell(*step)
        elif event.key() == Qt.Key.Key_Escape and self._cell is not None:
            self._set_cell(None)
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and self._cell is not None:
            self.cell_chosen.emit(self._cell)
        else:
            super().keyPressEvent(event)

    def _move_cell(self, rows: int, columns: int) -> None:
        """Move the cursor; from the edge of a tile it goes on to the next tile."""
        if self._cell is None:
            self._set_cell((0,) * self._values.ndim)
            return
        *tile, row, column = self._cell
        row, column = row + rows, column + columns
        height, width = self._values.shape[-2:]
        if tile and not (0 <= row < height and 0 <= column < width):
            stride = columns or rows * self._grid().tile_columns
            neighbour = tile[0] + stride
            if 0 <= neighbour < self._values.shape[0]:
                tile, row, column = [neighbour], row % height, column % width
        cell = (*tile, min(max(row, 0), height - 1), min(max(column, 0), width - 1))
        self._set_cell(cell)

    # -- menu ------------------------------------------------------------------------------------

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        if self._picture is None or not self._legend:
            event.ignore()
            return
        menu = make.context_menu(self)
        self.fill_menu(menu)
        make.pop_up(menu, event.globalPos())

    def fill_menu(self, menu: QMenu) -> None:
        add_picture_actions(menu, self, self.paint)
        menu.addAction("Copy numbers", self.copy_numbers)

    def copy_numbers(self) -> None:
        """Copy the numbers as tab-separated rows, one image after the other."""
        rows = self._values.reshape(-1, self._values.shape[-1])
        text = "\n".join("\t".join(str(value) for value in row) for row in rows)
        QGuiApplication.clipboard().setText(text)
