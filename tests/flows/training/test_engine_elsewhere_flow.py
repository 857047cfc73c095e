"""The whole window on an engine of another machine, which a stand-in for ssh starts here: train,
lose the connection, reconnect, export, close, and come again."""

from __future__ import annotations

import sys
from itertools import pairwise
from pathlib import Path

import torch
from PySide6.QtCore import QSettings
from PySide6.QtWidgets import QPushButton

from app.application import Application
from app.processes.engine_link import EngineLink
from app.settings import Settings
from app.templates import load_template
from engine.connecting.engine_place import EnginePlace
from engine.project import files
from engine.project.document import replace
from engine.protocol import TrainingSnapshot
from tests.gestures import started

WAIT_MS = 120_000


def ready(program: Application, qtbot) -> int:
    """The engine's process id."""
    link = program.bench.link
    qtbot.waitUntil(lambda: link.state == "ready", timeout=WAIT_MS)
    assert link.elsewhere is not None and link.attached is not None
    return link.attached.about.pid


def shown(program: Application) -> list[float]:
    """The steps in the plot of the loss."""
    return program.workspaces.train.view.board.plots["loss"].tracks["loss"].raw.x.tolist()


def until_step(program: Application, qtbot, step: float) -> list[float]:
    """From the first step on, in order."""
    qtbot.waitUntil(lambda: (shown(program) or [0])[-1] > step, timeout=WAIT_MS)
    steps = shown(program)
    assert steps[0] == 1 and all(a < b for a, b in pairwise(steps))
    return steps


def test_train_lose_the_connection_reconnect_export_and_come_again(
    machine, forked_processes, qtbot, tmp_path, answers
):
    project = load_template("mlp")
    setup = replace(project.training, epochs=1000)
    path = str(tmp_path / "net.tlab")
    files.save(replace(project, training=setup), path)
    settings = QSettings(str(tmp_path / "settings.ini"), QSettings.Format.IniFormat)
    Settings(settings).engine_place = EnginePlace("ssh box", sys.executable)
    settings.sync()
    with started(EngineLink, answers, tmp_path) as program:
        bench = program.bench
        pid = ready(program, qtbot)
        assert bench.window.engine_chip.text().endswith(" · ssh box")
        assert bench.files.open(path)
        program.workspaces.at_train().train()
        last = until_step(program, qtbot, 20)[-1]
        run = bench.newest(TrainingSnapshot)
        assert run is not None and not Path(run.folder).is_relative_to(tmp_path)

        bench.link._process._call.through.kill()  # the way to it is cut
        qtbot.waitUntil(lambda: bench.link.state == "lost", timeout=WAIT_MS)
        assert bench.window.engine_chip.text() == "no connection · ssh box"
        banner = bench.window.banners.banner("engine")
        next(b for b in banner.findChildren(QPushButton) if b.text() == "Reconnect").click()
        assert ready(program, qtbot) == pid
        until_step(program, qtbot, last)
        assert bench.window.banners.banner("engine") is None

        program.workspaces.train.stop()
        qtbot.waitUntil(lambda: bench.newest(TrainingSnapshot).state == "stopped", timeout=WAIT_MS)
        qtbot.waitUntil(lambda: bool(program.there.folder), timeout=WAIT_MS)
        answers.save = str(tmp_path / "net.pt")
        program.export.open()
        view = program.export.dialog.view
        qtbot.waitUntil(view.export.isEnabled, timeout=WAIT_MS)
        view.export.click()
        qtbot.waitUntil(Path(answers.save).exists, timeout=WAIT_MS)
        state = torch.load(answers.save, weights_only=True)
        assert sum(tensor.numel() for tensor in state.values()) == 17_226
        program.workspaces.train.train()
        qtbot.waitUntil(lambda: bench.newest(TrainingSnapshot).state == "running", timeout=WAIT_MS)

    with started(EngineLink, answers, tmp_path) as program:
        assert ready(program, qtbot) == pid
        until_step(program, qtbot, 20)
        assert program.bench.link.busy
        program.workspaces.train.stop()
        qtbot.waitUntil(lambda: not program.bench.link.busy, timeout=WAIT_MS)
