"""Finding a process that listens, and what is said to callers that are not windows."""

from __future__ import annotations

import os
import random
import socket
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path

import psutil
import pytest

from engine.connecting import listener as listening_room
from engine.connecting.dialing import dial, dial_through
from engine.connecting.greeting import (
    About,
    Hello,
    Refusal,
    Role,
    Unwelcome,
    Welcome,
    decode_answer,
    encode,
)
from engine.connecting.listener import Listener
from engine.connecting.places import describe, folder, listening

WAIT_S = 30


def about(name: str = "train.py", pid: int = 0) -> About:
    return About(name=name, pid=pid or os.getpid(), version="1", started_s=time.time())


class Host:
    """Listens, lets everyone in who has version 1, and keeps the connections."""

    def __init__(self, name: str = "train.py", host: str = "") -> None:
        self.about = about(name)
        self.came: list[tuple[Connection, Role]] = []
        self.arrived = threading.Semaphore(0)
        self.listener = Listener(self.about, self.admit, self.take, host)

    def admit(self, hello: Hello) -> Welcome | Refusal:
        if hello.version != "1":
            return Refusal("Use version 1.")
        return Welcome(self.about, hello.wants)

    def take(self, connection: Connection, role: Role) -> None:
        self.came.append((connection, role))
        self.arrived.release()

    def next(self) -> tuple[Connection, Role]:
        assert self.arrived.acquire(timeout=WAIT_S)
        return self.came[-1]

    def close(self) -> None:
        self.listener.close()
        for connection, _ in self.came:
            connection.close()


@pytest.fixture
def host(sockets: Path) -> Iterator[Callable[..., Host]]:
    hosts: list[Host] = []

    def make(*args: str, **kwargs: str) -> Host:
        hosts.append(Host(*args, **kwargs))
        return hosts[-1]

    yield make
    for each in hosts:
        each.close()


def test_a_process_is_called_by_its_number_its_name_and_its_socket(host) -> None:
    there = host("net")
    for address in (str(os.getpid()), "net", there.listener.address):
        call = dial(address, "1")
        assert call.welcome == Welcome(there.about, "steer")
        connection, role = there.next()
        assert role == "steer"
        call.connection.send_bytes(b"to the process")
        assert connection.recv_bytes() == b"to the process"
        connection.send_bytes(b"to the window")
        assert call.connection.recv_bytes() == b"to the window"
        call.connection.close()


def test_two_processes_of_one_name_are_told_apart_by_number(host, sockets: Path) -> None:
    host("net")
    host("net")
    with pytest.raises(Unwelcome, match=f"Several.*{os.getpid()}"):
        dial("net", "1")


def test_a_name_that_nobody_has_lists_those_there_are(host) -> None:
    with pytest.raises(Unwelcome, match=r"No process net listens.*watch"):
        dial("net", "1")
    host("other")
    with pytest.raises(Unwelcome, match="There are: other"):
        dial("net", "1")


def test_only_the_user_may_enter(host, sockets: Path) -> None:
    there = host()
    assert stat.S_IMODE(sockets.stat().st_mode) == 0o700
    made = sorted(sockets.iterdir())
    assert [path.suffix for path in made] == [".json", ".sock"]
    assert [stat.S_IMODE(path.stat().st_mode) for path in made] == [0o600, 0o600]
    there.close()
    assert list(sockets.iterdir()) == []


def test_a_process_is_found_only_once_it_answers(host, sockets: Path, monkeypatch) -> None:
    found: list[int] = []
    chmod = os.chmod

    def slow(path: Path, mode: int) -> None:
        found.append(len(listening()))  # its socket has a name, and nobody listens to it yet
        chmod(path, mode)

    monkeypatch.setattr(os, "chmod", slow)
    there = host()
    assert found == [0] and [place.about.pid for place in listening()] == [os.getpid()]
    dial(str(os.getpid()), "1").connection.close()
    there.close()


def test_a_folder_that_others_may_enter_is_refused(sockets: Path) -> None:
    sockets.mkdir()
    sockets.chmod(0o755)
    with pytest.raises(Unwelcome, match="only you may enter"):
        folder()
    sockets.rmdir()
    sockets.symlink_to("/")
    with pytest.raises(Unwelcome, match="only you may enter"):
        folder()


def test_a_folder_too_deep_for_a_socket_is_not_used(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / ("deep" * 30)))
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    assert folder() == tmp_path / f"tensorlab-{os.getuid()}"


def test_what_the_dead_have_left_is_removed(sockets: Path) -> None:
    dead = psutil.Popen([sys.executable, "-c", ""])
    dead.wait()
    place = describe(about(pid=dead.pid))
    place.socket.touch()
    assert listening() == []
    assert list(sockets.iterdir()) == []


def test_a_later_process_of_the_same_number_is_not_taken_for_the_one_that_has_died(
    sockets: Path,
) -> None:
    started_s = psutil.Process().create_time()
    place = describe(About(name="old", pid=os.getpid(), started_s=started_s - 60))
    place.socket.touch()
    assert listening() == []


def test_a_description_that_cannot_be_read_is_passed_over(host, sockets: Path) -> None:
    there = host()
    (sockets / "1-1.json").write_bytes(b"\xff{")
    (sockets / "1-2.json").write_text("[]")
    assert [place.about for place in listening()] == [there.about]


def test_another_version_is_refused_in_words(host) -> None:
    host("net")
    with pytest.raises(Unwelcome, match=r"^Use version 1\.$"):
        dial("net", "2")


def test_tcp_wants_the_key(host) -> None:
    there = host(host="127.0.0.1")
    address, key = there.listener.address, there.listener.key
    call = dial(address, "1", key)
    call.connection.send_bytes(b"hello")
    assert there.next()[0].recv_bytes() == b"hello"
    call.connection.close()
    with pytest.raises(Unwelcome, match="key is another"):
        dial(address, "1", "0" * 32)
    with pytest.raises(Unwelcome, match="asks for its key"):
        dial(address, "1")
    assert len(there.came) == 1


@pytest.mark.parametrize("name", ["0.0.0.0", "192.0.2.1", "example.org", "::"])
def test_tcp_does_not_listen_to_other_machines(sockets: Path, name: str) -> None:
    with pytest.raises(Unwelcome, match="this machine only"):
        Host(host=name)


@pytest.mark.parametrize("address", ["127.0.0.1:1", "127.0.0.1:99999", ":0"])
def test_nothing_answers(sockets: Path, address: str) -> None:
    with pytest.raises(Unwelcome, match=r"Nothing answers|hung up"):
        dial(address, "1")


def raw(there) -> socket.socket:
    end = socket.socket(socket.AF_UNIX)
    end.connect(there.listener.address)
    end.settimeout(WAIT_S)
    return end


def test_callers_that_are_no_windows_are_hung_up_on(host) -> None:
    """And the process goes on to let windows in."""
    there, random_bytes = host("net"), random.Random(1)
    for _ in range(300):
        end = raw(there)
        data = random_bytes.randbytes(random_bytes.randrange(64))
        # With a length before them, as connections of multiprocessing have it, or without.
        size = len(data).to_bytes(4, "big") if random_bytes.random() < 0.5 else b""
        end.sendall(size + data)
        end.shutdown(socket.SHUT_WR)
        with suppress(ConnectionResetError):
            while end.recv(4096):
                pass
        end.close()
    call = dial("net", "1")
    assert call.welcome.about == there.about
    there.next()
    assert len(there.came) == 1
    call.connection.close()


def test_a_message_that_claims_to_be_huge_is_not_waited_for(host) -> None:
    with raw(host("net")) as end:
        end.sendall((1 << 30).to_bytes(4, "big"))
        assert end.recv(1) == b""


def test_a_caller_that_says_nothing_is_hung_up_on(host, monkeypatch) -> None:
    monkeypatch.setattr(listening_room, "GREETING_S", 0.05)
    with raw(host("net")) as end:
        assert end.recv(1) == b""


def test_the_window_tells_what_is_no_process_of_ours(sockets: Path) -> None:
    folder()
    server = socket.socket(socket.AF_UNIX)
    path = sockets / "1.sock"
    server.bind(str(path))
    server.listen()

    def answer() -> None:
        for said in (b"HTTP/1.1 400", b"{}", b'{"type":"Welcome"}'):
            caller = Connection(server.accept()[0].detach())
            caller.recv_bytes()
            caller.send_bytes(said)
            caller.close()
        server.accept()[0].close()

    thread = threading.Thread(target=answer)
    thread.start()
    for _ in range(3):
        with pytest.raises(Unwelcome, match="not Tensor Lab"):
            dial(str(path), "1")
    with pytest.raises(Unwelcome, match="hung up"):
        dial(str(path), "1")
    thread.join()
    server.close()


def test_a_command_that_passes_bytes_on_is_a_way_in(host) -> None:
    """As ssh does, which starts the relay at the other end. It ends with the side that hangs up
    first, and lets go of the other one."""
    there = host("net")
    relay = "import sys; from engine.connecting.relay import relay; relay(sys.argv[1])"
    for window_hangs_up in (True, False):
        call = dial_through([sys.executable, "-c", relay, there.listener.address], "1")
        process, _ = there.next()
        call.connection.send_bytes(b"x" * 300_000)
        assert process.recv_bytes() == b"x" * 300_000
        process.send_bytes(b"y" * 300_000)
        assert call.connection.recv_bytes() == b"y" * 300_000
        first, other = (call.connection, process)[:: 1 if window_hangs_up else -1]
        first.close()
        with pytest.raises(EOFError):
            other.recv_bytes()
        assert call.through is not None
        assert call.through.wait(WAIT_S) == 0
        call.connection.close()


def test_a_command_that_fails_is_told(sockets: Path) -> None:
    with pytest.raises(Unwelcome, match="cannot be started"):
        dial_through(["/no/such/ssh"], "1")
    with pytest.raises(Unwelcome, match="hung up"):
        dial_through([sys.executable, "-c", "raise SystemExit(255)"], "1")


def test_answers_that_are_no_welcome() -> None:
    with pytest.raises(Unwelcome, match="because"):
        decode_answer(encode(Refusal("because")))


def time_limits(connection: Connection) -> set[bytes]:
    with socket.socket(fileno=os.dup(connection.fileno())) as end:
        return {
            end.getsockopt(socket.SOL_SOCKET, option, 16)
            for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO)
        }


def test_after_the_greeting_neither_side_has_a_time_limit(host) -> None:
    there = host("net")
    call = dial("net", "1")
    assert time_limits(call.connection) == time_limits(there.next()[0]) == {bytes(16)}
    call.connection.close()


def test_a_caller_too_many_is_hung_up_on_at_once(host, monkeypatch) -> None:
    monkeypatch.setattr(listening_room, "GREETING_S", 1000.0)
    there = host("net")
    waiting = [raw(there) for _ in range(listening_room.MAX_GREETING)]
    with raw(there) as end:
        assert end.recv(1) == b""
    waiting.pop().close()  # there is room again
    for end in waiting:
        end.close()
    while True:
        try:
            call = dial("net", "1")
            break
        except Unwelcome:  # the greetings of those that have gone are ending
            continue
    assert call.welcome.about == there.about
    call.connection.close()


@pytest.mark.parametrize(("seconds", "lives"), [(-0.9, True), (-1.1, False), (5.0, True)])
def test_a_process_may_seem_to_have_started_a_moment_after_it_listens(
    sockets: Path, seconds: float, lives: bool
) -> None:
    """The system tells when it started to a hundredth of a second at best."""
    started_s = psutil.Process().create_time() + seconds
    describe(About(name="net", pid=os.getpid(), started_s=started_s)).socket.touch()
    assert bool(listening()) == lives


def test_the_folder_around_is_made(monkeypatch: pytest.MonkeyPatch, sockets: Path) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(sockets / "a" / "b"))
    assert folder() == sockets / "a" / "b" / "tensorlab"


def test_the_newest_is_told_first(sockets: Path) -> None:
    started_s = psutil.Process().create_time()
    for seconds in (2, 3, 1):
        about = About(name=str(seconds), pid=os.getpid(), started_s=started_s + seconds)
        describe(about).socket.touch()
    assert [place.about.name for place in listening()] == ["3", "2", "1"]


def test_where_no_socket_lies_in_a_folder_a_process_listens_on_tcp_with_a_key(
    sockets: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(socket, "AF_UNIX")
    host = Host()
    listener = host.listener
    assert listener.address.startswith("127.0.0.1:") and len(listener.key) == 32
    call = dial(listener.address, "1", listener.key)
    connection, role = host.next()
    call.connection.send_bytes(b"here")
    assert (connection.recv_bytes(), role) == (b"here", "steer")
    with pytest.raises(Unwelcome, match="key is another one"):
        dial(listener.address, "1", "0" * 32)
    with pytest.raises(Unwelcome, match="PORT --key KEY"):
        dial("train.py", "1")
    assert listening() == []
    with pytest.raises(Unwelcome, match="on TCP only"):
        folder()
    call.connection.close()
    connection.close()
    listener.close()
