"""A finding about the user's code: one line, which opens to its evidence and its fix."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QGuiApplication, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QFrame, QWidget

from engine.protocol import Finding
from widgets import make, theme
from widgets.advice.kinds import KINDS
from widgets.icons import set_icon

WIDTH = 720
"""The width in pixels that it wants; in a narrower place its text wraps earlier."""


class FindingNote(QFrame):
    """`dismissed()`: it is to go. `muted(kind)`: no note of its kind is to be shown.
    `height_changed()`: it was opened or closed."""

    dismissed = Signal()
    muted = Signal(str)
    height_changed = Signal()

    def __init__(self, finding: Finding, is_open: bool = False, parent: QWidget | None = None):
        super().__init__(parent)
        make.named(self, "finding_note", "Advice")
        self.setFont(QGuiApplication.font())  # the console, its parent there, has a font for code
        self.setAccessibleDescription(finding.text)
        self.finding = finding
        self._toggle = make.tool_button(
            "finding_open",
            "mdi6.chevron-right",
            "Show the evidence and a line that fixes it.",
            lambda: self.set_open(not self.is_open),
            accessible="Evidence and fix",
        )
        where = f"Line {finding.line}: " if finding.line else ""
        self._words = f"{where}{finding.text}"
        self._text = make.text("finding_text", width="rest")
        mute = make.tool_button(
            "finding_mute",
            "mdi6.bell-off-outline",
            f"Show no more notes about {KINDS[finding.kind]}. The command “Show muted advice”"
            " brings them back.",
            lambda: self.muted.emit(finding.kind),
            accessible="Mute this kind",
        )
        dismiss = make.tool_button(
            "finding_dismiss", "mdi6.close", "Remove this note.", self.dismissed.emit,
            accessible="Dismiss",
        )  # fmt: skip
        self._evidence = make.paragraph("finding_evidence", "muted")
        self._evidence.setText("\n".join(f"• {line}" for line in finding.evidence))
        self._fix = make.text("finding_fix", wrap=True, mono=10, width="rest")
        self._fix.setText(finding.fix)
        copy = make.tool_button(
            "finding_copy",
            "mdi6.content-copy",
            "Copy the line.",
            lambda: QGuiApplication.clipboard().setText(finding.fix),
            accessible="Copy the fix",
        )
        top = Qt.AlignmentFlag.AlignTop
        half = theme.GRID // 2
        head = make.row(
            (self._toggle, 0, top), (self._text, 1), (mute, 0, top), (dismiss, 0, top), gap=2
        )
        fix = make.row((self._fix, 1), (copy, 0, top), gap=2)
        self._more = make.page(self._evidence, fix, gap=half, margins=(4 * theme.GRID, 0, 0, half))
        make.column(head, self._more, on=self, gap=0, margins=(theme.GRID, 2, half, 2))
        self.set_open(is_open)

    @property
    def is_open(self) -> bool:
        return not self._more.isHidden()

    def set_open(self, is_open: bool) -> None:
        self._more.setVisible(is_open)
        self._text.setWordWrap(is_open)
        self._show_words()
        set_icon(self._toggle, f"mdi6.chevron-{'down' if is_open else 'right'}")
        self.updateGeometry()
        self.height_changed.emit()

    def sizeHint(self) -> QSize:
        return QSize(WIDTH, super().sizeHint().height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._show_words()

    def _show_words(self) -> None:
        """All of the text if it is open, else as much as one line holds."""
        if self.is_open:
            self._text.setText(self._words)
        else:
            room, end = self._text.width(), Qt.TextElideMode.ElideRight
            self._text.setText(self._text.fontMetrics().elidedText(self._words, end, room))

    def paintEvent(self, event: QPaintEvent) -> None:
        """A band at the left edge in the colour of warnings, on a quiet ground."""
        colors = theme.current()
        painter = QPainter(self)
        painter.fillRect(self.rect(), colors.color("warning", 20))
        painter.fillRect(0, 0, 3, self.height(), colors.color("warning"))
