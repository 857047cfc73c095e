"""The kind of an operation's outcome (VIEW, COPY, IN PLACE, ...), large and in its colour."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QFont, QFontMetrics, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from widgets import theme

KINDS = {
    "view": ("VIEW", "storage", "A new tensor over the same memory: nothing is copied."),
    "same": ("SAME", "intermediate", "The tensor itself: there was nothing to do."),
    "copy": ("COPY", "success", "New memory: changing one tensor does not change the other."),
    "in place": (
        "IN PLACE",
        "warning",
        "The operand itself changes, and so do all tensors that share its memory.",
    ),
    "refused": ("REFUSED", "error", "PyTorch raises an error."),
}
"""Kind -> (word, the theme's role, meaning)."""


class KindMark(QWidget):
    """A label with the word of a kind in its colour; its tooltip has the meaning."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("kind_mark")
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self._font = QFont(self.font())
        self._font.setPointSize(12)
        self._font.setBold(True)
        self.show_kind("view")
        theme.notifier.changed.connect(self.update)

    def show_kind(self, kind: str) -> None:
        """Show one of `KINDS`. Raises KeyError for any other."""
        self._word, self._role, meaning = KINDS[kind]
        self.setAccessibleName(self._word)
        self.setToolTip(meaning)
        self.update()

    @property
    def word(self) -> str:
        return self._word

    @property
    def role(self) -> str:
        """The theme's role of the mark's colour."""
        return self._role

    def sizeHint(self) -> QSize:
        metrics = QFontMetrics(self._font)
        widest = max(metrics.horizontalAdvance(word) for word, _, _ in KINDS.values())
        return QSize(widest + 3 * theme.GRID, metrics.height() + theme.GRID)

    def paintEvent(self, _event: QPaintEvent) -> None:
        colors = theme.current()
        with QPainter(self) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(colors.color(self._role))
            painter.drawRoundedRect(self.rect(), 4, 4)
            painter.setPen(colors.color("on_accent"))
            painter.setFont(self._font)
            painter.drawText(self.rect(), Qt.AlignmentFlag.AlignCenter, self._word)
