"""A tensor as a picture: a heat map or a grid of images, with the number under the cursor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QBrush,
    QColor,
    QContextMenuEvent,
    QGuiApplication,
    QImage,
    QKeyEvent,
    QKeySequence,
    QLinearGradient,
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
from widgets.values.picture_grid import Cell, Grid, fit_grid, source_index, values_of

LEGEND_HEIGHT = 40
NUMBERS_MIN_CELL = (38.0, 16.0)
"""Numbers are written into cells at least this wide and high, in pixels."""
HATCH_MIN_CELL = 5.0
MARK_MIN = 8.0
"""The frame of a marked cell is at least this wide and high, in pixels."""
_ARROWS = {
    Qt.Key.Key_Left: (0, -1),
    Qt.Key.Key_Right: (0, 1),
    Qt.Key.Key_Up: (-1, 0),
    Qt.Key.Key_Down: (1, 0),
}


class PictureView(QWidget):
    """Paints a `Picture`. The pointer or the arrow keys choose a cell, whose index and value are
    shown; NaN and infinities stand out hatched in the error colour."""

    cell_changed = Signal(object)
    """The cell under the cursor, a tuple (row, column) or (image, row, column), or None."""
    cell_chosen = Signal(object)
    """A cell that was clicked, or on which Enter was pressed."""

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
        """Set the names of cells for a picture that is only a part of a tensor."""
        self._name_cell = name_cell

    def mark_cell(self, cell: Cell | None, role: str = "accent") -> None:
        """Frame a cell in a colour of the theme, wherever the cursor goes; None for none. A cell
        outside of the picture is not marked."""
        self._marked = cell if cell is not None and self._inside(cell) else None
        self._mark_role = role
        self.update()

    def marked_cell(self) -> Cell | None:
        return self._marked

    def set_shared_range(self, ends: tuple[float, float] | None) -> None:
        """Colour by these ends, which several pictures share to be compared; None for the
        picture's own."""
        if ends != self._shared_range:
            self._shared_range = ends
            self._recolour()

    def value_range(self) -> tuple[float, float]:
        """(minimum, maximum) of the finite numbers; (0, 0) when there are none."""
        return self._range

    def colour_range(self) -> tuple[float, float]:
        """The numbers at the ends of the colour map: symmetric when both signs occur."""
        low, high = self._shared_range or self._range
        if low < 0 < high:
            reach = max(-low, high)
            return -reach, reach
        return low, high

    def current_cell(self) -> Cell | None:
        return self._cell

    def readout(self) -> str:
        """The cell under the cursor in words, `[3, 5] = 0.25`; empty without one."""
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
        # float64, because low and high may be the float32 extremes; a constant picture takes the
        # middle of the map.
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
        self._paint_cells(painter, grid)
        self._paint_hatch(painter, grid)
        self._paint_numbers(painter, grid)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        if self._marked is not None:
            self._paint_mark(painter, QRectF(*grid.cell_rect(self._marked)))
        if self._cell is not None:
            painter.setPen(QPen(colors.color("text"), 2))
            painter.drawRect(QRectF(*grid.cell_rect(self._cell)))
        if self._legend:
            self._paint_legend(painter)

    def _grid(self) -> Grid:
        margin = 8.0 if self._legend else 0.0
        foot = LEGEND_HEIGHT if self._legend else 0
        width = max(1.0, self.width() - 2 * margin)
        height = max(1.0, self.height() - foot - 2 * margin)
        grid = fit_grid(self._values.shape, width, height)
        return replace(grid, x=grid.x + margin, y=grid.y + margin)

    def _paint_cells(self, painter: QPainter, grid: Grid) -> None:
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, False)
        rgb = np.ascontiguousarray(self._rgb.reshape(grid.tiles, grid.rows, grid.columns, 3))
        for tile in range(grid.tiles):
            image = QImage(
                rgb[tile].data,
                grid.columns,
                grid.rows,
                3 * grid.columns,
                QImage.Format.Format_RGB888,
            )
            x, y = grid.tile_origin(tile)
            painter.drawImage(QRectF(x, y, grid.tile_w, grid.tile_h), image)

    def _paint_hatch(self, painter: QPainter, grid: Grid) -> None:
        if min(grid.cell_w, grid.cell_h) < HATCH_MIN_CELL:
            return
        brush = QBrush(theme.current().color("surface"), Qt.BrushStyle.BDiagPattern)
        for cell in np.argwhere(~np.isfinite(self._values)):
            painter.fillRect(QRectF(*grid.cell_rect(tuple(cell.tolist()))), brush)

    def _paint_numbers(self, painter: QPainter, grid: Grid) -> None:
        if grid.cell_w < NUMBERS_MIN_CELL[0] or grid.cell_h < NUMBERS_MIN_CELL[1]:
            return
        set_small_font(painter, self.font())
        for cell, value in np.ndenumerate(self._values):
            color = self.color_at(cell)
            ink = "#000000" if _luminance(color) > 0.25 else "#ffffff"
            painter.setPen(QColor(ink))
            rect = QRectF(*grid.cell_rect(cell))
            if not np.isfinite(value):  # no hatch behind the letters
                painter.fillRect(QRectF(rect.x(), rect.center().y() - 8, rect.width(), 16), color)
            text = format_number(float(value), 2)
            painter.drawText(rect, Qt.AlignmentFlag.AlignCenter, text)

    def _paint_mark(self, painter: QPainter, cell: QRectF) -> None:
        """A frame around the cell, wide enough to be seen around a cell of one pixel."""
        colors = theme.current()
        more = max(0.0, (MARK_MIN - min(cell.width(), cell.height())) / 2)
        frame = cell.adjusted(-more, -more, more, more)
        for width, role in (
            (5, "surface"),
            (3, self._mark_role),
        ):  # the light edge separates it from cells of any colour
            painter.setPen(QPen(colors.color(role), width))
            painter.drawRect(frame)

    def _paint_legend(self, painter: QPainter) -> None:
        colors = theme.current()
        top = self.height() - LEGEND_HEIGHT
        width = min(200.0, self.width() - 16.0)
        bar = QRectF(8, top + 4, width, 8)
        gradient = QLinearGradient(bar.topLeft(), bar.topRight())
        for stop, (r, g, b) in zip(np.linspace(0, 1, 17), self._table()[::17][:17], strict=False):
            gradient.setColorAt(float(stop), QColor(int(r), int(g), int(b)))
        painter.fillRect(bar, gradient)
        painter.setPen(QPen(colors.color("border"), 1))
        painter.drawRect(bar)
        set_small_font(painter, self.font())
        painter.setPen(colors.color("muted"))
        labels = QRectF(8, top + 14, width, 16)
        low, high = self.colour_range()
        painter.drawText(labels, Qt.AlignmentFlag.AlignLeft, format_number(low, 3))
        painter.drawText(labels, Qt.AlignmentFlag.AlignRight, format_number(high, 3))
        if low < 0 < high:
            painter.drawText(labels, Qt.AlignmentFlag.AlignHCenter, "0")
        painter.setPen(colors.color("text"))
        if self.width() - width > 180:
            beside = QRectF(width + 24, top, self.width() - width - 32, 20)
            painter.drawText(beside, Qt.AlignmentFlag.AlignRight, self.readout())
        else:
            below = QRectF(8, top + 26, self.width() - 16, 16)
            painter.drawText(below, Qt.AlignmentFlag.AlignLeft, self.readout())

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
        """Move within a tile; from a tile's edge on to its neighbour."""
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
        menu.popup(event.globalPos())

    def fill_menu(self, menu: QMenu) -> None:
        add_picture_actions(menu, self, self.paint)
        menu.addAction("Copy numbers", self.copy_numbers)

    def copy_numbers(self) -> None:
        """The numbers as tab-separated rows (images one under the other) to the clipboard."""
        rows = self._values.reshape(-1, self._values.shape[-1])
        text = "\n".join("\t".join(str(value) for value in row) for row in rows)
        QGuiApplication.clipboard().setText(text)


def _luminance(color: QColor) -> float:
    """Relative luminance, 0 to 1 (approximate gamma of 2.2)."""
    r, g, b = color.redF(), color.greenF(), color.blueF()
    return 0.2126 * r**2.2 + 0.7152 * g**2.2 + 0.0722 * b**2.2
