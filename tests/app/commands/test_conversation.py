"""How a command talks with its engine: whose answers it yields, and how Ctrl+C ends it."""

from __future__ import annotations

import signal
from types import SimpleNamespace
from typing import Any

import pytest

from app.commands import conversation as conversations
from app.commands.conversation import PATIENCE_S, Conversation, EngineEnded, failure
from engine.process import EngineLost
from engine.process.exits import Exit
from engine.project.problems import Problem
from engine.protocol import (
    CellSnapshot,
    Command,
    DoneSnapshot,
    ErrorReport,
    ErrorSnapshot,
    InterruptSignal,
    ReadySnapshot,
    StepColumns,
    StopSignal,
    TrainingSnapshot,
)


class Engine:
    """Answers from a list: a snapshot, None for nothing yet, a function to call, an error."""

    def __init__(self) -> None:
        self.answers: list[Any] = []
        self.did: list[Any] = []
        self.end = Exit(code=3)

    def start(self) -> None:
        self.did.append("start")

    def close(self) -> None:
        self.did.append("close")

    def kill(self) -> None:
        self.did.append("kill")

    def signal(self, told) -> None:
        self.did.append(type(told))

    def send(self, command: Command) -> int:
        if self.answers and self.answers[0] is EngineLost:
            raise EngineLost
        return 7

    def receive(self, patience_s: float):
        answer = self.answers.pop(0)
        if answer is EngineLost:
            raise EngineLost
        return answer() if callable(answer) else answer

    def exit(self) -> Exit:
        return self.end


@pytest.fixture
def engine(monkeypatch) -> Engine:
    engine = Engine()
    monkeypatch.setattr(conversations, "SpawnedEngine", lambda: engine)
    return engine


@pytest.fixture
def clock(monkeypatch) -> SimpleNamespace:
    clock = SimpleNamespace(now=100.0)
    monkeypatch.setattr(conversations, "time", SimpleNamespace(monotonic=lambda: clock.now))
    return clock


def cell(reply_to: int = 7, file: str = "") -> CellSnapshot:
    return CellSnapshot(ok=True, error=None, reply_to=reply_to, file=file)


def training(**fields: Any) -> TrainingSnapshot:
    told = {
        "run": "r", "state": "running", "step": 1, "total_steps": 2, "epoch": 1, "epochs": 1,
        "device": "cpu", "steps_per_second": 1.0, "steps": StepColumns(), "reply_to": 7,
    }  # fmt: skip
    return TrainingSnapshot(**{**told, **fields})


def test_the_answers_to_the_command_are_yielded_until_it_is_done(engine) -> None:
    engine.answers = [cell(6, "other"), None, cell(7, "a"), DoneSnapshot(reply_to=6),
                      cell(7, "b"), DoneSnapshot(reply_to=7), cell(7, "late")]  # fmt: skip
    with Conversation("testing") as talk:
        assert [told.file for told in talk.ask(Command())] == ["a", "b"]
    assert engine.did == ["start", "close"] and not talk.interrupted


def test_it_waits_until_torch_has_loaded(engine) -> None:
    ready = ReadySnapshot(torch_version="2", python_version="3", pid=1, devices=(), torch_threads=1)
    engine.answers = [cell(), None, ready]
    assert Conversation("testing").ready() is ready


def test_an_engine_that_ends_is_told_with_what_it_did(engine) -> None:
    talk = Conversation("training")
    engine.answers = [
        training(checkpoint="/c", checkpoint_step=5), training(checkpoint_step=9), EngineLost,
    ]  # fmt: skip
    with pytest.raises(EngineEnded) as ended:
        list(talk.ask(Command()))
    assert ended.value.checkpoint_step == 5
    assert ended.value.reason.title == "The engine ended with an error (exit code 3)"
    assert ended.value.reason.detail.endswith("It was training.")
    assert "checkpoint is step 5." in ended.value.reason.next_step
    assert str(ended.value) == f"{ended.value.reason.title}. {ended.value.reason.detail}"
    engine.answers = [EngineLost]
    engine.end = Exit(code=-signal.SIGKILL, oom_kills=2, log="full")
    with pytest.raises(EngineEnded) as ended:
        list(talk.ask(Command()))
    assert ended.value.checkpoint_step == 5
    assert "out of memory" in ended.value.reason.title and "full" in ended.value.reason.detail
    engine.answers, engine.end = [EngineLost], Exit(code=0, garbled=True)
    with pytest.raises(EngineEnded, match="sent what the window cannot read"):
        talk.ready()


def test_ctrl_c_asks_the_engine_to_stop_and_then_ends_it(engine, clock) -> None:
    talk = Conversation("training")
    press = lambda: talk._on_signal(2, None)  # noqa: E731
    engine.answers = [press, None, cell(file="stopping"), lambda: setattr(clock, "now", 103.0),
                      None, lambda: setattr(clock, "now", 103.5), EngineLost]  # fmt: skip
    told = talk.ask(Command())
    assert next(told).file == "stopping"
    assert talk.interrupted and engine.did == [StopSignal, InterruptSignal]
    assert PATIENCE_S == 3.0
    with pytest.raises(EngineEnded, match="did not answer to Stop"):
        next(told)
    assert engine.did[2:] == ["kill"]


def test_the_second_ctrl_c_ends_the_engine_at_once(engine, clock) -> None:
    talk = Conversation("training")
    press = lambda: talk._on_signal(2, None)  # noqa: E731
    engine.answers = [press, None, press, EngineLost]
    with pytest.raises(EngineEnded, match="did not answer to Stop"):
        list(talk.ask(Command()))
    assert engine.did == [StopSignal, InterruptSignal, "kill"]


def test_a_run_that_has_stopped_may_take_longer_to_end(engine, clock) -> None:
    talk = Conversation("training")
    engine.answers = [
        lambda: talk._on_signal(2, None), training(state="stopped"),
        lambda: setattr(clock, "now", 200.0), None, DoneSnapshot(reply_to=7),
    ]  # fmt: skip
    assert [told.state for told in talk.ask(Command())] == ["stopped"]
    assert engine.did == [StopSignal, InterruptSignal]


def test_signals_are_taken_for_the_length_of_the_conversation(engine, interruptible) -> None:
    mine, ignored = (lambda *_: None), signal.SIG_IGN
    before = {
        number: signal.signal(number, handler)
        for number, handler in (
            (signal.SIGINT, ignored), (signal.SIGTERM, mine), (signal.SIGHUP, ignored),
        )
    }  # fmt: skip
    try:
        with Conversation("testing") as talk:
            assert signal.getsignal(signal.SIGINT) == talk._on_signal
            assert signal.getsignal(signal.SIGTERM) == talk._on_signal
            assert signal.getsignal(signal.SIGHUP) == ignored
        assert signal.getsignal(signal.SIGINT) == ignored
        assert signal.getsignal(signal.SIGTERM) == mine
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@pytest.mark.parametrize(
    ("error", "problems", "message"),
    [
        (ErrorReport("LabError", "No x.", traceback="deep"), (), "p.tlab: No x."),
        (ErrorReport("LabError", "p.tlab is no file."), (), "p.tlab is no file."),
        (ErrorReport("LabError", "No x.", hint="Add one."), (), "p.tlab: No x.\nAdd one."),
        (ErrorReport("TypeError", "no", traceback="deep\n\n"), (), "p.tlab: no\ndeep"),
        (
            ErrorReport("LabError", "Bad model.", hint="Look."),
            (Problem("no wire", "b1", "in"), Problem("no shape", "b2"), Problem("no loss")),
            "p.tlab: Bad model.\n  b1.in: no wire\n  b2: no shape\n  no loss\nLook.",
        ),
    ],
)
def test_a_failure_names_the_file_at_fault(error, problems, message) -> None:
    told = failure("p.tlab", ErrorSnapshot(command="C", error=error, problems=problems))
    assert str(told) == message and told.exit_code == 1
