"""Storages and the tensors on them: their layout as trees, and the item that paints them."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QPainter, QPainterPath, QPen
from PySide6.QtWidgets import QGraphicsItem, QStyleOptionGraphicsItem, QWidget

from engine.project.cells import source_title
from engine.protocol import AliasesSnapshot, AliasNode, StorageNode
from widgets import theme
from widgets.diagram.style import elided, font, text_width
from widgets.memory.storage_color import paint_storage_chip, storage_color
from widgets.text import format_bytes, format_shape

NODE_WIDTH, NODE_HEIGHT = 208.0, 56.0
STORAGE_WIDTH = 176.0
COLUMN_GAP, ROW_GAP, FOREST_GAP = 136.0, 16.0, 24.0

_KIND_WORDS = {"base": "base", "view": "view", "detached": "detached", "shared": "shares memory",
               "numpy": "numpy"}  # fmt: skip


@dataclass(frozen=True)
class MapLayout:
    """The rects of storages (by number) and tensors (by index), in scene pixels."""

    storages: dict[int, QRectF]
    tensors: tuple[QRectF, ...]


def layout_map(aliases: AliasesSnapshot) -> MapLayout:
    """Place storages in the first column, and each tensor one column to the right of the tensor
    that it was made from, below its earlier siblings. `aliases.tensors` has parents first."""
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
        # The first child is beside its parent; the others are below.
        y += NODE_HEIGHT + ROW_GAP if not _is_child_of_last(aliases, len(tensors)) else 0.0
    return MapLayout(storages, tuple(tensors))


def _is_child_of_last(aliases: AliasesSnapshot, following: int) -> bool:
    nodes = aliases.tensors
    return following < len(nodes) and nodes[following].parent == following - 1


def title_of(node: AliasNode) -> str:
    """The name (`x`), the names of one object (`x = y`), or words for a tensor without a name."""
    return " = ".join(node.names) or "(no variable names it)"


def strides_text(node: AliasNode) -> str:
    """Strides and offset in elements: `strides (4, 1) · offset 0`."""
    strides = ", ".join(map(str, node.strides)) + ("," if len(node.strides) == 1 else "")
    return f"strides ({strides}) · offset {node.offset}"


class AliasItem(QGraphicsItem):
    """Paints storages and tensors, with a line from each tensor to the one it was made from."""

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
        """The number in `AliasesSnapshot.tensors` of a variable's tensor; None if there is none."""
        nodes = enumerate(self.aliases.tensors)
        return next((i for i, node in nodes if name in node.names), None)

    def select(self, number: int | None) -> None:
        self.selected = number
        self.update()

    def selected_name(self) -> str:
        """The first name of the selected tensor; empty without one."""
        names = self.aliases.tensors[self.selected].names if self.selected is not None else ()
        return names[0] if names else ""

    def tensor_at(self, point: QPointF) -> int | None:
        """The number of the tensor at a scene point; None without one."""
        rects = enumerate(self.layout.tensors)
        return next((i for i, rect in rects if rect.contains(point)), None)

    def storage_at(self, point: QPointF) -> StorageNode | None:
        """The storage at a scene point; None without one."""
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
    written = (
        f", {where.op or 'written'} in {source_title(where.cell)}" if where is not None else ""
    )
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
    lines = (f"{format_shape(node.shape)} · {node.dtype}", strides_text(node))
    painter.setFont(small)
    painter.setPen(colors.color("muted"))
    for row, line in enumerate(lines):
        text = elided(line, small, room)
        painter.drawText(QPointF(rect.left() + 16, rect.top() + 33 + 15 * row), text)
    if selected:
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QPen(colors.color("accent"), 2.5))
        painter.drawRoundedRect(rect.adjusted(-3, -3, 3, 3), 7, 7)
