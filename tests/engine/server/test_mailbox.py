"""The engine's end of the pipe: which message is acted on at once, which waits, and for what."""

from __future__ import annotations

import multiprocessing
import queue
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from engine.console.namespace import Namespace
from engine.project.document import HoldWhen
from engine.protocol import (
    Command,
    HeldSnapshot,
    HoldWhenSignal,
    InterruptSignal,
    OutputSnapshot,
    PauseSignal,
    ReadVariablesCommand,
    ReadySnapshot,
    RunCellCommand,
    Snapshot,
    StepBackwardSignal,
    StepColumns,
    StopSignal,
    TrainingSnapshot,
    VariablesSnapshot,
)
from engine.server import serve
from engine.server.serve import Mailbox, PipeMailbox
from engine.server.served import OpenMailbox
from engine.system.control import Control
from tests.engine.processes import WAIT_S

SAID = OutputSnapshot(stream="stdout", text="said")


class Written(Mailbox):
    """What it writes is in `written`."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[Snapshot] = []
        self.meanwhile: Callable[[], object] = lambda: None

    def _write(self, snapshot: Snapshot) -> None:
        self.meanwhile()
        self.written.append(snapshot)


class Asked:
    """Stands for a session: `answers` are the commands that it answers while code is held."""

    def __init__(self, *answers: type[Command]) -> None:
        self.control = Control()
        self.lab: Any = SimpleNamespace(control=self.control, inside=lambda answer: answer())
        self.answers, self.asked = answers, []

    def handle_held(self, command: Command) -> bool:
        self.asked.append(("held", command.id))
        return isinstance(command, self.answers)

    def answer_inside(self, command: Command) -> bool:
        self.asked.append(("inside", command.id))
        return isinstance(command, self.answers)


@pytest.fixture(autouse=True)
def _handler_of_before(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(serve, "ATTEND_S", 0.0)
    before = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, before)


def waiting(mailbox: Mailbox) -> list[object]:
    """All that comes next, without waiting."""
    found: list[object] = []
    while True:
        try:
            found.append(mailbox.next(block=False))
        except queue.Empty:
            return found


def test_signals_that_came_while_torch_loaded_act_later_for_the_commands_before_them() -> None:
    mailbox, asked = Written(), Asked()
    mailbox.take(RunCellCommand(id=3, source=""))
    mailbox.take(StopSignal())
    mailbox.take(StepBackwardSignal(on=True))
    mailbox.take(RunCellCommand(id=4, source=""))
    assert not asked.control.stop.is_set()
    mailbox.attach(asked)  # pyright: ignore[reportArgumentType]
    control = asked.control
    assert (control.stop.is_set(), control.pause.is_set(), control.mark) == (True, False, 3)
    assert control.steps_backward and mailbox._early == []
    ids = [message.id if isinstance(message, Command) else message for message in waiting(mailbox)]
    assert ids == [3, 4, Mailbox.WAKE]


def test_a_signal_sets_the_flag_that_it_names() -> None:
    mailbox, asked = Written(), Asked()
    mailbox.attach(asked)  # pyright: ignore[reportArgumentType]
    control, looks = asked.control, []
    control.asked = lambda: looks.append(1)
    mailbox.take(StopSignal(command=5))
    assert (control.stopped, control.stop.is_set()) == ({5}, False) and waiting(mailbox) == ["wake"]
    mailbox.take(StepBackwardSignal(on=True))
    assert control.steps_backward and len(looks) == 1
    mailbox.take(StepBackwardSignal(on=False))
    assert not control.steps_backward and len(looks) == 2
    mailbox.take(HoldWhenSignal(when=HoldWhen(not_finite=True)))
    assert control.hold_when.not_finite and len(looks) == 3 and waiting(mailbox) == []
    mailbox.take(RunCellCommand(id=8, source=""))
    mailbox.take(PauseSignal())
    assert (control.pause.is_set(), control.stop.is_set(), control.mark) == (True, False, 8)
    assert waiting(mailbox)[1:] == [Mailbox.WAKE]


def test_while_code_is_held_what_cannot_be_answered_comes_next_in_its_order() -> None:
    mailbox, asked = Written(), Asked(ReadVariablesCommand)
    session: Any = asked
    mailbox.attend(session)  # nothing has come
    came = []
    mailbox.came = lambda: came.append(1)
    mailbox.take(RunCellCommand(id=1, source=""))
    mailbox.take(ReadVariablesCommand(id=2))
    mailbox.received.put(Mailbox.WAKE)
    mailbox.received.put(Mailbox.LEAVE)
    mailbox.take(RunCellCommand(id=3, source=""))
    for _ in range(3):
        mailbox.attend(session)
    assert not asked.control.interrupted and len(came) == 3
    mailbox.attend(session)
    assert asked.control.interrupted  # the cell ends
    assert asked.asked == [("held", 1), ("held", 2)]
    ids = [each.id if isinstance(each, Command) else each for each in waiting(mailbox)]
    assert ids == [1, Mailbox.LEAVE, 3]


def test_inside_of_the_users_code_only_what_reads_is_answered() -> None:
    mailbox, asked = Written(), Asked(ReadVariablesCommand)
    session: Any = asked

    def come() -> None:
        mailbox.take(ReadVariablesCommand(id=1))
        mailbox.received.put(Mailbox.WAKE)
        mailbox.take(RunCellCommand(id=2, source=""))

    come()
    mailbox.attend_inside(session)  # no code of the user's runs
    asked.control.in_user_code = True
    mailbox._writing = True
    mailbox.attend_inside(session)  # in the middle of a message
    mailbox._writing = False
    inside, asked.lab.inside = asked.lab.inside, None
    mailbox.attend_inside(session)  # no cell and no file
    assert asked.asked == []
    asked.lab.inside = inside
    mailbox.attend_inside(session)
    assert asked.asked == [("inside", 1), ("inside", 2)]
    first, second = waiting(mailbox)
    assert first == Mailbox.WAKE and isinstance(second, RunCellCommand)


def test_an_interrupt_ends_the_users_code_once_and_nothing_else() -> None:
    mailbox, asked = Written(), Asked()
    mailbox.take(InterruptSignal())  # torch loads
    control = asked.control
    mailbox.attach(asked)  # pyright: ignore[reportArgumentType]
    control.interrupt()
    signal.raise_signal(signal.SIGINT)  # Ctrl+C in the terminal is the window's
    with pytest.raises(KeyboardInterrupt), control.user_code():
        control.interrupt()
        pytest.fail("it goes on")
    with control.user_code():
        signal.raise_signal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt), control.user_code():
        with control.own_code():
            mailbox.take(InterruptSignal())
            assert control.interrupted
        pytest.fail("it goes on")


def test_an_interrupt_that_the_main_thread_misses_comes_again(monkeypatch) -> None:
    """As one does that comes a moment before a sleep begins."""
    mailbox, asked = Written(), Asked()
    mailbox.attach(asked)  # pyright: ignore[reportArgumentType]
    kill, missed = signal.pthread_kill, list[int]()

    def miss_first(thread: int, number: int) -> None:
        kill(thread, number) if missed else missed.append(number)

    monkeypatch.setattr(signal, "pthread_kill", miss_first)
    with pytest.raises(KeyboardInterrupt), asked.control.user_code():
        mailbox.take(InterruptSignal())
        threading.Event().wait(WAIT_S)
        pytest.fail("it goes on")
    assert missed == [signal.SIGINT]


def test_an_interrupt_waits_until_a_message_is_written() -> None:
    mailbox, asked = Written(), Asked()
    mailbox.attach(asked)  # pyright: ignore[reportArgumentType]
    mailbox.meanwhile = asked.control.interrupt
    with pytest.raises(KeyboardInterrupt), asked.control.user_code():
        mailbox.send(SAID)
    assert mailbox.written == [SAID] and not mailbox._writing
    mailbox.meanwhile = lambda: None
    with asked.control.user_code():
        mailbox.send(SAID)
    assert len(mailbox.written) == 2


def test_a_pipe_that_is_closed_ends_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PipeMailbox, "_read", lambda self: None)
    ours, theirs = multiprocessing.Pipe()
    mailbox = PipeMailbox(theirs)
    mailbox.send(SAID)
    assert b"said" in ours.recv_bytes() and waiting(mailbox) == []
    ours.close()
    mailbox.send(SAID)
    theirs.close()
    mailbox.send(SAID)
    assert Mailbox.LEAVE in waiting(mailbox)


class Peer:
    """Stands for a window."""

    def __init__(self) -> None:
        self.told: list[Snapshot] = []
        self.tell = self.told.append


def training(state: Any) -> TrainingSnapshot:
    return TrainingSnapshot(
        run="r", state=state, step=2, total_steps=4, epoch=1, epochs=1, steps_per_second=0.0,
        remaining_s=None, steps=StepColumns(), epoch_rows=(), device="cpu",
    )  # fmt: skip


def test_a_window_that_comes_is_told_what_there_is() -> None:
    mailbox, asked, again = OpenMailbox(), Asked(), []
    ready = ReadySnapshot(torch_version="2", python_version="3", pid=1, devices=(), torch_threads=1)
    held = HeldSnapshot(at="line", line=3)
    asked.lab.console = SimpleNamespace(namespace=Namespace())
    asked.lab.console.namespace.variables["mine"] = 4
    session: Any = asked
    session.tell_run_again = again.append
    mailbox.send(ready)
    mailbox.send(training("paused"))
    mailbox.send(held)
    window: Any = Peer()
    mailbox._peer = window
    mailbox.send(SAID)  # it has not come yet: what is said meanwhile is not kept
    mailbox.attach(session)
    mailbox.received.put(OpenMailbox.JOINED)
    mailbox.take(RunCellCommand(id=3, source=""))
    assert isinstance(mailbox.next(block=True), RunCellCommand)
    first, second, third = window.told
    assert (first, second, again) == (ready, held, ["paused"])
    assert isinstance(third, VariablesSnapshot) and third.variables[0].name == "mine"
    mailbox.send(SAID)
    assert window.told[3:] == [SAID]
    mailbox._gone(window)
    mailbox.send(SAID)
    assert len(window.told) == 4 and mailbox._told is mailbox._peer is None


def test_a_window_may_come_while_code_is_held_or_torch_loads() -> None:
    mailbox, asked = OpenMailbox(), Asked()
    session: Any = asked
    window: Any = Peer()
    mailbox._peer = window
    mailbox.received.put(OpenMailbox.JOINED)
    mailbox.attend(session)
    assert mailbox._told is window and window.told == [] and waiting(mailbox) == []
    mailbox.attach(session)
    mailbox.received.put(Mailbox.WAKE)
    mailbox.attend(session)
    assert waiting(mailbox) == []
    mailbox.leave()
    assert mailbox.received.get(timeout=WAIT_S) == Mailbox.LEAVE  # from a thread
    assert asked.control.stop.is_set() and asked.control.mark == sys.maxsize


def test_ctrl_c_in_its_terminal_ends_an_open_engine_and_a_window_ends_a_cell() -> None:
    mailbox, asked = OpenMailbox(), Asked()
    session: Any = asked
    mailbox.attach(session)
    with pytest.raises(KeyboardInterrupt), asked.control.user_code():
        mailbox.take(InterruptSignal())
        pytest.fail("it goes on")
    assert waiting(mailbox) == []
    signal.raise_signal(signal.SIGINT)
    assert mailbox.received.get(timeout=WAIT_S) == Mailbox.LEAVE
