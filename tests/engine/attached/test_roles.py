"""Windows that come in the same moment: each is told the role that it has."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from types import SimpleNamespace

import pytest

from engine.attached.watching import Watching
from engine.connecting.dialing import Call, dial
from engine.connecting.greeting import Hello, Role, encode
from engine.protocol import RankPlace, RankPlacesSnapshot, decode_snapshot
from engine.version import version
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


def test_a_window_that_comes_wants_the_places_of_the_ranks_and_is_told_those_known(
    watching: Watching,
) -> None:
    asked: list[str] = []
    places = RankPlacesSnapshot((RankPlace(0, "here", 1, "python"),))
    watching._rank_places = SimpleNamespace(  # pyright: ignore[reportAttributeAccessIssue]
        begin=lambda: asked.append("begin"), want=lambda: asked.append("want"),
        close=lambda timeout_s: asked.append("close"),
    )  # fmt: skip

    def told(call: Call) -> RankPlacesSnapshot:
        while True:
            snapshot = decode_snapshot(call.connection.recv_bytes())
            if isinstance(snapshot, RankPlacesSnapshot):
                return snapshot

    first = dial(watching.listener.address, version())
    assert watching.wait(WAIT_S) and asked == ["begin", "want"]
    watching._tell_places(places)
    assert told(first) == places
    second = dial(watching.listener.address, version())
    assert told(second) == places
    for call in (first, second):
        call.connection.close()
