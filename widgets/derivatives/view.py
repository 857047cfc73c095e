"""Derivatives of any function of the console, or of the model."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QPushButton,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from engine.project.examples import DerivativeExample, derivative_examples
from engine.protocol import (
    Command,
    DerivativeCommand,
    DerivativeSnapshot,
    EntrySnapshot,
    ErrorReport,
    GradcheckCommand,
    GradcheckSnapshot,
    ReadEntryCommand,
    Variable,
)
from widgets import make
from widgets.derivatives.form import DerivativeForm
from widgets.derivatives.gradcheck_result import GradcheckResult
from widgets.derivatives.result import DerivativeResult
from widgets.theme import GRID

_RUN_TIP = "Run this line in the console. Its result stays there as a variable."
_RUN_EXAMPLE_TIP = (
    "This line is for reading only: the example has its own variables, not the console's."
)
_RUN_MODEL_TIP = (
    "This line is for reading only: the model on the canvas is not a variable of the console."
)
EMPTY_TEXT = (
    "Type a function and the tensors to call it with, then press Compute. Leave both empty for"
    " the model on the canvas, at the first sample of its batch."
)


class DerivativeView(QWidget):
    """Emits `asked(Command)`, `interrupt_requested()`, `run_requested(source)` for Python to be run
    in the console, `trace_requested(source)` for Python of the console to be stepped through, and
    `example_trace_requested(source)` for that of an example."""

    asked = Signal(object)
    interrupt_requested = Signal()
    trace_requested = Signal(str)
    example_trace_requested = Signal(str)
    run_requested = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("derivative_view")
        self.form = DerivativeForm()
        self.example: DerivativeExample | None = None
        """The example that the function in the form belongs to; None for one of the console."""
        self.form.asked.connect(self._ask)
        self.form.function.textEdited.connect(self._leave_example)
        self.form.problem.connect(self._show_problem)
        self._code = make.text("derivative_code", mono=10)
        self._code.setToolTip("The line of Python that computes the same.")
        self._run = make.button(
            "derivative_run", "Run in console", "mdi6.console-line", self._run_code, tip=_RUN_TIP
        )
        self._of_model = False
        self._run.setEnabled(False)
        self._steps = make.button(
            "derivative_steps", "Step its lines", "mdi6.debug-step-over", self._trace
        )
        self._steps.setToolTip(
            "Run the function at these inputs, forward and backward, and step through its lines in"
            " the tab Forward, op by op."
        )
        self._interrupt = make.button(
            "derivative_interrupt", "Interrupt", "mdi6.stop", self.interrupt_requested
        )
        self._interrupt.setToolTip(
            "Stop a function that takes too long. Results so far stay visible."
        )
        self._problem = make.text("derivative_problem", "error", wrap=True)
        self._hint = make.text("derivative_hint", wrap=True)
        self.result = DerivativeResult()
        self.result.entry_chosen.connect(
            lambda row, column: self.asked.emit(ReadEntryCommand(row=row, column=column))
        )
        self.check = GradcheckResult()
        self._pages = QStackedWidget()
        self._empty = self._make_empty()
        for page in (self._empty, self.result, self.check):
            self._pages.addWidget(page)
        buttons = (self._interrupt, self._make_examples(), self._steps, self._run)
        line = make.row((self._code, 1), *buttons)
        parts = (self.form, line, self._problem, self._hint, (self._pages, 1))
        make.column(*parts, on=self, margins=(2 * GRID, GRID, 2 * GRID, GRID))
        self.setFocusProxy(self.form.function)
        self._show_problem("")
        self._show_running(False)

    def _make_empty(self) -> QWidget:
        words = make.label(EMPTY_TEXT, "muted", wrap=True)
        words.setAlignment(Qt.AlignmentFlag.AlignCenter)
        gelu = derivative_examples()["custom_gelu"]
        example = make.button("derivative_example", "Try a custom GELU", "mdi6.school-outline")
        example.setToolTip("Define GELU as an autograd.Function, and check it.")
        example.clicked.connect(lambda: self._try(gelu))
        steps = make.button("derivative_trace", "Step through its lines", "mdi6.debug-step-over")
        steps.setToolTip("Run the same GELU, forward and backward, op by op beside its lines.")
        steps.clicked.connect(lambda: self.example_trace_requested.emit(gelu.code + gelu.call))
        row = make.row(make.STRETCH, example, steps, make.STRETCH)
        page = QWidget()
        column = QVBoxLayout(page)
        for part in (make.STRETCH, words, GRID, row, make.Stretch(2)):
            make.add(column, part)
        return page

    def _make_examples(self) -> QPushButton:
        button = make.button("derivative_examples", "Examples", "mdi6.school-outline")
        button.setToolTip(
            "Define a function and compute its derivative, or check it. The console's variables do"
            " not change."
        )
        menu = make.menu(button, tips=True)
        for example in derivative_examples().values():
            make.action(menu, example.title, lambda each=example: self._try(each), tip=example.tip)
        menu.addSeparator()
        gelu = derivative_examples()["custom_gelu"]
        make.action(
            menu,
            "Step through the GELU's lines",
            lambda: self.example_trace_requested.emit(gelu.code + gelu.call),
            tip="Forward and backward, op by op beside the code.",
        )
        return button

    # -- showing ---------------------------------------------------------------------------------

    def show_variables(self, variables: Sequence[Variable]) -> None:
        self.form.show_variables(variables)

    def show_answer(self, snapshot: DerivativeSnapshot | GradcheckSnapshot) -> None:
        """Show a derivative (again as its comparisons arrive) or the verdict of a check."""
        self.form.compute.setEnabled(True)
        self._show_running(isinstance(snapshot, DerivativeSnapshot) and not snapshot.complete)
        self._show_problem("")
        self._code.setText(snapshot.code)
        self._run.setEnabled(not self._of_model and self.example is None)
        tip = _RUN_TIP if self.example is None else _RUN_EXAMPLE_TIP
        self._run.setToolTip(_RUN_MODEL_TIP if self._of_model else tip)
        if isinstance(snapshot, GradcheckSnapshot):
            self.check.show_check(snapshot)
            self._pages.setCurrentWidget(self.check)
        else:
            self.result.show_derivative(snapshot)
            self._pages.setCurrentWidget(self.result)

    @property
    def is_of_model(self) -> bool:
        """Whether the last question is about the model on the canvas."""
        return self._of_model

    def show_entry(self, snapshot: EntrySnapshot) -> None:
        self.result.show_entry(snapshot)

    def show_error(self, error: ErrorReport) -> None:
        """Show why the question cannot be answered; the last result stays."""
        self.form.compute.setEnabled(True)
        self._show_running(False)
        name = "" if error.type == "LabError" else error.type
        self._show_problem(": ".join(filter(None, (name, error.message))), error.hint)

    def tell_old(self) -> None:
        """The variables that the result was computed from have changed since."""
        if self._pages.currentWidget() is not self._empty:
            self._show_problem(
                "", "The variables of this result have changed since: compute again."
            )

    def clear(self) -> None:
        """Return to the empty state: the engine was lost."""
        self.form.compute.setEnabled(True)
        self._show_running(False)
        self._show_problem("")
        self._code.clear()
        self._run.setEnabled(False)
        self._of_model = False
        self._pages.setCurrentWidget(self._empty)

    def _show_running(self, running: bool) -> None:
        self._interrupt.setVisible(running)

    def _show_problem(self, text: str, hint: str = "") -> None:
        make.tell(self._problem, text)
        make.tell(self._hint, hint)

    # -- asking ----------------------------------------------------------------------------------

    def _run_code(self) -> None:
        self.run_requested.emit(self._code.text())

    def _trace(self) -> None:
        code = self.form.code_to_trace()
        if code and self.example is not None:
            self.example_trace_requested.emit(self.example.code + code)
        elif code:
            self.trace_requested.emit(code)
        else:
            self._show_problem(
                "",
                "Type a function first. To step through the model on the canvas, choose Batch of"
                " the model in the tab Forward.",
            )

    def _ask(self, command: Command) -> None:
        self.form.compute.setEnabled(False)
        self._show_running(True)
        self._show_problem("")
        if isinstance(command, DerivativeCommand | GradcheckCommand):
            self._of_model = not command.function
        self.asked.emit(command)

    def _try(self, example: DerivativeExample) -> None:
        self.example = example
        self.form.show_question(example.kind, example.function, example.inputs)
        self.form.ask()

    def _leave_example(self) -> None:
        self.example = None
