"""A link that is attached to an engine that serves windows: through a stand-in for ssh, which runs
the command here, and through ssh itself where a server can be started."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest

from app.processes.engine_link import EngineLink
from app.templates import load_template
from engine.connecting.dialing import Call
from engine.connecting.greeting import Refused
from engine.connecting.ssh import call_at
from engine.project.document import replace
from engine.protocol import PauseSignal, TrainCommand, TrainingSnapshot
from engine.system.program import version
from tests.app.processes.test_link import WAIT_MS, Heard
from tests.engine.ssh_server import ssh_server


@pytest.fixture
def call(
    request: pytest.FixtureRequest, machine: None, tmp_path: Path
) -> Iterator[Callable[[], Call]]:
    """ "sshd" as its parameter leads through a server of ssh."""
    if getattr(request, "param", "") == "sshd":
        with ssh_server(tmp_path) as python:
            yield partial(call_at, "ssh box", version(), python=str(python))
    else:
        yield partial(call_at, "ssh box", version(), python=sys.executable)


@pytest.fixture
def link(qapp, call: Callable[[], Call]) -> Iterator[EngineLink]:
    made = EngineLink()
    made.heard = Heard(made)
    made.attach(call())
    yield made
    made.close()
    made.wait_closed()


def ready(link: EngineLink, qtbot) -> int:
    """The engine's process id."""
    qtbot.waitUntil(lambda: link.state == "ready", timeout=WAIT_MS)
    assert link.is_served and link.script is None and link.attached is not None
    assert link.pid is None
    return link.attached.about.pid


def steps(link: EngineLink, since: int) -> list[int]:
    runs = [s for s in link.heard.snapshots[since:] if isinstance(s, TrainingSnapshot)]
    return [step for run in runs for step in run.steps.step]


@pytest.mark.parametrize("call", ["stand-in", "sshd"], indirect=True)
def test_a_run_goes_on_without_a_connection_and_is_found_again_whole(link, call, qtbot):
    pid = ready(link, qtbot)
    project = load_template("mlp")
    setup = replace(project.training, epochs=1000)
    began = link.send(TrainCommand(model=project.model, training=setup))
    qtbot.waitUntil(lambda: len(steps(link, 0)) > 20, timeout=WAIT_MS)
    with pytest.raises(Refused, match="detach or close that one"):
        call()

    link._process._call.through.kill()  # the way to it is cut
    qtbot.waitUntil(lambda: bool(link.heard.reasons), timeout=WAIT_MS)
    reason = link.heard.reasons[0]
    assert reason.was_attached and reason.can_reconnect
    assert link.state == "lost" and not link.busy and not link.is_served
    last, since = steps(link, 0)[-1], len(link.heard.snapshots)

    link.attach(until_free(call))
    assert ready(link, qtbot) == pid
    qtbot.waitUntil(lambda: max(steps(link, since), default=0) > last, timeout=WAIT_MS)
    again = steps(link, since)
    assert again[0] == 1 and all(a < b for a, b in pairwise(again))
    run = link.heard.of(TrainingSnapshot)[-1]
    assert run.reply_to == began and link.busy  # it is a job of this window's, too
    link.signal(PauseSignal())
    qtbot.waitUntil(lambda: link.heard.of(TrainingSnapshot)[-1].state == "paused", timeout=WAIT_MS)
    link.stop_run()
    qtbot.waitUntil(lambda: not link.busy, timeout=WAIT_MS)
    assert link.heard.of(TrainingSnapshot)[-1].state == "stopped"


def until_free(call: Callable[[], Call]) -> Call:
    """Call until the engine has read that the window before has gone."""
    while True:
        try:
            return call()
        except Refused:
            continue
