"""The session, with handlers made up for the test."""

from __future__ import annotations

from contextlib import nullcontext

import msgspec
import pytest

from engine.lab import Lab
from engine.project.document import Project
from engine.protocol import (
    COMMANDS,
    CompareGradientsCommand,
    ContinueTrainingCommand,
    ErrorSnapshot,
    HelloCommand,
    ListRunsCommand,
    OutputSnapshot,
    Problem,
    RunCellCommand,
    StartBackwardCommand,
    StepColumns,
    StepLineCommand,
    StepTrainingCommand,
    TrainCommand,
    TrainingSnapshot,
)
from engine.server.session import Session, handler_of
from engine.system.errors import LabError


class FakeRun:
    """A run of `total` steps that reports after each."""

    def __init__(self, total: int) -> None:
        self.step, self.total, self.closed = 0, total, False
        self.new: list[int] = []

    is_in_step = is_on_way = stops_in_step = False
    epoch = 0
    hold = pass_on = None

    def between_steps(self):
        return nullcontext()

    def by_hand(self, by):
        return nullcontext()

    def snapshot(self, state):
        steps, self.new = StepColumns(step=tuple(self.new)), []
        return TrainingSnapshot(
            run="fake", state=state, step=self.step, total_steps=self.total, epoch=1, epochs=1,
            steps_per_second=0.0, remaining_s=None, steps=steps, epoch_rows=(), device="cpu",
        )  # fmt: skip


def fake_train(lab: Lab, command: TrainCommand):
    run = lab.run = FakeRun(total=command.training.epochs)
    try:
        yield run.snapshot("running")
        while run.step < run.total:
            yield None  # such as within a validation pass
            run.step += 1
            run.new.append(run.step)
            if lab.control.stop.is_set():
                yield run.snapshot("stopped")
                return
            yield run.snapshot("running") if run.step % 2 == 0 else None
        yield run.snapshot("finished")
    finally:
        run.closed = True


def fake_hello(lab, command):
    yield OutputSnapshot(stream="stdout", text="a")
    yield None
    yield OutputSnapshot(stream="stdout", text="b")


def fake_fault(lab, command):
    raise ZeroDivisionError("by zero")


def fake_refusal(lab, command):
    yield OutputSnapshot(stream="stdout", text="before")
    raise LabError("no loss", hint="add one", problems=(Problem("here", block="b1"),))


def fake_cell(lab, command):
    lab.emit(OutputSnapshot(stream="stdout", text="printed"))
    raise KeyboardInterrupt
    yield


FAKES = {
    "TrainCommand": fake_train,
    "HelloCommand": fake_hello,
    "CompareGradientsCommand": fake_fault,
    "StartBackwardCommand": fake_refusal,
    "RunCellCommand": fake_cell,
}


def fake_handler(command):
    return FAKES[command.__name__]


@pytest.fixture
def sent():
    return []


@pytest.fixture
def session(sent):
    session = Session(sent.append, fake_handler)
    yield session
    session.close()


def train_command(setup, steps=4, **kw) -> TrainCommand:
    return TrainCommand(
        model=setup.model, training=msgspec.structs.replace(setup.training, epochs=steps), **kw
    )


@pytest.fixture
def setup():
    return Project()


def states(sent):
    return [(s.state, s.step) for s in sent if isinstance(s, TrainingSnapshot)]


def test_every_answer_carries_the_command_it_answers(session, sent):
    session.handle(HelloCommand(id=7, revision=3))
    assert [(s.text, s.reply_to, s.revision) for s in sent] == [("a", 7, 3), ("b", 7, 3)]


def test_an_exception_becomes_an_error_snapshot_and_the_session_goes_on(session, sent):
    session.handle(CompareGradientsCommand(id=1))
    session.handle(HelloCommand(id=2))
    assert isinstance(sent[0], ErrorSnapshot)
    assert (sent[0].command, sent[0].reply_to) == ("CompareGradientsCommand", 1)
    assert (sent[0].error.type, sent[0].error.message) == ("ZeroDivisionError", "by zero")
    assert sent[-1].reply_to == 2


def test_a_refusal_keeps_hint_and_problems(session, sent):
    session.handle(StartBackwardCommand(id=1))
    assert sent[0].text == "before"
    assert sent[1].error.hint == "add one"
    assert sent[1].problems == (Problem("here", block="b1"),)


def test_what_a_handler_emits_itself_is_stamped_and_an_interrupt_is_told(session, sent):
    session.handle(RunCellCommand(id=5, source=""))
    assert (sent[0].text, sent[0].reply_to) == ("printed", 5)
    assert sent[1].error.type == "KeyboardInterrupt"


def test_a_command_without_a_handler_is_an_error(sent):
    session = Session(sent.append, {}.__getitem__)
    session.handle(HelloCommand(id=1))
    assert sent[0].error.type == "KeyError"


def test_training_runs_to_its_end(session, sent, setup):
    session.handle(train_command(setup, steps=4, id=1))
    while session.advance():
        pass
    assert states(sent) == [("running", 0), ("running", 2), ("running", 4), ("finished", 4)]
    assert {s.reply_to for s in sent} == {1}
    assert not session.advance()


def test_a_new_run_says_nothing_of_one_that_ended(session, sent, setup):
    for number in (1, 2):
        session.handle(train_command(setup, steps=1, id=number))
        while session.advance():
            pass
    assert [(s.reply_to, s.state) for s in sent] == [
        (1, "running"), (1, "finished"), (2, "running"), (2, "finished")]  # fmt: skip


def test_commands_are_answered_between_steps(session, sent, setup):
    session.handle(train_command(setup, id=1))
    session.advance()
    session.handle(HelloCommand(id=2))
    assert [s.reply_to for s in sent] == [1, 2, 2]
    while session.advance():
        pass
    assert (sent[-1].state, sent[-1].reply_to) == ("finished", 1)


def test_pause_shows_once_steps_one_by_one_and_goes_on(session, sent, setup):
    session.handle(train_command(setup, steps=5, id=1))
    session.advance(), session.advance()
    session.lab.control.pause.set()
    assert not session.advance()
    assert not session.advance()
    assert states(sent)[-1] == ("paused", 1)
    assert sent[-1].steps.step == (1,)
    session.handle(StepTrainingCommand(id=2))
    assert not session.advance()
    assert states(sent)[-2:] == [("paused", 2), ("paused", 2)]  # it never claims to run
    session.handle(ContinueTrainingCommand(id=3))
    while session.advance():
        pass
    assert states(sent)[-1] == ("finished", 5)
    shown = [step for s in sent for step in getattr(s, "steps", StepColumns()).step]
    assert shown == [1, 2, 3, 4, 5]


def test_a_run_started_paused_stands_before_its_first_step(session, sent, setup):
    session.handle(train_command(setup, id=1, paused=True))
    assert not session.advance()
    assert states(sent) == [("paused", 0), ("paused", 0)]
    session.handle(StepTrainingCommand(id=2))
    assert states(sent)[-1] == ("paused", 1)


def test_the_last_single_step_ends_the_run(session, sent, setup):
    session.handle(train_command(setup, steps=1, id=1, paused=True))
    session.handle(StepTrainingCommand(id=2))
    session.handle(ContinueTrainingCommand(id=3))
    while session.advance():
        pass
    assert states(sent)[-2:] == [("paused", 1), ("finished", 1)]


def test_stop_ends_a_run_even_a_paused_one(session, sent, setup):
    session.handle(train_command(setup, id=1, paused=True))
    session.lab.control.mark = 1
    session.lab.control.stop.set()
    while session.advance():
        pass
    assert states(sent)[-1] == ("stopped", 1)
    assert session.lab.run.closed


def test_a_new_run_replaces_the_old_one_and_starts_with_clear_flags(session, sent, setup):
    session.handle(train_command(setup, id=1))
    old = session.lab.run
    session.lab.control.mark = 1
    session.lab.control.pause.set()
    session.handle(train_command(setup, id=2, steps=2))
    assert old.closed
    assert [(s.state, s.reply_to) for s in sent] == [
        ("running", 1), ("stopped", 1), ("running", 2),
    ]  # fmt: skip
    while session.advance():
        pass
    assert states(sent)[-1] == ("finished", 2)


def test_a_pause_sent_after_the_train_command_holds_though_it_arrives_first(session, sent, setup):
    session.lab.control.mark = 9
    session.lab.control.pause.set()
    session.handle(train_command(setup, id=9))
    assert not session.advance()
    assert states(sent)[-1] == ("paused", 0)


def test_stepping_without_a_run_says_what_to_do(session, sent):
    session.handle(StepTrainingCommand(id=1))
    session.handle(ContinueTrainingCommand(id=2))
    assert [s.error.hint for s in sent] == ["Start training first."] * 2


def test_stop_cancels_a_command_in_hand_at_its_next_tick(session, sent):
    def stopped_midway(lab, command):
        lab.control.stop.set()
        yield OutputSnapshot(stream="stdout", text="said")
        yield OutputSnapshot(stream="stdout", text="whole")
        yield None
        yield OutputSnapshot(stream="stdout", text="never")

    session._find_handler = lambda name: stopped_midway
    session.handle(HelloCommand(id=1))
    assert [s.text for s in sent] == ["said", "whole"]


def test_done_is_told_once_after_the_last_answer(sent, setup):
    done = []
    session = Session(
        sent.append, fake_handler, lambda command: done.append((command.id, len(sent)))
    )
    session.handle(HelloCommand(id=1))
    session.handle(train_command(setup, id=2, steps=1))
    session.handle(CompareGradientsCommand(id=3))
    assert [command for command, _ in done] == [1, 3]
    session.handle(train_command(setup, id=4, steps=1))
    assert [command for command, _ in done] == [1, 3, 2]
    while session.advance():
        pass
    assert done[-1] == (4, len(sent))
    session.handle(StepTrainingCommand(id=5))
    session.close()
    assert [command for command, _ in done] == [1, 3, 2, 4, 5]


def faulty_train(lab, command):
    raise ValueError("no such data")
    yield


@pytest.mark.parametrize("handlers", [{}, {"TrainCommand": faulty_train}])
def test_a_run_that_cannot_start_is_an_error_and_done(sent, setup, handlers):
    done = []

    def find(command):
        return handlers[command.__name__]

    session = Session(sent.append, find, lambda command: done.append(command.id))
    session.handle(train_command(setup, id=1))
    assert [type(s) for s in sent] == [ErrorSnapshot]
    assert done == [1]
    assert not session.advance()


OWN = {StepTrainingCommand, StepLineCommand, ContinueTrainingCommand}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_names_a_handler_that_is_there(command):
    if command in OWN:
        assert command.handler == ""
    else:
        assert callable(handler_of(command))


def test_a_command_that_is_answered_apart_waits_for_nobody() -> None:
    told: list = []
    apart: list = []

    def find_handler(command):
        return lambda lab, command: iter([OutputSnapshot(stream="stdout", text="read")])

    session = Session(
        told.append, find_handler, done=lambda command: told.append(command.id), apart=apart.append
    )
    session.handle(ListRunsCommand(id=3))
    assert session.answer_inside(ListRunsCommand(id=4))
    assert told == [] and len(apart) == 2
    for work in apart:
        work()
    assert [t if isinstance(t, int) else (t.reply_to, t.text) for t in told] == [
        (3, "read"), 3, (4, "read"), 4,
    ]  # fmt: skip
