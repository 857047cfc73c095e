"""Export: the formats, and beside them the chosen one with its options, progress and result."""

from __future__ import annotations

from typing import Literal

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QLabel, QProgressBar, QPushButton, QWidget

from engine.protocol import ExportPlanSnapshot, ExportSnapshot, ExportStageSnapshot
from engine.protocol.exporting.formats import FORMATS, row_of
from widgets import make
from widgets.exporting.format_details import FormatDetails
from widgets.exporting.format_list import FormatList
from widgets.exporting.result_pane import ResultPane
from widgets.theme import GRID

State = Literal["idle", "running"]


class ExportView(QWidget):
    """`export_requested(format, dtype, opset)`, `cancel_requested()`, `folder_requested(path)`."""

    export_requested = Signal(str, str, int)
    cancel_requested = Signal()
    folder_requested = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self._plan: ExportPlanSnapshot | None = None
        self._name = "model"
        self.state: State = "idle"
        self.formats = FormatList()
        self.details = FormatDetails()
        self.export = make.button(
            "export_start", "Export…", "mdi6.export", self._request, primary=True,
            tip="Choose where to write, then write and verify. Enter does so too.",
        )  # fmt: skip
        self.cancel = make.button(
            "export_cancel", "Cancel", "mdi6.stop", self.cancel_requested,
            tip="Stop the export. A file that is not complete is not left behind.",
        )  # fmt: skip
        self.progress = make.named(
            QProgressBar(), "export_progress", "Progress", "What the export does now."
        )
        self.progress.setTextVisible(False)
        self.stage = make.text("export_stage", "muted", wrap=True, width="own")
        self.told = make.text("export_told", "error", wrap=True, width="own")
        self.result = ResultPane()
        self.result.folder_requested.connect(self.folder_requested)
        self.subject: QLabel = make.text("export_subject", "muted", width="own")
        inside = make.page(
            self.details, self.told, self.result, make.STRETCH, margins=(0, 0, GRID, 0)
        )
        foot = make.row(self.progress, (self.stage, 1), make.STRETCH, self.cancel, self.export)
        right = make.page(self.subject, (make.scroll(inside), 1), foot, gap=2 * GRID)
        self.formats.setFixedWidth(270)
        make.row(self.formats, (right, 1), on=self, gap=3 * GRID, margins=2 * GRID)
        self.formats.format_chosen.connect(self._show_format)
        self._show_state("idle")
        for widget in (self.result, self.told):
            widget.hide()
        for button in self.findChildren(QPushButton):
            button.setAutoDefault(button is self.export)  # Enter exports, wherever the focus is
        self.export.setDefault(True)
        self.formats.choose("pt")

    def show_plan(self, plan: ExportPlanSnapshot, name: str) -> None:
        """What can be exported; `name` is that of the project."""
        self._plan, self._name = plan, name
        run = f", at step {plan.run_step:,} of its run" if plan.run_step >= 0 else ""
        self.subject.setText(f"{plan.title}: {plan.tensors:,} tensors{run}")
        self.formats.show_refused(plan.refusals)
        make.tell(self.told, "")
        self._show_format()

    def show_no_plan(self, why: str) -> None:
        """Say that there is no subject which could be exported."""
        self._plan = None
        self.subject.setText("")
        self.formats.show_refused(FORMATS)
        self._show_format()
        make.tell(self.told, why)
        self.export.setEnabled(False)

    def show_begun(self) -> None:
        make.tell(self.told, "")
        self.result.hide()
        self.stage.setText("Beginning")
        self.progress.setRange(0, 0)
        self._show_state("running")

    def show_stage(self, stage: ExportStageSnapshot) -> None:
        make.progress(self.progress, stage.done, stage.stages)
        self.stage.setText(f"{stage.words} …")

    def show_export(self, done: ExportSnapshot) -> None:
        self._show_state("idle")
        in_parts = any(file.name.endswith(".index.json") for file in done.files)
        self.details.lines.setText(row_of(self.formats.chosen, in_parts).load_lines(done.path))
        self.result.show_export(done)
        self.result.show()

    def show_failed(self, why: str) -> None:
        """Say why the export has failed, or that it was cancelled."""
        self._show_state("idle")
        make.tell(self.told, why)

    @property
    def proposed_name(self) -> str:
        """The name of the file, or of the folder, that is proposed."""
        row = FORMATS[self.formats.chosen]
        middle = {"script": "_train", "checkpoint": "_checkpoint", "torchscript-trace": "_traced",
                  "torchscript-script": "_scripted"}.get(row.key, "")  # fmt: skip
        return f"{self._name}{middle}{row.suffix}"

    def _show_format(self) -> None:
        self.result.hide()
        self.details.show_format(self.formats.chosen, self.proposed_name, self._plan)
        self._show_state(self.state)

    def _show_state(self, state: State) -> None:
        self.state = state
        running = state == "running"
        for widget in (self.cancel, self.progress, self.stage):
            widget.setVisible(running)
        self.formats.setEnabled(not running)
        self.details.set_options_enabled(not running)
        plan = self._plan
        can = plan is not None and self.formats.chosen not in plan.refusals
        self.export.setEnabled(can and not running)

    def _request(self) -> None:
        details = self.details
        self.export_requested.emit(self.formats.chosen, details.chosen_dtype, details.chosen_opset)
