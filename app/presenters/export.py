"""Export: ask for a file, let the engine write and compare it, show the result."""

from __future__ import annotations

from typing import Literal

from PySide6.QtCore import QObject

from app.window.export_panel import ExportPanel
from app.workbench import Workbench
from engine.protocol import ExportCommand, ExportSnapshot, Snapshot

Format = Literal["pt", "safetensors", "py"]
_FILTERS: dict[Format, str] = {
    "pt": "PyTorch state_dict (*.pt)",
    "safetensors": "Safetensors (*.safetensors)",
    "py": "Python (*.py)",
}


class ExportPresenter(QObject):
    def __init__(self, bench: Workbench, panel: ExportPanel, parent: QObject) -> None:
        super().__init__(parent)
        self._bench, self._panel = bench, panel
        bench.store.snapshot.connect(self._on_snapshot)
        bench.files.opened.connect(panel.hide)

    def ask(self, form: Format) -> None:
        """Ask for a file and export to it."""
        name = f"{self._bench.project.name}.{form}"
        path = self._bench.files.ask_save_path("Export", name, _FILTERS[form])
        if path:
            self.export(form, path)

    def export(self, form: Format, path: str) -> None:
        project = self._bench.project
        command = ExportCommand(
            model=project.model,
            training=project.training,
            format=form,
            path=path,
            subject=project.subject,
        )
        if self._bench.send(command):
            self._bench.say(f"Exporting to {path} …")
        else:
            self._bench.say(f"Nothing was exported. {self._bench.link.unsent}")

    def _on_snapshot(self, snapshot: Snapshot) -> None:
        if isinstance(snapshot, ExportSnapshot):
            self._bench.say(f"Exported {snapshot.path}.")
            self._panel.show_export(snapshot)
