"""The base of the views of broadcasting, reductions, products and indexing: controls on top, the
Python line with a button that runs it, torch's error in words with the operands that failed, and
a picture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from PySide6.QtCore import Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QStyle, QWidget

from engine.protocol import Command, ErrorReport, Snapshot
from widgets.make import (
    STRETCH,
    Part,
    Stretch,
    add,
    button,
    column,
    page,
    row,
    scroll,
    tell,
    text,
)
from widgets.shapes.cells_grid import Index
from widgets.shapes.cells_row import CellsRow
from widgets.shapes.failure_view import FailureView
from widgets.theme import GRID

PYTHON_NAME = "shape_code"


class ShapeView(QWidget):
    """Emits `asked(Command)` whenever its inputs change, and shows the answer.

    The presenter sends the command to the engine. It passes an answer of type `ANSWER` to
    `show_snapshot`, and the error of a `QUESTION` to `show_error`. It calls `refresh` when the view
    becomes visible and after each cell of the console, `show_names` with the names of the tensors,
    and `show_expression` when another variable is selected.
    """

    QUESTION: ClassVar[type[Command]]
    ANSWER: ClassVar[type[Snapshot]]

    asked = Signal(object)
    run_requested = Signal(str)
    element_selected = Signal(str, object)
    """(expression, index) of a clicked element, if its tensor is one of the console's."""

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName(name)
        self._snapshot: Any = None
        self._cells: CellsRow | None = None
        self.controls = row()
        self._code = text(
            PYTHON_NAME,
            tip="The line of Python for what is shown. Run runs it in the console.",
            mono=10,
        )
        self._run = button(
            "shape_run",
            "Run",
            "mdi6.play",
            lambda: self.run_requested.emit(self._code.text()),
            tip="Run this line in the console, and keep it in its history.",
            accessible="Run the Python line",
        )
        self._run.setEnabled(False)
        tip = "PyTorch's own message in full."
        self._error = text("shape_error", "error", tip=tip, wrap=True, mono=9)
        self._hint = text("shape_hint", wrap=True)
        self.failed = FailureView()
        self.body = column(margins=GRID)
        self._picture = QWidget()
        self._picture.setLayout(self.body)
        # Messages of torch may have dozens of lines, so they are in the scrolled part. Without a
        # picture, they are at its top.
        inside = page(self._error, self._hint, self.failed, (self._picture, 1), Stretch(0))
        column(
            self.controls,
            row((self._code, 1), self._run),
            (scroll(inside, sideways=True), 1),
            on=self,
            margins=(GRID, GRID, GRID, 0),
        )
        self._show_problem(None)

    # -- for the assembly ------------------------------------------------------------------------

    def refresh(self) -> None:
        """Ask again with the current inputs."""
        self._ask(None if self._snapshot is None else self._snapshot.element)

    def show_snapshot(self, snapshot: Any) -> None:
        raise NotImplementedError

    def show_expression(self, expression: str, shape: Index | None = None) -> None:
        """Use the tensor that the user selected, of this shape if it is known."""

    def show_names(self, names: Sequence[str]) -> None:
        """Set the names of tensors that completion offers."""

    def show_error(self, error: ErrorReport) -> None:
        """Show why the question could not be answered. The last answer stays."""
        self._run.setEnabled(False)
        self._show_problem(error)

    def forget(self, why: str) -> None:
        """Show `why` in place of the answer, whose tensors no longer exist, until the next answer.
        What the user typed stays."""
        self._code.setText("")
        self._run.setEnabled(False)
        self._show_problem(None)
        tell(self._hint, why)
        self._picture.hide()

    # -- for the views ---------------------------------------------------------------------------

    def _fill(self, controls: Sequence[Part], body: Sequence[Part]) -> None:
        """Lay out the controls on top, and `body` under the Python line."""
        for layout, parts in ((self.controls, controls), (self.body, (*body, STRETCH))):
            for part in parts:
                add(layout, part)

    def _question(self, element: Index | None) -> Command | None:
        """The command that asks about an element of the result; None if nothing is typed."""
        raise NotImplementedError

    def _ask(self, element: Index | None) -> None:
        question = self._question(element)
        if question is not None:
            self.asked.emit(question)

    def _arrange(self) -> None:
        """Place the grids of `_cells` within the available width."""
        if self._cells is not None:
            self._cells.arrange(self._room())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

    def _room(self) -> int:
        """The width in pixels that the picture can take without scrolling sideways."""
        bar = self.style().pixelMetric(QStyle.PixelMetric.PM_ScrollBarExtent)
        return self.width() - 4 * GRID - bar

    def _show_answer(self, snapshot: Any) -> None:
        self._snapshot = snapshot
        self._code.setText(snapshot.code)
        self._run.setEnabled(True)
        self._picture.show()
        self._show_problem(snapshot.error)

    def _show_problem(self, error: ErrorReport | None) -> None:
        name = "" if error is None or error.type == "LabError" else f"{error.type}: "
        tell(self._error, "" if error is None else f"{name}{error.message}")
        tell(self._hint, "" if error is None else error.hint)
        operands = None if error is None else error.operands
        self.failed.show_failed(operands)
        self.failed.setVisible(operands is not None)
