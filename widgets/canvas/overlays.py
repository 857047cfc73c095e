"""Items above blocks and wires: problems in words, and the previews of gestures."""

from __future__ import annotations

from PySide6.QtCore import QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import QFont, QFontMetricsF, QPainter, QPainterPath, QPen
from PySide6.QtWidgets import QGraphicsItem, QGraphicsPathItem, QStyleOptionGraphicsItem

from engine.project.problems import Problem
from widgets import theme
from widgets.diagram import style
from widgets.layout import BLOCK_WIDTH

from .items import FAR_ZOOM, BlockItem

PADDING = 8.0
MAX_LINES = 4


class ProblemItem(QGraphicsItem):
    """The words of a block's worst problem under it, with the button of its fix."""

    def __init__(self, block: BlockItem, problem: Problem, others: int) -> None:
        super().__init__(block)
        self.block_id = block.block.id
        self.problem = problem
        self.hovered = False
        self._text = problem.message + (f" (+{others} more)" if others else "")
        self._fix_text = f"Fix: {problem.fix.text}" if problem.fix else ""
        inner = BLOCK_WIDTH - 2 * PADDING
        self._text_rect = _wrapped(self._text, style.font(11), QPointF(PADDING, PADDING), inner)
        self._fix_rect = QRectF()
        if self._fix_text:
            corner = self._text_rect.bottomLeft() + QPointF(6, 12)
            self._fix_rect = _wrapped(self._fix_text, style.font(11, bold=True), corner, inner - 12)
            self._fix_rect.adjust(-6, -4, 6, 4)
        self.setPos(0, block.height + 6)

    def rect(self) -> QRectF:
        """The whole box, in item coordinates."""
        bottom = max(self._text_rect.bottom(), self._fix_rect.bottom())
        return QRectF(0, 0, BLOCK_WIDTH, bottom + PADDING)

    def fix_rect(self) -> QRectF:
        """The fix button, in item coordinates; empty without a fix."""
        return self._fix_rect

    def boundingRect(self) -> QRectF:
        return self.rect().adjusted(-2, -2, 2, 2)

    def paint(self, painter: QPainter, option: QStyleOptionGraphicsItem, widget=None) -> None:
        zoom = QStyleOptionGraphicsItem.levelOfDetailFromTransform(painter.worldTransform())
        if zoom < FAR_ZOOM:
            return
        colors = theme.current()
        role = self.problem.severity
        painter.setPen(QPen(colors.color(role), 1))
        painter.setBrush(colors.color("raised"))
        painter.drawRoundedRect(self.rect(), 6, 6)
        painter.setBrush(colors.color(role, 24))
        painter.drawRoundedRect(self.rect(), 6, 6)
        painter.setPen(colors.color(role))
        painter.setFont(style.font(11))
        painter.drawText(self._text_rect, Qt.TextFlag.TextWordWrap, self._text)
        if self._fix_text:
            painter.setPen(QPen(colors.color(role), 1))
            painter.setBrush(colors.color(role, 60 if self.hovered else 20))
            painter.drawRoundedRect(self._fix_rect, 4, 4)
            painter.setPen(colors.color("text"))
            painter.setFont(style.font(11, bold=True))
            flags = Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap
            painter.drawText(self._fix_rect.adjusted(6, 0, -6, 0), flags, self._fix_text)


def _wrapped(text: str, face: QFont, corner: QPointF, width: float) -> QRectF:
    """The box of a text wrapped to a width, cut after MAX_LINES lines."""
    metrics = QFontMetricsF(face)
    room = QRectF(0, 0, width, 10_000)
    height = metrics.boundingRect(room, Qt.TextFlag.TextWordWrap, text).height()
    return QRectF(corner.x(), corner.y(), width, min(height, MAX_LINES * metrics.lineSpacing()))


class Overlay(QGraphicsItem):
    """The base of a gesture's items. They lie above all others and get no mouse events."""

    def __init__(self) -> None:
        super().__init__()
        self.setZValue(10)
        self.setAcceptedMouseButtons(Qt.MouseButton.NoButton)


class Guides(Overlay):
    """The lines that show where a dragged block is aligned with others."""

    def __init__(self) -> None:
        super().__init__()
        self._lines: list[QLineF] = []

    def show_lines(self, lines: list[QLineF]) -> None:
        self.prepareGeometryChange()
        self._lines = lines

    def boundingRect(self) -> QRectF:
        rect = QRectF()
        for line in self._lines:
            rect |= QRectF(line.p1(), line.p2()).normalized().adjusted(-2, -2, 2, 2)
        return rect

    def paint(self, painter: QPainter, option: QStyleOptionGraphicsItem, widget=None) -> None:
        pen = QPen(theme.current().color("accent"), 1, Qt.PenStyle.DashLine)
        pen.setCosmetic(True)
        painter.setPen(pen)
        painter.drawLines(self._lines)


class MarqueeBox(Overlay):
    """The rectangle of a `Marquee` selection."""

    def __init__(self) -> None:
        super().__init__()
        self._rect = QRectF()

    def show_rect(self, rect: QRectF) -> None:
        self.prepareGeometryChange()
        self._rect = rect

    def boundingRect(self) -> QRectF:
        return self._rect.adjusted(-2, -2, 2, 2)

    def paint(self, painter: QPainter, option: QStyleOptionGraphicsItem, widget=None) -> None:
        colors = theme.current()
        pen = QPen(colors.color("accent"), 1)
        pen.setCosmetic(True)
        painter.setPen(pen)
        painter.setBrush(colors.color("accent", 30))
        painter.drawRect(self._rect)


class PendingWire(QGraphicsPathItem):
    """The wire that is being drawn: in the error colour over a port where it may not end, else in
    the accent colour."""

    def __init__(self) -> None:
        super().__init__()
        self.setZValue(9)
        self.setAcceptedMouseButtons(Qt.MouseButton.NoButton)

    def show_wire(self, start: QPointF, end: QPointF, role: str, fits: bool) -> None:
        # A plain curve to the cursor: a route around blocks would jump when the cursor moves.
        reach = QPointF(max(24.0, abs(end.x() - start.x()) / 2), 0)
        path = QPainterPath(start)
        path.cubicTo(start + reach, end - reach, end)
        self.setPath(path)
        style_ = Qt.PenStyle.SolidLine if fits else Qt.PenStyle.DashLine
        self.setPen(QPen(theme.current().color(role), 2.5, style_))


class Note(Overlay):
    """Words at the cursor, the same size at every zoom, kept inside the view. `role` is the
    colour's name."""

    MAX_WIDTH_PX = 360.0
    OFFSET_PX = QPointF(16, 18)
    MARGIN_PX = 8

    def __init__(self) -> None:
        super().__init__()
        self.setFlag(QGraphicsItem.GraphicsItemFlag.ItemIgnoresTransformations)
        self.setZValue(11)
        self.text = ""
        self.role = "error"
        self._offset = self.OFFSET_PX
        self.hide()

    def say(self, text: str, role: str, pos: QPointF) -> None:
        """Show words beside a scene point; no words hide the note."""
        self.prepareGeometryChange()
        self.text, self.role = text, role
        self.setPos(pos)
        self._offset = self._offset_inside(pos)
        self.setVisible(bool(text))
        self.update()

    def _offset_inside(self, pos: QPointF) -> QPointF:
        """The offset of the note from the cursor: below and right of it, less what would be
        outside of the view."""
        self._offset = self.OFFSET_PX
        views = self.scene().views()
        if not views:
            return self._offset
        at = views[0].mapFromScene(pos)
        box = self._box().translated(at)
        seen = views[0].viewport().rect()
        back = min(0.0, seen.right() - self.MARGIN_PX - box.right())
        # A note that does not fit below goes above the cursor, not over it.
        up = -box.height() - 2 * self.OFFSET_PX.y() if box.bottom() > seen.bottom() else 0.0
        return self.OFFSET_PX + QPointF(back, up)

    def _box(self) -> QRectF:
        return self._text_rect().adjusted(-10, -6, 10, 6)

    def _text_rect(self) -> QRectF:
        metrics = QFontMetricsF(style.font(12))
        rect = metrics.boundingRect(
            QRectF(0, 0, self.MAX_WIDTH_PX, 1000), Qt.TextFlag.TextWordWrap, self.text
        )
        return QRectF(self._offset + QPointF(10, 6), rect.size())

    def boundingRect(self) -> QRectF:
        return self._text_rect().adjusted(-12, -8, 12, 8)

    def paint(self, painter: QPainter, option: QStyleOptionGraphicsItem, widget=None) -> None:
        colors = theme.current()
        text = self._text_rect()
        box = self._box()
        painter.setPen(QPen(colors.color(self.role), 1.5))
        painter.setBrush(colors.color("raised"))
        painter.drawRoundedRect(box, 6, 6)
        painter.setPen(colors.color(self.role))
        painter.setFont(style.font(12))
        painter.drawText(text, Qt.TextFlag.TextWordWrap, self.text)
