"""Export: the question for a file, the command, and the messages."""

from __future__ import annotations

import pytest

from app.presenters.export import ExportPresenter
from app.window.export_panel import ExportPanel
from engine.protocol import ExportSnapshot


@pytest.fixture
def export(bench) -> ExportPresenter:
    return ExportPresenter(bench, bench.window)


def test_a_file_beside_the_projects_is_proposed_and_gets_its_suffix(export, bench, link, tmp_path):
    link.get_ready()
    assert bench.files.save_as(str(tmp_path / "net.tlab"))
    bench.dialogs.path = str(tmp_path / "weights")
    export.ask("safetensors")
    assert bench.dialogs.asked == [f"Export {tmp_path / 'net.safetensors'}"]
    (command,) = link.sent
    assert (command.format, command.path) == ("safetensors", str(tmp_path / "weights.safetensors"))
    assert command.model == bench.project.model and command.training == bench.project.training
    bench.dialogs.path = str(tmp_path / "weights.bin")
    export.ask("pt")
    assert link.sent[-1].path == bench.dialogs.path and link.sent[-1].format == "pt"
    assert bench.window.said[-1] == f"Exporting to {bench.dialogs.path} …"


def test_a_dialog_that_is_left_exports_nothing(export, bench, link):
    link.get_ready()
    export.ask("py")
    assert link.sent == [] and bench.window.said == []


def test_without_an_engine_nothing_is_exported_and_that_is_told(export, bench, link):
    export.export("pt", "/a.pt")
    assert bench.window.said == [
        "Nothing was exported. There is no engine: restart it from the status bar."
    ]


def test_what_was_written_is_shown(export, bench, link):
    link.get_ready()
    export.export("pt", "/tmp/a.pt")
    link.answer(
        ExportSnapshot(
            path="/tmp/a.pt", format="pt", size_bytes=8, sha256="ab", max_abs_error=0.0, keys=("w",)
        )
    )
    assert bench.window.said[-1] == "Exported /tmp/a.pt."
    panel = bench.window.findChild(ExportPanel)
    assert panel.text("path") == "/tmp/a.pt" and panel.text("error") == "0: bit for bit the same"
