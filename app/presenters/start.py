"""The Start page: new, open, templates and recent files."""

from __future__ import annotations

from PySide6.QtCore import QObject

from app import templates
from app.workbench import Workbench
from engine.project import files
from widgets.start_page import StartPage


class StartPresenter(QObject):
    def __init__(self, bench: Workbench, page: StartPage, parent: QObject) -> None:
        super().__init__(parent)
        self._bench, self._page = bench, page
        page.new_requested.connect(lambda: bench.files.new())
        page.open_requested.connect(lambda: bench.files.open())
        page.tensors_requested.connect(lambda: bench.window.show_workspace("tensors"))
        page.recent_chosen.connect(bench.files.open)
        page.template_chosen.connect(self._open_template)
        page.show_templates([(t.key, t.title, t.summary, t.icon) for t in templates.templates()])
        bench.files.path_changed.connect(self._show_recent)
        bench.files.failed.connect(self._show_recent)
        self._show_recent()

    def _open_template(self, key: str) -> None:
        try:
            project = templates.load_template(key)
        except files.FileProblem as problem:
            self._bench.files.failed.emit(f"The template was not opened. {problem}")
            return
        self._bench.files.new(project)

    def _show_recent(self) -> None:
        self._page.show_recent(self._bench.settings.recent_files)
