"""The engine's state in the window, its end, and the ways back to the run's weights."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QPushButton

from app.presenters.engine import EnginePresenter
from app.processes.exit_reasons import ExitReason
from app.workbench import WAITS
from engine.project.document import Model, TrainingSetup
from engine.protocol import (
    CheckModelCommand,
    HelloCommand,
    ReadVariablesCommand,
    RecordCommand,
    RunCellCommand,
    VariablesSnapshot,
)

REASON = ExitReason(
    "The engine crashed", "Native code failed.\n\nThe end of its log:\nboom", "Wait."
)


@pytest.fixture
def engine(bench) -> EnginePresenter:
    presenter = EnginePresenter(bench, bench.window)
    presenter.asked = []
    presenter.resume_requested.connect(lambda: presenter.asked.append("resume"))
    presenter.restore_requested.connect(lambda: presenter.asked.append("restore"))
    return presenter


def press(bench, key: str, name: str) -> None:
    banner = bench.window.banners.banner(key)
    button = next(b for b in banner.findChildren(QPushButton) if b.text() == name)
    button.click()


def choices(bench, key: str = "engine") -> list[str]:
    return [b.text() for b in bench.window.banners.banner(key).findChildren(QPushButton)]


def test_the_state_is_shown_and_only_a_busy_engine_can_be_interrupted(engine, bench, link):
    link.start()
    assert bench.window.engine == ("starting", "engine starting…")
    link.get_ready()
    assert bench.window.engine == ("ready", "ready · torch 2.13.0 · CPU of 8 cores")
    assert not bench.actions["engine.interrupt"].isEnabled()
    link.send(HelloCommand())
    assert bench.window.engine == ("busy", "engine busy…")
    assert bench.actions["engine.interrupt"].isEnabled()
    link.finish()
    assert bench.window.engine[0] == "ready"
    link.close()
    assert bench.window.engine == ("lost", "engine lost")


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("running", "training…"),
        ("paused", "training is paused"),
        ("finished", "engine busy…"),
        ("failed", "engine busy…"),
    ],
)
def test_a_run_says_what_the_engine_is_busy_with(
    engine, bench, link, training_snapshot, state, words
):
    link.start()
    link.get_ready()
    link.send(HelloCommand())
    bench.store.take(training_snapshot(state=state))
    assert bench.window.engine == ("busy", words)
    link.finish()
    assert bench.window.engine[0] == "ready"


def test_an_engine_that_could_start_is_started_again(engine, bench, link):
    link.get_ready()
    link.close()
    link.lost.emit(REASON)
    assert link.state == "starting" and choices(bench) == []
    banner = bench.window.banners.banner("engine")
    assert banner.title == "The engine crashed" and banner.toolTip().endswith("boom")
    assert banner.text == (
        "Native code failed. A new engine is starting; your project is safe in this window."
    )


def test_an_engine_that_cannot_start_waits_to_be_restarted(engine, bench, link):
    link.start()
    link.close()
    link.lost.emit(REASON)
    assert link.state == "lost" and choices(bench) == ["Restart"]
    assert bench.window.banners.banner("engine").text == "Native code failed. Wait."
    press(bench, "engine", "Restart")
    assert link.state == "starting" and bench.window.banners.banner("engine") is None


@pytest.mark.parametrize(
    ("state", "choice", "tip", "asked"),
    [
        ("running", "Resume", "Train on from step 1,200 of 3,000.", "resume"),
        ("paused", "Resume", "Train on from step 1,200 of 3,000.", "resume"),
        ("failed", "Resume", "Train on from step 1,200 of 3,000.", "resume"),
        (
            "finished",
            "Restore weights",
            "Bring back the weights of step 1,200 of 3,000.",
            "restore",
        ),
        ("stopped", "Restore weights", "Bring back the weights of step 1,200 of 3,000.", "restore"),
    ],
)
def test_the_weights_of_a_lost_run_have_a_way_back(
    engine, bench, link, training_snapshot, state, choice, tip, asked
):
    link.get_ready()
    run = training_snapshot(state=state, total_steps=3000, checkpoint="/a.pt", checkpoint_step=1200)
    bench.store.take(run)
    link.close()
    link.lost.emit(REASON)
    assert choices(bench) == [choice]
    assert bench.window.banners.banner("engine").findChild(QPushButton).toolTip() == tip
    text = bench.window.banners.banner("engine").text
    assert text.endswith("The run's weights are in its last checkpoint.")
    press(bench, "engine", choice)
    assert engine.asked == [asked]


def test_a_run_that_goes_on_has_taken_its_way_back(engine, bench, link, training_snapshot):
    link.get_ready()
    bench.store.take(training_snapshot(state="paused", checkpoint="/a.pt"))
    engine.restart()
    assert bench.dialogs.asked == [
        "Restart the engine? Its weights are lost; checkpoints and files stay."
    ]
    assert choices(bench) == ["Resume"]
    bench.store.take(training_snapshot(state="paused", checkpoint="/a.pt"))
    assert choices(bench) == ["Resume"]
    bench.store.take(training_snapshot(state="running", checkpoint="/a.pt"))
    assert bench.window.banners.banner("engine") is None


def test_a_restart_asks_only_where_a_run_is_lost(engine, bench, link, training_snapshot):
    link.get_ready()
    engine.restart()
    assert bench.dialogs.asked == [] and link.state == "starting"
    assert bench.window.banners.banner("engine") is None
    link.get_ready()
    bench.store.take(training_snapshot(checkpoint="/a.pt"))
    bench.dialogs.agrees = False
    engine.restart()
    assert link.state == "ready"


def test_errors_that_no_workspace_shows_get_a_banner(engine, bench, link):
    link.get_ready()
    link.send(CheckModelCommand(model=Model(), training=TrainingSetup()))
    link.fail("no block", "Add one.")
    banner = bench.window.banners.banner("error_CheckModelCommand")
    assert (banner.title, banner.text) == ("Checking the model failed: no block", "Add one.")
    bench.files.new()  # another project has another model
    assert bench.window.banners.banner("error_CheckModelCommand") is None
    link.send(RunCellCommand(source="x"))
    link.fail("shown in the console")
    assert bench.window.banners.banner("error_RunCellCommand") is None


def test_while_a_cell_runs_what_waits_for_its_end_says_so(engine, bench, link) -> None:
    link.get_ready()
    cell = bench.send(RunCellCommand(source="while True: pass"))
    assert bench.window.engine == ("busy", "your cell is running…") and bench.window.said == []
    bench.send(ReadVariablesCommand())
    assert bench.window.said == []  # it is answered at once
    bench.send(RecordCommand(on=False))
    assert bench.window.said == [WAITS]
    link.answer(VariablesSnapshot(variables=()), cell)
    bench.send(RecordCommand(on=True))  # the cell has ended
    assert bench.window.said == [WAITS]
