"""Messages that wait for an engine that does not read, and an engine that is called."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any

import pytest

from engine.attached.about import about_this
from engine.connecting.dialing import Call
from engine.connecting.greeting import Refused, Unwelcome, Welcome
from engine.process import attached
from engine.process import outbox as outboxes
from engine.process.called import CalledEngine
from engine.process.engine_process import EngineLost
from engine.process.exits import Departure, Unreached
from engine.process.outbox import Outbox
from engine.process.spawned import SpawnedEngine
from engine.protocol import (
    Command,
    HelloCommand,
    NodeDetailCommand,
    PauseSignal,
    RuleCommand,
    StopSignal,
    VariablesSnapshot,
    decode_message,
    encode_snapshot,
)


class Slow:
    """Writes one message each time that it may."""

    def __init__(self) -> None:
        self.may, self.begun = threading.Semaphore(0), threading.Semaphore(0)
        self.written: list[Any] = []
        self.fails = False

    def write(self, data: bytes) -> None:
        self.begun.release()
        assert self.may.acquire(timeout=20)
        if self.fails:
            raise OSError("it has ended")
        self.written.append(decode_message(data))


@pytest.fixture
def slow() -> Slow:
    return Slow()


@pytest.fixture
def outbox(slow: Slow) -> Iterator[Outbox]:
    """An outbox whose first message is being written."""
    made = Outbox(slow.write)
    assert made.put(HelloCommand(id=1)) == []
    assert slow.begun.acquire(timeout=20)
    yield made
    slow.may.release(100)
    made.close()


def all_written(slow: Slow, count: int) -> list[Any]:
    for _ in range(count):
        slow.may.release()
        slow.begun.acquire(timeout=20)
    slow.may.release()
    return slow.written


def test_of_commands_that_are_wanted_once_the_newest_waits(slow: Slow, outbox: Outbox) -> None:
    first, second = NodeDetailCommand(id=2, node=0), NodeDetailCommand(id=4, node=1)
    assert first.newest_only and not RuleCommand(node=0).newest_only
    rules = [RuleCommand(id=3, node=0), RuleCommand(id=5, node=0)]
    assert [outbox.put(each) for each in (first, rules[0])] == [[], []]
    assert outbox.put(second) == [first]
    assert outbox.put(rules[1]) == outbox.put(PauseSignal()) == []
    expected = [HelloCommand(id=1), rules[0], second, rules[1], PauseSignal()]
    found = all_written(slow, 4)
    outbox.put(StopSignal())
    assert slow.begun.acquire(timeout=20) and found == expected


def test_what_is_being_written_is_not_taken_back(slow: Slow, outbox: Outbox) -> None:
    outbox.put(NodeDetailCommand(id=2, node=0))
    slow.may.release()
    assert slow.begun.acquire(timeout=20)
    assert outbox.put(NodeDetailCommand(id=3, node=0)) == []


def test_too_many_commands_are_refused_and_signals_are_not(
    slow: Slow, outbox: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outboxes, "MOST_WAITING", 2)
    for number in (2, 3):
        outbox.put(RuleCommand(id=number, node=0))
    with pytest.raises(BufferError, match="2 messages wait for the engine"):
        outbox.put(RuleCommand(id=4, node=0))
    outbox.put(StopSignal())
    found = all_written(slow, 3)
    outbox.put(PauseSignal())
    assert slow.begun.acquire(timeout=20)
    assert [getattr(each, "id", 0) for each in found] == [1, 2, 3, 0]


def test_after_its_end_nothing_is_taken(slow: Slow, outbox: Outbox) -> None:
    outbox.put(RuleCommand(id=2, node=0))
    slow.fails = True
    slow.may.release()
    outbox._thread.join(20)
    with pytest.raises(OSError, match="reads no more"):
        outbox.put(StopSignal())
    assert slow.written == []


def test_closing_drops_what_waits(slow: Slow, outbox: Outbox) -> None:
    outbox.put(RuleCommand(id=2, node=0))
    closing = threading.Thread(target=outbox.close)
    closing.start()
    with outbox._changed:
        assert outbox._changed.wait_for(lambda: outbox._closed, 20)
    slow.may.release()
    closing.join(20)
    assert slow.written == [HelloCommand(id=1)] and not outbox._thread.is_alive()


# -- an engine elsewhere -------------------------------------------------------------------------


class Way:
    """How the engine is called: the answer comes when it `may`."""

    def __init__(self) -> None:
        self.may = threading.Event()
        self.answer: Call | Exception | None = None
        self.welcomed: list[Welcome] = []

    def __call__(self) -> Call:
        assert self.may.wait(20)
        assert self.answer is not None
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.fixture
def far() -> Iterator[Callable[[], tuple[CalledEngine, Way, Connection]]]:
    """A called engine, the way to it, and the other end of its connection."""
    made: list[tuple[CalledEngine, Way, Connection]] = []

    def make() -> tuple[CalledEngine, Way, Connection]:
        way = Way()
        ours, theirs = Pipe()
        way.answer = Call(ours, Welcome(about_this("far", "1"), "steer"))
        engine = CalledEngine("the box", way, way.welcomed.append, last_id=40)
        made.append((engine, way, theirs))
        engine.start()
        return made[-1]

    yield make
    for engine, way, theirs in made:
        way.may.set()
        engine.close()
        theirs.close()


def test_messages_wait_for_the_answer_and_then_go_both_ways(
    far: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attached, "ENDING_S", 0.0)  # the process is this one, which goes on
    engine, way, theirs = far()
    assert engine.send(HelloCommand()) == 41
    assert engine.receive(0.0) is None and not way.welcomed and engine.pid is None
    way.may.set()
    theirs.send_bytes(encode_snapshot(VariablesSnapshot(reply_to=41, variables=())))
    told = engine.receive(20)
    assert isinstance(told, VariablesSnapshot) and told.reply_to == 41
    sent = decode_message(theirs.recv_bytes())
    assert isinstance(sent, Command) and sent.id == 41
    assert [each.about.name for each in way.welcomed] == ["far"]
    theirs.close()
    with pytest.raises(EngineLost):
        engine.receive(20)
    told = engine.exit()
    assert isinstance(told, Departure) and (told.name, told.lives) == ("the box", True)


@pytest.mark.parametrize(
    ("error", "is_taken"),
    [(Unwelcome("No."), False), (Refused("No.", True), True), (Refused("No.", False), False)],
)
def test_why_nothing_answers_is_told(far: Any, error: Exception, is_taken: bool) -> None:
    engine, way, _ = far()
    way.answer = error
    engine.send(HelloCommand())
    way.may.set()
    with pytest.raises(EngineLost):
        engine.receive(20)
    assert engine.exit() == Unreached("the box", "No.", is_taken) and way.welcomed == []
    with pytest.raises(EngineLost):
        engine.send(HelloCommand())


def test_a_window_that_waits_no_longer_hangs_up_on_the_answer(far: Any) -> None:
    engine, way, theirs = far()
    assert engine.receive(0.0) is None
    engine.stop()
    with pytest.raises(EngineLost):
        engine.receive()
    way.may.set()
    with pytest.raises(EOFError):
        theirs.recv_bytes()
    assert way.welcomed == []


def test_an_engine_that_was_not_started_says_so() -> None:
    engine = SpawnedEngine()
    assert not engine.is_alive() and engine.pid is None
    for ask in (
        engine.receive, lambda: engine.send(HelloCommand()), lambda: engine.signal(StopSignal()),
        engine.exit,
    ):  # fmt: skip
        with pytest.raises(RuntimeError, match="never started"):
            ask()
    engine.kill()
    engine.stop()
    engine.close()
