"""The whole main job in the real window, offscreen: `python -m tests.tour FOLDER`.

Pictures, what was exported and `report.json` are left in the folder. `make run` does this where
there is no display. The user's settings and recovery files are not touched.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

os.environ["QT_QPA_PLATFORM"] = "offscreen"  # before Qt is imported

from PySide6.QtCore import QPoint, Qt, qInstallMessageHandler
from PySide6.QtWidgets import QApplication, QLineEdit, QWidget

from app.application import Application
from app.processes.engine_link import EngineLink
from engine.project import catalogue
from engine.project.document import Wire
from engine.protocol import (
    BackwardSnapshot,
    CellSnapshot,
    ComparisonSnapshot,
    EpochRow,
    ErrorSnapshot,
    ExportPlanSnapshot,
    ExportSnapshot,
    ForwardSnapshot,
    GraphSnapshot,
    LocationSnapshot,
    ModelSnapshot,
    Snapshot,
    StorageSnapshot,
    TrainingSnapshot,
    VariablesSnapshot,
)
from engine.protocol.exporting.formats import Format
from tests.gestures import (
    Answers,
    click,
    click_button,
    drag,
    find,
    press_key,
    settle,
    started,
    until,
    write,
)

S = TypeVar("S", bound=Snapshot)

# kind, column and row on the canvas, arguments typed into the form
BLOCKS: tuple[tuple[str, int, int, dict[str, str]], ...] = (
    ("Input", 0, 0, {}),
    ("nn.Flatten", 1, 0, {}),
    ("nn.Linear", 2, 0, {}),
    ("nn.ReLU", 0, 1, {}),
    ("nn.Linear", 1, 1, {"in_features": "32", "out_features": "10"}),  # 32: the mistake to mend
    ("Output", 2, 1, {}),
    ("nn.CrossEntropyLoss", 2, 2, {}),
)
WIRES = ((0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (4, 6))  # positions in BLOCKS
PICTURED_STEP = 2
"""The step of each pass after which a picture is taken."""
EPOCHS, LEARNING_RATE, WANTED_ACCURACY = 40, 0.003, 0.95
CELL = 5
"""The storage cell of `y[0, 1]`, where `y` is the slice `x[1:, ::2]` of `x`, 2 rows of 3
elements."""

WITHOUT_US = """
import importlib.util, torch
spec = importlib.util.spec_from_file_location("model", "model.py")
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
module.Model().load_state_dict(torch.load("model.pt", weights_only=True))
"""


class Tour:
    """Each stage fills in `report`, and raises AssertionError where the window does not do what it
    should."""

    def __init__(self, application: Application, answers: Answers, out: Path) -> None:
        self.application, self.bench, self.window = (
            application,
            application.bench,
            application.window,
        )
        self.answers, self.out = answers, out
        self.report: dict[str, Any] = {}
        self._pictures = 0

    def build(self) -> None:
        """Drag blocks in, wire them, mend a mistake, arrange."""
        self.picture("start")
        click_button(self.window.page("start"), "start_new")
        self.picture("empty-canvas")
        page = self.application.workspaces.model.page
        canvas, rows = page.canvas, page.block_palette.list
        for kind, column, row, _ in BLOCKS:
            rows.scrollTo(rows.index_of(kind))
            place = rows.visualRect(rows.index_of(kind)).center()
            goal = QPoint(120 + 224 * column, 96 + 144 * row)
            drag(rows.viewport(), place, canvas.viewport(), goal)
        blocks = self.bench.project.model.blocks
        assert [block.kind for block in blocks] == [kind for kind, *_ in BLOCKS]
        for source, target in ((blocks[i], blocks[j]) for i, j in WIRES):
            out, into = catalogue.ports(source)[1][0].name, catalogue.ports(target)[0][0].name
            from_port = canvas.port_center(source.id, out, "out")
            to_port = canvas.port_center(target.id, into, "in")
            drag(canvas.viewport(), from_port, canvas.viewport(), to_port)
            wire = Wire(source.id, out, target.id, into)
            assert wire in self.bench.project.model.wires, f"{wire} was not drawn"
        for block, (*_, arguments) in zip(blocks, BLOCKS, strict=True):
            for name, text in arguments.items():
                click(canvas.viewport(), canvas.block_center(block.id))
                write(page.properties.form.field(name), text)
        assert not self._model().runnable, "a Linear of 32 features after one of 64 was not refused"
        click(canvas.viewport(), canvas.block_center(blocks[4].id))
        self.picture("shape-error")
        click_button(page.properties, "problem_fix")
        assert self._model().runnable, "the model does not run after the fix"
        before = self.bench.project.model.blocks
        press_key(canvas, Qt.Key.Key_L, Qt.KeyboardModifier.ControlModifier)
        until(lambda: self.bench.project.model.blocks != before, "the blocks to be arranged")
        canvas.setFocus()
        press_key(canvas, Qt.Key.Key_Escape)
        press_key(canvas, Qt.Key.Key_F)
        self.report["blocks_dragged"], self.report["wires_drawn"] = len(BLOCKS), len(WIRES)
        self.report["parameters"] = self._model().parameters
        self.picture("model")

    def autograd(self) -> None:
        """Step one batch forward, then its gradients backward, and compare with `backward()`."""
        self.window.show_workspace("autograd")
        presenter = self.application.workspaces.autograd
        view = presenter.page.steps
        click_button(view, "pass_start")
        order = self.wait_for(ForwardSnapshot, lambda s: s.position == 0, "the forward pass").order
        for position in range(1, len(order) + 1):
            click_button(view, "pass_step")
            self.wait_for(ForwardSnapshot, lambda s, p=position: s.position == p, "a forward step")
            if position == PICTURED_STEP:
                self.picture("forward")
        click_button(view, "pass_step")  # after the loss: read the graph
        self.wait_for(BackwardSnapshot, lambda s: s.position == 0, "the backward pass")
        graph = self.wait_for(GraphSnapshot, lambda s: s.plan, "the autograd graph")
        until(lambda: presenter.drawn is graph, "the graph to be drawn")
        for position in range(1, len(graph.plan) + 1):
            click_button(view, "pass_step")
            self.wait_for(
                BackwardSnapshot, lambda s, p=position: s.position == p, "a backward step"
            )
            if position == PICTURED_STEP:
                self.picture("backward")
        click_button(view, "pass_compare")
        difference = self.wait_for(ComparisonSnapshot).max_difference
        self.report |= {"forward_steps": len(order), "backward_steps": len(graph.plan)}
        self.report["max_gradient_difference"] = difference
        self.picture("gradients-compared")
        assert difference == 0, f"stepped gradients differ from backward() by {difference:g}"

    def train(self) -> None:
        """Set up a run, train, pause, do a single step, go on to the end."""
        self.window.show_workspace("train")
        view = self.window.page("train")
        rows: list[EpochRow] = []
        self.bench.store.on(TrainingSnapshot, lambda run: rows.extend(run.epoch_rows))
        write(find(view, QWidget, "param_epochs"), str(EPOCHS))
        write(find(view, QWidget, "param_lr"), str(LEARNING_RATE))
        setup = self.bench.project.training
        assert (setup.epochs, setup.optimizer_params.get("lr")) == (EPOCHS, LEARNING_RATE)
        click_button(view, "train_button")
        self._wait_for_run("to get going", lambda run: run.state == "running" and run.epoch >= 3)
        click_button(view, "pause_button")
        paused = self._wait_for_run("to pause", lambda run: run.state == "paused")
        self.picture("train-paused")
        click_button(view, "step_button")
        self._wait_for_run("to step", lambda run: run.state == "paused" and run.step > paused.step)
        click_button(view, "train_button")
        self._wait_for_run("to go on", lambda run: run.state == "running")
        end = self._wait_for_run("to end", lambda run: run.state not in ("running", "paused"))
        self.picture("trained")
        assert end.state == "finished", f"training {end.state}: {end.error}"
        accuracy = rows[-1].validation_accuracy
        self.report |= {"epochs": rows[-1].epoch, "train_accuracy": rows[-1].train_accuracy}
        self.report |= {"val_accuracy": accuracy, "steps_per_second": end.steps_per_second}
        assert accuracy >= WANTED_ACCURACY, f"validation accuracy is {accuracy:.3f}"

    def export(self) -> None:
        """Write weights and Python, which the dialog verifies and a bare Python loads."""
        dialog = self.application.export.dialog
        forms: tuple[Format, ...] = ("pt", "safetensors", "py")
        self.report["export_max_error"] = 0.0
        for form in forms:
            self.answers.save = str(self.out / f"model.{form}")
            self.bench.store.forget(ExportPlanSnapshot, ExportSnapshot)
            self.bench.actions["file.export"].trigger()
            dialog.view.formats.choose(form)
            self.wait_for(ExportPlanSnapshot)
            click_button(dialog, "export_start")
            error = self.wait_for(ExportSnapshot, lambda s: s.verified).max_abs_error
            self.report["export_max_error"] = max(self.report["export_max_error"], error)
            assert error == 0, f"model.{form} differs from the model by {error:g}"
        self.picture("exported", dialog)
        dialog.hide()
        bare = [sys.executable, "-I", "-B", "-c", WITHOUT_US]
        done = subprocess.run(bare, cwd=self.out, capture_output=True, text=True)
        assert done.returncode == 0, f"model.py and model.pt do not load: {done.stderr}"

    def tensors(self) -> None:
        """Make a tensor, slice it, write through the slice, read its storage."""
        self.bench.actions["tensors.console"].trigger()
        page = self.application.workspaces.tensors.page
        table, strip = page.values.table, page.storage.strip
        self._run_cell(find(page.create_form, QLineEdit, "create_name"), "x")
        self._run_cell(page.console.input, "y = x[1:, ::2]")
        storages = {each.name: each.storage for each in self.wait_for(VariablesSnapshot).variables}
        assert storages["x"] == storages["y"] is not None, "a slice has a storage of its own"
        page.tabs.setCurrentWidget(page.values)
        until(lambda: table.text_at(0, 1) == "6", "the elements of y")
        click(table.viewport(), table.cell_rect(0, 1).center())
        press_key(table, Qt.Key.Key_F2)
        self._run_cell(find(table, QLineEdit, "cell_editor"), "42")  # y[0, 1] = 42
        until(lambda: table.text_at(0, 1) == "42", "the new number in the table")
        until(lambda: not self.bench.link.busy, "the statistics of the new numbers")
        self.picture("values")
        page.tabs.setCurrentWidget(page.storage)
        shown = self.wait_for(StorageSnapshot, lambda s: s.expression == "y", "the storage of y")
        assert shown.values[CELL - shown.first] == "42", "the cell is not what was written"
        until(lambda: not strip.cell_rect(CELL).isEmpty(), "the cells to be drawn")
        click(strip.viewport(), strip.cell_rect(CELL).center().toPoint())
        where = self.wait_for(LocationSnapshot, lambda s: s.cell == CELL, "who reads the cell")
        readers = {reader.expression: reader.elements for reader in where.readers}
        assert readers == {"y": ((0, 1),), "x": ((1, 2),)}, f"the cell is read by {readers}"
        self.report["cell_read_by"] = sorted(readers)
        until(lambda: not self.bench.link.busy, "the readers of the element")
        self.window.statusBar().clearMessage()  # of the export
        self.picture("storage")
        page.tabs.setCurrentWidget(page.aliases)
        self.picture("aliases")

    def picture(self, name: str, widget: QWidget | None = None) -> None:
        """Save a picture of the window, or of a widget, as `NN-name.png`."""
        settle()
        settle()  # lay out again if the status bar got wider
        self._pictures += 1
        path = self.out / f"{self._pictures:02d}-{name}.png"
        assert (widget or self.window).grab().save(str(path)), f"{path} could not be written"

    def wait_for(
        self, kind: type[S], condition: Callable[[S], object] = lambda _: True, what: str = ""
    ) -> S:
        """The newest snapshot of a kind, once it meets the condition, if the engine reports no
        error before."""

        def is_there() -> bool:
            failed = self.bench.newest(ErrorSnapshot)
            assert failed is None, f"{failed.command}: {failed.error.message}"
            snapshot = self.bench.newest(kind)
            return snapshot is not None and bool(condition(snapshot))

        until(is_there, what or kind.__name__)
        snapshot = self.bench.newest(kind)
        assert snapshot is not None
        return snapshot

    def _wait_for_run(
        self, what: str, condition: Callable[[TrainingSnapshot], object]
    ) -> TrainingSnapshot:
        return self.wait_for(TrainingSnapshot, condition, f"the run {what}")

    def _model(self) -> ModelSnapshot:
        """The engine's check of the model as it is now."""
        revision = self.bench.store.revision
        return self.wait_for(ModelSnapshot, lambda s: s.revision == revision)

    def _run_cell(self, field: QWidget, text: str) -> None:
        """Write a text that runs as a cell of the console."""
        self.bench.store.forget(CellSnapshot)
        write(field, text)
        cell = self.wait_for(CellSnapshot)
        assert cell.ok, f"{text} failed: {cell.error}"


def run(out: Path) -> dict[str, Any]:
    """Go through all stages, and return the report; `failure` is a traceback, or empty."""
    began_s = time.monotonic()
    out = out.absolute()
    out.mkdir(parents=True, exist_ok=True)
    for picture in out.glob("[0-9][0-9]-*.png"):  # of an earlier tour
        picture.unlink()
    QApplication.instance() or QApplication(["tensorlab"])
    answers = Answers()
    temporary = tempfile.TemporaryDirectory(prefix="tensorlab-tour-")
    with temporary as private, started(EngineLink, answers, Path(private)) as application:
        application.window.resize(1440, 900)
        tour = Tour(application, answers, out)
        report = tour.report
        try:
            for stage in (tour.build, tour.autograd, tour.train, tour.export, tour.tensors):
                print(f"{stage.__name__.capitalize()} …", flush=True)
                stage()
            report["failure"] = ""
        except Exception:
            report["failure"] = traceback.format_exc()
            tour.picture("failure")
    report["seconds"] = round(time.monotonic() - began_s, 2)
    (out / "report.json").write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    return report


def main() -> int:
    # Without what an offscreen window cannot do: be raised, resized or given the keyboard.
    qInstallMessageHandler(
        lambda kind, context, message: (
            message.startswith("This plugin does not support ") or print(message, file=sys.stderr)
        )
    )
    out = Path(sys.argv[1])
    report = run(out)
    if report["failure"]:
        print(f"The tour failed: {report['failure']}", file=sys.stderr)
        return 1
    accuracy, seconds = report["val_accuracy"], report["seconds"]
    print(f"Validation accuracy {accuracy:.3f}; {seconds:g} s. See {out}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
