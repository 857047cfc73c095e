"""Gradient flow: three initialisations of the same model side by side."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import (
    QWidget,
)

from engine.protocol import WHOLE_SUBJECT, ErrorReport, FlowHistogramsSnapshot, FlowSnapshot
from widgets import make
from widgets.derivatives.flow_column import FlowColumn
from widgets.theme import GRID

FIRST_CHOICE = ("default", "normal_0.01", "normal_1")
MAX_STEPS = 2_000


class FlowView(QWidget):
    """Signals: `run_requested(steps, initialisations)`, `stop_requested()`,
    `histograms_requested(layer, step)`, and `layer_chosen(name)`: the reader has selected a row."""

    run_requested = Signal(int, tuple)
    stop_requested = Signal()
    histograms_requested = Signal(str, int)
    layer_chosen = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("flow_view")
        self._running = False
        words = make.label(
            "Run trains copies of the subject from three initialisations, on the same batches. Its"
            " own weights do not change.",
            "muted",
            wrap=True,
        )
        self.steps = make.spin("flow_steps", "Optimizer steps", low=1, high=MAX_STEPS, value=60)
        self.steps.setToolTip("How many optimizer steps each run takes.")
        self.run = make.button("flow_run", "Run", "mdi6.play", self._run, primary=True)
        self.run.setAccessibleName("Run three trainings")
        self.run.setToolTip("Train from each initialisation and watch the gradients.")
        self.stop = make.button("flow_stop", "Stop", "mdi6.stop", self.stop_requested)
        self.stop.setToolTip("Stop the three runs. Their results so far stay visible.")
        self._problem = make.text("flow_problem", "error", wrap=True)
        self._chosen = make.text("flow_chosen", "muted")
        self.columns = [FlowColumn(i + 1, key) for i, key in enumerate(FIRST_CHOICE)]
        for column in self.columns:
            column.chosen.connect(self.histograms_requested)
            column.layer_chosen.connect(self.layer_chosen)
            column.measured.connect(self._share_colours)
        label = make.label("steps", of=self.steps)
        head = make.row((words, 1), label, self.steps, self.run, self.stop)
        row = make.row(*((column, 1) for column in self.columns), gap=2 * GRID)
        parts = (head, self._problem, (row, 1), self._chosen)
        make.column(*parts, on=self, margins=(2 * GRID, GRID, 2 * GRID, GRID))
        self.setFocusProxy(self.run)
        self.show_problem("")
        self._show_running(False)

    def show_flow(self, snapshot: FlowSnapshot) -> None:
        """Show the progress of a run."""
        for column in self.columns:
            if column.initialisation == snapshot.initialisation:
                column.show_flow(snapshot)
        last = snapshot.initialisation == self._initialisations()[-1]
        over = snapshot.step >= snapshot.steps or bool(snapshot.ended)
        self._show_running(not (last and over) and snapshot.ended != "Stopped.")

    def _share_colours(self) -> None:
        """Give all three heat maps the same colour scale."""
        pictures = [column.picture for column in self.columns]
        ranges = [ends for picture in pictures if any(ends := picture.value_range())]
        ends = (min(low for low, _ in ranges), max(high for _, high in ranges)) if ranges else None
        for picture in pictures:
            picture.set_shared_range(ends)

    def show_histograms(self, snapshot: FlowHistogramsSnapshot) -> None:
        """Show the gradients of one layer in one step, in each run."""
        runs = {run.initialisation: run for run in snapshot.runs}
        for column in self.columns:
            run = runs.get(column.initialisation)  # pyright: ignore[reportArgumentType]
            column.show_histogram(run, snapshot.low, snapshot.high)
            column.mark(snapshot.layer, snapshot.step)
        self._chosen.setText(
            f"Histograms: log₁₀ |gradient| of {snapshot.layer or WHOLE_SUBJECT} in step"
            f" {snapshot.step + 1}."
        )

    def show_problem(self, text: str) -> None:
        make.tell(self._problem, text)

    def show_error(self, error: ErrorReport) -> None:
        self._show_running(False)
        self.show_problem(f"{error.message} {error.hint}".strip())

    def clear(self) -> None:
        """Return to the empty state: another model, or the engine has gone."""
        for column in self.columns:
            column.clear()
        self._chosen.clear()
        self._show_running(False)

    def _run(self) -> None:
        asked = self._initialisations()
        if len(asked) < len(self.columns):
            self.show_problem("Choose three different initialisations to compare.")
            return
        self.clear()
        self.show_problem("")
        self._show_running(True)
        self.run_requested.emit(self.steps.value(), asked)

    def _initialisations(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(column.initialisation for column in self.columns))

    def _show_running(self, running: bool) -> None:
        self._running = running
        self.run.setEnabled(not running)
        self.stop.setEnabled(running)
