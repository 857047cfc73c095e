"""The project and its file: new, open, save, save as."""

from __future__ import annotations

import os
from pathlib import Path

from PySide6 import QtCore
from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QWidget

from app.history import History
from app.settings import Settings
from app.store import Store
from app.weights import Weights, shown_name
from app.window.dialogs import Dialogs
from engine.project import files
from engine.project.cells import expressions_of, python_digest
from engine.project.document import Project, replace
from engine.project.other_files import ARTIFACTS, READ_SUFFIXES, is_readable
from engine.protocol import TrainingSnapshot

FILTER = f"Tensor Lab project (*{files.SUFFIX})"
_READABLE = " ".join(f"*{suffix}" for suffix in READ_SUFFIXES)
OPEN_FILTER = (
    f"Project, Python, weights, program or array (*{files.SUFFIX} *.py {_READABLE});;All files (*)"
)
ARTIFACT_FILTER = f"Weights, program or array ({_READABLE});;All files (*)"


class ProjectFiles(QObject):
    """`path_changed(path)`: the project has another file ("": none yet). `saved()`: it was
    written, `saved_as(before)`: it had the file `before` and has another one now. `opened()`:
    another project is shown. `failed(message)`: an error in words, with the
    file's name.
    `python_chosen(path)`: the file to open is Python; `artifact_chosen(path)`: it has tensors or a
    program, or is a folder that may have some."""

    path_changed = Signal(str)
    saved = Signal()
    saved_as = Signal(str)
    opened = Signal()
    failed = Signal(str)
    python_chosen = Signal(str)
    artifact_chosen = Signal(str)

    def __init__(
        self,
        window: QWidget,
        store: Store,
        history: History,
        settings: Settings,
        dialogs: Dialogs,
        weights: Weights,
    ) -> None:
        super().__init__(window)
        self._window, self._store, self._history = window, store, history
        self._settings, self._dialogs, self._weights = settings, dialogs, weights
        self._known = ""  # the digest of the file, as this window has read or written it
        self._recovered = False
        self._kept_cells = store.project.cells
        self.path = ""

    @property
    def runs_folder(self) -> str:
        """The folder of the project's runs, for the engine: beside the project's file; "" is its
        data folder."""
        return files.runs_folder(self.path)

    @property
    def modified(self) -> bool:
        return self.document_modified or self._weights.modified

    @property
    def document_modified(self) -> bool:
        """Whether the document has unsaved changes; the weights are not part of it."""
        return self._edited or self._cells_differ

    @property
    def _edited(self) -> bool:
        return self._recovered or not self._history.is_saved

    @property
    def _cells_differ(self) -> bool:
        return self._store.project.cells != self._kept_cells

    def _unsaved(self) -> list[str]:
        """The parts that are not saved, in words."""
        parts = (
            (self._edited, "your edits"),
            (self._cells_differ, "the cells that you ran in the console"),
            (self._weights.modified, "the weights that the model has learnt"),
        )
        return [words for differs, words in parts if differs]

    def new(self, project: Project | None = None) -> bool:
        """Show an empty project, or a copy of a template. False if the user keeps the old one."""
        if not self.may_leave():
            return False
        self._show(project or Project(), "", is_own=True)
        return True

    def open(self, path: str = "") -> bool:
        """Open a project file; without a path, ask for one. False if no project is opened."""
        path = path or self._dialogs.open_path(self._window, "Open", self._folder(), OPEN_FILTER)
        if not path:
            return False
        path = str(Path(path).absolute())
        if os.path.isdir(path):
            self.artifact_chosen.emit(path)
            return False
        try:
            data = files.read(path)
            project = files.loads(data, path)
        except files.FileProblem as problem:
            if not os.path.lexists(path):
                self._settings.remove_recent_file(path)
            kind = problem.kind if isinstance(problem, files.OtherFile) else ""
            if kind == "python":
                self.python_chosen.emit(path)
            elif kind in ARTIFACTS or (is_readable(path) and os.path.exists(path)):
                self.artifact_chosen.emit(path)
            else:
                self.failed.emit(f"{shown_name(Path(path))} was not opened. {problem}")
            return False
        if not self.may_leave():
            return False
        self._settings.add_recent_file(path)
        self._show(project, path, _digest(data))
        return True

    def open_folder(self) -> None:
        """Ask for a folder that has tensors, and show them."""
        path = self._dialogs.open_folder(self._window, "Open a folder", self._folder())
        if path:
            self.open(path)

    def ask_artifact_path(self, title: str) -> str:
        """Ask for a file of tensors or of a program; "" if the user cancels."""
        return self._dialogs.open_path(self._window, title, self._folder(), ARTIFACT_FILTER)

    def save(self) -> bool:
        return self._write(self.path, replaces=False) if self.path else self.save_as()

    def save_as(self, path: str = "") -> bool:
        name = self._store.project.name.replace(os.sep, "_").replace("\0", "_")
        suggested = self.path or str(Path(self._folder()) / f"{name}{files.SUFFIX}")
        path = path or self._dialogs.save_path(self._window, "Save as", suggested, FILTER)
        if not path:
            return False
        complete = path.endswith(files.SUFFIX)  # the dialog has asked about a file of this name
        return self._write(path if complete else path + files.SUFFIX, replaces=complete)

    def ask_save_path(self, title: str, name: str, name_filter: str) -> str:
        """Ask for a file to write, in the project's folder; "" if the user cancels. A name without
        a suffix gets that of `name`."""
        suggested = str(Path(self._folder()) / name)
        path = self._dialogs.save_path(self._window, title, suggested, name_filter)
        return path + Path(name).suffix if path and not Path(path).suffix else path

    def ask_data_path(self, what: str) -> str:
        """Ask for a "file" or a "folder" of data; "" if the user cancels."""
        if what == "folder":
            return self._dialogs.open_folder(self._window, "Choose the data", self._folder())
        return self._dialogs.open_path(
            self._window, "Choose the data", self._folder(), "All files (*)"
        )

    def may_leave(self) -> bool:
        """Ask whether a run may be stopped, and what to do with unsaved changes. False: stay."""
        if not self._may_stop():
            return False
        if not self.modified:
            return True
        name = self._store.project.name
        answer = self._dialogs.unsaved(self._window, name, self._unsaved(), self._kept_weights())
        return self.save() and self._weights_written() if answer == "save" else answer == "discard"

    def may_close(self) -> bool:
        """As `may_leave`, for the window. An engine that serves windows goes on with its run and
        its weights."""
        return (self._weights.stay and not self.document_modified) or self.may_leave()

    def _kept_weights(self) -> str:
        """Where learnt weights can be found even if they are discarded here, in words; empty if
        they are lost."""
        run = self._store.newest(TrainingSnapshot)
        if not self._weights.modified or run is None or not run.checkpoint:
            return ""
        return (
            f"The weights of step {run.checkpoint_step:,} stay in {self._place_of(run)}: Runs in"
            " Train opens them."
        )

    def _place_of(self, run: TrainingSnapshot) -> str:
        """The name of the folder of runs that a run is in."""
        beside = Path(files.runs_folder(self.path))
        return shown_name(beside) if Path(run.folder).parent == beside else "your data folder"

    def _may_stop(self) -> bool:
        run = self._store.newest(TrainingSnapshot)
        if run is None or run.state != "running":
            return True
        question = (
            f"A model is being trained. Stop it? The run stays in {self._place_of(run)}: Resume"
            " goes on from its last checkpoint."
        )
        if not self._dialogs.confirm(self._window, question, "Stop"):
            return False
        self._weights.stop_run()
        return True

    def _weights_written(self) -> bool:
        """Wait until the engine has written the weights; False if it could not, or the user does
        not want to wait."""
        if self._weights.writing:
            text = "Writing the weights that the model has learnt…"
            self._dialogs.wait(self._window, text, self._weights.settled)
        return not self._weights.modified

    def recover(self, project: Project, original: str) -> None:
        """Show recovered work as unsaved changes of the file that it came from."""
        self._show(project, original, _digest_of(original))
        self._recovered = True
        self.path_changed.emit(self.path)

    def _write(self, path: str, replaces: bool) -> bool:
        """`replaces`: the user has agreed to replace what is there."""
        path = str(Path(path).absolute())
        project = replace(self._store.project, name=_name_of(path))
        if not self._may_replace(path, replaces):
            return False
        try:
            data = files.save(project, path)
        except OSError as error:
            name = shown_name(Path(path))
            reason = error.strerror or error
            self.failed.emit(f"{name} was not saved: {reason}. Choose another place.")
            return False
        before, self.path, self._known = self.path, path, _digest(data)
        self._recovered = False
        self._kept_cells = project.cells
        self._store.set_project(project)
        self._history.stack.setClean()
        if self._weights.modified or self._weights.learnt:
            self._weights.save(path)
        self._settings.add_recent_file(path)
        if not self._store.is_unagreed:
            self.agree()
        self.path_changed.emit(path)
        self.saved.emit()
        if before and before != path:
            self.saved_as.emit(before)
        return True

    def _may_replace(self, path: str, agreed: bool) -> bool:
        """Ask before the work of another window or program is overwritten; what it holds decides,
        not when it was written."""
        name = shown_name(Path(path))
        there = "" if agreed else _digest_of(path)
        if there and there != self._known:
            changed = "has been changed outside this window" if path == self.path else "is there"
            question = f"{name} {changed}. Replace it by what is here?"
            if not self._dialogs.confirm(self._window, question, "Replace"):
                self.failed.emit(f"{name} was not saved. Save as keeps both.")
                return False
        weights = self._weights.foreign_file(path)
        if weights:
            question = f"{weights} is there already. Replace it by what this model has learnt?"
            if not self._dialogs.confirm(self._window, question, "Replace"):
                self.failed.emit(f"{name} was not saved. Save as takes another name.")
                return False
        return True

    def agree(self) -> None:
        """The user agrees to the Python of the document; of a file, for as long as it holds that
        Python."""
        self._store.agree()
        if self.path:
            self._settings.agree(self.path, python_digest(self._store.project))

    def _show(self, project: Project, path: str, known: str = "", is_own: bool = False) -> None:
        """Show another project; one that `is_own` comes from no file."""
        if path:
            project = replace(project, name=_name_of(path))
        unagreed = frozenset(expressions_of(project))
        if is_own or self._settings.has_agreed(path, python_digest(project)):
            unagreed = frozenset()
        self.path, self._known = path, known
        self._recovered = False
        self._kept_cells = project.cells
        self._store.unagreed = unagreed  # before anything is asked about the project
        self._history.restart(project)
        self._weights.open(path)
        self._store.begin_document()
        self.path_changed.emit(path)
        self.opened.emit()

    def _folder(self) -> str:
        return str(Path(self.path).parent) if self.path else str(Path.home())


def _name_of(path: str) -> str:
    """The project's name: that of its file, without the suffix."""
    return shown_name(Path(Path(path).stem))


def _digest(data: bytes) -> str:
    sha256 = QtCore.QCryptographicHash.Algorithm.Sha256  # see widgets.make.controls
    found = QtCore.QCryptographicHash.hash(data, sha256)
    return found.toHex().toStdString()


def _digest_of(path: str) -> str:
    """The digest of a project file; "" if there is none that can be read."""
    try:
        return _digest(files.read(path)) if path else ""
    except files.FileProblem:
        return ""
