"""Tour, Train workspace: set up a run, train, pause, do a single step, go on to the end."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget

from app.tour.hand import TourFailure
from app.tour.stage import Stage
from engine.protocol import EpochRow, TrainingSnapshot

EPOCHS = 40
LEARNING_RATE = 0.003
WANTED_ACCURACY = 0.95


class TrainStage(Stage):
    def run(self) -> None:
        self.application.window.show_workspace("train")
        self._view = self.application.window.page("train")
        self._rows: list[EpochRow] = []
        self.store.on(TrainingSnapshot, self._collect)
        self.hand.write(self._field("param_epochs"), str(EPOCHS))
        self.hand.write(self._field("param_lr"), str(LEARNING_RATE))
        training = self.project.training
        if training.epochs != EPOCHS or training.optimizer_params.get("lr") != LEARNING_RATE:
            raise TourFailure("what was typed into the training set-up was not taken")
        self.press(self._view, "train_button")
        self.wait_for(
            TrainingSnapshot,
            lambda run: run.state == "running" and run.epoch >= 3,
            "training to get going",
        )
        self.press(self._view, "pause_button")
        paused = self.wait_for(
            TrainingSnapshot, lambda run: run.state == "paused", "the run to pause"
        )
        self.picture("train-paused")
        self.press(self._view, "step_button")
        self.wait_for(
            TrainingSnapshot,
            lambda run: run.state == "paused" and run.step > paused.step,
            "the single step",
        )
        self.press(self._view, "train_button")
        self.wait_for(TrainingSnapshot, lambda run: run.state == "running", "the run to go on")
        end = self.wait_for(
            TrainingSnapshot, lambda run: run.state not in ("running", "paused"), "the run to end"
        )
        self.picture("trained")
        if end.state != "finished":
            raise TourFailure(f"training {end.state}: {end.error.message if end.error else ''}")
        self._read_results(end)

    def _read_results(self, end: TrainingSnapshot) -> None:
        last = self._rows[-1]
        self.report["epochs"] = last.epoch
        self.report["train_accuracy"] = last.train_accuracy
        self.report["val_accuracy"] = last.validation_accuracy
        self.report["steps_per_second"] = end.steps_per_second
        if last.validation_accuracy < WANTED_ACCURACY:
            raise TourFailure(
                f"validation accuracy is {last.validation_accuracy:.3f}, "
                f"not {WANTED_ACCURACY:g} or more"
            )

    def _collect(self, snapshot: TrainingSnapshot) -> None:
        self._rows.extend(snapshot.epoch_rows)

    def _field(self, name: str) -> QWidget:
        return self.find(self._view, QWidget, name)
