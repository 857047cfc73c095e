"""The problems of the model: one row each, with its fix if there is one."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent, QMouseEvent
from PySide6.QtWidgets import QFrame, QPushButton, QWidget

from engine.project.document import Model
from engine.project.problems import Fix, Problem, located
from widgets import make, theme
from widgets.icons import icon

_ICONS = {"error": "mdi6.alert-circle", "warning": "mdi6.alert"}


class ProblemList(QWidget):
    """Shows problems in words. A click or Enter on a problem asks to show its block, its button
    asks for the fix."""

    problem_activated = Signal(str)
    fix_requested = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("problem_list")
        self._layout = make.column(on=self, gap=theme.GRID // 2)
        self._shown: tuple[Problem, ...] = ()
        self._cards: list[ProblemCard] = []

    def show_problems(self, problems: Sequence[Problem], model: Model | None = None) -> None:
        """Show problems, errors before warnings; an empty list hides the widget.

        With the `model`, each problem has the name of its block.
        """
        if model is not None:
            problems = located(problems, model)
        ordered = tuple(sorted(problems, key=lambda problem: problem.severity != "error"))
        if ordered != self._shown:
            self._shown = ordered
            for card in self._cards:
                self._layout.removeWidget(card)
                card.hide()
                card.deleteLater()
            self._cards = [ProblemCard(problem, self) for problem in ordered]
            for card in self._cards:
                card.activated.connect(self.problem_activated)
                card.fix_requested.connect(self.fix_requested)
                self._layout.addWidget(card)
        self.setVisible(bool(ordered))

    def problems(self) -> tuple[Problem, ...]:
        """The problems shown, in their order on screen."""
        return self._shown


class ProblemCard(QFrame):
    """One problem: icon, words, torch's own message as tooltip, and a button for the fix."""

    activated = Signal(str)
    fix_requested = Signal(object)

    def __init__(self, problem: Problem, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.problem = problem
        make.named(self, "problem", f"{problem.severity}: {problem.message}")
        self._icon = make.label()
        self._icon.setAlignment(Qt.AlignmentFlag.AlignTop)
        self._icon.setFixedWidth(18)
        words = make.label(problem.message, name="problem_text", wrap=True)
        words.setTextFormat(Qt.TextFormat.PlainText)
        column = make.column(words, gap=theme.GRID // 2)
        if problem.fix is not None:
            make.add(column, (self._fix_button(problem.fix), 0, Qt.AlignmentFlag.AlignLeft))
        icon = (self._icon, 0, Qt.AlignmentFlag.AlignTop)
        make.row(icon, (column, 1), on=self, margins=theme.GRID)

        if problem.block is not None:
            self.setCursor(Qt.CursorShape.PointingHandCursor)
            self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        hints = [problem.detail] if problem.detail else []
        if problem.block is not None:
            hints.append("Click to select the block.")
        self.setToolTip("\n\n".join(hints) or problem.message)
        self._paint()
        theme.notifier.changed.connect(self._paint)

    def _fix_button(self, fix: Fix) -> QPushButton:
        button = make.button("problem_fix", fix.text[:1].upper() + fix.text[1:])
        button.setToolTip(f"Sets {fix.param} to {fix.value!r}. Undo reverts it.")
        button.setAccessibleName(f"Fix: {fix.text}")
        button.setCursor(Qt.CursorShape.ArrowCursor)
        button.clicked.connect(lambda: self.fix_requested.emit(fix))
        return button

    def _paint(self) -> None:
        role = self.problem.severity
        color = theme.current().color(role)
        self._icon.setPixmap(icon(_ICONS[role], role).pixmap(16, 16))
        rgba = f"rgba({color.red()}, {color.green()}, {color.blue()}"
        self.setStyleSheet(
            f"QFrame#problem {{ background: {rgba}, 26); border: 1px solid {rgba}, 90);"
            f" border-radius: 4px; }} QFrame#problem:focus {{ border-color: {rgba}, 255); }}"
        )

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        inside = self.rect().contains(event.position().toPoint())
        if event.button() == Qt.MouseButton.LeftButton and inside:
            self._activate()
        super().mouseReleaseEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space):
            self._activate()
        else:
            super().keyPressEvent(event)

    def _activate(self) -> None:
        if self.problem.block is not None:
            self.activated.emit(self.problem.block)
