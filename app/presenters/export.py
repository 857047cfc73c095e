"""Export: ask for a file, let the engine write and compare it, show the result."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Literal

from PySide6.QtCore import QObject

from app.workbench import Workbench
from engine.protocol import ExportCommand, ExportSnapshot, Snapshot

if TYPE_CHECKING:
    from app.window.export_panel import ExportPanel

Format = Literal["pt", "safetensors", "py", "script"]
_FILTERS: dict[Format, str] = {
    "pt": "PyTorch state_dict (*.pt)",
    "safetensors": "Safetensors (*.safetensors)",
    "py": "Python (*.py)",
    "script": "Training script (*.py)",
}


class ExportPresenter(QObject):
    def __init__(self, bench: Workbench, parent: QObject) -> None:
        super().__init__(parent)
        self._bench = bench
        bench.store.snapshot.connect(self._on_snapshot)

    @cached_property
    def panel(self) -> ExportPanel:
        """Made for the first export."""
        from app.window.export_panel import ExportPanel

        panel = ExportPanel(self._bench.window)
        self._bench.files.opened.connect(panel.hide)
        return panel

    def ask(self, form: Format) -> None:
        """Ask for a file and export to it."""
        name = self._bench.project.name
        name = f"{name}_train.py" if form == "script" else f"{name}.{form}"
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
            fresh=form == "script",
        )
        if self._bench.send(command):
            self._bench.say(f"Exporting to {path} …")
        else:
            self._bench.say(f"Nothing was exported. {self._bench.link.unsent}")

    def _on_snapshot(self, snapshot: Snapshot) -> None:
        if isinstance(snapshot, ExportSnapshot):
            self._bench.say(f"Exported {snapshot.path}.")
            self.panel.show_export(snapshot)
