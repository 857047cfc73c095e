"""Export: the dialog with the formats, the question for a file, the command and its result."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, cast

from PySide6.QtCore import QObject

from app.presenters.questions import Questions, in_words
from app.workbench import Workbench
from engine.project.document import Project
from engine.project.subject import file_name
from engine.protocol import (
    ErrorReport,
    ExportCommand,
    ExportPlanSnapshot,
    ExportSnapshot,
    ExportStageSnapshot,
    PlanExportCommand,
    Snapshot,
)
from engine.protocol.exporting.formats import FORMATS, Dtype, Format

if TYPE_CHECKING:
    from app.window.export_dialog import ExportDialog

_GOING = ("running", "paused")


class ExportPresenter(QObject):
    def __init__(self, bench: Workbench, parent: QObject) -> None:
        super().__init__(parent)
        self._bench = bench
        self._questions = Questions(bench)
        bench.link.ended.connect(self._on_ended)
        bench.store.project_changed.connect(self._on_project_changed)

    @cached_property
    def dialog(self) -> ExportDialog:
        """Made for the first export."""
        from app.window.export_dialog import ExportDialog

        dialog = ExportDialog(self._bench.window)
        dialog.view.export_requested.connect(self._ask_path)
        dialog.view.cancel_requested.connect(self.cancel)
        dialog.view.folder_requested.connect(_show_in_folder)
        self._bench.files.opened.connect(dialog.hide)
        return dialog

    def open(self, form: Format | None = None) -> None:
        """Show the dialog, with a format chosen."""
        dialog = self.dialog
        if form is not None and dialog.view.state == "idle":
            dialog.view.formats.choose(form)
        dialog.open_beside()
        if dialog.view.state == "idle":
            self._plan()

    def export(self, form: Format, path: str, dtype: Dtype = "", opset: int = 0) -> None:
        """Write to the path, and show progress and result in the dialog."""
        project, view = self._bench.project, self.dialog.view
        view.formats.choose(form)
        command = ExportCommand(
            model=project.model,
            training=project.training,
            format=form,
            path=path,
            subject=project.subject,
            objective=project.objective,
            fresh=form == "script",
            dtype=dtype,
            opset=opset,
        )
        self.dialog.open_beside()
        if self._questions.ask(command, self._on_answer, self._on_failed):
            view.show_begun()
            self._bench.say(f"Exporting to {path} …")
        else:
            view.show_failed(f"Nothing was exported. {self._bench.link.unsent}")

    def cancel(self) -> None:
        """Stop the export, and nothing else that runs; an engine in which it does not end is
        killed."""
        self._questions.stop()

    def _plan(self) -> None:
        project, view = self._bench.project, self.dialog.view
        command = PlanExportCommand(
            model=project.model,
            training=project.training,
            subject=project.subject,
            objective=project.objective,
        )
        if not self._questions.ask(command, self._on_plan, self._on_no_plan):
            view.show_no_plan(self._bench.link.unsent)

    def _on_plan(self, snapshot: Snapshot) -> None:
        if isinstance(snapshot, ExportPlanSnapshot):
            project = self._bench.project
            self.dialog.view.show_plan(snapshot, file_name(project.subject) or project.name)

    def _on_no_plan(self, error: ErrorReport) -> None:
        self.dialog.view.show_no_plan(in_words(error))

    def _ask_path(self, form: str, dtype: str, opset: int) -> None:
        row = FORMATS[cast(Format, form)]
        pattern = f"*{row.suffix}" if row.suffix else "*"
        name = self.dialog.view.proposed_name
        path = self._bench.files.ask_save_path("Export", name, f"{row.title} ({pattern})")
        if path:
            self.export(row.key, path, cast(Dtype, dtype), opset)

    def _on_answer(self, snapshot: Snapshot) -> None:
        view = self.dialog.view
        if isinstance(snapshot, ExportStageSnapshot):
            view.show_stage(snapshot)
        elif isinstance(snapshot, ExportSnapshot):
            view.show_export(snapshot)
            self._bench.say(f"Exported {snapshot.path}.")

    def _on_failed(self, error: ErrorReport) -> None:
        cancelled = error.type == "KeyboardInterrupt"
        self.dialog.view.show_failed("The export was cancelled." if cancelled else in_words(error))

    def _on_project_changed(self, old: Project, new: Project) -> None:
        """The dialog stays open while the user works: it follows the subject."""
        if "dialog" not in vars(self) or not self.dialog.isVisible():
            return
        if self.dialog.view.state == "idle" and _exported_parts(old) != _exported_parts(new):
            self._plan()

    def _on_ended(self) -> None:
        if "dialog" in vars(self) and self.dialog.view.state == "running":
            self.dialog.view.show_failed("The engine has ended, and the export with it.")


def _exported_parts(project: Project) -> tuple:
    return project.model, project.subject, project.objective, project.name


def _show_in_folder(path: str) -> None:
    from PySide6.QtCore import QUrl  # the window shows sooner without
    from PySide6.QtGui import QDesktopServices

    QDesktopServices.openUrl(QUrl.fromLocalFile(str(Path(path).parent)))
