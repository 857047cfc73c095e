"""Operations explained before they run: a line, and the predicted result of each operation."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace
from PySide6.QtCore import QSignalBlocker, QTimer, Signal
from PySide6.QtWidgets import (
    QWidget,
)

from engine.protocol import (
    ErrorReport,
    ExplainCommand,
    ExplainedStep,
    ExplanationSnapshot,
    Variable,
)
from widgets import make
from widgets.operations.operation_list import OperationList
from widgets.operations.operation_table import Operation, line_for
from widgets.operations.step_card import StepCard
from widgets.shapes.operand_fields import ExpressionField
from widgets.theme import GRID

PAUSE_MS = 150
"""The line is explained after this pause in typing, in milliseconds."""
EMPTY_TEXT = (
    "Pick an operation, or type a line such as y = x.T.reshape(-1). Its result is explained here"
    " before it runs: shape, strides, and whether it is a view or a copy."
)
NO_TENSOR_TEXT = "There is no tensor yet: make one in the console or with the form Create."


class OperationView(QWidget):
    """Emits `asked(ExplainCommand)` when the line changes, and shows the answer.
    `run_requested(str)` asks to run the line in the console."""

    asked = Signal(object)
    run_requested = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("operation_view")
        self._variables: dict[str, Variable] = {}
        self._expression = ""
        self._picked: Operation | None = None
        self._filled = ""  # the line of the picked operation
        self._shown: ExplanationSnapshot | None = None
        self._pause = QTimer(self, singleShot=True, interval=PAUSE_MS)
        self._pause.timeout.connect(self.refresh)
        self.list = OperationList()
        self.list.picked.connect(self._pick)
        self.line = ExpressionField(
            "operation_line",
            "Line to explain",
            "One line of Python: one operation or a chain of them, an assignment to an element,"
            " or an in-place operation (x += 1). Nothing runs while you type.",
        )
        self.line.setPlaceholderText("y = x.view(3, -1)")
        self.line.textEdited.connect(self._on_typed)
        self.line.returnPressed.connect(self._check)
        self.check_button = make.button(
            "operation_check",
            "Check",
            "mdi6.check-all",
            self._check,
            accessible="Check against torch",
        )
        self.check_button.setToolTip(
            "Run the line without changing any variable, and compare the prediction with"
            " PyTorch's result. A line that writes runs on copies."
        )
        self.run_button = make.button(
            "operation_run", "Run", "mdi6.play", accessible="Run in the console"
        )
        self.run_button.setToolTip("Run this line in the console, and keep it in its history.")
        self.run_button.clicked.connect(lambda: self.run_requested.emit(self.source))
        self.problem = make.text("operation_problem", "error", wrap=True)
        self.hint = make.text("operation_hint", wrap=True)
        self.note = make.text("operation_note", "muted", wrap=True)
        self.verdict = make.text("operation_verdict", "success")
        self.cards: list[StepCard] = []
        self._lay_out()
        self._show_nothing()

    def _lay_out(self) -> None:
        inside = QWidget()
        self._body = make.column(make.STRETCH, on=inside, margins=(0, 0, 0, GRID))
        scroll = make.scroll(inside, sideways=True)
        scroll.setObjectName("operation_steps")
        top = make.row((self.line, 1), self.check_button, self.run_button)
        words = (self.problem, self.note, self.hint, self.verdict)
        column = make.column(top, *words, (scroll, 1))
        parts = (self.list, (column, 1))
        make.row(*parts, on=self, gap=2 * GRID, margins=(GRID, GRID, GRID, 0))

    @property
    def source(self) -> str:
        """The current line."""
        return self.line.text().strip()

    # -- for the assembly ------------------------------------------------------------------------

    def refresh(self) -> None:
        """Ask again about the current line."""
        self._pause.stop()
        if self.source:
            self.asked.emit(ExplainCommand(source=self.source))
        else:
            self._show_nothing()

    def show_variables(self, variables: Sequence[Variable]) -> None:
        self._variables = {variable.name: variable for variable in variables}

    def show_expression(self, expression: str) -> None:
        """Use another tensor: fill the picked operation in for it, unless it is the result of that
        line. A line that the user typed stays."""
        self._expression = expression
        own = self._filled.startswith(f"{expression} = ")
        if expression and self._picked is not None and not own:
            self._pick(self._picked)
        elif not self.source:
            self._show_nothing()

    def show_snapshot(self, snapshot: ExplanationSnapshot) -> None:
        if snapshot.source != self.source:
            return  # the line has changed since: its own answer will come
        if (
            self._shown is not None
            and self._shown.ran
            and _has_same_predictions(self._shown, snapshot)
        ):
            return  # the answer with torch's results is still right
        self._shown = snapshot
        self._show_words(snapshot.problem, snapshot.note, snapshot.hint)
        self.run_button.setEnabled(bool(snapshot.steps or snapshot.note))
        self.check_button.setEnabled(bool(snapshot.steps))
        self._show_steps(snapshot.steps)
        self._show_verdict(snapshot)

    def forget(self, why: str) -> None:
        """Show `why` in place of the explanation: the tensors of the line no longer exist. The line
        stays, and the next `refresh` explains it again."""
        self._pause.stop()
        if self.source:
            self._show_nothing()
            self._show_words("", why, "")

    def start_anew(self) -> None:
        """Show the state at the start: nothing picked, no line."""
        self._pause.stop()
        self._picked, self._filled = None, ""
        self.list.let_go()
        self.line.show_text("")
        self._show_nothing()

    def show_error(self, error: ErrorReport) -> None:
        """Show why the question could not be answered."""
        self._shown = None
        self._show_steps(())
        self._show_words(error.message, "", error.hint)
        self.verdict.hide()

    # -- what the reader does --------------------------------------------------------------------

    def _pick(self, operation: Operation) -> None:
        if not self._expression:
            self.list.let_go()
            self._show_words("", NO_TENSOR_TEXT, "")
            return
        variable = self._variables.get(self._expression)
        shape = None if variable is None else variable.shape
        self._picked = operation
        self._filled = line_for(
            operation, self._expression, shape, self._partner(variable), self._variables
        )
        if self._filled != self.line.text():
            with QSignalBlocker(self.line):
                self.line.selectAll()
                self.line.insert(self._filled)  # setText would clear the undo history
        self.refresh()

    def _partner(self, variable: Variable | None) -> str:
        """The newest other tensor of the same shape and dtype; empty if there is none."""
        if variable is None:
            return ""
        like = [
            other.name
            for other in self._variables.values()
            if (other.kind, other.shape, other.dtype)
            == (variable.kind, variable.shape, variable.dtype)
            and other.name != variable.name
        ]
        return like[-1] if like else ""

    def _on_typed(self) -> None:
        self._picked = None
        self._filled = ""
        self.list.let_go()
        for button in (self.check_button, self.run_button):
            button.setEnabled(bool(self.source))
        self._pause.start()

    def _check(self) -> None:
        self._pause.stop()
        if self.source:
            self.asked.emit(ExplainCommand(source=self.source, run=True))

    # -- what is shown ---------------------------------------------------------------------------

    def _show_nothing(self) -> None:
        self._shown = None
        self._show_steps(())
        self._show_words("", EMPTY_TEXT if self._expression else NO_TENSOR_TEXT, "")
        self.verdict.hide()
        self.check_button.setEnabled(False)
        self.run_button.setEnabled(False)

    def _show_words(self, problem: str, note: str, hint: str) -> None:
        for label, text in ((self.problem, problem), (self.note, note), (self.hint, hint)):
            make.tell(label, text)

    def _show_steps(self, steps: Sequence[ExplainedStep]) -> None:
        while len(self.cards) < len(steps):
            card = StepCard()
            self._body.insertWidget(len(self.cards), card)
            self.cards.append(card)
        for number, card in enumerate(self.cards):
            card.setVisible(number < len(steps))
        for card, step in zip(self.cards, steps, strict=False):
            card.show_step(step)

    def _show_verdict(self, snapshot: ExplanationSnapshot) -> None:
        facts = [fact for step in snapshot.steps for fact in step.facts]
        agrees = all(fact.agrees for fact in facts)
        self.verdict.setText(
            "✓ PyTorch does what was predicted."
            if agrees
            else "✗ PyTorch gives something else: see the rows with a cross."
        )
        make.set_role(self.verdict, "success" if agrees else "error")
        self.verdict.setVisible(snapshot.ran)


def _has_same_predictions(shown: ExplanationSnapshot, snapshot: ExplanationSnapshot) -> bool:
    """Whether `snapshot`, which has not run, has the same predictions as `shown`."""
    if snapshot.ran or (snapshot.source, snapshot.problem) != (shown.source, shown.problem):
        return False
    return _predictions(shown) == _predictions(snapshot)


def _predictions(snapshot: ExplanationSnapshot) -> tuple[ExplainedStep, ...]:
    return tuple(
        replace(step, facts=(), actual=(), error="", failed=None) for step in snapshot.steps
    )
