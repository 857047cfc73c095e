"""What is said of an engine that serves windows, of a script and of held code, and which ways are
offered."""

from __future__ import annotations

from typing import Any

import pytest

from app.presenters.engine import EnginePresenter
from app.processes.exit_reasons import ExitReason
from engine.connecting.greeting import About, Welcome
from engine.project.document import Model, TrainingSetup, replace
from engine.protocol import (
    CheckModelCommand,
    ErrorReport,
    ErrorSnapshot,
    HeldSnapshot,
    HelloCommand,
    InitialiseCommand,
    RunCellCommand,
)
from tests.app.conftest import SCRIPT
from tests.app.presenters.test_engine import choices, press

READY = "ready · torch 2.13.0 · CPU of 8 cores"
ENGINE = Welcome(About(name="engine", pid=7), "steer", serves=True)


@pytest.fixture
def engine(bench) -> EnginePresenter:
    return EnginePresenter(bench, bench.window)


def offered(bench: Any) -> dict[str, bool]:
    found = {}
    for name in ("restart", "detach"):
        action = bench.actions[f"engine.{name}"]
        assert action.isVisible() == action.isEnabled()
        found[name] = action.isEnabled()
    return found


def test_an_engine_of_this_window_is_restarted_and_not_detached(engine, bench, link) -> None:
    link.get_ready()
    assert offered(bench) == {"restart": True, "detach": False}


def test_an_engine_that_serves_windows_is_named_and_left(engine, bench, link) -> None:
    link.attach_to(ENGINE)
    assert bench.window.engine == ("starting", "attaching to engine (pid 7)…")
    link.get_ready()
    assert bench.window.engine == ("ready", f"{READY} · engine (pid 7)")
    assert offered(bench) == {"restart": False, "detach": True}
    link.send(HelloCommand())
    assert bench.window.engine == ("busy", "engine busy… · engine (pid 7)")
    link.close()
    assert bench.window.engine == ("lost", "engine lost")


@pytest.mark.parametrize(
    ("role", "words"),
    [("steer", "attached to train.py (pid 4711)"), ("watch", "watching train.py (pid 4711)")],
)
def test_a_script_is_named_with_what_the_window_may_do(engine, bench, link, role, words) -> None:
    link.attach_to(replace(SCRIPT, role=role))
    assert bench.window.engine == ("starting", "attaching to train.py (pid 4711)…")
    link.get_ready()
    assert bench.window.engine == ("ready", words)
    assert offered(bench) == {"restart": False, "detach": True}
    bench.store.take(HeldSnapshot(at="line", title="train.py", line=3))
    assert bench.window.engine == ("ready", f"{words} · held")


def test_held_code_is_told_apart_from_a_held_step(engine, bench, link) -> None:
    link.get_ready()
    bench.send(RunCellCommand(source="loop()"))
    bench.store.take(HeldSnapshot(at="line", title="cell 1", line=3))
    assert bench.window.engine == ("busy", "your code is held")
    bench.store.take(HeldSnapshot(at="step", title="cell 1", line=3, after="step"))
    assert bench.window.engine == ("busy", "a step is held")
    bench.store.take(HeldSnapshot())
    assert bench.window.engine == ("busy", "your cell is running…")


def test_a_script_is_left_without_a_question_and_a_lost_one_is_not(
    engine, bench, link, training_snapshot
) -> None:
    left: list[bool] = []
    link.restart = lambda: left.append(True)
    link.get_ready()
    engine.detach()
    assert left == []  # it is attached to nothing
    link.attach_to(SCRIPT)
    link.get_ready()
    bench.store.take(training_snapshot(checkpoint="/a.pt"))
    assert engine.may_end("Restart the engine? Its", "Restart") and bench.dialogs.asked == []
    engine.detach()
    assert left == [True]


def test_weights_that_no_file_has_are_asked_about(engine, bench, link, monkeypatch) -> None:
    link.get_ready()
    monkeypatch.setattr(type(bench.weights), "modified", property(lambda _: True))
    bench.dialogs.agrees = False
    assert not engine.may_end("Attach? This engine's", "Attach")
    assert bench.dialogs.asked == ["Attach? This engine's weights are lost; checkpoints and files"
                                   " stay."]  # fmt: skip
    bench.dialogs.agrees = True
    assert engine.may_end("Attach? This engine's", "Attach")


def lost(**changes: Any) -> ExitReason:
    return replace(ExitReason("It has gone", "It says so.", "Wait."), **changes)


def test_a_script_that_has_ended_is_no_error_and_one_that_lives_is_called_again(
    engine, bench, link, training_snapshot
) -> None:
    asked: list[bool] = []
    engine.reconnect_requested.connect(lambda: asked.append(True))
    banners, tones = bench.window.banners, list[str]()
    show = banners.show_banner

    def noted(key: str, tone: str, *words: Any, **more: Any) -> None:
        tones.append(tone)
        show(key, tone, *words, **more)

    banners.show_banner = noted
    bench.store.take(training_snapshot(checkpoint="/a.pt"))
    link.lost.emit(lost(was_attached=True))
    banner = bench.window.banners.banner("engine")
    assert banner.text == "It says so. Wait. An engine of the window's own is starting."
    assert choices(bench) == [] and link.state == "starting"  # the run was the window's own
    link.lost.emit(lost(was_attached=True, can_reconnect=True))
    assert choices(bench) == ["Reconnect"] and tones == ["accent", "error"]
    press(bench, "engine", "Reconnect")
    assert asked == [True]


def test_what_an_engine_that_cannot_start_says_is_shown_with_both_ways(
    engine, bench, link, training_snapshot
) -> None:
    bench.store.take(training_snapshot(checkpoint="/a.pt"))
    link.lost.emit(lost())
    assert choices(bench) == ["Restart", "Resume"] and link.state == "lost"


def test_errors_of_the_check_and_of_new_weights_have_their_traceback(engine, bench, link) -> None:
    link.get_ready()
    link.send(InitialiseCommand(model=Model(), training=TrainingSetup()))
    error = ErrorReport("ValueError", "No.", traceback="line 1\nline 2")
    link.answer(ErrorSnapshot(command="InitialiseCommand", error=error))
    banner = bench.window.banners.banner("error_InitialiseCommand")
    assert banner.title == "Resetting the weights failed: No."
    assert banner.toolTip().endswith("line 2")
    link.send(CheckModelCommand(model=Model(), training=TrainingSetup()))
    link.fail("No.")
    bench.files.opened.emit()
    assert bench.window.banners.banner("error_InitialiseCommand") is None
