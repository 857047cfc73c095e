"""A run that a second process trains, seen in the window: live, to its end, and then resumed."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import psutil
import pytest

from app import templates
from engine.protocol import TrainingSnapshot
from tests import forking

pytestmark = [
    pytest.mark.one_program,
    pytest.mark.skipif(not forking.POSSIBLE, reason="forks the program"),
]
MLP = Path(__file__).parents[3] / "assets" / "templates" / "mlp.tlab"


def test_a_run_of_another_process_is_drawn_live_and_resumed_once_it_has_ended(
    program, answers, tmp_path, monkeypatch
) -> None:
    monkeypatch.setenv("TENSORLAB_DATA_DIR", str(tmp_path / "data"))
    lab, folder = program, tmp_path / "run"
    lab.bench.files.new(templates.load_template("mlp"))
    lab.window.show_workspace("train")
    bar, pane = lab.workspaces.train.view.bar, lab.workspaces.train.view.runs
    bar.runs.setChecked(True)
    other = forking.Program(tmp_path, ["train", str(MLP), "--run", str(folder), "--epochs", "9999"])
    while not any((folder / "checkpoints").glob("step-*.pt")):
        assert other.errors.readline().startswith("epoch ")
    monkeypatch.setattr(answers, "open_folder", lambda *_: str(folder), raising=False)
    pane.folder.click()
    lab.bench.link.drain()
    (row,) = pane.table.rows
    assert row.state == "running" and row.step and row.elsewhere
    assert pane.table.ticked == (str(folder),)
    assert (
        f"Runs in {folder}" in pane.place.text() and "trains it; last figure" in pane.place.text()
    )
    plot = lab.workspaces.train.view.board.plots["loss"]

    def drawn() -> int:
        (overlay,) = [track for _, track in plot._overlays]
        return int(overlay.raw.x[-1])

    first = drawn()
    pane.table.selectRow(0)
    assert not pane.resume.isEnabled() and not pane.delete.isEnabled()
    for _ in range(100):  # its thread writes a few times a second
        assert other.errors.readline().startswith("epoch ")
    pane.came_in_sight.emit()
    lab.bench.link.drain()
    assert drawn() > first
    engines = psutil.Process(other.pid).children(recursive=True)
    for number in (*(engine.pid for engine in engines), other.pid):
        os.kill(number, signal.SIGKILL)
    other.end()
    psutil.wait_procs(engines)
    pane.came_in_sight.emit()
    lab.bench.link.drain()
    (row,) = pane.table.rows
    assert row.state == "cut off" and not row.elsewhere
    assert pane.place.text() == f"Runs in {folder}."
    pane.table.selectRow(0)
    assert pane.resume.isEnabled()
    pane.open.click()
    lab.bench.link.drain()
    run = lab.bench.newest(TrainingSnapshot)
    assert run is not None and (run.state, run.folder) == ("paused", str(folder))
    assert str(run.step) == Path(row.checkpoint).stem.removeprefix("step-").lstrip("0")
    lab.bench.link.stop_job()
    lab.bench.link.drain()
    pane.home.click()
    lab.bench.link.drain()
    assert pane.table.rows == () and pane.home.isHidden()
    bar.runs.setChecked(False)
