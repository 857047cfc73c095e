"""The bar that writes a line of Python for what is selected, and runs it."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QSignalBlocker, Signal
from PySide6.QtGui import QGuiApplication, QPalette
from PySide6.QtWidgets import QFrame, QWidget

from engine.protocol import InitialValues, ModuleRow, WeightRow
from widgets import make
from widgets.structure.python_lines import (
    INITIALISE,
    INITIALISERS,
    OF_BUFFERS,
    OF_MODULES,
    OF_PARAMETERS,
    OF_TWO_PARAMETERS,
    TIE,
    Action,
    action_lines,
    initialising_lines,
    tying_line,
    why_not_tied,
)
from widgets.text import format_number
from widgets.theme import GRID

MAX_LINES = 4
"""The most lines that are shown; the rest stand in the tooltip."""


class ActionBar(QWidget):
    """`run_requested(source)` asks to run lines. `preview_requested(names, function, arguments)`
    asks for what a function of torch.nn.init would give; its answer comes by `show_preview`.
    `preview_ended()`: nothing is to be initialised any more."""

    run_requested = Signal(str)
    preview_requested = Signal(tuple, str, str)
    preview_ended = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._subject = ""
        self._module: ModuleRow | None = None
        self._weights: tuple[WeightRow, ...] = ()
        self.target = make.text("action_target", "heading", width="own")
        self.action = make.combo("action", "What to do", "What the line does to what is selected.")
        self.action.currentIndexChanged.connect(self._on_changed)
        self.function = make.combo(
            "action_function",
            "Function of torch.nn.init",
            "The function of torch.nn.init that fills the selected rows.",
            [(maker.name, maker, maker.tip) for maker in INITIALISERS],
        )
        self.function.currentIndexChanged.connect(self._show_defaults)
        self.arguments = make.field(
            "action_arguments",
            "Arguments of the function",
            "The arguments after the tensor, as Python writes constants: std=0.02.",
            mono=True,
        )
        self.arguments.textChanged.connect(self._on_changed)
        self.run_button = make.button(
            "action_run", "Run", "mdi6.play", self._run, tip="Run the line."
        )
        self.copy_button = make.tool_button(
            "action_copy",
            "mdi6.content-copy",
            "Copy the line of Python.",
            self.copy,
            accessible="Copy the line",
        )
        self.line = make.text("action_line", mono=9)
        self.told = make.text("action_told", "muted", wrap=True)
        self._lay_out()
        self._show_defaults()
        self.show_module(None)

    @property
    def source(self) -> str:
        """The lines that Run would run; empty if nothing is selected."""
        return "\n".join(self._lines())

    # -- what is shown ---------------------------------------------------------------------------

    def show_subject(self, expression: str, where: str) -> None:
        """`expression` is what a line calls the subject; `where` says where the line runs."""
        self._subject = expression
        self.run_button.setToolTip(where)
        self._on_changed()

    def show_module(self, module: ModuleRow | None) -> None:
        """A module is selected."""
        self._module, self._weights = module, ()
        self.target.setText((module.path or "The whole subject") if module else "")
        self._offer(OF_MODULES)

    def show_weights(self, weights: tuple[WeightRow, ...]) -> None:
        """Rows of parameters and buffers are selected."""
        self._weights = weights
        self.target.setText(weights[0].name if len(weights) == 1 else f"{len(weights):,} rows")
        has_buffer = any(row.kind == "buffer" for row in weights)
        of_parameters = OF_TWO_PARAMETERS if len(weights) == 2 else OF_PARAMETERS
        self._offer(OF_BUFFERS if has_buffer else of_parameters)

    def show_preview(self, rows: Sequence[InitialValues]) -> None:
        """Tell what initialising would give; with a problem, the line is not run."""
        problem = next((row for row in rows if row.problem), None)
        if problem is not None:
            self.tell(f"{problem.name}: {problem.problem}", "error")
            self.run_button.setEnabled(False)
        elif len(rows) == 1:
            mean, std = format_number(rows[0].mean), format_number(rows[0].std)
            self.tell(f"This gives mean {mean} and std {std}.")
        else:
            self.tell("Mean and Std of the rows show what this gives.")

    def refuse(self, problem: str) -> None:
        """Tell why there is no preview; the line is not run."""
        self.tell(problem, "error")
        self.run_button.setEnabled(False)

    def tell(self, text: str, role: str = "muted") -> None:
        """Say what came of a line."""
        make.set_role(self.told, role)
        make.tell(self.told, text)

    # -- what the reader wants -------------------------------------------------------------------

    def copy(self) -> None:
        QGuiApplication.clipboard().setText(self.source)

    def _run(self) -> None:
        self.run_requested.emit(self.source)

    def _offer(self, actions: Sequence[Action]) -> None:
        before = self.action.currentText()
        if [self.action.itemData(i) for i in range(self.action.count())] != list(actions):
            with QSignalBlocker(self.action):
                self.action.clear()
                make.add_choices(self.action, [(a.title, a, a.tip) for a in actions])
                self.action.setCurrentIndex(max(self.action.findText(before), 0))
        self._on_changed()

    def _show_defaults(self) -> None:
        self.arguments.setText(self.function.currentData().arguments)
        self._on_changed()

    def _on_changed(self) -> None:
        initialises = self.action.currentData() == INITIALISE
        self.function.setVisible(initialises)
        self.arguments.setVisible(initialises)
        lines = self._lines()
        if "\n".join(lines) != self.line.toolTip():
            self._show_lines(lines)
            self.tell("")
        if self.action.currentData() == TIE and (why := why_not_tied(*self._weights)):
            self.tell(why, "error")
        self.run_button.setEnabled(bool(lines))
        self.copy_button.setEnabled(bool(lines))
        if initialises and lines:
            names = tuple(row.name for row in self._weights)
            function = self.function.currentData().name
            self.preview_requested.emit(names, function, self.arguments.text())
        else:
            self.preview_ended.emit()

    def _show_lines(self, lines: list[str]) -> None:
        shown = lines[:MAX_LINES]
        if len(lines) > MAX_LINES:
            shown[-1] = f"# and {len(lines) - MAX_LINES + 1:,} more lines"
        self.line.setText("\n".join(shown))
        self.line.setToolTip("\n".join(lines))

    def _lines(self) -> list[str]:
        action: Action | None = self.action.currentData()
        if action is None or not self._subject:
            return []
        if action == INITIALISE:
            function, arguments = self.function.currentData().name, self.arguments.text()
            return initialising_lines(function, arguments, self._subject, self._weights)
        if action == TIE:
            is_possible = not why_not_tied(*self._weights)
            return [tying_line(self._subject, *self._weights)] if is_possible else []
        module = [self._module] if self._module else []
        return action_lines(action, self._subject, self._weights or module)

    def _lay_out(self) -> None:
        edge = QFrame()
        edge.setFrameShape(QFrame.Shape.HLine)
        edge.setFrameShadow(QFrame.Shadow.Plain)
        edge.setForegroundRole(QPalette.ColorRole.Mid)
        edge.setFixedHeight(1)
        choices = make.row(
            self.target,
            self.action,
            self.function,
            (self.arguments, 1),
            make.Stretch(0),
            self.run_button,
        )
        self.function.setMinimumContentsLength(max(len(maker.name) for maker in INITIALISERS))
        lines = make.row((self.line, 1), self.copy_button)
        inside = make.column(choices, lines, self.told, gap=GRID // 2, margins=(GRID, 0, GRID, 0))
        make.column(edge, inside, on=self, gap=GRID)
