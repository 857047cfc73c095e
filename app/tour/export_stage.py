"""Tour, export: the File menu writes weights and Python, and a Python without this program reads
them."""

from __future__ import annotations

import subprocess
import sys

from app.tour.hand import TourFailure
from app.tour.stage import Stage
from engine.protocol import ExportSnapshot

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
        errors = [self._export(form) for form in ("pt", "safetensors", "py")]
        self.report["export_max_error"] = max(errors)
        self.picture("exported")
        if max(errors) != 0:
            raise TourFailure(f"what was exported differs from the model by {max(errors):g}")
        self._load_without_us()

    def _export(self, form: str) -> float:
        """Export by the File menu and Qt's file dialog; return the difference that the engine
        found."""
        path = self.out / f"model.{form}"
        window, store = self.application.window, self.store
        store.forget(ExportSnapshot)
        with self.hand.answering_file_dialog(str(path)):
            self.hand.choose(window.menuBar(), window.actions_table[f"file.export_{form}"])
        export = self.wait_for(ExportSnapshot, lambda s: True, path.name)
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
