"""Tour, export: the dialog writes weights and Python, and a Python without this program reads
them."""

from __future__ import annotations

import subprocess
import sys

from app.tour.hand import TourFailure
from app.tour.stage import Stage
from engine.protocol import ExportPlanSnapshot, ExportSnapshot
from engine.protocol.exporting.formats import Format

_BARE_SCRIPT = """
import importlib.util, sys, torch
spec = importlib.util.spec_from_file_location("model", "model.py")
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
model = module.Model()
model.load_state_dict(torch.load("model.pt", weights_only=True))
"""


class ExportStage(Stage):
    def run(self) -> None:
        forms: tuple[Format, ...] = ("pt", "safetensors", "py")
        errors = [self._export(form) for form in forms]
        self.report["export_max_error"] = max(errors)
        self.hand.settle()
        self.album.add(self.application.export.dialog, "exported")
        if max(errors) != 0:
            raise TourFailure(f"what was exported differs from the model by {max(errors):g}")
        self._load_without_us()

    def _export(self, form: Format) -> float:
        """Export by the File menu, the dialog and Qt's file dialog; return the difference that was
        found."""
        path = self.out / f"model.{form}"
        window, dialog = self.application.window, self.application.export.dialog
        self.store.forget(ExportPlanSnapshot)
        self.store.forget(ExportSnapshot)
        self.hand.choose(window.menuBar(), window.actions_table["file.export"])
        dialog.view.formats.choose(form)
        self.wait_for(ExportPlanSnapshot, lambda s: True, "what can be exported")
        with self.hand.answering_file_dialog(str(path)):
            self.press(dialog, "export_start")
        export = self.wait_for(ExportSnapshot, lambda s: s.verified, path.name)
        return export.max_abs_error

    def _load_without_us(self) -> None:
        """Run `Model().load_state_dict(torch.load(...))` in a Python that cannot import this
        program."""
        result = subprocess.run(
            [sys.executable, "-I", "-B", "-c", _BARE_SCRIPT],
            cwd=self.out,
            capture_output=True,
            text=True,
            check=False,
        )
        if result.returncode != 0:
            raise TourFailure(f"model.py and model.pt do not load in bare Python: {result.stderr}")
