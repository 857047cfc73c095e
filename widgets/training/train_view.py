"""The Train workspace: the set-up on the left, the run and its plots on the right."""

from __future__ import annotations

import math
from collections.abc import Sequence

from PySide6.QtWidgets import QStackedLayout, QWidget

from engine.project.document import TrainingSetup
from engine.protocol import (
    Device,
    EpochRow,
    KeptRunSnapshot,
    LoopSnapshot,
    RunSnapshot,
)
from widgets import make
from widgets.advice.note_list import FindingList
from widgets.predictions.prediction_pane import PredictionPane
from widgets.runs.run_pane import RunPane
from widgets.theme import GRID
from widgets.training.checks.check_pane import CheckPane
from widgets.training.landscape_pane import LandscapePane
from widgets.training.memory.memory_pane import MemoryPane
from widgets.training.over_time.histogram_pane import HistogramPane
from widgets.training.over_time.image_pane import ImagePane
from widgets.training.over_time.module_pane import ModulePane
from widgets.training.parameter_pane import ParameterPane
from widgets.training.plot_board import PlotBoard
from widgets.training.rank_pane import RankPane
from widgets.training.run_bar import Attached, EngineState, RunBar
from widgets.training.settings.setup_form import SetupForm
from widgets.training.settings.watch_form import LoopHold
from widgets.training.steps.hold_note import HoldNote
from widgets.training.steps.phase_strip import PhaseStrip
from widgets.vertical_scroll import VerticalScroll

_NO_RUN = (
    "No run yet.\n\nTrain starts one on the data set at the left; loss, accuracy, gradient norm and"
    " memory appear here while it runs."
)
_NO_STEP = (
    "No step yet.\n\nThe script's loss, gradient norm and memory appear here from its next"
    " optimizer step on: one of torch's optimizers, in the thread that has called tensorlab.watch."
    " Steps in other threads are not drawn. A loop without such an optimizer is drawn by what it"
    " gives to tensorlab.log, and not at all if it logs nothing."
)
GOING_NOTE = (
    "The optimizer's numbers, modules with their own options and clipping apply from the next step"
    " on. All other changes apply once the run has gone to a step (Back), or to the next run."
)


class TrainView(QWidget):
    """Shows the training set-up and a run. Its `form` and `bar` emit the user's requests."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        make.named(self, "train_view", "Train")
        self._run = ("", 0)
        self._last: EpochRow | None = None
        self._best: EpochRow | None = None

        self.form = SetupForm()
        self.bar = RunBar()
        self.strip = PhaseStrip()
        self.loop_hold = LoopHold()
        self.loop_hold.form.setup_edited.connect(self.form.setup_edited)
        self.loop_hold.hide()
        self.hold = HoldNote()
        self.findings = FindingList()
        self.board = PlotBoard()
        self._empty = make.empty(_NO_RUN, "train_empty")
        pages = QWidget()
        self._pages = QStackedLayout(pages)
        self._pages.addWidget(self._empty)
        self._pages.addWidget(VerticalScroll(self.board))

        self.parameters = ParameterPane()
        self.parameters.hide()
        self.bar.parameters_toggled.connect(self.parameters.setVisible)
        self.predictions = PredictionPane()
        self.predictions.hide()
        self.bar.predictions_toggled.connect(self.predictions.setVisible)
        self.checks = CheckPane()
        self.modules, self.histograms, self.images = ModulePane(), HistogramPane(), ImagePane()
        self.memory, self.landscape = MemoryPane(), LandscapePane()
        self.ranks = RankPane()
        self.tabs = make.tabs(
            "train_tabs",
            (
                (pages, "Plots", "Loss, accuracy, gradient norm, rate, time and memory over steps"),
                (
                    self.modules,
                    "Modules",
                    "Gradient norm and update of each module over the steps of the run",
                ),
                (
                    self.histograms,
                    "Histograms",
                    "Weights and gradients of each parameter over the steps of the run",
                ),
                (self.images, "Images", "Images that your loop logs, over its steps"),
                (
                    self.memory,
                    "Memory",
                    "The memory of one step, operation by operation, and what holds it",
                ),
                (
                    self.landscape,
                    "Landscape",
                    "The loss around the weights, along random directions",
                ),
                (self.ranks, "Ranks", "The processes of the run, and what each has printed"),
            ),
            "Pictures of the run",
        )
        for pane in (self.images, self.ranks):
            self.tabs.setTabVisible(self.tabs.indexOf(pane), False)
        self.rank = make.combo(
            "train_rank", "Rank", "The rank whose modules, histograms and images are shown"
        )
        self.tabs.setCornerWidget(self.rank)
        self.tabs.currentChanged.connect(lambda _: self._show_rank())
        self.show_ranks(0, ())
        panes = (self.tabs, self.parameters, self.predictions, self.checks)
        beside = make.splitter(*panes, sizes=(640, 480, 400, 480), shares=(1, 1, 0, 1))
        self.runs = RunPane()
        self.runs.hide()
        self.bar.runs_toggled.connect(self.runs.setVisible)
        # The list keeps its rows in a low window; the plots scroll.
        stacked = make.splitter(beside, self.runs, sizes=(520, 208), shares=(1, 0), upright=True)
        right = make.page(
            self.bar,
            self.loop_hold,
            self.strip,
            self.hold,
            self.findings,
            (stacked, 1),
            margins=GRID,
        )
        splitter = make.splitter(self.form, right, sizes=(320, 1120), shares=(0, 1))
        splitter.setCollapsible(0, True)
        make.column(splitter, on=self)

    # -- showing ---------------------------------------------------------------------------------

    def show_setup(self, setup: TrainingSetup, loss_from_block: str | None) -> None:
        """Show the set-up; `loss_from_block` is the kind of the canvas's loss block, if any. The
        tab of the ranks is there for a run of several processes."""
        self.form.show_setup(setup, loss_from_block)
        self.loop_hold.form.show_setup(setup)
        has_ranks = setup.processes > 1 or self.ranks.has_rows
        self.tabs.setTabVisible(self.tabs.indexOf(self.ranks), has_ranks)

    def show_ranks(self, own: int, others: Sequence[int]) -> None:
        """Offer the ranks of a script's run: the one that the window is attached to, and the others
        that it reaches. The choice stays, if it is still there."""
        chosen = self.rank.currentData()
        self.rank.clear()
        for number in sorted((own, *others)):
            self.rank.addItem(f"rank {number}", number)
        self.rank.setCurrentIndex(max(self.rank.findData(chosen), 0))
        if chosen not in others:
            self.rank.setCurrentIndex(self.rank.findData(own))
        self._show_rank()

    def _show_rank(self) -> None:
        """The plots are of all ranks."""
        is_of_one = self.tabs.currentWidget() in (self.modules, self.histograms, self.images)
        self.rank.setVisible(is_of_one and self.rank.count() > 1)

    def show_devices(self, devices: Sequence[Device]) -> None:
        self.form.show_devices(devices)

    def show_engine_state(self, state: EngineState) -> None:
        self.bar.show_engine_state(state)

    def show_attached(self, role: Attached) -> None:
        """Show what there is of a script's loop: it has a set-up of its own."""
        self.bar.show_attached(role)
        self.form.setVisible(not role)
        self.loop_hold.setVisible(role == "steer")
        self._empty.setText(_NO_STEP if role else _NO_RUN)

    def show_problem(self, text: str) -> None:
        """Show what prevents training and what to try; nothing if empty."""
        self.bar.show_problem(text)

    def show_training(self, snapshot: RunSnapshot) -> None:
        """Add the new points of a run. A new or resumed run clears the plots first; the first
        snapshot of a resumed run has all of its points."""
        run = (snapshot.run, snapshot.reply_to)
        if run != self._run:
            self._forget(run)
        self.board.show_training(snapshot)
        for row in snapshot.epoch_rows:
            self._last = row
            accuracy = row.validation_accuracy
            if not math.isnan(accuracy) and (
                self._best is None or accuracy > self._best.validation_accuracy
            ):
                self._best = row
        self._pages.setCurrentIndex(1)
        has_images = isinstance(snapshot, LoopSnapshot) and snapshot.has_images
        self.tabs.setTabVisible(self.tabs.indexOf(self.images), has_images)
        self.bar.show_progress(snapshot, self._last, self._best)
        self.strip.show_run(snapshot)
        self.hold.show_run(snapshot)
        going = snapshot.state in ("running", "paused")
        note = GOING_NOTE
        if isinstance(snapshot, LoopSnapshot):
            loop = snapshot.title[:1].lower() + snapshot.title[1:]
            note = (
                f"The {loop} has its own data, loss and optimizer. Of all here only “Hold when…”"
                " applies to it: not finite, loss spike and gradient norm."
            )
        self.form.show_note(note if going else "")

    def show_overlays(self, runs: Sequence[tuple[str, KeptRunSnapshot]]) -> None:
        """Draw other runs over the plots, each with its title."""
        self.board.show_overlays(runs)
        self._pages.setCurrentIndex(1 if self._run[0] or runs else 0)

    def clear(self) -> None:
        """Return to the state before the first run: another model has come."""
        self._forget(("", 0))
        self._pages.setCurrentIndex(0)
        self.tabs.setTabVisible(self.tabs.indexOf(self.images), False)
        self.bar.clear()
        self.strip.hide()
        self.hold.hide()
        self.form.show_note("")

    def _forget(self, run: tuple[str, int]) -> None:
        """Remove the points; those of `run` come next."""
        self._run = run
        self._last = self._best = None
        self.findings.clear()
        self.board.clear()
