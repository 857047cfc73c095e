"""The bar over the plots: the buttons that control a run, its progress and its end."""

from __future__ import annotations

import math
from typing import Literal

from PySide6.QtCore import Signal
from PySide6.QtWidgets import (
    QFrame,
    QProgressBar,
    QSizePolicy,
    QWidget,
)

from engine.protocol import EpochRow, TrainingSnapshot
from widgets import make
from widgets.text import format_duration, format_number, format_percent
from widgets.theme import GRID

EngineState = Literal["starting", "ready", "lost"]


def progress_text(snapshot: TrainingSnapshot, best: EpochRow | None) -> str:
    """The progress of the run in one line."""
    parts = [
        f"epoch {snapshot.epoch:,} of {snapshot.epochs:,}",
        f"step {snapshot.step:,} of {snapshot.total_steps:,}",
    ]
    if snapshot.steps_per_second > 0:
        parts.append(f"{format_number(snapshot.steps_per_second, 3)} steps/s")
    if snapshot.state == "running" and snapshot.remaining_s is not None:
        parts.append(f"{format_duration(snapshot.remaining_s)} left")
    if best is not None:
        accuracy = format_percent(best.validation_accuracy)
        parts.append(f"best validation accuracy {accuracy} (epoch {best.epoch})")
    parts.append(f"on {snapshot.device}")
    return " · ".join(parts)


def result_text(snapshot: TrainingSnapshot, last: EpochRow | None, best: EpochRow | None) -> str:
    """The end of the run and what to do next, in words; empty while the run goes on."""
    reached = f"{snapshot.step:,} of {snapshot.total_steps:,} steps"
    saved = _checkpoint_text(snapshot)
    match snapshot.state:
        case "finished":
            return (
                f"Finished {snapshot.epochs:,} epochs, {snapshot.step:,} steps."
                f"{_accuracy_text(last, best)} Next: export the weights, or train again."
            )
        case "stopped":
            return f"Stopped after {reached}.{_accuracy_text(last, best)}{saved}"
        case "failed" if snapshot.error is not None:
            error = snapshot.error
            hint = f" {error.hint}" if error.hint else ""
            return f"Failed after {reached}. {error.type}: {error.message}{hint}{saved}"
        case "failed":
            return f"Failed after {reached}.{saved}"
        case "paused":
            return "Paused. Step runs one optimizer step; Continue lets it run on."
        case "running" if snapshot.error is not None:  # a warning: the run goes on
            hint = f" {snapshot.error.hint}" if snapshot.error.hint else ""
            return f"{snapshot.error.message}{hint}"
    return ""


def cut_off_text(snapshot: TrainingSnapshot) -> str:
    """Words for a run whose engine was lost."""
    reached = f"{snapshot.step:,} of {snapshot.total_steps:,} steps"
    saved = _checkpoint_text(snapshot) or " It had written no checkpoint yet: train again."
    return f"The engine stopped after {reached}.{saved}"


def _checkpoint_text(snapshot: TrainingSnapshot) -> str:
    if not snapshot.checkpoint:
        return ""
    return (
        f" The last checkpoint is of step {snapshot.checkpoint_step:,}: Resume goes on from there."
    )


def _accuracy_text(last: EpochRow | None, best: EpochRow | None) -> str:
    if last is None or best is None or math.isnan(last.validation_accuracy):
        return ""
    text = f" Validation accuracy {format_percent(last.validation_accuracy)}"
    if best.validation_accuracy > last.validation_accuracy:
        text += f", at best {format_percent(best.validation_accuracy)} in epoch {best.epoch}"
    return text + "."


class RunBar(QFrame):
    """The buttons that fit the run's state, its progress, and its result in words."""

    train_requested = Signal()
    pause_requested = Signal()
    continue_requested = Signal()
    step_requested = Signal()
    stop_requested = Signal()
    resume_requested = Signal()
    export_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._engine: EngineState = "starting"
        self._snapshot: TrainingSnapshot | None = None
        self._last: EpochRow | None = None
        self._best: EpochRow | None = None
        self._problem = ""
        self._cut_off = False
        self.setProperty("role", "card")
        self.setObjectName("run_bar")

        self.train = make.button("train_button", "Train", "mdi6.play", self._train, primary=True)
        self.pause = make.button("pause_button", "Pause", "mdi6.pause", self.pause_requested)
        self.pause.setToolTip("Stand still after the step in hand; nothing is lost")
        self.step = make.button("step_button", "Step", "mdi6.skip-next", self.step_requested)
        self.step.setToolTip("Run one optimizer step: forward, backward, update")
        self.stop = make.button("stop_button", "Stop", "mdi6.stop", self.stop_requested)
        self.stop.setToolTip("End the run; the weights stay as they are")
        self.resume = make.button(
            "resume_button", "Resume", "mdi6.backup-restore", self.resume_requested
        )
        self.resume.setToolTip("Go on from the run's last checkpoint: weights, optimizer, order")
        self.export = make.button(
            "export_button", "Export…", "mdi6.export-variant", self.export_requested
        )
        self.export.setToolTip("Write the trained weights (state_dict) to a file")

        self._progress = make.named(QProgressBar(), "train_progress", "Progress of the run")
        self._progress.setTextVisible(False)
        self._progress.setFixedHeight(GRID)
        self._line = make.label(name="train_line")
        # A long line must not widen the window.
        self._line.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self._result = make.text("train_result", wrap=True, width="own")
        buttons = (self.train, self.pause, self.step, self.stop, self.resume, self.export)
        parts = (make.row(*buttons, make.STRETCH), self._progress, self._line, self._result)
        make.column(*parts, on=self, margins=GRID)
        self._show()

    def _train(self) -> None:
        paused = self._snapshot is not None and self._snapshot.state == "paused"
        (self.continue_requested if paused else self.train_requested).emit()

    # -- showing ---------------------------------------------------------------------------------

    def show_engine_state(self, state: EngineState) -> None:
        """Show that the engine was lost: the run is lost with it, its checkpoint is not."""
        self._engine = state
        if state == "lost" and self._snapshot is not None:
            self._cut_off = self._snapshot.state in ("running", "paused")
        self._show()

    def show_progress(
        self, snapshot: TrainingSnapshot, last: EpochRow | None, best: EpochRow | None
    ) -> None:
        """`last` and `best` are the run's newest epoch and the one best on validation data."""
        self._snapshot, self._last, self._best = snapshot, last, best
        self._problem = ""
        self._cut_off = False
        self._show()

    def show_problem(self, text: str) -> None:
        """Show an error that prevents training; none if empty."""
        self._problem = text
        self._show()

    def _show(self) -> None:
        snapshot = self._snapshot
        state = snapshot.state if snapshot and not self._cut_off else "none"
        ready = self._engine == "ready"
        going = ready and state in ("running", "paused")
        paused = ready and state == "paused"
        self.train.setText("Continue" if paused else "Train")
        self.train.setAccessibleName(self.train.text())
        self.train.setEnabled(ready and (paused or not going))
        self.train.setToolTip(self._train_tip(paused))
        self.pause.setEnabled(ready and state == "running")
        self.step.setEnabled(ready and state != "running")
        self.stop.setEnabled(going)
        self.resume.setVisible(
            ready
            and snapshot is not None
            and bool(snapshot.checkpoint)
            and not going
            and state != "finished"
        )
        self.export.setVisible(snapshot is not None and not going)
        self.export.setEnabled(ready)
        self._show_text()

    def _train_tip(self, paused: bool) -> str:
        if self._engine == "starting":
            return "The engine is starting: torch loads. Training can begin in a moment."
        if self._engine == "lost":
            return "The engine has stopped and is being restarted."
        if paused:
            return "Let the run go on from where it stands"
        return "Train the model on the canvas from its present weights"

    def _show_text(self) -> None:
        snapshot = self._snapshot
        self._progress.setVisible(snapshot is not None)
        if snapshot is None:
            words = {
                "starting": "Engine starting: torch is loading…",
                "ready": "Ready to train",
                "lost": "The engine has stopped and is being restarted…",
            }
            self._line.setText(words[self._engine])
        else:
            self._progress.setRange(0, max(1, snapshot.total_steps))
            self._progress.setValue(snapshot.step)
            self._line.setText(progress_text(snapshot, self._best))
        if snapshot is None:
            result = ""
        elif self._cut_off:
            result = cut_off_text(snapshot)
        else:
            result = result_text(snapshot, self._last, self._best)
        text = self._problem or result
        failed = bool(self._problem) or self._cut_off
        if snapshot is not None:
            failed = failed or snapshot.state == "failed" or snapshot.error is not None
        make.tell(self._result, text)
        make.set_role(self._result, "error" if failed else "")
