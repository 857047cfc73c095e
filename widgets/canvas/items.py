"""Blocks as graphics items. They paint the data that they are given."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from PySide6.QtCore import QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPainterPath, QPen
from PySide6.QtWidgets import QGraphicsItem, QStyleOptionGraphicsItem

from engine.project import catalogue
from engine.project.document import Block
from engine.project.problems import Problem
from widgets import theme
from widgets.diagram import style
from widgets.layout import BLOCK_WIDTH, BODY_HEIGHT, SIDES, Side, block_size, port_y
from widgets.text import format_shape

from . import describe

if TYPE_CHECKING:  # the window shows before messages are needed
    from engine.protocol import BlockReport

PORT_RADIUS = 5.0
GLOW_RADIUS = 11.0
CORNER = 8.0
BAR_WIDTH = 5.0
TITLE_HEIGHT = 28.0
"""The height of the line with the title and the name."""
NEAR_ZOOM = 0.7
"""From this zoom on, a block shows all text; below, two larger lines."""
FAR_ZOOM = 0.28
"""Below this zoom, a block shows its colour and its icon only."""

PortLook = Literal["open", "target", "refused"]
"""A port while a wire is drawn: `open` if the wire may end there, `target` if the wire would end
there now, `refused` if the cursor is on it and the wire may not end there."""
Progress = Literal["none", "done", "current"]


class BlockItem(QGraphicsItem):
    """A block: colour bar, icon, title and name, parameters, output shape, ports."""

    def __init__(self, block: Block) -> None:
        super().__init__()
        self.setFlag(QGraphicsItem.GraphicsItemFlag.ItemIsSelectable)
        self.setCacheMode(QGraphicsItem.CacheMode.DeviceCoordinateCache)
        self.report: BlockReport | None = None
        self.problems: tuple[Problem, ...] = ()
        self.waiting: frozenset[str] = frozenset()
        self.progress: Progress = "none"
        self.port_looks: dict[tuple[Side, str], PortLook] = {}
        self.wired: frozenset[tuple[Side, str]] = frozenset()
        self.hovered = False
        self.restack()
        self.show_block(block)

    def show_block(self, block: Block) -> None:
        self.prepareGeometryChange()
        self.block = block
        self.kind = catalogue.kind(block.kind)
        self.width, self.height = block_size(block)
        inputs, outputs = catalogue.ports(block)
        self.ports: dict[Side, tuple[catalogue.Port, ...]] = {"in": inputs, "out": outputs}
        self.parameters_text = describe.key_parameters(block)
        self.setPos(block.x, block.y)
        self.update()

    def rect(self) -> QRectF:
        """The body, in scene coordinates."""
        return QRectF(self.pos().x(), self.pos().y(), self.width, self.height)

    def boundingRect(self) -> QRectF:
        return QRectF(0, 0, self.width, self.height).adjusted(-14, -6, 14, 6)

    def port_offset(self, side: Side, index: int) -> QPointF:
        """A port's centre, from the block's top left corner, in scene pixels."""
        x = 0.0 if side == "in" else self.width
        return QPointF(x, port_y(index, len(self.ports[side])))

    def port_pos(self, side: Side, name: str) -> QPointF | None:
        """A port's centre in scene coordinates; None when the block has no such port."""
        for index, port in enumerate(self.ports[side]):
            if port.name == name:
                return self.pos() + self.port_offset(side, index)
        return None

    def restack(self) -> None:
        """Set the stacking order: selected blocks and blocks with problems lie over others."""
        self.setZValue(2 + bool(self.problems) + 0.5 * self.isSelected())

    def port_names(self, side: Side) -> tuple[str, ...]:
        return tuple(port.name for port in self.ports[side])

    def problem_role(self) -> str | None:
        """The severity of this block's worst problem, `"error"`, `"warning"` or None; it is also
        the role of its colour."""
        if not self.problems:
            return None
        errors = any(problem.severity == "error" for problem in self.problems)
        return "error" if errors else "warning"

    def state_text(self) -> tuple[str, str]:
        """(words, colour role) for the block's last line: its output shapes, or its problem."""
        shapes = self.report.outputs.values() if self.report is not None else ()
        problem = self.problem_role()
        if shapes:
            return ", ".join(format_shape(spec.shape) for spec in shapes), "intermediate"
        if problem:
            return ("has a problem" if problem == "error" else "has a warning"), problem
        if self.waiting:
            return "not connected", "warning"
        return ("…" if self.ports["out"] else ""), "muted"

    # -- painting --------------------------------------------------------------------------------

    def paint(self, painter: QPainter, option: QStyleOptionGraphicsItem, widget=None) -> None:
        colors = theme.current()
        zoom = QStyleOptionGraphicsItem.levelOfDetailFromTransform(painter.worldTransform())
        self._paint_body(painter, colors, zoom)
        if zoom >= NEAR_ZOOM:
            self._paint_text(painter, colors)
        elif zoom >= FAR_ZOOM:
            self._paint_large_text(painter, colors)
        else:
            self._paint_icon(painter, QRectF(self.width / 2 - 24, self.height / 2 - 24, 48, 48))
        for side in SIDES:
            for index, port in enumerate(self.ports[side]):
                self._paint_port(painter, colors, side, index, port, zoom)

    def _paint_body(self, painter: QPainter, colors: theme.Theme, zoom: float) -> None:
        body = _rounded(self.width, self.height)
        problem = self.problem_role()
        if self.progress == "current":
            painter.setPen(QPen(colors.color("accent", 90), 8))
            painter.drawPath(body)
        painter.fillPath(body, colors.color("raised"))
        if problem:
            painter.fillPath(body, colors.color(problem, 28))
        elif self.progress != "none":
            painter.fillPath(body, colors.color("accent", 40 if self.progress == "current" else 18))
        painter.fillPath(_bar(self.height), style.group_color(self.kind.group))

        width = 1.0
        role = "border"
        if self.hovered:
            role = "muted"
        if self.progress == "done":
            role = "accent"
        if problem:
            role, width = problem, 2.0
        if self.isSelected() or self.progress == "current":
            role, width = "accent", 2.5
        painter.setPen(QPen(colors.color(role), max(width, width / zoom * 0.7)))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawPath(body)

    def _paint_icon(self, painter: QPainter, rect: QRectF) -> None:
        pixmap = style.icon(self.kind.icon, style.group_color(self.kind.group).name())
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform)
        painter.drawPixmap(rect, pixmap, QRectF(pixmap.rect()))

    def _paint_text(self, painter: QPainter, colors: theme.Theme) -> None:
        self._paint_icon(painter, QRectF(13, 12, 24, 24))
        right = self.width - 10
        face = style.fitting_font(self.kind.title, 13, 11, right - 44)
        _text(painter, colors.text, face, self.kind.title, 44, 22, right)
        after = 50 + style.text_width(self.kind.title, face)
        name = style.font(10, mono=True)
        _text(painter, colors.muted, name, self.block.name, after, 22, right, align_right=True)
        _text(painter, colors.text, style.font(12), self.parameters_text, 44, 40, right)

        painter.setPen(QPen(colors.color("border"), 1))
        painter.drawLine(QLineF(BAR_WIDTH, 49, self.width, 49))
        count = ""
        if self.report is not None and self.report.parameters:
            count = f"{describe.count_text(self.report.parameters)} params"
        small = style.font(10)
        count_width = style.text_width(count, small)
        _text(painter, colors.muted, small, count, right - count_width - 1, 64, right)
        end = right - (count_width + 8 if count else 0)
        words, role = self.state_text()
        face = style.font(11, mono=role == "intermediate")
        _text(painter, getattr(colors, role), face, words, 14, 64, end)
        self._paint_port_names(painter, colors)

    def _paint_port_names(self, painter: QPainter, colors: theme.Theme) -> None:
        if max(map(len, self.ports.values())) < 2:
            return
        painter.setPen(QPen(colors.color("border"), 1))
        painter.drawLine(QLineF(BAR_WIDTH, BODY_HEIGHT, self.width, BODY_HEIGHT))
        face = style.font(10, mono=True)
        middle = self.width / 2
        for side in SIDES:
            if len(self.ports[side]) < 2:
                continue
            for index, port in enumerate(self.ports[side]):
                y = self.port_offset(side, index).y() + 3.5
                first, last = (12, middle) if side == "in" else (middle, self.width - 12)
                _text(painter, colors.muted, face, port.name, first, y, last, side == "out")

    def _paint_large_text(self, painter: QPainter, colors: theme.Theme) -> None:
        """Paint two lines in a font that is legible at half size."""
        self._paint_icon(painter, QRectF(12, 8, 28, 28))
        right = self.width - 8
        face = style.fitting_font(self.kind.title, 20, 13, right - 46)
        _text(painter, colors.text, face, self.kind.title, 46, 29, right)
        words, role = self.state_text()
        if role == "muted":
            words = self.parameters_text
        face = style.font(17, mono=role == "intermediate")
        _text(painter, getattr(colors, role), face, words, 14, 59, right)

    def _paint_port(
        self, painter: QPainter, colors: theme.Theme, side: Side, index: int,
        port: catalogue.Port, zoom: float,
    ) -> None:  # fmt: skip
        center = self.port_offset(side, index)
        look = self.port_looks.get((side, port.name))
        radius = PORT_RADIUS if zoom >= NEAR_ZOOM else PORT_RADIUS * 1.4
        ink = colors.color("intermediate")
        if look in ("open", "target"):
            ink = colors.color("accent")
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(colors.color("accent", 70 if look == "open" else 130))
            painter.drawEllipse(center, GLOW_RADIUS, GLOW_RADIUS)
        elif look == "refused":
            ink = colors.color("muted", 90)
        if side == "in" and look is None:
            if port.name in self.waiting:
                ink = colors.color("warning")
            elif any(problem.port == port.name for problem in self.problems):
                ink = colors.color("error")
        filled = (side, port.name) in self.wired or look == "target"
        dash = Qt.PenStyle.DotLine if port.optional and not filled else Qt.PenStyle.SolidLine
        painter.setPen(QPen(ink, 2, dash))
        painter.setBrush(ink if filled else colors.color("canvas"))
        painter.drawEllipse(center, radius, radius)


@lru_cache
def _rounded(width: float, height: float) -> QPainterPath:
    path = QPainterPath()
    path.addRoundedRect(QRectF(0, 0, width, height), CORNER, CORNER)
    return path


@lru_cache
def _bar(height: float) -> QPainterPath:
    bar = QPainterPath()
    bar.addRect(QRectF(0, 0, BAR_WIDTH, height))
    return _rounded(BLOCK_WIDTH, height).intersected(bar)


def _text(
    painter: QPainter, color: str | QColor, face, text: str, left: float, baseline: float,
    right: float, align_right: bool = False,
) -> None:  # fmt: skip
    """Paint one line between two x, elided; nothing if there is no room for a few letters."""
    room = right - left
    if not text or room < 20:
        return
    shown = style.elided(text, face, room)
    if align_right:
        left = right - style.text_width(shown, face)
    painter.setFont(face)
    painter.setPen(QColor(color))
    painter.drawText(QPointF(left, baseline), shown)
