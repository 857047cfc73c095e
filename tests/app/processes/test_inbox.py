"""The inbox: in order, merged, no more at once than a frame has room for."""

from __future__ import annotations

from PySide6.QtCore import QObject

from app.processes import inbox
from app.processes.inbox import Inbox
from engine.protocol import (
    DoneSnapshot,
    OutputPiece,
    OutputSnapshot,
    OutputTailSnapshot,
    Stream,
)


class Taken(QObject):
    def __init__(self) -> None:
        super().__init__()
        self.items: list = []
        self.inbox = Inbox(lambda source, item: self.items.append(item), self)


def printed(text: str, reply_to: int = 1, stream: Stream = "stdout") -> OutputSnapshot:
    return OutputSnapshot(stream=stream, text=text, reply_to=reply_to)


def tail(number: int) -> OutputTailSnapshot:
    return OutputTailSnapshot(
        pieces=(OutputPiece("stdout", "end"),),
        left_out_lines=number,
        left_out_characters=0,
        path="",
        reply_to=1,
    )


def test_text_that_waits_is_one_snapshot_and_of_a_tail_only_the_newest_stays(qtbot):
    taken, done = Taken(), DoneSnapshot(reply_to=1)
    for text in ("a", "b", "c"):
        taken.inbox.put("engine", printed(text))
    taken.inbox.put("engine", printed("\rd"))
    taken.inbox.put("engine", printed("e", stream="stderr"))
    for number in range(1000):
        taken.inbox.put("engine", tail(number))
    taken.inbox.put("engine", done)
    taken.inbox.put("engine", printed("f", reply_to=2))
    taken.inbox.put("another", printed("g", reply_to=2))
    assert len(taken.inbox._waiting) == 7
    qtbot.waitUntil(lambda: len(taken.items) == 7)
    assert taken.items == [
        printed("abc"),
        printed("\rd"),
        printed("e", stream="stderr"),
        tail(999),
        done,
        printed("f", reply_to=2),
        printed("g", reply_to=2),
    ]


def test_what_takes_long_is_handed_over_in_several_frames(qtbot, monkeypatch):
    monkeypatch.setattr("app.processes.inbox.BUDGET_S", -1.0)  # no time at all
    taken = Taken()
    for number in range(5):
        taken.inbox.put("engine", DoneSnapshot(reply_to=number))
    taken.inbox._hand_over()
    assert taken.items == []
    monkeypatch.setattr("app.processes.inbox.BUDGET_S", 60.0)
    qtbot.waitUntil(lambda: len(taken.items) == 5)


def test_one_that_cannot_be_taken_does_not_hold_up_the_next(qtbot):
    class Refusing(QObject):
        def __init__(self) -> None:
            super().__init__()
            self.items: list = []
            self.inbox = Inbox(self.take, self)

        def take(self, source: object, item: object) -> None:
            if item == "bad":
                raise ValueError(item)
            self.items.append(item)

    taken = Refusing()
    with qtbot.captureExceptions() as faults:
        for item in ("good", "bad", "better"):
            taken.inbox.put("engine", item)
        qtbot.waitUntil(lambda: len(taken.items) == 2)
    assert taken.items == ["good", "better"]
    assert [kind for kind, *_ in faults] == [ValueError]


def test_what_comes_within_a_frame_of_the_last_time_waits_for_its_end(qtbot, monkeypatch):
    taken, now = Taken(), [100.0]
    monkeypatch.setattr(inbox.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(inbox, "BUDGET_S", 1.0)
    started: list[int] = []
    monkeypatch.setattr(taken.inbox._timer, "start", started.append)
    taken.inbox._handed_over_at = now[0] - 0.005
    taken.inbox._waiting.append(("engine", "early"))
    taken.inbox._schedule()
    assert taken.items == [] and started == [round(inbox.FRAME_MS - 5)]
    now[0] += inbox.FRAME_MS / 1000
    taken.inbox._schedule()
    assert taken.items == ["early"] and taken.inbox._handed_over_at == now[0]
