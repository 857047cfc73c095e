"""The project and its file: new, open, save, save as."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QWidget

from app.history import History
from app.settings import Settings
from app.store import Store
from app.window.dialogs import Dialogs
from engine.project import files
from engine.project.document import Project, replace

FILTER = f"Tensor Lab project (*{files.SUFFIX})"


class ProjectFiles(QObject):
    """`path_changed(path)`: the project has another file ("": none yet). `opened()`: another
    project is shown. `failed(message)`: an error in words, with the file's name."""

    path_changed = Signal(str)
    opened = Signal()
    failed = Signal(str)

    def __init__(
        self,
        window: QWidget,
        store: Store,
        history: History,
        settings: Settings,
        dialogs: Dialogs,
    ) -> None:
        super().__init__(window)
        self._window, self._store, self._history = window, store, history
        self._settings, self._dialogs = settings, dialogs
        self._recovered = False
        self._kept_cells = store.project.cells
        self.path = ""

    @property
    def modified(self) -> bool:
        cells_differ = self._store.project.cells != self._kept_cells
        return self._recovered or cells_differ or not self._history.stack.isClean()

    def new(self, project: Project | None = None) -> bool:
        """Show an empty project, or a copy of a template. False if the user keeps the old one."""
        if not self.may_leave():
            return False
        self._show(project or Project(), "")
        return True

    def open(self, path: str = "") -> bool:
        """Open a project file; without a path, ask for one."""
        path = path or self._dialogs.open_path(
            self._window, "Open a project", self._folder(), FILTER
        )
        if not path:
            return False
        path = str(Path(path).absolute())
        try:
            project = files.load(path)
        except files.FileProblem as problem:
            self.failed.emit(f"{Path(path).name} was not opened. {problem}")
            if not Path(path).exists():
                self._settings.remove_recent_file(path)
            return False
        if not self.may_leave():
            return False
        self._show(project, path)
        self._settings.add_recent_file(path)
        return True

    def save(self) -> bool:
        return self._write(self.path) if self.path else self.save_as()

    def save_as(self, path: str = "") -> bool:
        suggested = self.path or str(Path(self._folder()) / f"{self._store.project.name}.tlab")
        path = path or self._dialogs.save_path(self._window, "Save as", suggested, FILTER)
        if not path:
            return False
        return self._write(path if path.endswith(files.SUFFIX) else path + files.SUFFIX)

    def ask_save_path(self, title: str, name: str, name_filter: str) -> str:
        """Ask for a file to write, in the project's folder; "" if the user cancels. A name without
        a suffix gets that of `name`."""
        suggested = str(Path(self._folder()) / name)
        path = self._dialogs.save_path(self._window, title, suggested, name_filter)
        return path + Path(name).suffix if path and not Path(path).suffix else path

    def may_leave(self) -> bool:
        """Ask what to do with unsaved changes, if there are any. False: stay."""
        if not self.modified:
            return True
        answer = self._dialogs.unsaved(self._window, self._store.project.name)
        return self.save() if answer == "save" else answer == "discard"

    def recover(self, project: Project, original: str) -> None:
        """Show recovered work as unsaved changes of the file that it came from."""
        self._show(project, original)
        self._recovered = True
        self.path_changed.emit(self.path)

    def _write(self, path: str) -> bool:
        path = str(Path(path).absolute())
        project = replace(self._store.project, name=Path(path).stem)
        try:
            files.save(project, path)
        except OSError as error:
            self.failed.emit(
                f"{Path(path).name} was not saved: {error.strerror}. Choose another place."
            )
            return False
        self.path = path
        self._recovered = False
        self._kept_cells = project.cells
        self._store.set_project(project)
        self._history.stack.setClean()
        self._settings.add_recent_file(path)
        self.path_changed.emit(path)
        return True

    def _show(self, project: Project, path: str) -> None:
        self.path = path
        self._recovered = False
        self._kept_cells = project.cells
        self._history.restart(project)
        self.path_changed.emit(path)
        self.opened.emit()

    def _folder(self) -> str:
        return str(Path(self.path).parent) if self.path else str(Path.home())
