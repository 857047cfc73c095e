"""A window of a tensor as cells with row and column numbers; marked cells are highlighted."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QPoint, QRect, QSize, Qt, Signal
from PySide6.QtGui import QFontMetrics, QHelpEvent, QKeyEvent, QMouseEvent, QPainter, QPen, QPolygon
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from engine.protocol import Cells
from widgets import theme
from widgets.make import Slot, named
from widgets.painted_widget import PaintedWidget
from widgets.shapes.cells_grid import (
    CAPTION,
    CELL_HEIGHT,
    HEADER,
    MAX_CELL_WIDTH,
    MIN_CELL_WIDTH,
    Geometry,
    Index,
    Marks,
    indices,
    moved,
    text_of,
    written,
)
from widgets.text import format_shape

TITLE_HEIGHT = 24
_FILLS = {"selected": ("accent", 110), "read": ("accent", 45), "picked": ("storage", 60)}
_FILLS |= {"winner": ("gradient", 110), "repeated": ("warning", 110)}
_CORNER = 7
_STEPS = {
    Qt.Key.Key_Left: (-1, -1),
    Qt.Key.Key_Right: (-1, 1),
    Qt.Key.Key_Up: (-2, -1),
    Qt.Key.Key_Down: (-2, 1),
    Qt.Key.Key_PageUp: (-3, -1),
    Qt.Key.Key_PageDown: (-3, 1),
}


class CellsView(PaintedWidget):
    """Paints a window of a tensor: the last two dimensions as rows and columns, others as tiles.

    A click or the arrow keys choose an element: `cell_chosen(index)`. Page Up and Page Down go from
    tile to tile. At the edge of the window, keys choose the next element outside of it.
    """

    cell_chosen = Signal(object)

    def __init__(
        self, name: str, tip: str = "", chosen: Slot | None = None, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        named(self, name, tip=tip)
        if chosen is not None:
            self.cell_chosen.connect(chosen)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self._cells: Cells | None = None
        self._title = ""
        self._marks: Marks = {}
        self._fixed_width: int | None = None
        self.hide()  # until there are cells

    def show_cells(self, cells: Cells | None, title: str, marks: Marks | None = None) -> None:
        """Show a window under a title; None hides the view. If the tensor has no data, each cell
        shows its index."""
        self.setVisible(cells is not None)
        self._cells, self._title, self._marks = cells, title, marks or {}
        if cells is None:
            return
        shape = format_shape(cells.shape)
        self.setAccessibleName(f"{title}, {shape}")
        self.setAccessibleDescription(self._described())
        self.updateGeometry()
        self.update()

    def cells(self) -> Cells | None:
        return self._cells

    def marks(self) -> Marks:
        return self._marks

    def wanted_cell_width(self) -> int:
        """The width of the longest text with its margins, in pixels."""
        longest = max(self._texts(), key=len, default="")
        metrics = QFontMetrics(theme.mono_font(9))
        return min(max(metrics.horizontalAdvance(longest) + 12, MIN_CELL_WIDTH), MAX_CELL_WIDTH)

    def set_cell_width(self, width: int | None) -> None:
        """Set the width of cells, so that the columns of several views line up; None takes
        `wanted_cell_width`."""
        self._fixed_width = width
        self.updateGeometry()

    def cell_rect(self, index: Index) -> QRect:
        """The rect of an element. Raises ValueError for one outside of the window."""
        assert self._cells is not None
        x, y = self._geometry().cell_origin(list(indices(self._cells)).index(index))
        return QRect(x, y + TITLE_HEIGHT, self._width(), CELL_HEIGHT)

    def sizeHint(self) -> QSize:
        if self._cells is None:
            return QSize(0, 0)
        title = QFontMetrics(self.font()).horizontalAdvance(self._heading()) + 16
        if 0 in self._cells.size:
            return QSize(max(title, 160), TITLE_HEIGHT + CELL_HEIGHT)
        width, height = self._geometry().size
        return QSize(max(width, title), height + TITLE_HEIGHT)

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    # -- painting --------------------------------------------------------------------------------

    def paint(self, painter: QPainter) -> None:
        """Paint the widget's whole area."""
        if self._cells is None:
            return
        colors = theme.current()
        painter.setFont(self.font())
        painter.setPen(colors.color("accent" if self.hasFocus() else "text"))
        left, line = Qt.AlignmentFlag.AlignLeft, Qt.AlignmentFlag.AlignVCenter
        painter.drawText(QRect(0, 0, self.width(), TITLE_HEIGHT), left | line, self._heading())
        if 0 in self._cells.size:
            painter.setPen(colors.color("muted"))
            box = QRect(0, TITLE_HEIGHT, self.width(), CELL_HEIGHT)
            painter.drawText(box, left | line, "no elements: a size is 0")
            return
        painter.translate(0, TITLE_HEIGHT)
        geometry = self._geometry()
        self._paint_headers(painter, geometry)
        painter.setFont(theme.mono_font(9))
        has_texts = bool(self._cells.texts)
        pairs = zip(indices(self._cells), self._texts(), strict=True)
        for place, (index, text) in enumerate(pairs):
            x, y = geometry.cell_origin(place)
            box = QRect(x, y, geometry.cell_width, CELL_HEIGHT)
            self._paint_cell(painter, box, self._marks.get(index, ""), text, has_texts)
        for place, index in enumerate(indices(self._cells)):  # frames lie over neighbouring cells
            mark = self._marks.get(index, "")
            if mark.endswith(("selected", "winner")):
                x, y = geometry.cell_origin(place)
                role = "gradient" if mark == "winner" else "accent"
                painter.setPen(QPen(colors.color(role), 2))
                painter.drawRect(QRect(x, y, geometry.cell_width, CELL_HEIGHT))

    def _paint_cell(
        self, painter: QPainter, box: QRect, mark: str, text: str, has_texts: bool
    ) -> None:
        colors = theme.current()
        ghost = mark.startswith("ghost")
        role = mark.removeprefix("ghost").strip()
        painter.fillRect(box, colors.color("window" if ghost else "surface"))
        if role in _FILLS:
            painter.fillRect(box, colors.color(*_FILLS[role]))
        pen = QPen(colors.color("border"), 1)
        if ghost:
            pen.setStyle(Qt.PenStyle.DotLine)
        painter.setPen(pen)
        painter.drawRect(box)
        if role == "repeated":
            top, right = box.top(), box.right() + 1
            corner = [(right - _CORNER, top), (right, top), (right, top + _CORNER)]
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(colors.color("warning"))
            painter.drawPolygon(QPolygon([QPoint(x, y) for x, y in corner]))
            painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(colors.color("text" if has_texts and not ghost else "muted"))
        end = Qt.TextElideMode.ElideRight
        elided = painter.fontMetrics().elidedText(text, end, box.width() - 4)
        painter.drawText(box, Qt.AlignmentFlag.AlignCenter, elided)

    def _paint_headers(self, painter: QPainter, geometry: Geometry) -> None:
        assert self._cells is not None
        cells = self._cells
        painter.setFont(theme.mono_font(8))
        painter.setPen(theme.current().color("muted"))
        middle = Qt.AlignmentFlag.AlignCenter
        for tile, leading in enumerate(geometry.leading()):
            x, y = geometry.tile_origin(tile)
            if leading:
                caption = written((*leading, None, None))
                box = QRect(x + geometry.header_width, y, geometry.tile_size[0], CAPTION)
                painter.drawText(box, Qt.AlignmentFlag.AlignVCenter, caption)
            top = y + geometry.caption_height
            if cells.shape:
                for column in range(geometry.columns):
                    left = x + geometry.header_width + column * geometry.cell_width
                    box = QRect(left, top, geometry.cell_width, HEADER)
                    painter.drawText(box, middle, str(cells.start[-1] + column))
            if len(cells.shape) > 1:
                for row in range(geometry.rows):
                    above = top + HEADER + row * CELL_HEIGHT
                    box = QRect(x - 4, above, HEADER, CELL_HEIGHT)
                    side = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
                    painter.drawText(box, side, str(cells.start[-2] + row))

    def _heading(self) -> str:
        assert self._cells is not None
        part = "" if self._cells.size == self._cells.shape else " · a part of it"
        return f"{self._title}  {self._cells.shape}{part}"

    def _texts(self) -> list[str]:
        if self._cells is None:
            return []
        if self._cells.texts:
            return list(self._cells.texts)
        return [_place(index) for index in indices(self._cells)]

    def _width(self) -> int:
        return self._fixed_width or self.wanted_cell_width()

    def _geometry(self) -> Geometry:
        assert self._cells is not None
        return Geometry(self._cells, self._width())

    # -- choosing --------------------------------------------------------------------------------

    def _chosen(self) -> Index | None:
        return next((index for index, mark in self._marks.items() if "selected" in mark), None)

    def _described(self) -> str:
        chosen = self._chosen()
        return "" if chosen is None else f"{written(chosen)} is selected"

    def mousePressEvent(self, event: QMouseEvent) -> None:
        index = self._index_at(event.position().x(), event.position().y())
        if index is None or event.button() != Qt.MouseButton.LeftButton:
            super().mousePressEvent(event)
            return
        self.cell_chosen.emit(index)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        step = _STEPS.get(Qt.Key(event.key()))
        if step is None or self._cells is None or 0 in self._cells.size:
            super().keyPressEvent(event)
            return
        dim, by = step
        chosen = self._chosen()
        start, shape = self._cells.start, self._cells.shape
        if len(shape) >= -dim:
            self.cell_chosen.emit(start if chosen is None else moved(shape, chosen, dim, by))

    def event(self, event: QEvent) -> bool:
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            index = self._index_at(event.pos().x(), event.pos().y())
            text = self._tip(index) if index is not None else self.toolTip()
            QToolTip.showText(event.globalPos(), text, self)
            return True
        return super().event(event)

    def _tip(self, index: Index) -> str:
        """The tooltip of an element: its whole text, and the meaning of its mark."""
        assert self._cells is not None
        text = text_of(self._cells, index)
        value = f" = {text}" if text else ""
        mark = self._marks.get(index, "")
        meaning = ""
        if mark.startswith("ghost"):
            meaning = "\nNot in memory: the same element is read again (its stride is 0)."
        elif mark == "repeated":
            meaning = "\nThe index names it more than once."
        elif mark == "winner":
            meaning = "\nThe element that was found."
        return f"{self._title}{written(index)}{value}{meaning}"

    def _index_at(self, x: float, y: float) -> Index | None:
        if self._cells is None or 0 in self._cells.size:
            return None
        return self._geometry().index_at(x, y - TITLE_HEIGHT)


def _place(index: Index) -> str:
    """The index of an element as short as a cell: `[0, 1]`, `[…, 1, 2]` beyond three dimensions.
    The caption of a tile has the others."""
    return written(index) if len(index) <= 3 else f"[…, {index[-2]}, {index[-1]}]"
