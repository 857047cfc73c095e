"""The dialog's view: what each format says, what it asks for, progress and result."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QPushButton

from engine.project.document import replace
from engine.protocol import ExportPlanSnapshot, ExportSnapshot, ExportStageSnapshot
from engine.protocol.exporting.formats import FORMATS, row_of
from tests.pictures import assert_same_picture
from tests.words import assert_same_words
from widgets.exporting.export_view import ExportView

PLAN = ExportPlanSnapshot(
    title="Canvas", tensors=4, float_bytes={4: 4096}, other_bytes=8,
    refusals={"script": "yours is Python already."}, run_step=1200,
)  # fmt: skip
DONE = ExportSnapshot(
    path="/home/me/net.onnx", format="onnx", size_bytes=20520, sha256="ab" * 32,
    verified=True, max_abs_error=1.5e-7, max_rel_error=2e-5, batch_sizes=(1, 2, 5),
    model_ms=0.25, export_ms=0.125, keys=tuple("abcde"), notes=("It has opset 18.",),
)  # fmt: skip


@pytest.fixture
def view(qtbot) -> ExportView:
    view = ExportView()
    qtbot.addWidget(view)
    view.resize(920, 680)
    view.show()
    view.show_plan(PLAN, "net")
    return view


def asked(view: ExportView) -> list[tuple]:
    found: list[tuple] = []
    view.export_requested.connect(lambda *options: found.append(options))
    return found


@pytest.mark.parametrize("format", FORMATS)
def test_each_format_says_what_it_writes_who_reads_it_and_how_it_is_loaded(view, format) -> None:
    view.formats.choose(format)
    row, details = FORMATS[format], view.details
    assert details.title.text() == row.title and details.words.text() == row.words
    assert details.readers.text() == row.readers
    name = view.proposed_name
    assert name.endswith(row.suffix) and name.startswith("net")
    files = ", ".join(row.file_names(name))
    assert details.files.text().startswith(f"{files}: ")
    assert name.removesuffix(row.suffix) in details.lines.text() and "{" + "name" not in files
    has_none = format in ("checkpoint", "py", "script")
    assert details.dtype.isVisible() == (not has_none)
    assert details.no_dtype.isVisible() == bool(details.no_dtype.text()) == has_none
    assert details.opset.isVisible() == (format == "onnx")
    assert view.export.isEnabled() == (format != "script")
    assert details.refusal.text() == PLAN.refusals.get(format, "")


def test_the_size_follows_the_dtype(view) -> None:
    view.formats.choose("pt")
    assert view.details.files.text() == "net.pt: about 4.01 KiB"
    for dtype, size in (("float16", "2.01 KiB"), ("float64", "8.01 KiB"), ("", "4.01 KiB")):
        view.details.dtype.setCurrentIndex(view.details.dtype.findData(dtype))
        assert view.details.files.text() == f"net.pt: about {size}"


def test_a_folder_of_the_hub_above_5_gb_is_told_in_parts(view) -> None:
    """float16 makes one file of it: the lines and the names follow."""
    large = replace(PLAN, float_bytes={4: 6_000_000_000})
    view.show_plan(large, "net")
    view.formats.choose("hf")
    for dtype, parts in (("", True), ("float16", False), ("float64", True)):
        view.details.dtype.setCurrentIndex(view.details.dtype.findData(dtype))
        assert view.details.lines.text() == row_of("hf", parts).load_lines("net")
        assert ("model.safetensors.index.json" in view.details.files.text()) == parts


def test_options_go_with_the_formats_that_have_them(view, qtbot) -> None:
    found = asked(view)
    view.details.dtype.setCurrentIndex(view.details.dtype.findData("bfloat16"))
    view.details.opset.setCurrentIndex(view.details.opset.findData(20))
    for format in ("pt", "onnx", "py"):
        view.formats.choose(format)
        qtbot.mouseClick(view.export, Qt.MouseButton.LeftButton)
    assert found == [("pt", "bfloat16", 0), ("onnx", "bfloat16", 20), ("py", "", 0)]


def test_the_list_is_used_by_keyboard_and_passes_over_its_headings(view, qtbot) -> None:
    view.formats.choose("hf")
    qtbot.keyClick(view.formats, Qt.Key.Key_Down)
    assert view.formats.chosen == "py"


def test_an_export_that_runs_shows_its_stage_and_can_be_cancelled(view, qtbot) -> None:
    view.show_begun()
    assert not view.export.isEnabled() and not view.formats.isEnabled()
    assert (view.stage.text(), view.progress.maximum()) == ("Beginning", 0)
    view.show_stage(ExportStageSnapshot(words="Writing net.onnx", done=1, stages=3))
    assert view.stage.text() == "Writing net.onnx …"
    assert (view.progress.value(), view.progress.maximum()) == (1, 3)
    with qtbot.waitSignal(view.cancel_requested):
        qtbot.mouseClick(view.cancel, Qt.MouseButton.LeftButton)
    view.show_failed("The export was cancelled.")
    assert view.told.text() == "The export was cancelled." and view.export.isEnabled()
    assert view.cancel.isHidden() and view.progress.isHidden()
    view.show_begun()
    assert (view.stage.text(), view.progress.maximum()) == ("Beginning", 0)
    assert view.told.isHidden() and not view.cancel.isHidden()


def test_what_was_found_is_told(view) -> None:
    view.formats.choose("onnx")
    view.show_begun()
    view.show_export(DONE)
    told = view.result.text
    assert view.result.verdict.text() == (
        "net.onnx is verified: a fresh process read it and compared."
    )
    assert told("error") == "1.5e-07, relative 2e-05" and told("batches") == "1, 2, 5"
    assert told("time") == "0.125 ms; the model 0.25 ms"
    assert told("size") == "20 KiB (20,520 bytes)" and told("notes") == "It has opset 18."
    assert told("keys") == "5: a, b, c, d, …" and told("sha256") == "ab" * 32
    view.show_export(replace(DONE, verified=False, differs="second (Linear)"))
    assert view.result.verdict.text() == "net.onnx differs from the model in second (Linear)."
    view.show_export(replace(DONE, max_abs_error=0.0, batch_sizes=(), sha256=""))
    assert told("error") == "0: bit for bit the same"
    assert view.findChild(type(view.result.verdict), "export_sha256").isHidden()
    view.formats.choose("pt")
    assert view.result.isHidden()


def test_lines_and_path_can_be_copied_and_the_folder_shown(view, qtbot) -> None:
    view.formats.choose("pt2")
    view.show_export(replace(DONE, path="/home/me/net.pt2"))
    clipboard = QGuiApplication.clipboard()
    view.findChild(QPushButton, "export_copy_lines").click()
    assert clipboard.text() == FORMATS["pt2"].load_lines("/home/me/net.pt2")
    view.findChild(QPushButton, "export_copy_path").click()
    assert clipboard.text() == "/home/me/net.pt2"
    with qtbot.waitSignal(view.folder_requested) as shown:
        view.findChild(QPushButton, "export_open_folder").click()
    assert shown.args == ["/home/me/net.pt2"]


def test_without_a_subject_there_is_the_reason_and_nothing_to_export(view) -> None:
    view.show_no_plan("The model cannot run: it has no Output.")
    assert view.told.text() == "The model cannot run: it has no Output."
    assert not view.export.isEnabled()
    view.formats.choose("onnx")
    assert not view.export.isEnabled()
    view.show_plan(PLAN, "net")
    assert view.told.isHidden() and view.export.isEnabled()


def test_picture_and_words(view) -> None:
    view.formats.choose("onnx")
    view.show_export(DONE)
    assert_same_picture(view, "export_view")
    assert_same_words(view, "export_view")
