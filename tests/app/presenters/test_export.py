"""Export: the dialog, the question for a file, the command, and the messages."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtGui import QDesktopServices

from app.presenters.export import ExportPresenter
from engine.project import edits
from engine.project.document import Model, TrainingSetup
from engine.project.subject import CanvasSubject, ConsoleSubject, FileSubject
from engine.protocol import (
    ErrorReport,
    ErrorSnapshot,
    ExportCommand,
    ExportPlanSnapshot,
    ExportSnapshot,
    ExportStageSnapshot,
    InterruptSignal,
    PlanExportCommand,
    StopSignal,
    TrainCommand,
)

PLAN = ExportPlanSnapshot(
    title="Canvas", tensors=2, float_bytes={4: 40}, other_bytes=0, refusals={}
)
DONE = ExportSnapshot(
    path="/tmp/a.pt", format="pt", size_bytes=8, sha256="ab", max_abs_error=0.0, keys=("w",),
    verified=True,
)  # fmt: skip


@pytest.fixture
def export(bench, link) -> ExportPresenter:
    link.get_ready()
    return ExportPresenter(bench, bench.window)


def test_the_dialog_asks_what_can_be_exported(export, bench, link) -> None:
    export.open("onnx")
    (command,) = link.sent
    assert isinstance(command, PlanExportCommand)
    assert (command.model, command.subject) == (bench.project.model, bench.project.subject)
    link.answer(PLAN)
    view = export.dialog.view
    assert export.dialog.isVisible() and view.formats.chosen == "onnx" and view.export.isEnabled()
    link.finish()
    export.open("pt")
    link.fail("The model cannot run.", "Mend it.")
    assert view.told.text() == "The model cannot run. Mend it." and not view.export.isEnabled()


def test_a_file_beside_the_projects_is_proposed_and_gets_its_suffix(export, bench, link, tmp_path):
    assert bench.files.save_as(str(tmp_path / "net.tlab"))
    export.open("safetensors")
    link.answer(PLAN)
    bench.dialogs.path = str(tmp_path / "weights")
    view = export.dialog.view
    view.details.dtype.setCurrentIndex(view.details.dtype.findData("float16"))
    view.export.click()
    assert bench.dialogs.asked == [f"Export {tmp_path / 'net.safetensors'}"]
    command = link.sent[-1]
    assert isinstance(command, ExportCommand)
    assert (command.format, command.path) == ("safetensors", str(tmp_path / "weights.safetensors"))
    assert command.model == bench.project.model and command.training == bench.project.training
    assert (command.dtype, command.opset, command.fresh) == ("float16", 0, False)
    assert bench.window.said[-1] == f"Exporting to {command.path} …"
    assert view.state == "running"


def test_the_open_dialog_follows_the_subject_and_calls_the_file_after_it(
    export, bench, link
) -> None:
    export.open("onnx")
    link.answer(PLAN)
    for subject, name in (
        (ConsoleSubject("Net(10).encoder"), "Net_10_encoder.onnx"),
        (FileSubject("/home/me/gpt.py", "GPT(5)"), "gpt.onnx"),
        (CanvasSubject(), f"{bench.project.name}.onnx"),
    ):
        bench.edit("Work on it", lambda p, subject=subject: edits.set_subject(p, subject))
        assert isinstance(link.sent[-1], PlanExportCommand) and link.sent[-1].subject == subject
        link.answer(PLAN)
        assert export.dialog.view.proposed_name == name
    sent = len(link.sent)
    export.dialog.hide()
    bench.edit("Work on it", lambda p: edits.set_subject(p, ConsoleSubject("net")))
    assert len(link.sent) == sent


def test_a_folder_gets_no_suffix(export, bench, link, tmp_path) -> None:
    export.open("dcp")
    link.answer(PLAN)
    bench.dialogs.path = str(tmp_path / "net")
    export.dialog.view.export.click()
    assert link.sent[-1].path == str(tmp_path / "net")


def test_a_question_that_is_left_exports_nothing(export, link) -> None:
    export.open("py")
    link.answer(PLAN)
    export.dialog.view.export.click()
    assert len(link.sent) == 1 and export.dialog.view.state == "idle"


def test_without_an_engine_nothing_is_exported_and_that_is_told(bench) -> None:
    export = ExportPresenter(bench, bench.window)
    export.export("pt", "/a.pt")
    assert export.dialog.view.told.text() == (
        "Nothing was exported. There is no engine: restart it from the status bar."
    )


def test_stages_and_what_was_written_are_shown(export, bench, link) -> None:
    export.export("pt", "/tmp/a.pt")
    link.answer(ExportStageSnapshot(words="Writing a.pt", done=0, stages=2))
    view = export.dialog.view
    assert view.stage.text() == "Writing a.pt …"
    link.answer(DONE)
    assert bench.window.said[-1] == "Exported /tmp/a.pt." and view.state == "idle"
    assert view.result.text("path") == "/tmp/a.pt"
    assert view.result.text("error") == "0: bit for bit the same"


def test_the_engines_reason_is_told_in_the_dialog(export, link) -> None:
    export.export("pt", "/no/a.pt")
    link.fail("The folder /no does not exist.", "Make it.")
    assert export.dialog.view.told.text() == "The folder /no does not exist. Make it."


def test_cancel_stops_the_export_but_no_run_of_train(
    export, bench, link, training_snapshot
) -> None:
    export.export("pt", "/tmp/a.pt")
    command_id = len(link.sent)
    export.dialog.view.cancel.click()
    assert link.signals == [StopSignal(command=command_id), InterruptSignal(command=command_id)]
    assert link._kill_timer.isActive()  # it ends an engine in which the export does not end
    error = ErrorReport(type="KeyboardInterrupt", message="")
    link.answer(ErrorSnapshot(command="ExportCommand", error=error))
    assert export.dialog.view.told.text() == "The export was cancelled."
    link.finish()
    link.signals.clear()
    bench.send(TrainCommand(model=Model(), training=TrainingSetup()))
    bench.store.take(training_snapshot(state="paused"))
    export.export("pt", "/tmp/a.pt")
    export.cancel()
    command_id = len(link.sent)
    assert link.signals == [StopSignal(command=command_id), InterruptSignal(command=command_id)]
    assert not link._kill_timer.isActive()


def test_an_engine_that_ends_takes_the_export_with_it(export, link) -> None:
    export.export("pt", "/tmp/a.pt")
    link.close()
    view = export.dialog.view
    assert view.state == "idle" and "The engine has ended" in view.told.text()


def test_its_folder_can_be_shown(export, link, monkeypatch) -> None:
    shown: list[str] = []
    monkeypatch.setattr(QDesktopServices, "openUrl", lambda url: shown.append(url.toLocalFile()))
    export.export("pt", "/tmp/a.pt")
    link.answer(DONE)
    export.dialog.view.folder_requested.emit("/tmp/a.pt")
    assert [Path(path) for path in shown] == [Path("/tmp")]
