"""Both links, to an engine process and to an engine in this process, emit the same signals."""

from __future__ import annotations

import os
import signal
import tempfile
import threading

import psutil
import pytest

from app.processes import link as link_module
from app.processes.engine_link import EngineLink
from app.processes.inline_link import InlineLink
from engine.process import outbox
from engine.protocol import (
    CellSnapshot,
    CompleteCommand,
    HelloCommand,
    OutputSnapshot,
    ReadySnapshot,
    RunCellCommand,
)

WAIT_MS = 120_000

pytestmark = pytest.mark.usefixtures("forked_processes")


class Heard:
    """All that a link has said."""

    def __init__(self, link) -> None:
        self.states: list[str] = [link.state]
        self.busy: list[bool] = []
        self.snapshots: list = []
        self.reasons: list = []
        self.threads: set = set()
        link.state_changed.connect(self.states.append)
        link.busy_changed.connect(self.busy.append)
        link.snapshot.connect(self._take)
        link.lost.connect(self.reasons.append)

    def _take(self, snapshot) -> None:
        self.snapshots.append(snapshot)
        self.threads.add(threading.current_thread())

    def of(self, kind) -> list:
        return [s for s in self.snapshots if isinstance(s, kind)]


@pytest.fixture
def process_link(qapp):
    link = EngineLink()
    yield link
    link.close()
    link.wait_closed()


@pytest.fixture
def inline_link(qapp):
    link = InlineLink()
    yield link
    link.close()
    link.wait_closed()


@pytest.fixture(params=["process", "inline"])
def link(request):
    return request.getfixturevalue(f"{request.param}_link")


def test_start_command_answer_close(link, qtbot):
    heard = Heard(link)
    link.start()
    pid = getattr(link, "pid", None)
    link.start()  # it has begun
    assert getattr(link, "pid", None) == pid
    first = link.send(RunCellCommand(source="print('a')\nx = torch.ones(1)"))
    second = link.send(HelloCommand())
    assert link.busy
    qtbot.waitUntil(lambda: heard.busy == [True, False], timeout=WAIT_MS)
    assert not link.busy
    assert heard.states == ["lost", "starting", "ready"]
    assert [type(s).__name__ for s in heard.snapshots] == [
        "ReadySnapshot", "OutputSnapshot", "VariablesSnapshot", "CellSnapshot",
        "ReadySnapshot",
    ]  # fmt: skip
    assert [s.reply_to for s in heard.snapshots] == [0, first, first, first, second]
    assert heard.threads == {threading.main_thread()}
    link.close()
    assert (link.state, heard.states[-1]) == ("lost", "lost")
    assert heard.reasons == []
    assert link.send(HelloCommand()) == 0


def test_restart_forgets_and_counts_on(link, qtbot):
    heard = Heard(link)
    link.start()
    first = link.send(RunCellCommand(source="x = 1"))
    link.restart()
    assert not link.busy
    second = link.send(RunCellCommand(source="x"))
    assert second > first
    qtbot.waitUntil(lambda: heard.of(CellSnapshot) != [], timeout=WAIT_MS)
    assert heard.of(CellSnapshot)[-1].error.type == "NameError"
    assert heard.states == ["lost", "starting", "lost", "starting", "ready"]


def test_an_engine_that_does_not_read_is_told_apart_from_none(process_link, monkeypatch):
    assert process_link.send(HelloCommand()) == 0
    assert process_link.unsent == link_module.NO_ENGINE
    process_link.start()
    process = process_link._process
    monkeypatch.setattr(outbox, "MOST_WAITING", 3)
    psutil.Process(process.pid).suspend()
    try:
        large = RunCellCommand(source="#" * 4_000_000)  # more than the pipe holds
        sent = [process_link.send(large) for _ in range(9)]
        assert 3 <= sum(map(bool, sent)) < 9 and sent[-1] == 0
        assert process_link.unsent == link_module.DOES_NOT_READ
        assert process_link.state == "starting"
    finally:
        psutil.Process(process.pid).resume()


def test_draining_works_without_an_event_loop(inline_link):
    heard = Heard(inline_link)
    inline_link.start()
    inline_link.send(RunCellCommand(source="1 + 1"))
    inline_link.drain()
    assert heard.of(OutputSnapshot)[0].text == "2\n"
    assert not inline_link.busy


def test_a_command_sent_in_answer_to_a_snapshot_is_answered(inline_link):
    heard = Heard(inline_link)
    inline_link.snapshot.connect(
        lambda s: (
            inline_link.send(RunCellCommand(source="")) if isinstance(s, ReadySnapshot) else None
        )
    )
    inline_link.start()
    inline_link.drain()
    assert len(heard.of(CellSnapshot)) == 1


def test_a_killed_engine_is_told_and_can_be_started_again(process_link, qtbot):
    heard = Heard(process_link)
    process_link.start()
    process_link.send(RunCellCommand(source="print('busy')\nwhile True: pass"))
    qtbot.waitUntil(lambda: heard.of(OutputSnapshot) != [], timeout=WAIT_MS)
    os.kill(process_link.pid, signal.SIGKILL)
    qtbot.waitUntil(lambda: heard.reasons != [], timeout=WAIT_MS)
    assert "killed" in heard.reasons[0].title
    assert "It was running your code." in heard.reasons[0].detail
    assert (process_link.state, process_link.busy, process_link.pid) == ("lost", False, None)
    process_link.start()
    qtbot.waitUntil(lambda: process_link.state == "ready", timeout=WAIT_MS)
    assert len(heard.reasons) == 1


def test_a_job_that_hangs_is_stopped_by_an_interrupt(process_link, qtbot, monkeypatch):
    heard = Heard(process_link)
    process_link.start()
    process_link._interrupt_timer.setInterval(0)
    process_link._kill_timer.setInterval(WAIT_MS)
    process_link.send(RunCellCommand(source="print('busy')\nwhile True: pass"))
    qtbot.waitUntil(lambda: heard.of(OutputSnapshot) != [], timeout=WAIT_MS)
    process_link.stop_job()
    qtbot.waitUntil(lambda: not process_link.busy, timeout=WAIT_MS)
    assert heard.of(CellSnapshot)[0].error.type == "KeyboardInterrupt"
    assert process_link.state == "ready"
    assert not process_link._kill_timer.isActive()


def test_a_job_that_ignores_the_interrupt_is_killed_and_told(process_link, qtbot):
    heard = Heard(process_link)
    process_link.start()
    process_link._interrupt_timer.setInterval(0)
    process_link._kill_timer.setInterval(1)
    process_link.send(
        RunCellCommand(
            source="import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nprint('busy')\n"
            "while True: pass"
        )
    )
    qtbot.waitUntil(lambda: heard.of(OutputSnapshot) != [], timeout=WAIT_MS)
    process_link.stop_job()
    qtbot.waitUntil(lambda: heard.reasons != [], timeout=WAIT_MS)
    assert "did not answer to Stop" in heard.reasons[0].title
    assert process_link.state == "lost"


def test_the_patience_is_one_and_three_seconds(process_link):
    assert (link_module.INTERRUPT_AFTER_MS, link_module.KILL_AFTER_MS) == (1000, 3000)
    assert process_link._interrupt_timer.interval() == 1000
    assert process_link._kill_timer.interval() == 3000


def test_stopping_when_nothing_is_in_hand_does_nothing(link):
    link.stop_job()
    assert not link._kill_timer.isActive()


def test_closing_leaves_no_thread_and_no_process(process_link, qtbot):
    threads = set(threading.enumerate())
    process_link.start()
    pid = process_link.pid
    process_link.send(RunCellCommand(source="import threading\nthreading.Event().wait()"))
    process_link.close()
    assert process_link.state == "lost"  # at once, though the process has three seconds to end
    process_link.wait_closed()
    assert set(threading.enumerate()) == threads
    assert not psutil.pid_exists(pid)


def test_to_close_and_to_restart_wait_for_nothing(process_link, qtbot):
    """The old engine hangs in a cell and does not even read: its end is another thread's matter."""
    heard = Heard(process_link)
    process_link.start()
    process_link.send(RunCellCommand(source="print()\nimport ctypes\nctypes.PyDLL(None).sleep(99)"))
    qtbot.waitUntil(lambda: heard.of(OutputSnapshot) != [], timeout=WAIT_MS)
    old = psutil.Process(process_link.pid)
    process_link.restart()
    assert old.is_running()  # it has three seconds
    assert (process_link.state, process_link.pid) != ("starting", old.pid)
    qtbot.waitUntil(lambda: process_link.state == "ready", timeout=WAIT_MS)
    old.wait(WAIT_MS / 1000)
    assert heard.reasons == []


def test_an_engine_that_cannot_be_started_is_told_and_tried_again(
    process_link, qtbot, tmp_path, monkeypatch
):
    heard = Heard(process_link)
    with monkeypatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
        process_link.restart()
    assert (process_link.state, process_link.pid) == ("lost", None)
    assert heard.reasons[0].title == "The engine could not be started"
    assert "No such file or directory" in heard.reasons[0].detail
    assert process_link.send(HelloCommand()) == 0
    process_link.restart()
    qtbot.waitUntil(lambda: process_link.state == "ready", timeout=WAIT_MS)


def test_a_superseded_command_counts_as_ended(process_link):
    process_link.start()
    os.kill(process_link.pid, signal.SIGSTOP)
    sent = [process_link.send(CompleteCommand(source="x" * 100_000, cursor=0)) for _ in range(10)]
    assert set(process_link._unanswered) < set(sent) and sent[-1] in process_link._unanswered
    assert len(process_link._unanswered) <= 3  # written, being written, waiting
    process_link._process.kill()


def test_what_a_closed_engine_has_said_is_not_heard(process_link, qtbot):
    """Its snapshots wait in the inbox when it is closed: they tell of nothing any more."""
    heard = Heard(process_link)
    said = threading.Event()
    put = process_link._inbox.put
    process_link._inbox.put = lambda *item: (put(*item), said.set())
    process_link.start()
    assert said.wait(WAIT_MS / 1000)  # without an event loop: nothing has been delivered
    process_link.restart()
    qtbot.waitUntil(lambda: process_link.state == "ready", timeout=WAIT_MS)
    process_link.send(HelloCommand())
    qtbot.waitUntil(lambda: not process_link.busy, timeout=WAIT_MS)
    assert [s.reply_to for s in heard.of(ReadySnapshot)] == [0, 1]  # both of the second engine
    assert heard.states == ["lost", "starting", "lost", "starting", "ready"]
