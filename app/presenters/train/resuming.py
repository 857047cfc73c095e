"""Going on from a checkpoint: of the run that is shown, or of an earlier start of the program."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from PySide6.QtCore import QObject

from app.presenters.questions import Questions, in_words
from app.workbench import Workbench
from engine.project.subject import Subject
from engine.protocol import (
    CellSnapshot,
    CheckpointSnapshot,
    ErrorReport,
    FileSnapshot,
    FindCheckpointCommand,
    Snapshot,
    TrainingSnapshot,
)
from widgets.training.train_view import TrainView


class Resuming(QObject):
    """`run()` is the newest run, if it is of the subject of now; `train(paused, checkpoint)` goes
    on from a checkpoint."""

    def __init__(
        self,
        bench: Workbench,
        view: TrainView,
        run: Callable[[], TrainingSnapshot | None],
        train: Callable[[bool, str], object],
        parent: QObject,
    ) -> None:
        super().__init__(parent)
        self._bench, self._view, self._run, self._train = bench, view, run, train
        self._questions = Questions(bench)
        self._sought: Subject | None = None  # the engine has looked for a checkpoint of it
        view.bar.resume_requested.connect(self.resume)
        bench.store.on((FileSnapshot, CellSnapshot), self._offer_again)
        bench.files.opened.connect(self.offer)

    def resume(self) -> None:
        run = self._run()
        if run is not None and run.checkpoint:
            self._train(False, run.checkpoint)
        else:
            self._find(self._go_on, self._cannot)

    def restore(self) -> None:
        """Load the weights of the last checkpoint without training."""
        run = self._run()
        if run is not None and run.checkpoint:
            self._train(run.state == "stopped", run.checkpoint)

    def offer(self) -> None:
        """Show Resume if an earlier start of the program left a checkpoint that fits."""
        self._sought = None
        self._view.bar.offer_resume("")
        project, link = self._bench.project, self._bench.link
        ready = link.state == "ready" and link.script is None
        if ready and self._run() is None and (project.model.blocks or project.subject.is_code):
            self._find(self._show_offer, lambda error: None)  # the code may not have run

    def _offer_again(self, _: Snapshot) -> None:
        """Code that has run may make a subject that a checkpoint fits."""
        subject = self._bench.project.subject
        if subject.is_code and self._sought != subject:
            self.offer()

    def _find(
        self, found: Callable[[CheckpointSnapshot], object], failed: Callable[[ErrorReport], object]
    ) -> None:
        """Ask the engine for a checkpoint of this model, of an earlier start of the program too."""
        project = self._bench.project
        command = FindCheckpointCommand(
            model=project.model,
            training=project.training,
            subject=project.subject,
            runs=self._bench.files.runs_folder,
        )
        if not self._questions.ask(command, found, failed):
            self._view.show_problem(self._bench.link.unsent)

    def _go_on(self, found: CheckpointSnapshot) -> None:
        if found.path:
            self._bench.say(f"Resuming from {_when(found)}.")
            self._train(False, found.path)
        else:
            self._bench.say("There is no checkpoint of this model and set-up to resume from.")

    def _cannot(self, error: ErrorReport) -> None:
        self._view.show_problem(in_words(error))

    def _show_offer(self, found: CheckpointSnapshot) -> None:
        self._sought = self._bench.project.subject
        if found.path:
            self._view.bar.offer_resume(f"There is {_when(found)}: Resume goes on from there.")


def _when(found: CheckpointSnapshot) -> str:
    written = datetime.fromtimestamp(found.written_s)
    return f"a checkpoint of step {found.step:,}, written {written:%d %b %Y, %H:%M}"
