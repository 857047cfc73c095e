"""Windows that come in the same moment: each is told the role that it has."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from engine.attached.watching import Watching
from engine.connecting.dialing import dial
from engine.connecting.greeting import Hello, Role, encode
from engine.system.program import version
from tests.engine.processes import WAIT_S


@pytest.fixture
def watching(sockets: Path) -> Iterator[Watching]:
    made = Watching("train.py", version())
    yield made
    made.close()


def test_the_second_window_watches_though_the_first_is_not_there_yet(watching: Watching) -> None:
    came, here, go_on = watching.listener._came, threading.Semaphore(0), threading.Event()

    def come(connection: Connection, role: Role) -> None:
        if role == "steer":
            go_on.wait(WAIT_S)
        came(connection, role)
        here.release()

    watching.listener._came = come
    calls = [dial(watching.listener.address, version()) for _ in range(2)]
    assert [call.welcome.role for call in calls] == ["steer", "watch"]
    assert here.acquire(timeout=WAIT_S)
    assert watching.session is not None and not watching.session.has_steering()
    go_on.set()
    assert here.acquire(timeout=WAIT_S)
    assert [peer.role for peer in watching.session._windows.peers] == ["watch", "steer"]
    for call in calls:
        call.connection.close()


def test_a_window_that_goes_before_it_is_told_leaves_its_place(watching: Watching) -> None:
    admit, has_gone = watching.listener._admit, threading.Event()
    missed, has_missed = watching.listener._missed, threading.Event()

    def admit_late(hello: Hello):
        has_gone.wait(WAIT_S)
        return admit(hello)

    def miss(role: Role) -> None:
        missed(role)
        has_missed.set()

    watching.listener._admit, watching.listener._missed = admit_late, miss
    end = socket.socket(socket.AF_UNIX)
    end.connect(watching.listener.address)
    caller = Connection(end.detach())
    caller.send_bytes(encode(Hello(version())))
    caller.close()
    has_gone.set()
    assert has_missed.wait(WAIT_S)
    call = dial(watching.listener.address, version())
    assert call.welcome.role == "steer"
    call.connection.close()
