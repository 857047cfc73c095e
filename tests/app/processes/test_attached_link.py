"""A link that is attached to a real script: what it shows, how it is left, and how it is lost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.processes.engine_link import EngineLink
from engine.connecting.dialing import dial
from engine.protocol import HelloCommand, LoopSnapshot, ReadySnapshot
from engine.system.program import version
from tests.app.processes.test_link import WAIT_MS, Heard
from tests.engine.attaching import Script, training_until_end

pytestmark = pytest.mark.usefixtures("forked_processes")


@pytest.fixture
def script(tmp_path: Path, process_server: None) -> Iterator[Script]:
    with training_until_end(tmp_path) as running:
        yield running


@pytest.fixture
def link(qapp, script: Script, qtbot) -> Iterator[EngineLink]:
    made = EngineLink()
    made.heard = Heard(made)
    made.attach(dial(str(script.process.pid), version()))
    qtbot.waitUntil(lambda: made.heard.of(LoopSnapshot) != [], timeout=WAIT_MS)
    yield made
    made.close()
    made.wait_closed()


def test_the_scripts_loop_is_shown_and_the_script_goes_on_afterwards(link, script, tmp_path):
    assert link.state == "ready" and link.pid == script.process.pid
    assert link.attached.about.name == "train.py"
    assert link.heard.of(ReadySnapshot)[0].pid == script.process.pid
    link.close()
    assert (link.state, link.attached, link.heard.reasons) == ("lost", None, [])
    (tmp_path / "end").touch()
    assert script.end() == "ended\n"


def test_stop_never_ends_a_script(link, script, tmp_path):
    link.send(HelloCommand())
    link.stop_job()
    assert not link._kill_timer.isActive()
    link._give_up()
    link.close()
    (tmp_path / "end").touch()
    assert script.end() == "ended\n"


def test_a_script_that_ends_is_lost_in_words(link, tmp_path, qtbot):
    (tmp_path / "end").touch()
    with qtbot.waitSignal(link.lost, timeout=WAIT_MS):
        pass
    reason = link.heard.reasons[0]
    assert reason.title.startswith("train.py (pid ") and ") has ended" in reason.title
    assert reason.was_attached and not reason.can_reconnect
    assert (link.state, link.attached) == ("lost", None)


def test_a_script_that_is_killed_is_lost_in_words(link, script, qtbot):
    with qtbot.waitSignal(link.lost, timeout=WAIT_MS):
        script.process.kill()
    title = link.heard.reasons[0].title
    assert title.endswith((") was ended by SIGKILL", ") has ended"))  # not each system tells


def test_an_engine_of_its_own_comes_after_a_script_and_before(link, script, qtbot):
    link.restart()
    qtbot.waitUntil(lambda: link.state == "ready", timeout=WAIT_MS)
    assert link.attached is None and link.pid != script.process.pid
    sent = link.send(HelloCommand())
    link.attach(dial(str(script.process.pid), version()))
    assert link.attached is not None
    qtbot.waitUntil(lambda: link.state == "ready", timeout=WAIT_MS)
    assert link.pid == script.process.pid
    assert link.send(HelloCommand()) > sent
