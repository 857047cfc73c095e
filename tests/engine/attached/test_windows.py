"""What windows of a process are told, which commands they may give, and what a peer that does not
read costs; without a process."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import Pipe
from types import SimpleNamespace
from typing import Any

import pytest

from engine.attached.about import about_this
from engine.attached.allowed import refusal
from engine.attached.answering import Answering
from engine.attached.attached_session import AttachedSession
from engine.attached.windows import Seat, Windows
from engine.connecting import peer as peers
from engine.connecting.peer import Peer
from engine.project.document import Model, TrainingSetup
from engine.project.subject import CanvasSubject, ConsoleSubject
from engine.protocol import (
    AdjustTrainingCommand,
    CheckModelCommand,
    Command,
    ContinueTrainingCommand,
    DoneSnapshot,
    ErrorSnapshot,
    HelloCommand,
    OutputSnapshot,
    QuitSignal,
    ReadStructureCommand,
    ReadValuesCommand,
    RunCellCommand,
    RunHeldCommand,
    ShowSubjectCommand,
    Snapshot,
    StartBackwardCommand,
    TrainCommand,
    VariablesSnapshot,
    decode_snapshot,
    encode_command,
)
from engine.system.errors import LabError


class Told:
    """A window that keeps what it is told."""

    def __init__(self, role: str = "watch", revision: int = 0) -> None:
        self.role, self.revision = role, revision
        self.told: list[Snapshot] = []

    def tell(self, snapshot: Snapshot) -> None:
        self.told.append(snapshot)


def windows(*peers: Any) -> Windows:
    found = Windows()
    for each in peers:
        found.add(each)
    return found


def test_each_window_is_told_as_of_its_own_document() -> None:
    one, other = Told(revision=4), Told(revision=7)
    both = windows(one, other)
    first = both.numbered(other, HelloCommand(id=12))  # pyright: ignore[reportArgumentType]
    second = both.numbered(one, HelloCommand(id=12))  # pyright: ignore[reportArgumentType]
    assert first.id != second.id
    both.tell(VariablesSnapshot(reply_to=first.id, variables=()))
    assert [(s.reply_to, s.revision) for s in (*one.told, *other.told)] == [(0, 4), (12, 7)]
    both.tell(VariablesSnapshot(variables=()))
    assert [(w.told[-1].reply_to, w.told[-1].revision) for w in (one, other)] == [(0, 4), (0, 7)]


def test_how_a_command_has_ended_is_for_the_window_that_asked() -> None:
    one, other = Told(), Told()
    both = windows(one, other)
    command = both.numbered(one, HelloCommand(id=3))  # pyright: ignore[reportArgumentType]
    both.refuse(command, LabError("No.", hint="Wait."))
    error, done = one.told
    assert isinstance(error, ErrorSnapshot) and isinstance(done, DoneSnapshot)
    assert (error.reply_to, done.reply_to) == (3, 3) and other.told == []
    assert (error.command, error.error.message, error.error.hint) == (
        "HelloCommand",
        "No.",
        "Wait.",
    )
    both.tell(VariablesSnapshot(reply_to=command.id, variables=()))  # it has been answered
    assert one.told[-1].reply_to == 0 and len(other.told) == 1


def test_a_window_that_has_gone_is_told_nothing() -> None:
    one, other = Told("steer"), Told()
    both = windows(one, other)
    assert both.has_steering()
    both.remove(one)  # pyright: ignore[reportArgumentType]
    both.tell(VariablesSnapshot(variables=()))
    assert not both.has_steering() and (len(one.told), len(other.told)) == (0, 1)


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (HelloCommand(), ""),
        (ContinueTrainingCommand(), ""),
        (ReadValuesCommand(expression="x"), ""),
        (RunCellCommand(source="x"), "only while it is held"),
        (TrainCommand(model=Model(), training=TrainingSetup()), "trains by itself"),
        (AdjustTrainingCommand(training=TrainingSetup()), "not done inside your script"),
        (CheckModelCommand(model=Model(), training=TrainingSetup()), "not done inside your script"),
        (ReadStructureCommand(subject=ConsoleSubject("net")), ""),
        (ReadStructureCommand(), "The canvas's model is not in your script"),
        (ShowSubjectCommand(subject=CanvasSubject()), ""),
        (StartBackwardCommand(), "The canvas's model is not in your script"),
        (StartBackwardCommand(root="loss"), ""),
        (StartBackwardCommand(of="x"), ""),
        (StartBackwardCommand(subject=ConsoleSubject("net")), ""),
    ],
    ids=lambda each: type(each).__name__ if isinstance(each, Command) else each,
)
def test_which_commands_are_for_a_process_of_the_users(command: Command, words: str) -> None:
    found = refusal(command)
    assert (found is None) == (words == "")
    if found is not None:
        assert words in str(found) and found.hint


def test_a_process_tells_of_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["some/train.py", "--fast"])
    monkeypatch.setenv("RANK", "3")
    monkeypatch.setenv("WORLD_SIZE", "4")
    found = about_this("", "1.0")
    assert (found.name, found.script) == ("train.py", os.path.realpath("some/train.py"))
    assert (found.rank, found.world_size, found.pid) == (3, 4, os.getpid())
    monkeypatch.setattr("sys.argv", [""])
    for name in ("RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name)
    found = about_this("", "1.0")
    assert (found.name, found.script, found.rank, found.world_size) == ("python", "", 0, 1)
    assert about_this("mine", "1.0").name == "mine"


# -- a peer --------------------------------------------------------------------------------------


class Ends:
    """A peer of this process, the window's end of its connection, and what came."""

    def __init__(self) -> None:
        self.window, own = Pipe()
        self.came: list[object] = []
        self.has_gone = threading.Event()
        self.peer = Peer(own, "steer", self._take, lambda peer: self.has_gone.set())

    def _take(self, peer: Peer, message: object) -> None:
        self.came.append(message)

    def received(self) -> list[Snapshot]:
        """All until the end of the connection."""
        found = []
        while True:
            try:
                found.append(decode_snapshot(self.window.recv_bytes()))
            except (EOFError, OSError):
                return found


def output(text: str) -> OutputSnapshot:
    return OutputSnapshot(stream="stdout", text=text)


def test_what_is_told_is_written_in_its_order_before_a_peer_is_closed() -> None:
    ends = Ends()
    ends.peer.start()
    for number in range(50):
        ends.peer.tell(output(f"{number}"))
    ends.peer.close(flush_s=60.0)
    ends.peer.tell(output("too late"))
    assert [each.text for each in ends.received()] == [f"{number}" for number in range(50)]
    assert ends.has_gone.wait(60)
    ends.window.close()


def test_commands_come_with_the_revision_of_their_document_until_the_window_quits() -> None:
    ends = Ends()
    ends.window.send_bytes(encode_command(HelloCommand(id=1, revision=5)))
    ends.window.send_bytes(b"no message")
    ends.window.send_bytes(encode_command(HelloCommand(id=2, revision=6)))
    ends.window.send_bytes(encode_command(QuitSignal()))
    ends.window.send_bytes(encode_command(HelloCommand(id=3, revision=7)))
    ends.peer.start()
    assert ends.has_gone.wait(60)
    assert [command.id for command in ends.came] == [1, 2]
    assert ends.peer.revision == 6
    ends.window.close()


def test_a_window_that_does_not_read_is_hung_up_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "MAX_WAITING_BYTES", 10_000)
    ends = Ends()  # nothing is written yet
    size = len("x" * 3000)
    for _ in range(3):
        ends.peer.tell(output("x" * size))
    assert not ends.peer._is_closed
    ends.peer.tell(output("x" * size))
    assert ends.peer._is_closed and not ends.peer._waiting
    ends.peer.start()
    assert ends.has_gone.wait(60)
    ends.window.close()


@pytest.mark.parametrize(
    ("command", "held", "is_output"),
    [
        (RunHeldCommand(id=7, source="print(1)"), ("code", "output"), True),
        (RunHeldCommand(id=7, source="print(1)"), None, False),  # the script prints meanwhile
        (ReadValuesCommand(id=7, expression="x"), ("code", "output"), False),
    ],
)
def test_only_what_is_run_at_a_hold_prints_for_the_window(
    command: Command, held: object, is_output: bool
) -> None:
    session: Any = AttachedSession.__new__(AttachedSession)
    redirected: list[bool] = []

    @contextmanager
    def redirect() -> Iterator[None]:
        redirected.append(True)
        yield

    session._now, session._output = Answering(), SimpleNamespace(redirected=redirect)
    session._lab = SimpleNamespace(console=SimpleNamespace(held=held))
    with session._answering(command):
        assert session._now.number == 7
    assert session._now.number == 0 and redirected == [True] * is_output


def test_an_interrupt_is_for_code_that_runs_for_an_answer_alone() -> None:
    answering = Answering()
    users, ours = (SimpleNamespace(in_user_code=is_users) for is_users in (True, False))
    answering.interrupt(users)  # pyright: ignore[reportArgumentType] - nothing is answered
    with answering.of(HelloCommand(id=3)):
        answering.interrupt(ours)  # pyright: ignore[reportArgumentType]
        assert answering.number == 3 and answering.thread == threading.get_ident()
    with pytest.raises(KeyboardInterrupt), answering.of(HelloCommand(id=4)):
        answering.interrupt(users)  # pyright: ignore[reportArgumentType]
        while True:
            pass
    assert (answering.number, answering.thread) == (0, 0)
    answering.interrupt(users)  # pyright: ignore[reportArgumentType] - too late
    seen: list[int] = []
    with answering.of(HelloCommand(id=5)):
        other = threading.Thread(target=lambda: seen.append(answering.number))
        other.start()
        other.join()
    assert seen == [0]  # what another thread tells belongs to no command


def test_one_window_steers_until_it_leaves() -> None:
    seat = Seat()
    assert [seat.take("watch"), seat.take("steer"), seat.take("steer")] == [
        "watch", "steer", "watch",
    ]  # fmt: skip
    seat.leave("watch")
    assert seat.take("steer") == "watch"
    seat.leave("steer")
    assert seat.take("steer") == "steer"
