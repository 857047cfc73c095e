"""Who shares memory: each storage, and the tensors on it by what they were made from."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QEvent, QPointF, QRectF, Qt, Signal
from PySide6.QtGui import (
    QContextMenuEvent,
    QHelpEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPainterPath,
    QPen,
    QResizeEvent,
)
from PySide6.QtWidgets import (
    QGraphicsItem,
    QGraphicsScene,
    QMenu,
    QStyleOptionGraphicsItem,
    QToolTip,
    QWidget,
)

from engine.protocol import AliasesSnapshot, AliasNode, StorageNode
from widgets import theme
from widgets.canvas.style import elided, font, text_width
from widgets.canvas.view import CanvasView
from widgets.canvas.zoom_bar import ZoomBar
from widgets.tensor.storage_color import paint_storage_chip, storage_color
from widgets.tensor.written import cell_words, written_words
from widgets.text import format_bytes, format_shape
from widgets.theme import GRID

NODE_WIDTH, NODE_HEIGHT = 208.0, 56.0
STORAGE_WIDTH = 176.0
COLUMN_GAP, ROW_GAP, FOREST_GAP = 136.0, 16.0, 24.0

EMPTY_TEXT = (
    "No tensors yet.\n\nMake some in the console or with Create: x = torch.arange(6.), then"
    " y = x.view(2, 3). What shares memory hangs together here."
)
KINDS = {
    "base": "owns the storage",
    "view": "view: the same cells through other strides",
    "detached": "detached: the same cells and version, cut off from the graph",
    "shared": "shares the cells by another way than a view",
    "numpy": "NumPy array over the same bytes: its writes do not count versions",
}
_KIND_WORDS = {"base": "base", "view": "view", "detached": "detached", "shared": "shares memory",
               "numpy": "numpy"}  # fmt: skip
_SELECTABLE = Qt.MouseButton.LeftButton


@dataclass(frozen=True)
class MapLayout:
    """Where everything is, in scene pixels: storages by number, tensors by their place."""

    storages: dict[int, QRectF]
    tensors: tuple[QRectF, ...]


def layout_map(aliases: AliasesSnapshot) -> MapLayout:
    """Storages in the first column; each tensor a column right of what it was made from, below
    its earlier siblings. Tensors come in this order already."""
    storages: dict[int, QRectF] = {}
    tensors: list[QRectF] = []
    depths: list[int] = []
    y = 0.0
    last: int | None = None
    for node in aliases.tensors:
        if node.storage != last and last is not None:
            y += FOREST_GAP
        last = node.storage
        depths.append(0 if node.parent is None else depths[node.parent] + 1)
        x = STORAGE_WIDTH + COLUMN_GAP + depths[-1] * (NODE_WIDTH + COLUMN_GAP)
        tensors.append(QRectF(x, y, NODE_WIDTH, NODE_HEIGHT))
        if node.storage not in storages:
            storages[node.storage] = QRectF(0, y, STORAGE_WIDTH, NODE_HEIGHT)
        # A first child goes beside its parent, later ones below.
        y += NODE_HEIGHT + ROW_GAP if not _goes_on_beside(aliases, len(tensors)) else 0.0
    return MapLayout(storages, tuple(tensors))


def _goes_on_beside(aliases: AliasesSnapshot, following: int) -> bool:
    nodes = aliases.tensors
    return following < len(nodes) and nodes[following].parent == following - 1


class AliasMapView(CanvasView):
    """Shows an `AliasesSnapshot`. A click or the arrow keys choose a tensor."""

    tensor_selected = Signal(str)
    """The name of a chosen tensor."""

    FIT_MAX_ZOOM = 1.0
    FIT_BOTTOM_PX = 40

    def __init__(self, parent: QWidget | None = None) -> None:
        scene = QGraphicsScene()
        super().__init__(scene, parent)
        scene.setParent(self)
        self.setObjectName("alias_map")
        self.setAccessibleName("Alias map: who shares memory")
        self._item = _MapItem()
        scene.addItem(self._item)
        self._zoom_bar = ZoomBar(self)
        self._fitted: tuple[int, ...] = ()

    # -- what it shows ---------------------------------------------------------------------------

    def show_aliases(self, aliases: AliasesSnapshot) -> None:
        """Show who shares memory; the selected tensor stays, and so does the place unless tensors
        came or went."""
        selected = self._item.selected_name()
        self._item.show_aliases(aliases)
        self._item.select(self._item.find(selected))
        shape = tuple(node.storage for node in aliases.tensors)
        if shape != self._fitted:
            self._fitted = shape
            self.fit()
        self.resetCachedContent()
        self.viewport().update()

    def show_selected(self, name: str) -> None:
        """Mark the tensor of a name, if it is there; emits nothing."""
        self._item.select(self._item.find(name))

    @property
    def selected(self) -> str:
        """The selected tensor's name, empty for none."""
        return self._item.selected_name()

    def tensor_rect(self, name: str) -> QRectF | None:
        """Where a tensor is, in scene pixels."""
        number = self._item.find(name)
        return None if number is None else self._item.layout.tensors[number]

    def point_of(self, name: str) -> QPointF:
        """The middle of a tensor in viewport pixels (for tests and the tour)."""
        rect = self.tensor_rect(name)
        if rect is None:
            raise KeyError(name)
        return QPointF(self.mapFromScene(rect.center()))

    # -- gestures --------------------------------------------------------------------------------

    def _choose(self, number: int) -> None:
        self._item.select(number)
        self.reveal(self._item.layout.tensors[number])
        node = self._item.aliases.tensors[number]
        self.setAccessibleDescription(self.tooltip(number).replace("\n", ", "))
        if node.names:
            self.tensor_selected.emit(node.names[0])

    def mousePressEvent(self, event: QMouseEvent) -> None:
        number = self._item.tensor_at(self.mapToScene(event.position().toPoint()))
        if not self.pan_event(event):
            if event.button() == _SELECTABLE and number is not None:
                self._choose(number)
            else:
                super().mousePressEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        number = self._neighbour(Qt.Key(event.key()))
        if number is not None:
            self._choose(number)
        else:
            super().keyPressEvent(event)

    def _neighbour(self, key: Qt.Key) -> int | None:
        """Left to what a tensor was made from, right to the first made from it, up and down."""
        nodes, at = self._item.aliases.tensors, self._item.selected
        if key not in (Qt.Key.Key_Left, Qt.Key.Key_Right, Qt.Key.Key_Up, Qt.Key.Key_Down):
            return None
        if not nodes:
            return None
        if at is None:
            return 0
        if key == Qt.Key.Key_Left:
            parent = nodes[at].parent
            return at if parent is None else parent
        if key == Qt.Key.Key_Right:
            return next((i for i, node in enumerate(nodes) if node.parent == at), at)
        return min(max(at + (1 if key == Qt.Key.Key_Down else -1), 0), len(nodes) - 1)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.addAction("Fit\tF", self.fit)
        self.add_picture_actions(menu)
        menu.popup(event.globalPos())

    def viewportEvent(self, event: QEvent) -> bool:
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            point = self.mapToScene(event.pos())
            number, storage = self._item.tensor_at(point), self._item.storage_at(point)
            if number is not None:
                QToolTip.showText(event.globalPos(), self.tooltip(number), self)
            elif storage is not None:
                QToolTip.showText(event.globalPos(), storage_tooltip(storage), self)
            else:
                QToolTip.hideText()
            return True
        return super().viewportEvent(event)

    def tooltip(self, number: int) -> str:
        """What a tensor is, what it was made from and by which line."""
        nodes = self._item.aliases.tensors
        node = nodes[number]
        lines = [title_of(node), KINDS[node.kind], _geometry(node)]
        if len(node.names) > 1:
            lines.insert(1, "one object with several names: " + " is ".join(node.names))
        if node.root is not None:
            lines.append(f"_base: {title_of(nodes[node.root])}")
        if node.made_by is not None:
            lines.append(f"made by {written_words(node.made_by)}")
        return "\n".join(lines)

    # -- painting --------------------------------------------------------------------------------

    def content_rect(self) -> QRectF:
        return self._item.boundingRect()

    def drawForeground(self, painter: QPainter, rect: QRectF | object) -> None:
        aliases = self._item.aliases
        text = "" if aliases.tensors else EMPTY_TEXT
        if aliases.left_out:
            text = f"{aliases.left_out:,} more tensors are not shown."
        if not text:
            return
        painter.save()
        painter.resetTransform()
        painter.setPen(theme.current().color("muted"))
        place = Qt.AlignmentFlag.AlignCenter
        if aliases.tensors:
            place = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignBottom
        room = QRectF(self.viewport().rect()).adjusted(32, 32, -16, -16)
        painter.drawText(room, int(place) | int(Qt.TextFlag.TextWordWrap), text)
        painter.restore()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        bar = self._zoom_bar
        bar.adjustSize()
        bar.move(GRID, self.height() - bar.height() - GRID)
        if event.oldSize().isEmpty() or not event.oldSize().isValid():
            self.fit()


class _MapItem(QGraphicsItem):
    """Paints storages, tensors and what each was made from."""

    def __init__(self) -> None:
        super().__init__()
        self.aliases = AliasesSnapshot(storages=(), tensors=())
        self.layout = MapLayout({}, ())
        self.selected: int | None = None

    def show_aliases(self, aliases: AliasesSnapshot) -> None:
        self.prepareGeometryChange()
        self.aliases, self.layout, self.selected = aliases, layout_map(aliases), None
        self.update()

    def find(self, name: str) -> int | None:
        """The number of the tensor that a variable names."""
        nodes = enumerate(self.aliases.tensors)
        return next((i for i, node in nodes if name in node.names), None)

    def select(self, number: int | None) -> None:
        self.selected = number
        self.update()

    def selected_name(self) -> str:
        names = self.aliases.tensors[self.selected].names if self.selected is not None else ()
        return names[0] if names else ""

    def tensor_at(self, point: QPointF) -> int | None:
        rects = enumerate(self.layout.tensors)
        return next((i for i, rect in rects if rect.contains(point)), None)

    def storage_at(self, point: QPointF) -> StorageNode | None:
        return next(
            (s for s in self.aliases.storages if self.layout.storages[s.storage].contains(point)),
            None,
        )

    def boundingRect(self) -> QRectF:
        whole = QRectF()
        for rect in (*self.layout.storages.values(), *self.layout.tensors):
            whole = whole.united(rect)
        return whole.adjusted(-6, -6, 6, 6) if not whole.isEmpty() else whole

    def paint(
        self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None
    ) -> None:
        for number, node in enumerate(self.aliases.tensors):
            rect = self.layout.tensors[number]
            source = (
                self.layout.storages[node.storage]
                if node.parent is None
                else self.layout.tensors[node.parent]
            )
            _paint_edge(painter, source, rect, node)
        for storage in self.aliases.storages:
            _paint_storage(painter, self.layout.storages[storage.storage], storage)
        for number, node in enumerate(self.aliases.tensors):
            _paint_tensor(painter, self.layout.tensors[number], node, number == self.selected)


def title_of(node: AliasNode) -> str:
    """`x`, `x = y` for one object with two names, or what stands for no name."""
    return " = ".join(node.names) or "(no variable names it)"


def _geometry(node: AliasNode) -> str:
    strides = ", ".join(map(str, node.strides)) + ("," if len(node.strides) == 1 else "")
    return f"{format_shape(node.shape)} {node.dtype} · strides ({strides}) · offset {node.offset}"


def storage_tooltip(storage: StorageNode) -> str:
    lines = [f"Storage {storage.storage}: {format_bytes(storage.size_bytes)} on {storage.device}"]
    if storage.version is not None:
        lines.append(f"version {storage.version}: in-place writes that torch has counted")
    if storage.written_by is not None:
        lines.append(f"last written by {written_words(storage.written_by)}")
    return "\n".join(lines)


def _paint_edge(painter: QPainter, source: QRectF, rect: QRectF, node: AliasNode) -> None:
    colors = theme.current()
    start = QPointF(source.right(), source.center().y())
    end = QPointF(rect.left(), rect.center().y())
    path = QPainterPath(start)
    if abs(start.y() - end.y()) < 1:
        path.lineTo(end)
    else:
        middle = start.x() + 16
        path.cubicTo(QPointF(middle, start.y()), QPointF(start.x(), end.y()),
                     QPointF(start.x() + 32, end.y()))  # fmt: skip
        path.lineTo(end)
    painter.setBrush(Qt.BrushStyle.NoBrush)
    dashed = node.parent is not None and node.kind in ("detached", "shared", "numpy")
    style = Qt.PenStyle.DashLine if dashed else Qt.PenStyle.SolidLine
    painter.setPen(QPen(storage_color(node.storage), 1.75, style))
    painter.drawPath(path)
    if node.op:
        face = font(11, mono=True)
        painter.setFont(face)
        painter.setPen(colors.color("text"))
        room = COLUMN_GAP - 36
        text = elided(node.op, face, room)
        painter.drawText(QPointF(end.x() - 4 - text_width(text, face), end.y() - 5), text)


def _paint_storage(painter: QPainter, rect: QRectF, storage: StorageNode) -> None:
    colors = theme.current()
    color = storage_color(storage.storage)
    painter.setPen(QPen(color, 1.5))
    painter.setBrush(colors.color("raised"))
    painter.drawRoundedRect(rect, 5, 5)
    painter.setFont(font(11, bold=True))
    paint_storage_chip(painter, QRectF(rect.left() + 6, rect.top() + 6, 32, 18), storage.storage)
    painter.setFont(font(12, bold=True))
    painter.setPen(colors.color("text"))
    words = f"storage · {format_bytes(storage.size_bytes)}"
    painter.drawText(QPointF(rect.left() + 44, rect.top() + 20), words)
    face = font(11)
    painter.setFont(face)
    painter.setPen(colors.color("muted"))
    version = "no version" if storage.version is None else f"version {storage.version}"
    where = storage.written_by
    written = f", {where.op or 'written'} in {cell_words(where.cell)}" if where is not None else ""
    below = elided(f"{version}{written}", face, rect.width() - 16)
    painter.drawText(QPointF(rect.left() + 8, rect.bottom() - 12), below)


def _paint_tensor(painter: QPainter, rect: QRectF, node: AliasNode, selected: bool) -> None:
    colors = theme.current()
    painter.setPen(QPen(colors.color("border"), 1))
    painter.setBrush(colors.color("raised"))
    painter.drawRoundedRect(rect, 5, 5)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(storage_color(node.storage))
    painter.drawRect(QRectF(rect.left() + 4, rect.top() + 7, 4, rect.height() - 14))
    room = rect.width() - 28
    kind = _KIND_WORDS[node.kind]
    small = font(11)
    face = font(12, bold=True)
    painter.setFont(small)
    painter.setPen(colors.color("muted"))
    painter.drawText(QPointF(rect.right() - 8 - text_width(kind, small), rect.top() + 17), kind)
    painter.setFont(face)
    painter.setPen(colors.color("text" if node.names else "muted"))
    title = elided(title_of(node), face, room - text_width(kind, small) - 4)
    painter.drawText(QPointF(rect.left() + 16, rect.top() + 17), title)
    strides = ", ".join(map(str, node.strides)) + ("," if len(node.strides) == 1 else "")
    lines = (
        f"{format_shape(node.shape)} · {node.dtype}",
        f"strides ({strides}) · offset {node.offset}",
    )
    painter.setFont(small)
    painter.setPen(colors.color("muted"))
    for row, line in enumerate(lines):
        text = elided(line, small, room)
        painter.drawText(QPointF(rect.left() + 16, rect.top() + 33 + 15 * row), text)
    if selected:
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QPen(colors.color("accent"), 2.5))
        painter.drawRoundedRect(rect.adjusted(-3, -3, 3, 3), 7, 7)
