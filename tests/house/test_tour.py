"""The tour, which `make run` takes where there is no display: what it leaves, and what it tells."""

from __future__ import annotations

import json
import sys

import pytest
import torch
from PySide6.QtGui import QImage
from safetensors.torch import load_file

from tests import tour
from tests.gestures import click_button

PICTURES = [
    "01-start", "02-empty-canvas", "03-shape-error", "04-model", "05-forward", "06-backward",
    "07-gradients-compared", "08-train-paused", "09-trained", "10-exported", "11-values",
    "12-storage", "13-aliases",
]  # fmt: skip


@pytest.mark.timeout(600)  # it trains a model, and takes a minute on a machine with much to do
def test_the_tour_goes_through_the_whole_main_job(forked_processes, qapp, tmp_path) -> None:
    tour.run(tmp_path)
    report = json.loads((tmp_path / "report.json").read_text("utf-8"))
    assert report.pop("failure") == ""
    assert 0.95 <= report.pop("val_accuracy") <= 1 and 0.95 <= report.pop("train_accuracy") <= 1
    assert report.pop("steps_per_second") > 0 and report.pop("seconds") > 0
    assert report == {
        "blocks_dragged": 7,
        "wires_drawn": 6,
        "parameters": 64 * 64 + 64 + 64 * 10 + 10,
        "forward_steps": 7,
        "backward_steps": 11,
        "max_gradient_difference": 0.0,
        "epochs": 40,
        "export_max_error": 0.0,
        "cell_read_by": ["x", "y"],
    }
    assert sorted(path.stem for path in tmp_path.glob("*.png")) == PICTURES
    assert not any(QImage(str(path)).isNull() for path in tmp_path.glob("*.png"))
    weights = torch.load(tmp_path / "model.pt", weights_only=True)
    again = load_file(tmp_path / "model.safetensors")
    assert weights.keys() == again.keys()
    assert all(torch.equal(weights[name], again[name]) for name in weights)


def test_the_tour_ends_at_its_first_failure(
    forked_processes, qapp, tmp_path, monkeypatch, capsys
) -> None:
    (tmp_path / "01-start.png").write_text("of an earlier tour")

    def build(tour: tour.Tour) -> None:
        click_button(tour.window.page("start"), "no_button")

    monkeypatch.setattr(tour.Tour, "build", build)
    monkeypatch.setattr(sys, "argv", ["tour", str(tmp_path)])
    assert tour.main() == 1
    told = capsys.readouterr()
    assert told.out == "Build …\n" and "nothing called “no_button” is visible" in told.err
    assert "no_button" in json.loads((tmp_path / "report.json").read_text("utf-8"))["failure"]
    assert [path.name for path in tmp_path.glob("*.png")] == ["01-failure.png"]
