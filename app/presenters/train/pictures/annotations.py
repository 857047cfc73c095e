"""The user's words on Train's plots: written, changed and deleted with undo, kept in the folder of
the run."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QObject

from app.presenters.questions import Questions, in_words
from app.workbench import Workbench
from engine.protocol import (
    AnnotateRunCommand,
    Annotation,
    AnnotationsSnapshot,
    ErrorReport,
    ReadAnnotationsCommand,
    RunSnapshot,
    TrainingSnapshot,
)
from widgets.training.train_view import TrainView

Annotations = tuple[Annotation, ...]
TITLE = "Annotate"


class AnnotationsPresenter(QObject):
    """Annotations are kept with their run. A loop in a cell or script has no folder: they are kept
    while it is shown."""

    def __init__(self, bench: Workbench, view: TrainView, parent: QObject) -> None:
        super().__init__(parent)
        self._bench, self._board = bench, view.board
        self._questions = Questions(bench)
        self._run = ""
        self._folder = ""
        self._shown: Annotations = ()
        view.board.note_asked.connect(self._ask_words)
        bench.store.on(RunSnapshot, self._follow)
        bench.files.opened.connect(self._forget)

    # -- the run that is shown -------------------------------------------------------------------

    def _follow(self, snapshot: RunSnapshot) -> None:
        folder = snapshot.folder if isinstance(snapshot, TrainingSnapshot) else ""
        if snapshot.run != self._run:
            self._forget()
            self._run = snapshot.run
        if folder and folder != self._folder:
            is_new, self._folder = not self._folder, folder
            if is_new and self._shown:  # written before the first step, which made the folder
                self._keep(folder, self._shown)
            else:
                self._questions.ask(ReadAnnotationsCommand(folder=folder), self._take, self._fail)

    def _forget(self) -> None:
        self._questions.drop()
        self._run = self._folder = ""
        self._show(())

    def _take(self, found: AnnotationsSnapshot) -> None:
        if found.folder == self._folder:
            self._show(found.annotations)

    def _show(self, annotations: Annotations) -> None:
        self._shown = annotations
        self._board.show_annotations(annotations)

    # -- what the user writes --------------------------------------------------------------------

    def _ask_words(self, plot: str, step: int) -> None:
        """Ask for the words at a step of a plot. Empty words delete the annotation."""
        before = self._shown
        old = next((each for each in before if (each.plot, each.step) == (plot, step)), None)
        label = (
            f"Words at step {step:,}; leave them out to delete the annotation."
            if old
            else (f"Words at step {step:,}")
        )
        words = self._bench.dialogs.ask_line(
            self._bench.window, TITLE, label, old.text if old else ""
        )
        if words is None:
            return
        words = " ".join(words.split())
        after = tuple(each for each in before if each is not old)
        if words:
            after = (*after, Annotation(step, words, plot))
        if after == before:
            return
        text = "Delete an annotation" if not words else f"Annotate step {step:,}"
        place = self._run, self._folder
        self._bench.history.change(
            text,
            partial(self._set_annotations, *place, after),
            partial(self._set_annotations, *place, before),
        )

    def _set_annotations(self, run: str, folder: str, annotations: Annotations) -> None:
        """Set the annotations of a run, which need not be the one that is shown."""
        if run == self._run:
            folder = self._folder or folder  # it may have been moved
            self._show(annotations)
        if folder:
            self._keep(folder, annotations)

    def _keep(self, folder: str, annotations: Annotations) -> None:
        command = AnnotateRunCommand(folder=folder, annotations=annotations)
        if not self._questions.ask(command, self._take, self._fail):
            self._bench.say(f"The annotation is not kept. {self._bench.link.unsent}")

    def _fail(self, error: ErrorReport) -> None:
        self._bench.say(in_words(error))
