"""What an engine that serves windows says and does at its door, and at a signal."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from engine.connecting.dialing import Call, dial
from engine.connecting.greeting import Refused, Unwelcome
from engine.server import served
from engine.server.served import OpenMailbox
from engine.system.control import Control
from engine.system.program import version

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="a system without it")
SIGNALS = [signal.SIGINT, signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)]
Serve = Callable[..., None]


@pytest.fixture
def serve(sockets: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Serve]:
    """Serves under the name `box` while the function that it is given runs."""
    handlers = [signal.getsignal(number) for number in SIGNALS]

    def run(meanwhile: Callable[[OpenMailbox], object], host: str = "") -> None:
        monkeypatch.setattr(served, "answer", meanwhile)
        served.serve_windows("box", host)

    yield run
    for thread in threading.enumerate():
        if thread.name == "tensorlab-greeting":  # it starts the threads of a window that has come
            thread.join()
    for number, handler in zip(SIGNALS, handlers, strict=True):
        signal.signal(number, handler)


def test_its_welcome_tells_who_it_is(serve: Serve, capsys: pytest.CaptureFixture[str]) -> None:
    calls: list[Call] = []
    before_s = time.time()
    serve(lambda mailbox: calls.append(dial("box", version())))
    calls[0].connection.close()
    welcome, about = calls[0].welcome, calls[0].welcome.about
    assert (welcome.role, welcome.serves, welcome.models) == ("steer", True, ())
    assert (about.name, about.pid, about.version) == ("box", os.getpid(), version())
    assert before_s <= about.started_s <= time.time()
    assert capsys.readouterr().out == f"Tensor Lab: tensorlab attach {os.getpid()}\n"
    with pytest.raises(Unwelcome, match="No process box listens"):
        dial("box", version())


def test_with_a_host_it_says_its_address_and_its_key(
    serve: Serve, capsys: pytest.CaptureFixture[str]
) -> None:
    calls: list[Call] = []

    def meanwhile(mailbox: OpenMailbox) -> None:
        *words, address, option, key = capsys.readouterr().out.split()
        assert (words, option) == (["Tensor", "Lab:", "tensorlab", "attach"], "--key")
        calls.append(dial(address, version(), key))

    serve(meanwhile, "127.0.0.1")
    calls[0].connection.close()
    assert calls[0].welcome.about.pid == os.getpid()


def test_one_window_at_a_time(serve: Serve) -> None:
    def meanwhile(mailbox: OpenMailbox) -> None:
        first = dial("box", version())
        with pytest.raises(Refused, match="Another window is attached to this engine"):
            dial("box", version())
        words = rf"of Tensor Lab {version()}, your window of 0\.1: use"
        with pytest.raises(Refused, match=words):
            dial("box", "0.1")
        assert mailbox.received.get() == mailbox.JOINED
        first.connection.close()
        while mailbox._peer is not None:  # it has not read yet that the window has gone
            time.sleep(0.01)
        dial("box", version()).connection.close()

    serve(meanwhile)


def test_a_promised_place_is_taken_until_the_promise_is_broken(serve: Serve) -> None:
    def meanwhile(mailbox: OpenMailbox) -> None:
        assert [mailbox.promise() for _ in range(3)] == [True, False, False]
        mailbox.break_promise()
        assert mailbox.promise()

    serve(meanwhile)


def test_sigterm_ends_the_run_and_then_the_engine(serve: Serve) -> None:
    seen: list[object] = []
    control = Control()

    def meanwhile(mailbox: OpenMailbox) -> None:
        mailbox._control = control
        signal.raise_signal(signal.SIGHUP)  # the terminal has gone: nothing happens
        assert mailbox.received.empty()
        signal.raise_signal(signal.SIGTERM)
        seen.append(mailbox.received.get())

    serve(meanwhile)
    assert seen == [OpenMailbox.LEAVE]
    assert control.stop.is_set() and control.mark == sys.maxsize
