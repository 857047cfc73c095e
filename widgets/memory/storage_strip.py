"""The flat storage as rows of cells. Each cell shows its value, and how many elements read it.

Only visible cells are asked for and painted, so a storage may have any size.
"""

from __future__ import annotations

from math import ceil

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QContextMenuEvent,
    QHelpEvent,
    QKeyEvent,
    QKeySequence,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QResizeEvent,
)
from PySide6.QtWidgets import QAbstractScrollArea, QFrame, QToolTip, QWidget

from engine.protocol import StorageSnapshot
from widgets import make, theme
from widgets.memory.layout_sums import Index, element_name, has_element, index_of_position
from widgets.memory.strip_picture import (
    BY_POSITION,
    MARGIN,
    MAX_READERS,
    MIN_CELL_WIDTH,
    ROW_HEIGHT,
    StripGeometry,
    StripPicture,
    cell_width_of,
)
from widgets.save_picture import add_picture_actions, copy_picture

EMPTY_TEXT = (
    "No tensor chosen.\n\nChoose one in the list of variables: the memory under it appears here,"
    " cell by cell, in the order of the storage."
)
_ARROWS = {Qt.Key.Key_Left: (0, -1), Qt.Key.Key_Right: (0, 1), Qt.Key.Key_Up: (-1, 0),
           Qt.Key.Key_Down: (1, 0)}  # fmt: skip


class StorageStrip(QAbstractScrollArea):
    """Shows a `StorageSnapshot`. A click or the arrow keys choose a cell."""

    window_requested = Signal(object, int)
    """(first cell, count): visible cells that are not known yet."""
    cell_chosen = Signal(int)
    cell_cleared = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._snapshot: StorageSnapshot | None = None
        self._empty_text = EMPTY_TEXT
        self._cell: int | None = None
        self._anchor: Index | None = None
        self._changed: frozenset[int] = frozenset()
        self._dim = BY_POSITION
        self._wrap = 0
        self._asked: tuple[int, int] | None = None
        self._cell_width = MIN_CELL_WIDTH
        make.named(self, "storage_strip", "Cells of the storage")
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAsNeeded)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.verticalScrollBar().valueChanged.connect(self._on_scrolled)
        self.horizontalScrollBar().valueChanged.connect(self.viewport().update)
        theme.notifier.changed.connect(self.viewport().update)

    # -- the snapshot ----------------------------------------------------------------------------

    def show_storage(self, snapshot: StorageSnapshot | None, empty_text: str = EMPTY_TEXT) -> None:
        """Show a window of a storage. If it is of the same tensor as the last one, the scroll
        position stays, and cells whose value has changed are highlighted. Another tensor is shown
        from its first element. Without a snapshot, show `empty_text`."""
        before, self._changed, same = self._snapshot, frozenset(), False
        if before is not None and snapshot is not None and _same_ground(before, snapshot):
            self._changed, same = _changed(before, snapshot), True
        self._snapshot, self._empty_text, self._asked = snapshot, empty_text, None
        # While the user scrolls, cells only become wider: rows must not break at other cells.
        self._cell_width = max(cell_width_of(snapshot), self._cell_width if same else 0)
        if not same:
            self._cell = self._anchor = None
        elif self._anchor is not None and snapshot and not has_element(snapshot, self._anchor):
            self._anchor = None
        self._place()
        if not same and snapshot is not None and snapshot.cells:
            self.verticalScrollBar().setValue(snapshot.offset // self.columns)
        self._ask()
        self.viewport().update()

    def show_cell(self, cell: int | None, anchor: Index | None) -> None:
        """Highlight a cell, and bring it into view if it is another than before. The arcs of the
        strides start at element `anchor`."""
        other = cell != self._cell
        self._cell, self._anchor = cell, anchor
        if cell is not None and other:
            self._reveal(cell)
        self.viewport().update()

    def color_by(self, dim: int) -> None:
        """Colour cells by the index, along a dimension, of the element that reads them; with
        BY_POSITION, by the number of that element, counted row by row."""
        self._dim = dim
        self.viewport().update()

    def set_wrap(self, columns: int) -> None:
        """Set the number of cells in a row; with 0, as many as fit the width."""
        self._wrap = columns
        self._place()
        self._ask()
        self.viewport().update()

    @property
    def cell(self) -> int | None:
        return self._cell

    @property
    def changed(self) -> frozenset[int]:
        """The cells whose value differs from that in the snapshot before."""
        return self._changed

    def wanted(self) -> tuple[int | None, int]:
        """(first cell, count) to ask for after the tensor may have changed; None for the first cell
        means the cell of the tensor's first element."""
        if self._snapshot is None or not self._snapshot.cells:
            return None, self._page()
        return self._sight()

    # -- geometry --------------------------------------------------------------------------------

    @property
    def columns(self) -> int:
        """The number of cells in a row: as many as fit. It is a multiple of a stride if possible,
        so that rows of the tensor are under each other."""
        return self._columns_in(self.viewport().width())

    def _columns_in(self, width: int) -> int:
        if self._wrap:
            return self._wrap
        fitting = max(1, (width - 2 * MARGIN) // self._cell_width)
        if self._snapshot is None or (self._snapshot.cells or 0) <= fitting:
            return fitting
        stride = max((s for s in self._snapshot.strides if 1 < s <= fitting), default=1)
        return fitting // stride * stride

    def strip_geometry(self) -> StripGeometry:
        """The places of cells at the current scroll position."""
        return StripGeometry(
            self.columns,
            self._cell_width,
            self.verticalScrollBar().value(),
            self.horizontalScrollBar().value(),
        )

    def cell_rect(self, cell: int) -> QRectF:
        """The rect of a cell, in viewport pixels."""
        return self.strip_geometry().cell_rect(cell)

    def cell_at(self, point: QPointF) -> int | None:
        """The cell at a viewport point."""
        cells = (self._snapshot.cells or 0) if self._snapshot else 0
        cell = self.strip_geometry().cell_at(point)
        return cell if cell is not None and 0 <= cell < cells else None

    def sizeHint(self) -> QSize:
        return QSize(720, 3 * ROW_HEIGHT)

    def _rows_in_sight(self) -> int:
        return max(1, (self.viewport().height() - MARGIN) // ROW_HEIGHT)

    def _page(self) -> int:
        return (self._rows_in_sight() + 2) * self.columns

    def _sight(self) -> tuple[int, int]:
        """(first cell, count) of the visible rows, with one row more before and after them."""
        first_row = max(0, self.verticalScrollBar().value() - 1)
        return first_row * self.columns, self._page() + self.columns

    def _place(self) -> None:
        """Set the ranges of the scroll bars."""
        cells = (self._snapshot.cells or 0) if self._snapshot else 0
        rows, seen = ceil(cells / self.columns), self._rows_in_sight()
        bar = self.verticalScrollBar()
        bar.setRange(0, max(0, rows - seen))
        bar.setPageStep(seen)
        width = 2 * MARGIN + min(self.columns, max(cells, 1)) * self._cell_width
        across = self.horizontalScrollBar()
        across.setRange(0, max(0, width - self.viewport().width()) if cells else 0)
        across.setPageStep(self.viewport().width())
        across.setSingleStep(self._cell_width)

    def _reveal(self, cell: int) -> None:
        row, bar = cell // self.columns, self.verticalScrollBar()
        if row < bar.value():
            bar.setValue(row)
        elif row >= bar.value() + self._rows_in_sight():
            bar.setValue(row - self._rows_in_sight() + 1)
        rect, across = self.cell_rect(cell), self.horizontalScrollBar()
        if rect.left() < 0:
            across.setValue(int(across.value() + rect.left()) - MARGIN)
        elif rect.right() > self.viewport().width():
            across.setValue(int(across.value() + rect.right()) - self.viewport().width() + MARGIN)

    def _ask(self) -> None:
        """Ask once for visible cells that are not known yet."""
        snapshot = self._snapshot
        if snapshot is None or not snapshot.cells:
            return
        first, count = self._sight()
        last = min(first + count, snapshot.cells)
        there = snapshot.first <= first and last <= snapshot.first + len(snapshot.values)
        if not there and self._asked != (first, count):
            self._asked = (first, count)
            self.window_requested.emit(first, count)

    def _on_scrolled(self) -> None:
        self._ask()
        self.viewport().update()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        top = self.verticalScrollBar().value() * self._columns_in(event.oldSize().width())
        self._place()
        self.verticalScrollBar().setValue(top // self.columns)
        self._ask()

    # -- gestures --------------------------------------------------------------------------------

    def mousePressEvent(self, event: QMouseEvent) -> None:
        cell = self.cell_at(event.position())
        if event.button() == Qt.MouseButton.LeftButton and cell is not None:
            self.cell_chosen.emit(cell)
        else:
            super().mousePressEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        step = _ARROWS.get(Qt.Key(event.key()))
        cells = self._snapshot.cells if self._snapshot else None
        if event.matches(QKeySequence.StandardKey.Copy) and cells:
            copy_picture(self.viewport().size(), self.paint)
        elif step is not None and cells and self._snapshot is not None:
            start = min(self._snapshot.offset, cells - 1)
            moved = start if self._cell is None else self._cell + step[0] * self.columns + step[1]
            if 0 <= moved < cells:
                self.cell_chosen.emit(moved)
        elif event.key() == Qt.Key.Key_Escape and self._cell is not None:
            self.cell_cleared.emit()
        else:
            super().keyPressEvent(event)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        cell = self.cell_at(QPointF(event.pos()))
        if cell is not None:
            self.cell_chosen.emit(cell)
        menu = make.context_menu(self)
        add_picture_actions(menu, self.viewport(), self.paint)
        make.pop_up(menu, event.globalPos())

    def viewportEvent(self, event: QEvent) -> bool:
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            cell = self.cell_at(QPointF(event.pos()))
            if cell is None:
                QToolTip.hideText()
            else:
                QToolTip.showText(event.globalPos(), self.tooltip(cell), self)
            return True
        return super().viewportEvent(event)

    def tooltip(self, cell: int) -> str:
        """The tooltip of a cell: its value, and the elements that read it."""
        snapshot = self._snapshot
        at = cell - snapshot.first if snapshot else -1
        if snapshot is None or not 0 <= at < len(snapshot.values):
            return f"Cell {cell}"
        lines = [f"Cell {cell} holds {snapshot.values[at] or 'no data'}"]
        count = snapshot.readers[at]
        if count == 0:
            lines.append(f"A gap: no element of {snapshot.expression} reads it.")
        else:
            index = index_of_position(snapshot.shape, snapshot.positions[at])
            lines.append(f"Read by {element_name(snapshot.expression, index)}")
        if count > 1:
            many = f"{MAX_READERS} or more" if count == MAX_READERS else str(count)
            lines.append(f"{many} elements read this one cell: a write to one changes all of them.")
        return "\n".join(lines)

    # -- painting --------------------------------------------------------------------------------

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self.viewport())
        self.paint(painter)
        painter.end()

    def paint(self, painter: QPainter) -> None:
        """Paint the visible cells at the viewport's size."""
        colors, room = theme.current(), QRectF(self.viewport().rect())
        painter.fillRect(room, colors.color("surface"))
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        snapshot = self._snapshot
        if snapshot is None or not snapshot.cells:
            text = self._empty_text
            if snapshot is not None:
                text = snapshot.note or "The storage is empty: the tensor has no elements."
            painter.setPen(colors.color("muted"))
            flags = int(Qt.AlignmentFlag.AlignCenter) | int(Qt.TextFlag.TextWordWrap)
            painter.drawText(room.adjusted(32, 32, -32, -32), flags, text)
            return
        picture = StripPicture(
            snapshot, self.strip_geometry(), self._dim, self._cell, self._anchor, self._changed
        )
        picture.paint(painter, room)


def _same_ground(before: StorageSnapshot, after: StorageSnapshot) -> bool:
    """Whether two snapshots are of one tensor with the same layout; its values may differ."""
    return (before.expression, before.shape, before.strides, before.offset, before.cells) == (
        after.expression, after.shape, after.strides, after.offset, after.cells)  # fmt: skip


def _changed(before: StorageSnapshot, after: StorageSnapshot) -> frozenset[int]:
    old = dict(enumerate(before.values, before.first))
    new = enumerate(after.values, after.first)
    return frozenset(cell for cell, text in new if old.get(cell, text) != text)
