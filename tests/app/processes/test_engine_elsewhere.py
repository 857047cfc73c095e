"""A window's engine on another machine: through a stand-in for ssh, which runs the command here,
and through ssh itself where a server can be started."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import psutil
import pytest

from app.processes.engine_link import EngineLink
from app.templates import load_template
from engine.connecting.engine_place import EnginePlace
from engine.connecting.greeting import Refused
from engine.project.document import replace
from engine.protocol import PauseSignal, ReadVariablesCommand, TrainCommand, TrainingSnapshot
from tests.app.processes.test_link import WAIT_MS, Heard
from tests.engine.ssh_server import ssh_server


@pytest.fixture
def place(request: pytest.FixtureRequest, machine: None, tmp_path: Path) -> Iterator[EnginePlace]:
    """ "sshd" as its parameter leads through a server of ssh."""
    if getattr(request, "param", "") == "sshd":
        with ssh_server(tmp_path) as python:
            yield EnginePlace("ssh box", str(python))
    else:
        yield EnginePlace("ssh box", sys.executable)


@pytest.fixture
def link(qapp, place: EnginePlace) -> Iterator[EngineLink]:
    made = EngineLink()
    made.heard = Heard(made)
    made.place = place
    yield made
    made.close()
    made.wait_closed()


def ready(link: EngineLink, qtbot) -> int:
    """The engine's process id."""
    qtbot.waitUntil(lambda: link.state == "ready", timeout=WAIT_MS)
    assert link.elsewhere == link.place and link.attached is not None and link.pid is None
    return link.attached.about.pid


def steps(link: EngineLink, since: int) -> list[int]:
    runs = [s for s in link.heard.snapshots[since:] if isinstance(s, TrainingSnapshot)]
    return [step for run in runs for step in run.steps.step]


@pytest.mark.parametrize("place", ["stand-in", "sshd"], indirect=True)
def test_a_run_goes_on_without_a_connection_and_is_found_again_whole(link, place, qtbot):
    project = load_template("mlp")
    link.start()
    # Commands wait while the engine is called.
    setup = replace(project.training, epochs=1000)
    began = link.send(TrainCommand(model=project.model, training=setup))
    pid = ready(link, qtbot)
    qtbot.waitUntil(lambda: len(steps(link, 0)) > 20, timeout=WAIT_MS)
    with pytest.raises(Refused) as refused:
        place.call()
    assert refused.value.is_taken

    process = link._process
    process._call.through.kill()  # the way to it is cut
    qtbot.waitUntil(lambda: bool(link.heard.reasons), timeout=WAIT_MS)
    assert link.heard.reasons[0].was_elsewhere and link.state == "lost" and not link.busy
    last, since = steps(link, 0)[-1], len(link.heard.snapshots)

    link.start(instead=True)
    assert ready(link, qtbot) == pid and link.is_found_again
    qtbot.waitUntil(lambda: max(steps(link, since), default=0) > last, timeout=WAIT_MS)
    again = steps(link, since)
    assert again[0] == 1 and all(a < b for a, b in pairwise(again))
    assert link.heard.of(TrainingSnapshot)[-1].reply_to == began and link.busy
    link.signal(PauseSignal())
    qtbot.waitUntil(lambda: link.heard.of(TrainingSnapshot)[-1].state == "paused", timeout=WAIT_MS)

    other = EngineLink()  # a window that comes in place of this one
    other.heard, other.place = Heard(other), place
    other.start(instead=True)
    assert ready(other, qtbot) == pid
    qtbot.waitUntil(lambda: bool(other.heard.of(TrainingSnapshot)), timeout=WAIT_MS)
    assert other.heard.of(TrainingSnapshot)[0].state == "paused" and other.busy
    assert other.send(ReadVariablesCommand()) > began
    qtbot.waitUntil(lambda: link.state == "lost", timeout=WAIT_MS)

    other.restart()
    assert ready(other, qtbot) != pid and not other.is_found_again
    assert not psutil.pid_exists(pid)
    other.close()
    other.wait_closed()


def test_a_window_that_closes_while_it_calls_does_not_wait(link, tmp_path, qtbot):
    wait = f"#!/bin/sh\nwhile [ ! -e {tmp_path}/end ]; do sleep 0.02; done\n"
    (tmp_path / "ssh").write_text(wait)
    link.start()
    assert link.send(ReadVariablesCommand()) > 0
    link.close()
    link.wait_closed()
    assert link.heard.reasons == []
    (tmp_path / "end").touch()


def test_what_ssh_says_is_told(link, tmp_path, qtbot):
    (tmp_path / "ssh").write_text("#!/bin/sh\necho 'Host key verification failed.' >&2\nexit 255\n")
    link.start()
    qtbot.waitUntil(lambda: bool(link.heard.reasons), timeout=WAIT_MS)
    reason = link.heard.reasons[0]
    assert reason.title == "The engine at ssh box was not reached"
    assert reason.detail.endswith("Run `ssh box` in a terminal once, and look at its key.")
    assert link.state == "lost"
