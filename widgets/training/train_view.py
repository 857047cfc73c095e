"""The Train workspace: the set-up on the left, the run and its plots on the right."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

from PySide6.QtCore import QTimer, Signal
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QStackedLayout, QWidget

from engine.project.document import TrainingSetup
from engine.protocol import (
    Device,
    EpochRow,
    KeptRunSnapshot,
    LoopSnapshot,
    RunSnapshot,
    TrainingMemory,
    TrainingSnapshot,
)
from widgets import make
from widgets.advice.note_list import FindingList
from widgets.predictions.prediction_pane import PredictionPane
from widgets.runs.run_pane import RunPane
from widgets.text import format_bytes, format_number, format_percent
from widgets.theme import GRID
from widgets.training.checks.check_pane import CheckPane
from widgets.training.landscape.landscape_pane import LandscapePane
from widgets.training.parameter_pane import ParameterPane
from widgets.training.plots.figure_plots import figure_plot, is_watched, place_of
from widgets.training.plots.overlay import overlay_of
from widgets.training.plots.plots import LivePlot
from widgets.training.plots.series import Series
from widgets.training.run_bar import DIVERGED, EngineState, RunBar
from widgets.training.settings.setup_form import SetupForm
from widgets.training.steps.hold_note import HoldNote
from widgets.training.steps.phase_strip import PhaseStrip
from widgets.vertical_scroll import VerticalScroll

FRAME_MS = 16
"""The shortest time between two repaints of the plots: a display's frame."""
PLOTS_PER_FRAME = 2
"""The number of plots painted in one frame: all six would take longer than that."""
MIB = 2**20
GOING_NOTE = (
    "The optimizer's numbers, modules with their own options and clipping apply from the next step"
    " on. All other changes apply once the run has gone to a step (Back), or to the next run."
)
COLUMNS = 2
FIRST_COLOR = 3
"""The colour of the first run that is drawn over the plots; a run's own lines have those before."""
MAX_FIGURES = 8
"""As many figures of the user's step get a plot."""


def _plots() -> dict[str, LivePlot]:
    """The six plots by name. The key of a series is the name of the column that it shows."""
    return {
        "loss": LivePlot(
            "Loss",
            "",
            (
                Series("loss", "train step", 0, tip="train step: of one batch"),
                Series("train_loss", "train epoch", 1, True, "train epoch: mean over one epoch"),
                Series("validation_loss", "validation", 2, True, "validation: on data held out"),
            ),
            tip="What training minimises. If validation rises while train falls, the model"
            " overfits.",
        ),
        "accuracy": LivePlot(
            "Accuracy",
            "%",
            (
                Series("accuracy", "train step", 0, tip="train step: of one batch"),
                Series("train_accuracy", "train epoch", 1, True, "train epoch: over one epoch"),
                Series(
                    "validation_accuracy", "validation", 2, True, "validation: on data held out"
                ),
            ),
            text=lambda percent: format_percent(percent / 100),
            tip="Share of samples whose class the model gets right.",
        ),
        "gradient_norm": LivePlot(
            "Gradient norm",
            "",
            (Series("gradient_norm", "2-norm", 3, tip="2-norm over all parameters"),),
            tip="The norm of the gradient of all parameters. It keeps growing: the learning"
            " rate is too high. It is near zero: the model does not learn.",
        ),
        "learning_rate": LivePlot(
            "Learning rate",
            "",
            (Series("learning_rate", "lr", 4, tip="lr of the first parameter group"),),
            tip="How far each step goes along the gradient.",
        ),
        "step_ms": LivePlot(
            "Step time",
            "ms",
            (Series("step_ms", "step", 5, tip="wall clock of one optimizer step"),),
            text=lambda ms: f"{format_number(ms, 3)} ms",
            tip="Wall clock of one step: forward, backward, update; the device synchronised.",
        ),
        "memory": LivePlot(
            "Memory",
            "MiB",
            (
                Series("rss_bytes", "process", 0, tip="process: resident memory of the engine"),
                Series("cuda_allocated_bytes", "CUDA allocated", 1, tip="held by live tensors"),
                Series("cuda_reserved_bytes", "CUDA reserved", 2, tip="taken from the driver"),
            ),
            text=lambda mib: format_bytes(mib * MIB),
            tip="Memory of the engine's process, and on CUDA of torch's allocator.",
        ),
    }


def memory_text(memory: TrainingMemory) -> str:
    """The memory that training takes, in one line; empty while it is not known."""
    parts = (
        ("parameters", memory.parameter_bytes),
        ("gradients", memory.gradient_bytes),
        ("optimizer", memory.optimizer_bytes),
        ("buffers", memory.buffer_bytes),
    )
    known = (
        f"{name} {format_bytes(size)}".replace(" ", "\N{NO-BREAK SPACE}")
        for name, size in parts
        if size
    )
    return " · ".join(known)


class TrainView(QWidget):
    """Shows the training set-up and a run. Its `form` and `bar` emit the user's requests.
    `figure_asked(name)`: the context menu of the plot of this figure is about to open."""

    figure_asked = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        make.named(self, "train_view", "Train")
        self._run = ("", 0)
        self._overlaid: tuple[tuple[str, KeptRunSnapshot], ...] = ()
        self._last: EpochRow | None = None
        self._best: EpochRow | None = None
        self._frame = QTimer(self, singleShot=True, interval=FRAME_MS)
        self._frame.timeout.connect(self._paint_frame)

        self.form = SetupForm()
        self.bar = RunBar()
        self.strip = PhaseStrip()
        self.hold = HoldNote()
        self.findings = FindingList()
        self.plots = _plots()
        self.figures: dict[str, LivePlot] = {}
        """The plots of figures that the user's code names, and of watched modules, by name."""
        self._waiting: list[LivePlot] = []
        board = QWidget()
        self._grid = make.grid(board)
        for name, plot in self.plots.items():
            self._place(plot, f"plot_{name}")
        self._grid.setRowStretch(0, 2)
        for name in ("loss", "accuracy"):
            self.plots[name].set_smoothing(True)
        self._empty = make.empty(
            "No run yet.\n\nTrain starts one on the data set at the left; loss, accuracy, gradient"
            " norm and memory appear here while it runs.",
            "train_empty",
        )
        pages = QWidget()
        self._pages = QStackedLayout(pages)
        self._pages.addWidget(self._empty)
        self._pages.addWidget(VerticalScroll(board))

        self.parameters = ParameterPane()
        self.parameters.hide()
        self.bar.parameters_toggled.connect(self.parameters.setVisible)
        self.predictions = PredictionPane()
        self.predictions.hide()
        self.bar.predictions_toggled.connect(self.predictions.setVisible)
        self.checks = CheckPane()
        self.landscape = LandscapePane()
        self.tabs = make.tabs(
            "train_tabs",
            (
                (pages, "Plots", "Loss, accuracy, gradient norm, rate, time and memory over steps"),
                (
                    self.landscape,
                    "Landscape",
                    "The loss around the weights, along random directions",
                ),
            ),
            "Pictures of the run",
        )
        panes = (self.tabs, self.parameters, self.predictions, self.checks)
        beside = make.splitter(*panes, sizes=(640, 480, 400, 480), shares=(1, 1, 0, 1))
        self.runs = RunPane()
        self.runs.hide()
        self.bar.runs_toggled.connect(self.runs.setVisible)
        stacked = make.splitter(beside, self.runs, sizes=(520, 240), shares=(2, 1), upright=True)
        right = make.page(
            self.bar, self.strip, self.hold, self.findings, (stacked, 1), margins=GRID
        )
        splitter = make.splitter(self.form, right, sizes=(320, 1120), shares=(0, 1))
        splitter.setCollapsible(0, True)
        make.column(splitter, on=self)

    # -- showing ---------------------------------------------------------------------------------

    def show_setup(self, setup: TrainingSetup, loss_from_block: str | None) -> None:
        """Show the set-up; `loss_from_block` is the kind of the canvas's loss block, if any."""
        self.form.show_setup(setup, loss_from_block)

    def show_devices(self, devices: Sequence[Device]) -> None:
        self.form.show_devices(devices)

    def show_engine_state(self, state: EngineState) -> None:
        self.bar.show_engine_state(state)

    def show_problem(self, text: str) -> None:
        """Show what prevents training and what to try; nothing if empty."""
        self.bar.show_problem(text)

    def show_training(self, snapshot: RunSnapshot) -> None:
        """Add the new points of a run. A new or resumed run clears the plots first; the first
        snapshot of a resumed run has all of its points."""
        run = (snapshot.run, snapshot.reply_to)
        if run != self._run:
            self._forget(run)
        self._append(snapshot)
        self._show_marks(snapshot)
        self.plots["memory"].set_caption(memory_text(snapshot.memory))
        for row in snapshot.epoch_rows:
            self._last = row
            accuracy = row.validation_accuracy
            if not math.isnan(accuracy) and (
                self._best is None or accuracy > self._best.validation_accuracy
            ):
                self._best = row
        error = snapshot.error
        spoilt = error is not None and error.type == DIVERGED
        self.plots["loss"].set_caption(error.message if error is not None and spoilt else "")
        self._pages.setCurrentIndex(1)
        self.bar.show_progress(snapshot, self._last, self._best)
        self.strip.show_run(snapshot)
        self.hold.show_run(snapshot)
        going = snapshot.state in ("running", "paused")
        note = GOING_NOTE
        if isinstance(snapshot, LoopSnapshot):
            loop = snapshot.title[:1].lower() + snapshot.title[1:]
            note = f"The {loop} has its own data, loss and optimizer: nothing here applies to it."
        self.form.show_note(note if going else "")
        counted = any(len(track.raw) for track in self.plots["accuracy"].tracks.values())
        self._show_accuracy(counted or not len(self.plots["loss"].tracks["loss"].raw))

    def show_overlays(self, runs: Sequence[tuple[str, KeptRunSnapshot]]) -> None:
        """Draw other runs over the plots, each with its title."""
        self._overlaid = tuple(runs)
        for name, plot in (*self.plots.items(), *self.figures.items()):
            self._overlay(name, plot)
        self._pages.setCurrentIndex(1 if self._run[0] or runs else 0)

    def _overlay(self, name: str, plot: LivePlot) -> None:
        scale = _SCALES.get(name, 1.0)
        found = (
            overlay_of(title, FIRST_COLOR + place, run, name, plot.series, scale)
            for place, (title, run) in enumerate(self._overlaid)
        )
        plot.show_overlays([overlay for overlay in found if overlay is not None])

    def clear(self) -> None:
        """Return to the state before the first run: another model has come."""
        self._forget(("", 0))
        self._pages.setCurrentIndex(0)
        self.bar.clear()
        self.strip.hide()
        self.hold.hide()
        self.form.show_note("")

    def _forget(self, run: tuple[str, int]) -> None:
        """Remove the points; those of `run` come next."""
        self._run = run
        self._last = self._best = None
        self.findings.clear()
        for plot in self.plots.values():
            plot.clear()
            plot.set_caption("")
        self._show_accuracy(True)
        for plot in self.figures.values():
            self._grid.removeWidget(plot)
            self._waiting = [waiting for waiting in self._waiting if waiting is not plot]
            plot.deleteLater()
        self.figures.clear()

    def _show_accuracy(self, shown: bool) -> None:
        """Show the accuracy beside the loss; in a run that counts none, the loss has its place."""
        self.plots["accuracy"].setVisible(shown)
        self._grid.addWidget(self.plots["loss"], 0, 0, 1, 1 if shown else COLUMNS)

    def _place(self, plot: LivePlot, name: str) -> None:
        """Put a plot behind the others."""
        plot.setObjectName(name)
        plot.changed.connect(partial(self._schedule, plot))
        row, column = divmod(self._grid.count(), COLUMNS)
        self._grid.addWidget(plot, row, column)
        self._grid.setRowStretch(row, 1)
        self._grid.setColumnStretch(column, 1)
        self._waiting.append(plot)

    def _figure_plot(self, name: str) -> LivePlot | None:
        """The plot of named figures, made at its first value; None beyond the first MAX_FIGURES
        that the user's code names."""
        if name not in self.figures:
            named = sum(not is_watched(known) for known in self.figures)
            if named >= MAX_FIGURES and not is_watched(name):
                return None
            plot = self.figures[name] = figure_plot(name)
            plot.menu_asked.connect(partial(self.figure_asked.emit, name))
            self._place(plot, f"figure_{len(self.figures)}")
            self._overlay(name, plot)
        return self.figures[name]

    def _append_figures(self, snapshot: RunSnapshot) -> None:
        points: list[tuple[str, str, Sequence[int], Sequence[float]]] = [
            (*place_of(name), *_known(snapshot.steps.step, values))
            for name, values in snapshot.steps.figures.items()
        ]
        for row in snapshot.epoch_rows:
            for key, figures in (
                ("train", row.train_figures),
                ("validation", row.validation_figures),
            ):
                points += [(name, key, (row.step,), (value,)) for name, value in figures.items()]
        for name, key, steps, values in points:
            plot = self._figure_plot(name)
            if plot is not None:
                plot.append(key, steps, values)

    def _show_marks(self, snapshot: RunSnapshot) -> None:
        """Mark what was changed: on the loss in words, elsewhere as lines."""
        for name, plot in {**self.plots, **self.figures}.items():
            plot.show_marks([(m.step, m.text if name == "loss" else "") for m in snapshot.marks])

    def _append(self, snapshot: RunSnapshot) -> None:
        self._append_figures(snapshot)
        columns = snapshot.steps
        validates = isinstance(snapshot, TrainingSnapshot) and snapshot.validation_samples > 0
        for name, plot in self.plots.items():
            for line in plot.series:
                if line.points:
                    steps = [row.step for row in snapshot.epoch_rows]
                    values = [getattr(row, line.key) for row in snapshot.epoch_rows]
                else:
                    values = getattr(columns, line.key)
                    steps = columns.step if values else ()
                if name in _MAY_BE_UNKNOWN or (line.points and not validates):
                    steps, values = _known(steps, values)
                if values:
                    plot.append(line.key, steps, [value * _SCALES.get(name, 1) for value in values])

    # -- frames ----------------------------------------------------------------------------------

    def _schedule(self, plot: LivePlot) -> None:
        if plot not in self._waiting:
            self._waiting.append(plot)
        if not self._frame.isActive():
            self._frame.start()

    def _paint_frame(self) -> None:
        """Paint the plots that have waited longest, if the workspace is visible."""
        if not self.isVisible():
            return
        for plot in self._waiting[:PLOTS_PER_FRAME]:
            self._waiting.remove(plot)
            plot.refresh()
        if self._waiting:
            self._frame.start()

    def refresh(self) -> None:
        """Paint all plots that need it now, if the workspace is visible."""
        while self.isVisible() and self._waiting:
            self._paint_frame()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if self._waiting:
            self._frame.start()


def _known(steps: Sequence[int], values: Sequence[float]) -> tuple[Sequence[int], Sequence[float]]:
    """The points without those whose value is NaN, which is not known."""
    if not any(map(math.isnan, values)):
        return steps, values
    kept = [(s, v) for s, v in zip(steps, values, strict=True) if not math.isnan(v)]
    return [s for s, _ in kept], [v for _, v in kept]


_MAY_BE_UNKNOWN = {"accuracy", "learning_rate", "step_ms"}
"""Plots in which NaN means that there is no such figure. In others it is a number gone wrong."""
_SCALES: dict[str, float] = {"accuracy": 100.0, "memory": 1 / MIB}
"""From the protocol's unit to the plot's: fractions to percent, bytes to MiB."""
