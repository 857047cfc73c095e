"""The rows of the palette, and the drag that starts on one of them."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from PySide6.QtCore import QCoreApplication, QEvent, QModelIndex, QObject, QPoint, Qt, Signal
from PySide6.QtGui import QKeyEvent, QMouseEvent, QStandardItem, QStandardItemModel
from PySide6.QtWidgets import QApplication, QListView

from engine.project.catalogue import BlockKind
from widgets import make, theme
from widgets.model.palette_row import KIND_ROLE, PaletteDelegate, short_torch_name

MOVE_KEYS = (Qt.Key.Key_Up, Qt.Key.Key_Down, Qt.Key.Key_PageUp, Qt.Key.Key_PageDown)
"""Keys that move in the list, also while the search field has the focus."""


class BlockList(QListView):
    """The list of block kinds under the headers of their groups.

    `chosen(key)` is emitted at Enter and a double click, `typed(text)` when the user
    types letters, which go to the search field. The signals of a drag have the key of its kind, and
    a point in global pixels.
    """

    chosen = Signal(str)
    typed = Signal(str)
    drag_started = Signal(str)
    drag_moved = Signal(str, QPoint)
    drag_dropped = Signal(str, QPoint)
    drag_cancelled = Signal()

    def __init__(self) -> None:
        super().__init__()
        make.named(self, "palette_list", "Blocks")
        self.setFrameShape(QListView.Shape.NoFrame)
        self.setVerticalScrollMode(QListView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setEditTriggers(QListView.EditTrigger.NoEditTriggers)
        self.setMouseTracking(True)
        self.setModel(QStandardItemModel(self))
        self._rows = PaletteDelegate(self)
        self.setItemDelegate(self._rows)
        theme.notifier.changed.connect(self._repaint)
        self._pressed: tuple[str, QPoint] | None = None
        self._dragging: str | None = None

    def _repaint(self) -> None:
        self.viewport().update()

    # -- rows ------------------------------------------------------------------------------------

    def show_kinds(self, kinds: Iterable[BlockKind]) -> None:
        model = self._items()
        model.clear()
        groups: dict[str, list[BlockKind]] = {}
        for kind in kinds:
            groups.setdefault(kind.group, []).append(kind)
        for group, members in groups.items():
            header = QStandardItem(group)
            header.setFlags(Qt.ItemFlag.NoItemFlags)
            model.appendRow(header)
            for kind in members:
                item = QStandardItem(kind.title)
                item.setData(kind, KIND_ROLE)
                item.setToolTip(_tooltip(kind))
                item.setData(
                    f"{kind.title}, {kind.torch_name}: {kind.summary}",
                    Qt.ItemDataRole.AccessibleTextRole,
                )
                model.appendRow(item)

    def filter(self, text: str) -> bool:
        """Show the rows that match every word of `text`, with the headers of their groups, and
        select the best match. Returns whether any row matches."""
        words = text.lower().split()
        model = self._items()
        best, best_row, header_row = 0, -1, -1
        for row in range(model.rowCount()):
            kind = model.item(row).data(KIND_ROLE)
            if kind is None:
                header_row = row
                self.setRowHidden(row, True)
                continue
            rank = _rank(kind, words)
            self.setRowHidden(row, rank == 0)
            if rank:
                self.setRowHidden(header_row, False)
            if rank > best:
                best, best_row = rank, row
        self.setCurrentIndex(model.index(best_row, 0))
        self.scrollTo(model.index(max(0, best_row - 1), 0))
        return best > 0

    def visible_kinds(self) -> list[tuple[int, BlockKind]]:
        """The (row, kind) of all kinds that pass the filter."""
        model = self._items()
        rows = (
            (row, model.item(row).data(KIND_ROLE))
            for row in range(model.rowCount())
            if not self.isRowHidden(row)
        )
        return [(row, kind) for row, kind in rows if kind is not None]

    def index_of(self, key: str) -> QModelIndex:
        """The row of a kind; an invalid index if the list has none."""
        model = self._items()
        for row in range(model.rowCount()):
            if self._kind_at(model.index(row, 0)) == key:
                return model.index(row, 0)
        return QModelIndex()

    def _items(self) -> QStandardItemModel:
        model = self.model()
        assert isinstance(model, QStandardItemModel)
        return model

    def _kind_at(self, index: QModelIndex) -> str | None:
        kind = index.data(KIND_ROLE)
        return kind.key if kind else None

    # -- keyboard --------------------------------------------------------------------------------

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key = self._kind_at(self.currentIndex())
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            if key:
                self.chosen.emit(key)
        elif event.key() not in MOVE_KEYS and event.text().isprintable() and event.text():
            self.typed.emit(event.text())
        else:
            super().keyPressEvent(event)

    # -- mouse: a drag without QDrag, whose own event loop no test can follow --------------------

    def mousePressEvent(self, event: QMouseEvent) -> None:
        super().mousePressEvent(event)
        key = self._kind_at(self.indexAt(event.position().toPoint()))
        if event.button() == Qt.MouseButton.LeftButton and key:
            self._pressed = (key, event.position().toPoint())

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self._dragging is not None:
            self.drag_moved.emit(self._dragging, event.globalPosition().toPoint())
            return
        if self._pressed is not None:
            key, start = self._pressed
            moved = (event.position().toPoint() - start).manhattanLength()
            if moved >= QApplication.startDragDistance():
                self._start_drag(key)
                self.drag_moved.emit(key, event.globalPosition().toPoint())
            return
        index = self.indexAt(event.position().toPoint())
        self._hover(index.row())
        over_block = self._kind_at(index) is not None
        shape = Qt.CursorShape.OpenHandCursor if over_block else Qt.CursorShape.ArrowCursor
        self.viewport().setCursor(shape)
        super().mouseMoveEvent(event)

    def leaveEvent(self, event: QEvent) -> None:
        self._hover(-1)
        super().leaveEvent(event)

    def _hover(self, row: int) -> None:
        if row != self._rows.hovered:
            self._rows.hovered = row
            self._repaint()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton:
            self._pressed = None
            if self._dragging is not None:
                key = self._end_drag()
                self.drag_dropped.emit(key, event.globalPosition().toPoint())
                return
        super().mouseReleaseEvent(event)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        key = self._kind_at(self.indexAt(event.position().toPoint()))
        if event.button() == Qt.MouseButton.LeftButton and key:
            self.chosen.emit(key)

    def hideEvent(self, event) -> None:
        self._cancel_drag()
        super().hideEvent(event)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        # During a drag this filters events of the whole application: Esc goes to the widget with
        # the focus, which may be any.
        if self._dragging is not None:
            if event.type() in (QEvent.Type.KeyPress, QEvent.Type.ShortcutOverride):
                assert isinstance(event, QKeyEvent)
                if event.key() == Qt.Key.Key_Escape:
                    event.accept()
                    if event.type() == QEvent.Type.KeyPress:
                        self._cancel_drag()
                    return True
            elif event.type() == QEvent.Type.ApplicationDeactivate:
                self._cancel_drag()
        return super().eventFilter(watched, event)

    def _start_drag(self, key: str) -> None:
        self._dragging = key
        self.viewport().setCursor(Qt.CursorShape.ClosedHandCursor)
        _application().installEventFilter(self)
        self.drag_started.emit(key)

    def _end_drag(self) -> str:
        key, self._dragging, self._pressed = self._dragging, None, None
        assert key is not None
        _application().removeEventFilter(self)
        self.viewport().setCursor(Qt.CursorShape.ArrowCursor)
        return key

    def _cancel_drag(self) -> None:
        if self._dragging is not None:
            self._end_drag()
            self.drag_cancelled.emit()


def _application() -> QCoreApplication:
    application = QCoreApplication.instance()
    assert application is not None
    return application


def _rank(kind: BlockKind, words: list[str]) -> int:
    """The score of a kind, 0 unless it matches all words. A name that begins with a word has the
    highest score, then a name that contains it, then a keyword, then group and summary."""
    rank = 100
    for word in words:
        title, torch_name = kind.title.lower(), short_torch_name(kind).lower()
        last = torch_name.rsplit(".", 1)[-1]
        if word in (title, last, torch_name):
            score = 5
        elif any(name.startswith(word) for name in (title, last, torch_name)):
            score = 4
        elif word in title or word in kind.torch_name.lower():
            score = 3
        elif any(keyword.lower().startswith(word) for keyword in kind.keywords):
            score = 2
        elif word in kind.group.lower() or word in kind.summary.lower():
            score = 1
        else:
            return 0
        rank = min(rank, score)
    return rank


def _tooltip(kind: BlockKind) -> str:
    """Rich text: the block's meaning, its inputs and outputs, its parameters."""
    code = f"<span style=\"font-family:'{theme.MONO}'\">{escape(kind.torch_name)}</span>"
    lines = [f"<b>{escape(kind.title)}</b> &nbsp;{code}"]
    lines.append(escape(kind.summary))
    for word, ports in (("In", kind.inputs), ("Out", kind.outputs)):
        if ports:
            told = "; ".join(
                f"<i>{escape(port.name)}</i>" + (f", {escape(port.doc)}" if port.doc else "")
                for port in ports
            )
            lines.append(f"{word}: {told}")
    if kind.params:
        lines.append("Parameters: " + ", ".join(escape(param.name) for param in kind.params))
    lines.append("<i>Drag it onto the canvas, or press Enter.</i>")
    return "<qt>" + "<br>".join(lines) + "</qt>"
