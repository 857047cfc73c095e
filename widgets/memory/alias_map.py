"""The map of shared memory: storages, their tensors, and what each tensor was made from."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QPointF, QRectF, Qt, Signal
from PySide6.QtGui import (
    QContextMenuEvent,
    QHelpEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QResizeEvent,
)
from PySide6.QtWidgets import (
    QGraphicsScene,
    QToolTip,
    QWidget,
)

from engine.protocol import AliasesSnapshot, AliasNode, StorageNode
from widgets import make, theme
from widgets.diagram.view import DiagramView
from widgets.diagram.zoom_bar import ZoomBar
from widgets.memory.alias_item import AliasItem, strides_text, title_of
from widgets.memory.written import written_words
from widgets.text import format_bytes, format_shape
from widgets.theme import GRID

EMPTY_TEXT = (
    "No tensors yet.\n\nMake some in the console or with Create: x = torch.arange(6.), then y ="
    " x.view(2, 3). Lines join the tensors that share memory."
)
LEGIBLE_ZOOM = 0.75
KINDS = {
    "base": "owns the storage",
    "view": "view: the same cells through other strides",
    "detached": "detached: the same cells and version, cut off from the graph",
    "shared": "shares the cells, but not as a view",
    "numpy": "NumPy array over the same bytes: torch does not count its writes as versions",
}


class AliasMapView(DiagramView):
    """Shows an `AliasesSnapshot`. A click or the arrow keys choose a tensor."""

    tensor_selected = Signal(str)
    """The name of a chosen tensor."""

    FIT_MAX_ZOOM = 1.0
    FIT_BOTTOM_PX = 40

    def __init__(self, parent: QWidget | None = None) -> None:
        scene = QGraphicsScene()
        super().__init__(scene, parent)
        scene.setParent(self)
        make.named(self, "alias_map", "Alias map: who shares memory")
        self._item = AliasItem()
        scene.addItem(self._item)
        self._zoom_bar = ZoomBar(self)
        self._fitted: tuple[int, ...] = ()

    # -- the snapshot ----------------------------------------------------------------------------

    def show_aliases(self, aliases: AliasesSnapshot) -> None:
        """Show a snapshot. The selection stays; the visible part stays, too, unless tensors have
        been added or removed."""
        selected = self._item.selected_name()
        self._item.show_aliases(aliases)
        self._item.select(self._item.find(selected))
        shape = tuple(node.storage for node in aliases.tensors)
        if shape != self._fitted:
            self._fitted = shape
            self._open()
        self.viewport().update()

    def show_selected(self, name: str) -> None:
        """Select the tensor of this name, if there is one, and scroll to it. Emits nothing."""
        self._item.select(self._item.find(name))
        rect = self.tensor_rect(name)
        if rect is not None:
            self.reveal(rect)

    def _open(self) -> None:
        """Show the whole map if its text is then legible, else the upper left part, larger."""
        self.fit()
        rect = self.content_rect()
        if self.zoom < LEGIBLE_ZOOM and not rect.isEmpty():
            margin = self.FIT_MARGIN_PX / LEGIBLE_ZOOM
            seen = self.viewport().size() / LEGIBLE_ZOOM
            x, y = (
                middle if length + 2 * margin <= side else start - margin + side / 2
                for middle, start, length, side in (
                    (rect.center().x(), rect.left(), rect.width(), seen.width()),
                    (rect.center().y(), rect.top(), rect.height(), seen.height()),
                )
            )
            self.set_view(LEGIBLE_ZOOM, x, y)
            if self._item.selected is not None:
                self.reveal(self._item.layout.tensors[self._item.selected])

    @property
    def selected(self) -> str:
        """The name of the selected tensor; empty without one."""
        return self._item.selected_name()

    def tensor_rect(self, name: str) -> QRectF | None:
        """The rect of a tensor, in scene pixels."""
        number = self._item.find(name)
        return None if number is None else self._item.layout.tensors[number]

    def point_of(self, name: str) -> QPointF:
        """The middle of a tensor, in viewport pixels."""
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
            if event.button() == Qt.MouseButton.LeftButton and number is not None:
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
        """The tensor to which an arrow key goes: left to the tensor that this one was made from,
        right to the first one made from it, up and down to the one before and after it."""
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
        menu = make.context_menu(self)
        menu.addAction("Fit\tF", self.fit)
        self.add_picture_actions(menu)
        make.pop_up(menu, event.globalPos())

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
        """The tooltip of a tensor: its facts, what it was made from, and by which line."""
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
        text = f"{text} {aliases.note}".strip()
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
        if event.oldSize().isEmpty():  # so is one that is not valid
            self._open()


def _geometry(node: AliasNode) -> str:
    return f"{format_shape(node.shape)} {node.dtype} · {strides_text(node)}"


def storage_tooltip(storage: StorageNode) -> str:
    lines = [f"Storage {storage.storage}: {format_bytes(storage.size_bytes)} on {storage.device}"]
    if storage.version is not None:
        lines.append(f"version {storage.version}: in-place writes that torch has counted")
    if storage.written_by is not None:
        lines.append(f"last written by {written_words(storage.written_by)}")
    return "\n".join(lines)
