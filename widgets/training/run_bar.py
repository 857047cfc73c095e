"""The bar over the plots: the buttons that control a run, its progress, its result."""

from __future__ import annotations

from typing import Literal

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFrame, QProgressBar, QSpinBox, QWidget

from engine.protocol import EpochRow, HeldSnapshot, LoopSnapshot, RunSnapshot, TrainingSnapshot
from widgets import make
from widgets.flow_layout import FlowLayout
from widgets.theme import GRID
from widgets.training.plots.legend import WrappedWords
from widgets.training.run_words import (
    best_text,
    checkpoint_text,
    cut_off_text,
    progress_text,
    result_text,
)
from widgets.training.start_weights import StartWeights

MAX_STEP = 2**31 - 1
"""The largest number that the field of a step takes."""
EngineState = Literal["starting", "ready", "lost"]
Attached = Literal["", "steer", "watch"]
"""Whether the engine is in a script of the user's, and whether this window or another steers it."""


class RunBar(QFrame):
    """Shows the buttons that apply in the run's state, its progress, and its result in words."""

    train_requested = Signal()
    pause_requested = Signal()
    continue_requested = Signal()
    step_requested = Signal()
    line_requested = Signal()
    stop_requested = Signal()
    resume_requested = Signal()
    export_requested = Signal()
    check_requested = Signal()
    parameters_toggled = Signal(bool)
    predictions_toggled = Signal(bool)
    runs_toggled = Signal(bool)
    weights_requested = Signal(str)
    """The weights that the model of a run that has ended is to have: "best" or "last"."""
    step_asked = Signal(int)
    """The step that the run is to go to."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._engine: EngineState = "starting"
        self._attached: Attached = ""
        self._snapshot: RunSnapshot | None = None
        self._held: HeldSnapshot | None = None
        self._last: EpochRow | None = None
        self._best: EpochRow | None = None
        self._problem = self._offer = self._other = self._left = ""
        self._cut_off = self._has_best = self._left_badly = False
        self._shown_step = -1
        self.setProperty("role", "card")
        self.setObjectName("run_bar")
        self._make_buttons()
        self._make_places()
        self._make_switches()
        self._lay_out()
        self._show()

    def _make_buttons(self) -> None:
        """What goes on with a run, or ends it, and what it leaves."""
        self.train = make.button("train_button", "Train", "mdi6.play", self._train, primary=True)
        self.weights = StartWeights()
        self.pause = make.button("pause_button", "Pause", "mdi6.pause", self.pause_requested)
        self.pause.setToolTip("Pause after the current step")
        self.step = make.button("step_button", "Step", "mdi6.skip-next", self.step_requested)
        self.step.setToolTip("Run one optimizer step: forward, backward, update")
        self.back = make.button("back_button", "", "mdi6.skip-previous", self._back)
        self.back.setAccessibleName("Back")
        self.back.setToolTip(
            "Back: undo one optimizer step, with weights, optimizer, random numbers and batches."
            " From there the run goes on with the settings at the left; several processes"
            " start again there."
        )
        self.line = make.button(
            "line_button", "Next line", "mdi6.arrow-down-bold-outline", self.line_requested
        )
        self.line.setToolTip("Run the code that is held to its next line, over calls")
        self.stop = make.button("stop_button", "Stop", "mdi6.stop", self.stop_requested)
        self.stop.setToolTip("End the run; the weights stay as they are")
        self.resume = make.button(
            "resume_button", "Resume", "mdi6.backup-restore", self.resume_requested
        )
        self.resume.setToolTip(
            "Continue from the run's last checkpoint: weights, optimizer state, order of batches"
        )
        self.export = make.button(
            "export_button", "Export…", "mdi6.export-variant", self.export_requested
        )
        self.export.setToolTip("Write the weights to a file, or the model as a program (Ctrl+E)")
        self.best = make.button("best_button", "", "mdi6.star-outline", self._choose_weights_of)
        self.averaged = make.button(
            "averaged_button",
            "Averaged weights",
            "mdi6.sigma",
            lambda: self.weights_requested.emit("averaged"),
            tip="Load the averaged weights: what the validation of this run is of",
        )
        self.own_backward = make.check(
            "run_own_backward",
            "Step my backward",
            "While this is on, each loss.backward() of the loop opens in Autograd at its root and"
            " waits: step it, then let it go on. The weights become what they would have become.",
        )

    def _make_places(self) -> None:
        """How far the run is, where it can go, and what came of it."""
        self.to_step = make.spin(
            "to_step",
            "Go to step",
            "Go to this optimizer step of the run, back or on (Enter). From there the run goes on"
            " with the settings at the left.",
        )
        self.to_step.setPrefix("step ")
        self.to_step.setButtonSymbols(QSpinBox.ButtonSymbols.NoButtons)
        self.to_step.setKeyboardTracking(False)
        self.to_step.lineEdit().returnPressed.connect(self._go_to_step)
        self._progress = make.named(QProgressBar(), "train_progress", "Progress of the run")
        self._progress.setTextVisible(False)
        self._progress.setFixedHeight(GRID)
        self._line = WrappedWords("train_line")  # else plots would move as its numbers change
        self._result = make.text("train_result", wrap=True, width="own")

    def _make_switches(self) -> None:
        """What opens beside the plots, and the check before training."""
        self.parameters = make.tool_button(
            "run_parameters",
            "mdi6.table",
            "Show the parameters beside the plots: mean, deviation, gradient, how far a step moves"
            " them, and those that get no gradient or that no optimizer holds.",
            text="Parameters",
            toggled=self.parameters_toggled.emit,
        )
        self.check = make.tool_button(
            "run_check",
            "mdi6.clipboard-check-outline",
            "Check model, data and settings before training: inputs, leaked samples, labels, the"
            " first loss, parameters without a path to it, one batch, and a range test of the"
            " learning rate. It works on copies of the weights. While a run goes on,"
            " pause it first.",
            self.check_requested,
            text="Check",
        )
        self.runs = make.tool_button(
            "run_list",
            "mdi6.format-list-bulleted",
            "List the runs of this project under the plots: open, resume or delete one, compare"
            " two, draw some over the plots.",
            text="Runs",
            toggled=self.runs_toggled.emit,
        )
        self.predictions = make.tool_button(
            "run_predictions",
            "mdi6.grid",
            "Show what the model predicts beside the plots: the confusion matrix, the samples with"
            " the largest loss, the decision surface of points in the plane.",
            text="Predictions",
            toggled=self.predictions_toggled.emit,
        )

    def _lay_out(self) -> None:
        """Buttons that come and go stand after the others: Stop is never where Step was."""
        row = FlowLayout(GRID, even=False)
        for button in (
            *(self.train, self.pause, self.step, self.stop, self.weights.box),
            *(self.back, self.line, self.own_backward, self.resume),
            *(self.best, self.averaged, self.export, self.check),
        ):
            row.addWidget(button)
        place = make.row((self._progress, 1), self.to_step)
        panes = (self.parameters, self.predictions, self.runs)
        told = make.row((self._line, 1), *panes, gap=GRID)
        words = make.column(told, self._result, gap=GRID // 2)
        make.column(row, place, words, on=self, margins=GRID)

    def _train(self) -> None:
        paused = self._snapshot is not None and self._snapshot.state == "paused"
        paused = paused or self._held is not None
        (self.continue_requested if paused else self.train_requested).emit()

    def _back(self) -> None:
        """Ask for the step before; in the middle of a step, for its start."""
        run = self._snapshot
        if isinstance(run, TrainingSnapshot):
            self.step_asked.emit(run.step if run.is_in_step else run.step - 1)

    def _go_to_step(self) -> None:
        self.to_step.interpretText()
        self.step_asked.emit(self.to_step.value())

    def _choose_weights_of(self) -> None:
        self._has_best = not self._has_best
        self.weights_requested.emit("best" if self._has_best else "last")
        self._show_best()

    def _show_best(self) -> None:
        """After a run whose last epoch was not its best, offer the weights of the best epoch, or
        those of the last one again."""
        run = self._snapshot if isinstance(self._snapshot, TrainingSnapshot) else None
        ended = run is not None and run.state in ("finished", "stopped", "failed")
        best = run.best if run is not None else None
        beaten = best is not None and self._last is not None and best.epoch < self._last.epoch
        can_load = self._engine == "ready" and not (self._cut_off or self._other)
        self.best.setVisible(can_load and ended and beaten)
        offered = self._engine == "ready" and ended and not self._cut_off
        self.averaged.setVisible(offered and run is not None and run.averaged)
        self.best.setText("Last weights" if self._has_best else "Best weights")
        self.best.setAccessibleName(self.best.text())
        if self._has_best:
            tip = "Load the weights with which the run ended"
        else:
            tip = f"Load the weights of {best_text(best) if best else 'the best epoch'}"
        self.best.setToolTip(tip)

    # -- showing ---------------------------------------------------------------------------------

    def show_engine_state(self, state: EngineState) -> None:
        """If the engine is lost, say that the run has ended and that its checkpoint remains."""
        self._engine = state
        if state == "lost" and self._snapshot is not None:
            self._cut_off = self._snapshot.state in ("running", "paused")
        self._show()

    def show_attached(self, role: Attached) -> None:
        """Show only what can be done with the loop of a script: hold it, step it, let it go on.
        While another window steers it, not even that."""
        self._attached = role
        self._show()

    def show_progress(
        self, snapshot: RunSnapshot, last: EpochRow | None, best: EpochRow | None
    ) -> None:
        """`last` and `best` are the run's newest epoch and the one best on validation data."""
        before = self._snapshot
        if before is None or (before.run, before.step) != (snapshot.run, snapshot.step):
            self._has_best = False
        if self._snapshot is None or snapshot.state != self._snapshot.state:
            self.weights.show_run(snapshot, last)
            self._line.start_again()
        self._snapshot, self._last, self._best = snapshot, last, best
        self._problem = self._left = ""
        self._cut_off = False
        self._show()

    def show_left(self, words: str, is_error: bool = False) -> None:
        """Say what happened to the script whose loop is shown, until another snapshot comes."""
        self._left, self._left_badly = words, is_error
        self._show()

    def show_held(self, held: HeldSnapshot | None) -> None:
        """Show that code of the user's is held, or that it goes on."""
        self._held = held
        self._show()

    def offer_resume(self, text: str) -> None:
        """Before a run: show Resume, with words on the checkpoint that is there; none if empty."""
        self._offer = text
        self._show()

    def show_other(self, text: str) -> None:
        """Say that the run that is shown is of another subject, so that nothing of the bar goes on
        from it; empty if it is of this one."""
        if text != self._other:
            self._other = text
            self._show()

    def clear(self) -> None:
        """Return to the state before the first run."""
        self._snapshot = self._last = self._best = None
        self._problem = self._offer = self._other = self._left = ""
        self._cut_off = False
        self.weights.clear()
        self._line.start_again()
        self._show()

    def show_problem(self, text: str) -> None:
        """Show an error that prevents training; none if empty."""
        self._problem = text
        self._show()

    def _show(self) -> None:
        snapshot = self._snapshot
        state = snapshot.state if snapshot and not (self._cut_off or self._other) else "none"
        ready = self._engine == "ready"
        held = ready and self._held is not None
        going = held or (ready and state in ("running", "paused"))
        paused = held or (ready and state == "paused")
        is_loop = isinstance(snapshot, LoopSnapshot)
        self.train.setText("Continue" if paused else "Train")
        self.train.setAccessibleName(self.train.text())
        self.train.setEnabled(ready and (paused or not going))
        self.train.setToolTip(self._train_tip(paused))
        self.check.setEnabled(ready and (not going or (paused and not is_loop and not held)))
        self.weights.box.setVisible(not going)
        self.pause.setEnabled(ready and state == "running" and not held)
        self.step.setEnabled(ready and (held or state != "running"))
        in_run = self._held is not None and bool(self._held.after)  # of Train
        self._show_steps(ready and (not held or in_run) and state not in ("none", "running"))
        self.line.setVisible(held and not in_run)  # there the strip has what goes on by less
        self.own_backward.setVisible((held and not in_run) or is_loop)
        self.stop.setEnabled(going)
        self._show_kept(going)
        self._show_best()
        self._show_for_script(paused)
        self._show_text()

    def _show_kept(self, going: bool) -> None:
        """Offer what a run that does not go on leaves: its checkpoint, and its weights."""
        run = None if self._other else self._snapshot
        ready = self._engine == "ready"
        kept = self._offer if run is None else checkpoint_text(run)
        early = isinstance(run, TrainingSnapshot) and run.stopped_early
        can_resume = run is None or run.state != "finished" or early
        self.resume.setVisible(ready and bool(kept) and not going and can_resume)
        is_loop = isinstance(run, LoopSnapshot)
        self.export.setVisible(run is not None and not going and not is_loop)
        self.export.setEnabled(ready)

    def _show_for_script(self, paused: bool) -> None:
        """A script of the user's begins and ends its loop itself."""
        is_own = not self._attached
        self.train.setVisible(is_own or paused)
        for of_train in (self.stop, self.check, self.predictions):
            of_train.setVisible(is_own)
        self.own_backward.setEnabled(self._attached != "watch")
        if not is_own:
            self.weights.box.hide()
        if self._attached == "watch":
            for steering in (self.train, self.pause, self.step, self.line):
                steering.setEnabled(False)

    def _show_steps(self, can_go: bool) -> None:
        """Show where a run of Train can go, unless it runs."""
        run = self._snapshot if isinstance(self._snapshot, TrainingSnapshot) else None
        self.back.setVisible(run is not None)
        self.to_step.setVisible(run is not None)
        if run is not None:
            self.back.setEnabled(can_go and (run.step > 0 or run.is_in_step))
            self.to_step.setEnabled(can_go)
            if not self.to_step.hasFocus() or run.step != self._shown_step:
                self.to_step.setRange(0, run.total_steps or MAX_STEP)
                self.to_step.setValue(run.step)
            self._shown_step = run.step

    def _train_tip(self, paused: bool) -> str:
        if self._engine == "starting":
            return "The engine is starting: torch loads. Training can begin in a moment."
        if self._engine == "lost":
            return "The engine has stopped and is being restarted."
        if paused:
            return "Continue the run"
        return "Train the model; the choice beside says with which weights it begins"

    def _show_text(self) -> None:
        snapshot = self._snapshot
        self._progress.setVisible(snapshot is not None and not isinstance(snapshot, LoopSnapshot))
        if snapshot is None:
            words = {
                "starting": "Engine starting: torch is loading…",
                "ready": "Ready to train",
                "lost": "The engine has stopped and is being restarted…",
            }
            self._line.setText("" if self._held is not None else words[self._engine])
        else:
            make.progress(self._progress, snapshot.step, max(1, snapshot.total_steps))
            self._line.setText(progress_text(snapshot, self._best))
        if snapshot is None or self._other:
            result = f"{self._other} {self._offer}".strip()
        elif self._left:
            result = self._left
        elif self._cut_off:
            result = cut_off_text(snapshot)
        else:
            result = result_text(snapshot, self._last, self._best)
        if self._held is not None and self._held.at not in ("step", "update"):
            there = "Autograd steps it" if self._held.at == "backward" else "Tensors shows it"
            result = f"{self._held.where}. {there}; Continue lets it go on."
        text = self._problem or result
        failed = bool(self._problem or (self._left and self._left_badly)) or self._cut_off
        if snapshot is not None and not self._other:
            failed = failed or snapshot.state == "failed" or snapshot.error is not None
        make.tell(self._result, text)
        make.set_role(self._result, "error" if failed else "")
