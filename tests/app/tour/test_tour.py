"""The tour from its start to its report, and how it tells what failed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from PySide6.QtCore import qInstallMessageHandler, qWarning
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QWidget
from safetensors.torch import load_file

from app import cli, tour
from app.application import Application, build
from app.commands.failures import BAD_ARGUMENTS, CommandFailure
from app.processes.inline_link import InlineLink
from app.tour import guide as guides
from app.tour.hand import TourFailure
from app.tour.stage import Stage

PICTURES = [
    "01-start.png", "02-empty-canvas.png", "03-shape-error.png", "04-model.png", "05-forward.png",
    "06-backward.png", "07-gradients-compared.png", "08-train-paused.png", "09-trained.png",
    "10-exported.png", "11-values.png", "12-storage.png", "13-aliases.png",
]  # fmt: skip


@pytest.fixture
def program(forked_processes, qtbot, monkeypatch) -> Iterator[None]:
    """The tour's program has its engine in this process, and goes with the test."""
    built: list[Application] = []

    def build_here(**parts: Any) -> Application:
        built.append(build(InlineLink, **parts))
        return built[-1]

    monkeypatch.setattr(guides, "build", build_here)
    yield
    for application in built:
        assert application.window.isHidden()
        application.window.deleteLater()
        application.deleteLater()


@pytest.mark.timeout(600)  # it trains a model, and takes a minute on a machine with much to do
def test_the_tour_goes_through_all_stages(program, tmp_path, capsys) -> None:
    assert tour.run(tmp_path) == 0
    said = capsys.readouterr()
    report = json.loads((tmp_path / "report.json").read_text("utf-8"))
    accuracy, seconds = report.pop("val_accuracy"), report.pop("seconds")
    assert said.out.splitlines() == [
        "Build …", "Autograd …", "Train …", "Export …", "Tensors …",
        f"Validation accuracy {accuracy:.3f}; {seconds:g} s. See {tmp_path}.",
    ]  # fmt: skip
    assert 0.95 <= accuracy <= 1 and 0.95 <= report.pop("train_accuracy") <= 1
    assert report.pop("steps_per_second") > 0
    assert report == {
        "blocks_dragged": 7,
        "wires_drawn": 6,
        "parameters": 64 * 64 + 64 + 64 * 10 + 10,
        "forward_steps": 7,
        "backward_steps": 11,
        "max_gradient_difference": 0.0,
        "epochs": 40,
        "export_max_error": 0.0,
        "cells_run": 3,
        "cell_read_by": ["x", "y"],
        "failure": "",
    }
    made = {path.name for path in tmp_path.iterdir()} - {"__pycache__"}  # model.py was imported
    assert sorted(made) == sorted(
        [*PICTURES, "model.pt", "model.py", "model.safetensors", "report.json"]
    )
    pictures = [QImage(str(tmp_path / name)) for name in PICTURES]
    assert len({picture.cacheKey() for picture in pictures if not picture.isNull()}) == 13
    weights = torch.load(tmp_path / "model.pt", weights_only=True)
    again = load_file(tmp_path / "model.safetensors")
    assert weights.keys() == again.keys()
    assert all(torch.equal(weights[name], again[name]) for name in weights)


@pytest.fixture
def guided(monkeypatch):
    """`run` with a guide of the test's: it keeps what it was told, and says what failed."""
    told = SimpleNamespace(failure="", quiet=None, private=Path(), there=[])

    def guide(folder: Path, private: Path, report: dict, quiet: bool) -> str:
        told.quiet, told.private = quiet, private
        told.there = [private.is_dir(), *sorted(path.name for path in folder.iterdir())]
        report["val_accuracy"] = 0.96149
        return told.failure

    clock = iter((100.0, 101.239, 200.0, 202.0))
    monkeypatch.setattr(tour, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    monkeypatch.setattr(guides, "guide", guide)
    return told


def test_files_of_an_earlier_tour_go_and_others_stay(guided, tmp_path, capsys) -> None:
    out = tmp_path / "made" / "tour"
    assert tour.run(out) == 0
    left = {"1-start.png", "notes.txt", "my-model.pt"}
    for name in (*left, "01-start.png", "14-end.png", "model.pt", "model.onnx", "report.json"):
        (out / name).write_text("earlier")
    assert cli.main(["tour", "--out", str(out)]) == 0
    assert guided.there == [True, *sorted(left)]
    assert guided.quiet is False
    assert not guided.private.exists() and out not in guided.private.parents
    text = (out / "report.json").read_text("utf-8")
    report = {"val_accuracy": 0.96149, "seconds": 2.0, "failure": ""}
    assert text == json.dumps(report, indent=2) + "\n"
    assert capsys.readouterr().out.splitlines() == [
        f"Validation accuracy 0.961; 1.24 s. See {out}.",
        f"Validation accuracy 0.961; 2 s. See {out}.",
    ]


def test_a_failure_is_told_and_exits_with_1(guided, tmp_path, capsys) -> None:
    guided.failure = "no wire"
    assert tour.run(tmp_path) == 1
    assert capsys.readouterr() == ("", "The tour failed: no wire\n")
    assert json.loads((tmp_path / "report.json").read_text("utf-8"))["failure"] == "no wire"


@pytest.mark.parametrize(("failure", "code"), [("", 0), ("no wire", 1)])
def test_with_json_only_the_report_is_printed(guided, tmp_path, capsys, failure, code) -> None:
    guided.failure = failure
    assert cli.main(["tour", "--out", str(tmp_path), "--json"]) == code
    assert guided.quiet is True
    text = (tmp_path / "report.json").read_text("utf-8")
    assert capsys.readouterr() == (text, "")
    assert json.loads(text)["seconds"] == 1.24


def test_a_folder_that_cannot_be_made_is_a_bad_argument(tmp_path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CommandFailure) as failed:
        tour.run(tmp_path / "file" / "tour")
    assert str(failed.value) == f"--out {tmp_path / 'file' / 'tour'}: Not a directory."
    assert failed.value.exit_code == BAD_ARGUMENTS


def test_only_warnings_of_the_offscreen_platform_are_dropped(qapp, capfd) -> None:
    heard: list[str] = []
    outer = qInstallMessageHandler(lambda kind, context, message: heard.append(message))
    try:
        with tour._without_offscreen_warnings():
            qWarning("This plugin does not support raise()")
            qWarning("QPainter::begin: no device")
        qWarning("after it")
    finally:
        qInstallMessageHandler(outer)
    assert capfd.readouterr().err == "QPainter::begin: no device\n"
    assert heard == ["after it"]


class FailingStage(Stage):
    def run(self) -> None:
        assert self.application.window.isVisible()
        assert self.application.window.size().toTuple() == (1440, 900)
        self.report["stages"] = [*self.report.get("stages", []), self.out.name]
        if len(self.report["stages"]) == 2:
            self.report["folder"] = str(self.application._recovery)
            self.report["theme"] = self.application.bench.settings.theme
            raise TourFailure("nothing called “x” is to be seen")


def test_the_tour_ends_at_its_first_failure_with_a_picture(
    program, tmp_path, monkeypatch, capsys
) -> None:
    private, out, report = tmp_path / "private", tmp_path / "out", {}
    private.mkdir()
    out.mkdir()
    monkeypatch.setattr(guides, "STAGES", (FailingStage,) * 3)
    said = guides.guide(out, private, report, quiet=True)
    assert said == "nothing called “x” is to be seen"
    assert report == {
        "stages": ["out", "out"], "folder": str(private / "recovery"), "theme": "light",
    }  # fmt: skip
    assert [path.name for path in out.iterdir()] == ["01-failure.png"]
    assert capsys.readouterr().out == ""


def test_without_a_dialog_the_tour_leaves_its_project(qtbot) -> None:
    dialogs, window = guides._Dialogs(native=False), QWidget()
    qtbot.addWidget(window)
    assert dialogs.unsaved(window, "x", ["your edits"]) == "discard"
    assert dialogs.confirm(window, "Leave?", "Leave") is True
