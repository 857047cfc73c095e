"""Messages that wait for an engine that does not read."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from engine.process import outbox as outboxes
from engine.process.outbox import Outbox
from engine.process.spawned import SpawnedEngine
from engine.protocol import (
    HelloCommand,
    NodeDetailCommand,
    PauseSignal,
    RuleCommand,
    StopSignal,
    decode_message,
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
