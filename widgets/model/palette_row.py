"""Paints a row of the palette: icon, title, torch name. Its tooltip explains the block."""

from __future__ import annotations

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QRect, QSize, Qt
from PySide6.QtGui import QFont, QFontMetrics, QPainter
from PySide6.QtWidgets import QListView, QStyledItemDelegate, QStyleOptionViewItem

from engine.project.catalogue import BlockKind
from widgets import theme
from widgets.icons import icon

KIND_ROLE = Qt.ItemDataRole.UserRole + 1
"""The row's BlockKind; None for a group's header."""

ICON_PX = 20

_Index = QModelIndex | QPersistentModelIndex


def short_torch_name(kind: BlockKind) -> str:
    """The name in code with the usual imports: `nn.Linear`, `torch.cat`."""
    name = kind.torch_name
    return name.removeprefix("torch.") if name.startswith("torch.nn.") else name


def _beside_title(kind: BlockKind) -> str:
    """The words of a row beside the title: the torch name, or its module if the title says the rest
    (`nn`)."""
    name = short_torch_name(kind)
    return name.removesuffix(f".{kind.title}") if name != kind.title else ""


class PaletteDelegate(QStyledItemDelegate):
    """Paints the header of a group, or the kind of a block. `hovered` is the row under the pointer,
    -1 without one.

    It does not ask the option's state: for that, PySide would load the 600 members of QStyle.
    """

    def __init__(self, view: QListView) -> None:
        super().__init__(view)
        self._view = view
        self.hovered = -1

    def sizeHint(self, option: QStyleOptionViewItem, index: _Index) -> QSize:
        line = option.fontMetrics.height()
        if index.data(KIND_ROLE) is None:
            return QSize(0, line + 2 * theme.GRID)
        return QSize(0, max(line, ICON_PX) + theme.GRID)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: _Index) -> None:
        painter.save()
        kind = index.data(KIND_ROLE)
        rect: QRect = option.rect  # pyright: ignore[reportAttributeAccessIssue]
        font: QFont = option.font  # pyright: ignore[reportAttributeAccessIssue]
        if kind is None:
            _paint_header(painter, rect, font, index.data())
        else:
            selected = self._view.selectionModel().isSelected(index)
            _paint_background(painter, rect, selected, index.row() == self.hovered)
            _paint_kind(painter, rect, font, kind)
        painter.restore()


def _paint_header(painter: QPainter, rect: QRect, font: QFont, text: str) -> None:
    small = QFont(font)
    small.setPointSizeF(font.pointSizeF() * 0.85)
    small.setWeight(QFont.Weight.DemiBold)
    painter.setFont(small)
    painter.setPen(theme.current().color("muted"))
    inner = rect.adjusted(theme.GRID + 4, 0, -theme.GRID, -4)
    painter.drawText(inner, Qt.AlignmentFlag.AlignBottom | Qt.AlignmentFlag.AlignLeft, text)


def _paint_background(painter: QPainter, rect: QRect, selected: bool, hovered: bool) -> None:
    colors = theme.current()
    if selected:
        painter.fillRect(rect, colors.color("accent", 46))
        painter.fillRect(QRect(rect.left(), rect.top(), 3, rect.height()), colors.color("accent"))
    elif hovered:
        painter.fillRect(rect, colors.color("accent", 20))


def _paint_kind(painter: QPainter, rect: QRect, font: QFont, kind: BlockKind) -> None:
    colors = theme.current()
    inner = rect.adjusted(theme.GRID + 4, 4, -theme.GRID, -4)
    icon_rect = QRect(inner.left(), inner.top(), ICON_PX, inner.height())
    icon(kind.icon, "accent").paint(painter, icon_rect)
    text = inner.adjusted(ICON_PX + theme.GRID + 2, 0, 0, 0)
    left = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter

    strong = QFont(font)
    strong.setWeight(QFont.Weight.DemiBold)
    painter.setFont(strong)
    painter.setPen(colors.color("text"))
    title = QFontMetrics(strong).elidedText(kind.title, Qt.TextElideMode.ElideRight, text.width())
    painter.drawText(text, left, title)
    title_width = QFontMetrics(strong).horizontalAdvance(title)

    small = QFont(font)
    small.setPointSizeF(font.pointSizeF() * 0.85)
    painter.setFont(small)
    painter.setPen(colors.color("muted"))
    metrics = QFontMetrics(small)
    name_rect = text.adjusted(title_width + theme.GRID, 0, 0, 0)
    name = _beside_title(kind)
    if metrics.horizontalAdvance(name) <= name_rect.width():
        right = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        painter.drawText(name_rect, right, name)
