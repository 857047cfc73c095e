"""Shapes under each other, aligned from the right, and what broadcasting does at each dimension."""

from __future__ import annotations

from PySide6.QtCore import QRect, QSize, Qt, Signal
from PySide6.QtGui import QKeyEvent, QMouseEvent, QPainter, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from engine.protocol import BroadcastSnapshot
from widgets import theme
from widgets.make import named
from widgets.painted_widget import PaintedWidget
from widgets.shapes.size_box import ROLES, paint_box, paint_text

BOX_WIDTH = 64
BOX_HEIGHT = 32
GAP = 8
NAME_WIDTH = 96
HEADER = 20
_MEANINGS = {
    "same": "as it is",
    "stretched": "a 1, stretched",
    "added": "missing: counts as 1",
    "conflict": "does not fit",
}


class AlignmentView(PaintedWidget):
    """Paints a row of boxes for each operand and for the result. The result is filled in for the
    first `steps` dimensions, counted from the right; the last of these is framed.

    `step_chosen(int)` asks for another number of steps: at a click on a column, at Left (one more)
    and at Right (one less).
    """

    step_chosen = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        named(
            self,
            "broadcast_alignment",
            "Shapes aligned from the right",
            "Shapes are aligned at their last dimension. Going left, sizes must be equal, or one"
            " of them 1 or missing. The keys Left and Right step through the dimensions; click a"
            " dimension to go to it.",
        )
        self._snapshot: BroadcastSnapshot | None = None
        self._steps = 0

    def show_steps(self, snapshot: BroadcastSnapshot | None, steps: int) -> None:
        """Show the shapes of a snapshot after this many steps; None shows nothing."""
        self._snapshot, self._steps = snapshot, steps
        if snapshot is not None:
            texts = [dim.text for dim in snapshot.dims[:steps]]
            self.setAccessibleDescription(" ".join(texts))
        self.updateGeometry()
        self.update()

    def box(self, row: int, dim: int) -> QRect:
        """The box of an operand at dimension `dim` (-1 is the last). The row after the last operand
        is the result's."""
        assert self._snapshot is not None
        column = len(self._snapshot.dims) + dim
        extra = GAP if row == len(self._snapshot.shapes) else 0
        return QRect(
            NAME_WIDTH + column * (BOX_WIDTH + GAP),
            HEADER + row * (BOX_HEIGHT + GAP) + extra,
            BOX_WIDTH,
            BOX_HEIGHT,
        )

    def sizeHint(self) -> QSize:
        if self._snapshot is None:
            return QSize(NAME_WIDTH, 0)
        rows, columns = len(self._snapshot.shapes) + 1, len(self._snapshot.dims)
        return QSize(
            NAME_WIDTH + max(columns, 6) * (BOX_WIDTH + GAP),
            HEADER + rows * (BOX_HEIGHT + GAP) + GAP + HEADER,
        )

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    # -- painting --------------------------------------------------------------------------------

    def paint(self, painter: QPainter) -> None:
        """Paint the widget's whole area."""
        snapshot = self._snapshot
        if snapshot is None:
            return
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        self._paint_names(painter, snapshot)
        for number, dim in enumerate(snapshot.dims):
            done = number < self._steps
            head = QRect(self.box(0, dim.dim).left(), 0, BOX_WIDTH, HEADER)
            paint_text(painter, head, str(dim.dim), "muted", 8)
            for row, (size, role) in enumerate(zip(dim.sizes, dim.roles, strict=True)):
                shown = role if done or size is None else "same"
                text = "" if size is None else str(size)
                if done and role in ("stretched", "added") and dim.size is not None:
                    before = "1" if size is not None else "·"
                    text = f"{before}→{dim.size}" if dim.size != 1 else before
                paint_box(painter, self.box(row, dim.dim), text, shown)
            size_text = "?" if not done else "✗" if dim.size is None else str(dim.size)
            role = "conflict" if done and dim.size is None else "result" if done else "added"
            paint_box(painter, self.box(len(snapshot.shapes), dim.dim), size_text, role)
        self._paint_current(painter, snapshot)
        self._paint_legend(painter, snapshot)

    def _paint_names(self, painter: QPainter, snapshot: BroadcastSnapshot) -> None:
        names = [
            f"{letter}  {text}" if not text[:1].isdigit() and text[:1] != "(" else letter
            for letter, text in zip("abcd", snapshot.operands, strict=False)
        ]
        for row, name in enumerate([*names, "result"]):
            box = QRect(0, self.box(row, 0).top(), NAME_WIDTH - GAP, BOX_HEIGHT)
            middle, end = Qt.AlignmentFlag.AlignVCenter, Qt.TextElideMode.ElideRight
            paint_text(painter, box, name, "text", 9, middle, end)

    def _paint_current(self, painter: QPainter, snapshot: BroadcastSnapshot) -> None:
        if not 0 < self._steps <= len(snapshot.dims):
            return
        dim = snapshot.dims[self._steps - 1].dim
        frame = self.box(0, dim).united(self.box(len(snapshot.shapes), dim))
        painter.setPen(QPen(theme.current().color("accent" if self.hasFocus() else "muted"), 1.5))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawRoundedRect(frame.adjusted(-4, -4, 4, 4), 6, 6)

    def _paint_legend(self, painter: QPainter, snapshot: BroadcastSnapshot) -> None:
        roles = {role for dim in snapshot.dims[: self._steps] for role in dim.roles} - {"same"}
        x, y = NAME_WIDTH, self.sizeHint().height() - HEADER + 4
        painter.setFont(self.font())
        for role in (role for role in _MEANINGS if role in roles):
            edge, fill, alpha = ROLES[role]
            colors = theme.current()
            painter.setPen(QPen(colors.color(edge), 1))
            painter.setBrush(colors.color(fill, alpha))
            painter.drawRoundedRect(QRect(x, y, 12, 12), 2, 2)
            painter.setPen(colors.color("muted"))
            width = painter.fontMetrics().horizontalAdvance(_MEANINGS[role])
            painter.drawText(x + 18, y + 11, _MEANINGS[role])
            x += width + 18 + 2 * GAP

    # -- choosing --------------------------------------------------------------------------------

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if self._snapshot is None:
            return
        for number, dim in enumerate(self._snapshot.dims):
            left = self.box(0, dim.dim).left()
            if left <= event.position().x() < left + BOX_WIDTH:
                self.step_chosen.emit(number + 1)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        by = {Qt.Key.Key_Left: 1, Qt.Key.Key_Right: -1}.get(Qt.Key(event.key()))
        if by is None or self._snapshot is None:
            super().keyPressEvent(event)
            return
        self.step_chosen.emit(min(max(self._steps + by, 0), len(self._snapshot.dims)))
