"""Why a run is held, what to try, and the part of the model that it is about."""

from __future__ import annotations

from PySide6.QtCore import QPoint, Signal
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QFrame, QWidget

from engine.protocol import Hold, LoopSnapshot, RunSnapshot, TrainingSnapshot
from widgets import make, theme


class HoldNote(QFrame):
    """Takes no room while nothing is held. `part_wanted(hold)`: show the parameter or module of
    this hold. `divergence_wanted()`: repeat the run up to where its numbers were not finite."""

    part_wanted = Signal(object)
    divergence_wanted = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        make.named(self, "hold_note", "Why the run is held")
        self._hold: Hold | None = None
        self._text = make.paragraph("hold_text")
        self._hint = make.paragraph("hold_hint", "muted")
        self._part = make.button("hold_part", "", "mdi6.arrow-right", self._want_part)
        self._part.setAccessibleName("Show in")
        self._part.setToolTip("Choose this part of the model; the menu says which views show it.")
        self._find = make.button(
            "hold_find", "Hold where it began", "mdi6.magnify", self.divergence_wanted
        )
        self._find.setToolTip(
            "Repeat the run from a state in memory, bit for bit, up to the first number that is"
            " NaN or infinite. It is held there before the update, and the operation is named."
        )
        buttons = make.row(self._part, self._find, make.STRETCH)
        make.column(
            self._text,
            self._hint,
            buttons,
            on=self,
            gap=theme.GRID // 2,
            margins=(2 * theme.GRID, theme.GRID, theme.GRID, theme.GRID),
        )
        self.hide()

    def show_run(self, run: RunSnapshot) -> None:
        """Show why the run is held; or, of one that failed, offer to find where."""
        hold = run.hold if isinstance(run, TrainingSnapshot | LoopSnapshot) else None
        finds = isinstance(run, TrainingSnapshot) and run.can_find_divergence
        self._hold = hold
        self.setVisible(hold is not None or finds)
        self._find.setVisible(finds)
        if hold is None:
            self._text.setText("Which operation gave the first number that is not finite?")
            self._hint.hide()
            self._part.hide()
            return
        self._text.setText(f"Held in step {hold.step:,}. {hold.text}")
        make.tell(self._hint, hold.hint)
        part = hold.parameter or hold.module
        self._part.setVisible(bool(part))
        self._part.setText(f"Show {part} in…")
        self.setAccessibleDescription(hold.text)

    @property
    def below_part(self) -> QPoint:
        """On the screen: under the button of the part."""
        return self._part.mapToGlobal(QPoint(0, self._part.height()))

    def _want_part(self) -> None:
        if self._hold is not None:
            self.part_wanted.emit(self._hold)

    def paintEvent(self, event: QPaintEvent) -> None:
        """A band at the left edge in the colour of warnings, on a quiet ground."""
        colors = theme.current()
        painter = QPainter(self)
        painter.fillRect(self.rect(), colors.color("warning", 20))
        painter.fillRect(0, 0, 3, self.height(), colors.color("warning"))
