"""The phases of one optimizer step, lit as they run by hand, with their numbers."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import Signal
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QFrame, QWidget

from engine.project.step_order import PHASES, Phase, unusual_words
from engine.protocol import RunSnapshot, StepNumbers, StepUnit, TrainingSnapshot
from widgets import make, theme
from widgets.text import format_number

_TIPS: dict[Phase, str] = {
    "zero_grad": "optimizer.zero_grad(): each parameter's .grad becomes None. Without it, backward"
    " adds to the gradient of the step before.",
    "forward": "prediction = model(x): the shape of the prediction. A step that you have written"
    " yourself makes prediction and loss in one.",
    "loss": "loss = loss_fn(prediction, y): one number, the mean over the batch.",
    "backward": "loss.backward(): each parameter gets its gradient. The number is the 2-norm of all"
    " of them together, before clipping.",
    "step": "optimizer.step(): each parameter moves. The number is the 2-norm of the change of all"
    " of them together; it is measured in steps that run by hand.",
}


_UNITS: dict[StepUnit, tuple[str, str]] = {
    "op": (
        "op",
        "Hold the run's own step after its next call of torch; in backward after the next node of"
        " the graph, which Autograd shows. Tensors has the variables there.",
    ),
    "module": (
        "module",
        "Hold the run's own step where the next module has returned; in backward after the last"
        " node in a row of a module.",
    ),
    "phase": (
        "phase",
        "Run the next phase of the step: zero_grad, forward, loss, backward or step. Between two"
        " phases everything can be looked at: the gradients under Parameters, say.",
    ),
    "batch": (
        "batch",
        "Run the phases of the next of the batches whose gradients the step adds up; after the last"
        " one, the rest of the step.",
    ),
    "epoch": ("epoch", "Let the run go on, and pause after the validation of this epoch."),
}


class PhaseStrip(QFrame):
    """Shown while a run of Train is paused. `step_requested(unit)`: go on by this unit."""

    step_requested = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        make.named(self, "phase_strip", "The phases of a step")
        self.buttons = {
            unit: make.tool_button(
                f"{unit}_button",
                tip=tip,
                slot=partial(self.step_requested.emit, unit),
                text=text,
                accessible=f"Next {text}",
                framed=True,
            )
            for unit, (text, tip) in _UNITS.items()
        }
        self.cells = {phase: _Cell(phase) for phase in PHASES}
        self._row = make.row(gap=theme.GRID // 2)
        for cell in self.cells.values():
            self._row.addWidget(cell, 1)
        self._words = make.text("phase_words", "muted", wrap=True)
        half = theme.GRID // 2
        head = make.row(make.label("Next"), *self.buttons.values(), (self._words, 1), gap=half)
        make.column(head, self._row, on=self, gap=half)
        self.hide()

    def show_run(self, run: RunSnapshot) -> None:
        """Show the numbers of the run's step, if it is paused."""
        is_paused = isinstance(run, TrainingSnapshot) and run.state == "paused"
        self.setVisible(is_paused)
        if not isinstance(run, TrainingSnapshot) or not is_paused:
            return
        numbers = run.step_numbers
        order = PHASES if numbers is None else numbers.order
        for place, phase in enumerate((*order, *(p for p in PHASES if p not in order))):
            cell = self.cells[phase]
            self._row.removeWidget(cell)
            self._row.insertWidget(place, cell, 1)
            is_done = numbers is not None and phase in numbers.done
            text = "left out" if phase not in order else _number(phase, numbers) if is_done else ""
            cell.show_number(is_done, text)
        has_next = run.total_steps == 0 or run.step < run.total_steps
        for unit, button in self.buttons.items():
            is_there = numbers is not None and numbers.batches > 1 if unit == "batch" else True
            button.setVisible(is_there and (unit in ("phase", "epoch") or run.processes == 1))
            button.setEnabled(has_next)
        self._words.setText(_words(numbers, run.is_in_step))


class _Cell(QFrame):
    """One phase: its name, and under it its number."""

    def __init__(self, phase: Phase) -> None:
        super().__init__()
        make.named(self, f"phase_{phase}", phase, _TIPS[phase])
        self.is_done = False
        self._name = make.label(phase)
        self._name.setFont(theme.mono_font(10))
        self.number = make.text(f"phase_{phase}_number", "muted")
        make.column(
            self._name, self.number, on=self, gap=0, margins=(theme.GRID, 4, theme.GRID // 2, 4)
        )

    def show_number(self, is_done: bool, text: str) -> None:
        self.is_done = is_done
        self.number.setText(text)
        self.setAccessibleDescription(f"{'done' if is_done else 'not run yet'} {text}".strip())
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        """A band at the left edge and a quiet ground in the accent colour once it has run."""
        colors = theme.current()
        painter = QPainter(self)
        name = "accent" if self.is_done else "muted"
        painter.fillRect(self.rect(), colors.color(name, 40 if self.is_done else 16))
        painter.fillRect(0, 0, 3, self.height(), colors.color(name, 255 if self.is_done else 90))


def _number(phase: Phase, numbers: StepNumbers | None) -> str:
    if numbers is None:
        return ""
    if phase in numbers.unmeasured:
        return "not measured"
    match phase:
        case "zero_grad":
            return "cleared"
        case "forward":
            return str(numbers.prediction) if numbers.prediction else "inside your step"
        case "loss":
            return "" if numbers.loss is None else format_number(numbers.loss, 5)
        case "backward":
            norm = numbers.gradient_norm
            return "no grad" if norm is None else f"grad {format_number(norm, 4)}"
        case "step":
            norm = numbers.update_norm
            return "" if norm is None else f"update {format_number(norm, 4)}"


def _words(numbers: StepNumbers | None, is_in_step: bool) -> str:
    if numbers is None:
        return ""
    of = f"step {numbers.number:,}"
    where = f"Inside {of}" if is_in_step else f"After {of}"
    if numbers.place:
        where += f", {numbers.place}"
    if numbers.batches > 1:
        where += f", {numbers.batches_done} of {numbers.batches} batches"
    unusual = unusual_words(numbers.order)
    return f"{where}. {unusual}" if unusual else f"{where}."
