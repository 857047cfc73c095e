"""An engine in a script, as the window sees it: attached to, left, and lost in each way."""

from __future__ import annotations

import os
import queue
import signal
import struct
import sys
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from engine.connecting.dialing import dial, dial_through
from engine.connecting.greeting import About, Welcome, encode
from engine.connecting.listener import Listener
from engine.process import Departure, EngineLost
from engine.process import attached as attached_module
from engine.process.attached import AttachedEngine
from engine.protocol import DoneSnapshot, ReadVariablesCommand, ReadySnapshot, VariablesSnapshot
from engine.system.program import version
from tests.engine.attaching import Script, training_until_end
from tests.engine.processes import WAIT_S


@pytest.fixture
def script(tmp_path: Path, sockets: Path, process_server: None) -> Iterator[Script]:
    """A script that trains until the file `end` is there."""
    with training_until_end(tmp_path) as running:
        yield running


@pytest.fixture
def engine(script: Script) -> Iterator[AttachedEngine]:
    attached = AttachedEngine(dial(str(script.process.pid), version()), last_id=7)
    attached.start()
    assert isinstance(attached.receive(WAIT_S), ReadySnapshot)
    yield attached
    attached.close()


def lost(engine: AttachedEngine) -> Departure:
    with pytest.raises(EngineLost):
        while True:
            assert engine.receive(WAIT_S) is not None
    how = engine.exit()
    assert isinstance(how, Departure)
    return how


def test_it_answers_by_numbers_that_count_on(engine: AttachedEngine, script: Script) -> None:
    assert (engine.pid, engine.is_alive()) == (script.process.pid, True)
    assert (engine._call.welcome.about.name, engine._call.welcome.role) == ("train.py", "steer")
    assert engine._call.welcome.models == ("net",)
    asked = engine.send(ReadVariablesCommand())
    assert asked == 8
    answers = []
    while not answers or not isinstance(answers[-1], DoneSnapshot):
        snapshot = engine.receive(WAIT_S)
        assert snapshot is not None
        answers += [snapshot] if snapshot.reply_to == asked else []
    assert isinstance(answers[0], VariablesSnapshot)
    assert "net" in [variable.name for variable in answers[0].variables]


def test_leaving_ends_nothing(engine: AttachedEngine, script: Script, tmp_path: Path) -> None:
    engine.kill()
    assert lost(engine).lives is True
    engine.close()
    (tmp_path / "end").touch()
    assert script.end() == "ended\n"


def test_a_script_that_ends_by_itself_has_ended(
    engine: AttachedEngine, script: Script, tmp_path: Path
) -> None:
    (tmp_path / "end").touch()
    how, title = lost(engine), f"train.py (pid {script.process.pid})"
    assert how == Departure(title, lives=False, code=how.code)
    assert how.code in (0, None)  # not each system tells


def test_a_script_that_is_killed_has_ended(engine: AttachedEngine, script: Script) -> None:
    script.process.kill()
    how = lost(engine)
    assert how.lives is False and how.code in (-signal.SIGKILL, None)
    assert not engine.is_alive()


@pytest.fixture
def peer(sockets: Path) -> Iterator[tuple[AttachedEngine, Connection]]:
    """An engine that is attached to this process, and the other end of its connection."""
    about = About(name="train.py", pid=os.getpid(), started_s=time.time())
    came: queue.SimpleQueue[Connection] = queue.SimpleQueue()
    there = Listener(
        about,
        lambda hello: Welcome(about, hello.wants),
        lambda connection, role: came.put(connection),
    )
    attached = AttachedEngine(dial(str(os.getpid()), version(), wants="watch"))
    attached.start()
    other = came.get(timeout=WAIT_S)
    yield attached, other
    attached.close()
    other.close()
    there.close()


def test_a_process_that_hangs_up_and_goes_on_is_told_so(
    peer: tuple[AttachedEngine, Connection], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attached_module, "ENDING_S", 0.0)
    engine, other = peer
    assert engine._call.welcome.role == "watch"
    other.close()
    assert lost(engine) == Departure(f"train.py (pid {os.getpid()})", lives=True)
    with pytest.raises(EngineLost):
        engine.send(ReadVariablesCommand())


def test_a_process_that_takes_a_moment_to_end_is_waited_for(
    peer: tuple[AttachedEngine, Connection], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The link stops an engine that was lost before it asks how."""
    looks = iter([True, True, False])
    monkeypatch.setattr(attached_module, "_runs", lambda process: next(looks, False))
    engine, other = peer
    monkeypatch.setattr(engine, "is_alive", lambda: True)
    other.close()
    with pytest.raises(EngineLost):
        engine.receive(WAIT_S)
        engine.receive(WAIT_S)
    engine.stop()
    assert engine.exit().lives is False


def test_bytes_that_are_no_message_lose_it(
    peer: tuple[AttachedEngine, Connection], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attached_module, "ENDING_S", 0.0)
    engine, other = peer
    other.send_bytes(b"\xc1 no message")
    assert lost(engine).garbled


def test_through_a_command_nothing_is_known_of_the_process(sockets: Path) -> None:
    """The command stands for ssh: it passes its input and output on to a process that greets."""
    about = About(name="far.py", pid=os.getpid())
    greeting = encode(Welcome(about, "steer"))
    answer = struct.pack("!i", len(greeting)) + greeting
    far = f"import sys; sys.stdout.buffer.write({answer!r}); sys.stdout.flush(); sys.stdin.read(9)"
    call = dial_through([sys.executable, "-c", far], version())
    assert call.through is not None
    engine = AttachedEngine(call)
    engine.start()
    assert engine.pid is None and engine.is_alive()
    assert lost(engine) == Departure(about.title, lives=None)
    engine.close()
    assert call.through.returncode == 0
