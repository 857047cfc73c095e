"""The results of the checks before training: a line each, with evidence and what to try."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QFrame, QWidget

from engine.protocol import Check, CheckKind, CheckSnapshot, Verdict
from widgets import make, theme
from widgets.theme import GRID
from widgets.training.checks.rate_curve import RateCurveView

TITLES: dict[CheckKind, str] = {
    "inputs": "Inputs",
    "leaks": "Samples in both parts",
    "labels": "Labels",
    "first_loss": "First loss",
    "unreached": "Path to the loss",
    "modes": "Training and eval mode",
    "one_batch": "One batch",
    "rates": "Learning rate",
}
WIDTH = 300
"""The least width in pixels, so that no line is cut."""
_ROLES: dict[Verdict, str] = {
    "good": "success",
    "note": "muted",
    "warning": "warning",
    "error": "error",
}


class CheckPane(QWidget):
    """`stop_requested()`: end the checks. `rate_wanted(rate)`: train with this learning rate.
    `closed()`: the reader has closed the pane."""

    stop_requested = Signal()
    rate_wanted = Signal(float)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        make.named(self, "check_pane", "Checks before training")
        self.setMinimumWidth(WIDTH)
        self._rate = 0.0
        self._progress = make.text("check_progress", "muted")
        self.stop = make.tool_button(
            "check_stop", "mdi6.stop", "Stop the checks.", self.stop_requested, accessible="Stop"
        )
        close = make.tool_button(
            "check_close", "mdi6.close", "Close the checks.", self.hide, accessible="Close"
        )
        head = make.row(
            make.label("Before training", "heading"), (self._progress, 1), self.stop, close
        )
        self.rows: list[CheckRow] = []
        self._list = make.column(gap=GRID // 2)
        self.curve = RateCurveView()
        self.use = make.button("check_use_rate", "", "mdi6.check", self._want_rate)
        self.use.setAccessibleName("Use the suggested rate")
        self.use.setToolTip("Set the optimizer's lr to this rate; Undo takes it back.")
        body = make.page(self._list, self.curve, make.row(self.use, make.STRETCH), make.STRETCH)
        make.column(head, (make.scroll(body), 1), on=self, margins=(GRID, GRID, 0, 0))
        self.hide()

    def begin(self) -> None:
        """Checks have begun: remove what the last ones found."""
        for row in self.rows:
            self._list.removeWidget(row)
            row.hide()
            row.deleteLater()
        self.rows.clear()
        self._progress.setText("Checking on copies of the weights…")
        self.stop.show()
        self.curve.hide()
        self.use.hide()
        self.show()

    def show_check(self, snapshot: CheckSnapshot) -> None:
        """Add what a check has found."""
        row = CheckRow(snapshot.check)
        self.rows.append(row)
        self._list.addWidget(row)
        row.show()
        self._progress.setText(f"{snapshot.done} of {snapshot.total}")
        if snapshot.check.kind == "rates":
            self._rate = snapshot.curve.suggestion
            self.curve.show_curve(snapshot.curve)
            self.curve.setVisible(len(snapshot.curve.rates) > 1)
            self.use.setText(f"Use {self._rate:g}")
            self.use.setVisible(self._rate > 0)
        if snapshot.done == snapshot.total:
            bad = sum(each.check.verdict in ("warning", "error") for each in self.rows)
            self.end(f"{bad} of {snapshot.total} need a look" if bad else "All is well")

    def end(self, words: str) -> None:
        """The checks have ended: say how."""
        self._progress.setText(words)
        self.stop.hide()

    def _want_rate(self) -> None:
        self.rate_wanted.emit(self._rate)


class CheckRow(QFrame):
    """One check, with a band in the colour of its verdict."""

    def __init__(self, check: Check) -> None:
        super().__init__()
        self.check = check
        make.named(self, f"check_{check.kind}", TITLES[check.kind])
        self.setAccessibleDescription(f"{check.verdict}: {check.text}")
        title = make.label(f"{TITLES[check.kind]} · {check.verdict}", _ROLES[check.verdict])
        parts = [title]
        for name, role, words in (
            ("text", "", check.text),
            ("evidence", "muted", check.evidence),
            ("fix", "", f"Try: {check.fix}" if check.fix else ""),
        ):
            if words:
                shown = make.paragraph(f"check_{check.kind}_{name}", role)
                shown.setText(words)
                parts.append(shown)
        make.column(*parts, on=self, gap=2, margins=(GRID + 4, 4, GRID // 2, 4))

    def paintEvent(self, event: QPaintEvent) -> None:
        colors, painter = theme.current(), QPainter(self)
        role = _ROLES[self.check.verdict]
        painter.fillRect(self.rect(), colors.color(role, 16))
        painter.fillRect(0, 0, 3, self.height(), colors.color(role))
