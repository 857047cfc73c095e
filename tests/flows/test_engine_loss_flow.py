"""The real engine process, killed in mid-training: the window says why, restarts it, resumes."""

from __future__ import annotations

import os
import signal

import pytest

from app import templates
from app.application import Application
from app.processes.engine_link import EngineLink
from engine.project.document import replace
from engine.protocol import ModelSnapshot, ReadySnapshot, TrainingSnapshot

WAIT_MS = 60_000
KILLS = int(os.environ.get("TENSORLAB_KILLS", "2"))


@pytest.fixture
def lab(real_program: Application) -> Application:
    """The MLP template, open for a long run."""
    real_program.bench.files.new(templates.load_template("mlp"))
    setup = replace(real_program.bench.store.project.training, epochs=100_000)
    form = real_program.window.page("train").form
    form.setup_edited.emit(setup, "Set epochs to 100,000")
    return real_program


def run_of(lab: Application) -> TrainingSnapshot | None:
    return lab.bench.store.newest(TrainingSnapshot)


def kill(qtbot, lab: Application) -> None:
    link = lab.bench.link
    assert isinstance(link, EngineLink) and link.pid is not None
    with qtbot.waitSignal(link.lost, timeout=WAIT_MS):
        os.kill(link.pid, signal.SIGKILL)


def wait_for_checkpoint(qtbot, lab: Application, after: int) -> int:
    """Wait until the run has written a checkpoint past a step; returns its step."""

    def written() -> bool:
        run = run_of(lab)
        return run is not None and run.state == "running" and run.checkpoint_step > after

    qtbot.waitUntil(written, timeout=WAIT_MS)
    run = run_of(lab)
    assert run is not None
    return run.checkpoint_step


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="no way to make a process hang here")
def test_stop_ends_an_engine_that_hangs_in_training(qtbot, lab):
    lab.bench.actions["train.start"].trigger()
    wait_for_checkpoint(qtbot, lab, 0)
    os.kill(lab.bench.link.pid, signal.SIGSTOP)
    with qtbot.waitSignal(lab.bench.link.lost, timeout=WAIT_MS):
        lab.bench.actions["train.stop"].trigger()
    banner = lab.window.banners.banner("engine")
    assert banner is not None and "did not answer to Stop" in banner.title
    assert run_of(lab).state == "failed"


@pytest.mark.timeout(60 * KILLS)
def test_a_killed_engine_is_told_restarted_and_its_run_resumed(qtbot, lab):
    """As often as it is killed; by the banner's button or by the Train page's."""
    lab.bench.actions["train.start"].trigger()
    told: list[TrainingSnapshot] = []
    lab.bench.link.snapshot.connect(
        lambda s: told.append(s) if isinstance(s, TrainingSnapshot) else None
    )
    step = 0
    for turn in range(KILLS):
        step = wait_for_checkpoint(qtbot, lab, step)
        kill(qtbot, lab)
        banner = lab.window.banners.banner("engine")
        assert banner is not None and "killed" in banner.title
        assert run_of(lab).state == "failed"
        qtbot.waitUntil(lambda: lab.bench.link.state == "ready", timeout=WAIT_MS)
        told.clear()
        if turn % 2:
            lab.bench.actions["train.resume"].trigger()
        else:
            lab.window.show_workspace("model")
            banner.findChild(object, "banner_resume").click()
            assert lab.window.workspace == "train"
        qtbot.waitUntil(lambda: bool(told), timeout=WAIT_MS)
        assert told[0].step >= step
        qtbot.waitUntil(lambda: run_of(lab).state == "running", timeout=WAIT_MS)
        assert lab.window.banners.banner("engine") is None
    assert wait_for_checkpoint(qtbot, lab, step) > step


def test_the_model_is_checked_anew_after_a_restart(qtbot, lab):
    qtbot.waitUntil(lambda: lab.bench.store.newest(ModelSnapshot) is not None, timeout=WAIT_MS)
    lab.bench.store.forget(ModelSnapshot)
    kill(qtbot, lab)
    qtbot.waitUntil(lambda: lab.bench.store.newest(ModelSnapshot) is not None, timeout=WAIT_MS)
    lab.workspaces.model.edits.add_block("nn.ReLU", 0, 400)
    assert len(lab.window.page("model").canvas.model_scene.blocks) == 9


def test_an_engine_that_cannot_start_is_not_started_for_ever(qtbot, lab, monkeypatch):
    link = lab.bench.link
    with monkeypatch.context() as patch:
        # However fast the next engine starts, its word that it is ready does not come.
        receive = link._receive
        patch.setattr(
            link, "_receive", lambda s: None if isinstance(s, ReadySnapshot) else receive(s)
        )
        kill(qtbot, lab)
        assert link.state == "starting"
        kill(qtbot, lab)
    assert link.state == "lost"
    banner = lab.window.banners.banner("engine")
    assert banner is not None
    banner.findChild(object, "banner_restart").click()
    qtbot.waitUntil(lambda: lab.bench.link.state == "ready", timeout=WAIT_MS)
