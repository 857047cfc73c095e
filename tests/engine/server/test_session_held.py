"""Commands that come while code is held, and how far a run goes on: with a run made up for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import pytest

from engine.lab import Lab
from engine.project.document import Model, TrainingSetup
from engine.protocol import (
    Command,
    CompareGradientsCommand,
    ContinueTrainingCommand,
    DoneSnapshot,
    ErrorSnapshot,
    ListRunsCommand,
    OutputSnapshot,
    ReadVariablesCommand,
    RunCellCommand,
    Snapshot,
    StepColumns,
    StepLineCommand,
    StepTrainingCommand,
    TrainCommand,
    TrainingSnapshot,
)
from engine.server.session import Session
from engine.system.errors import LabError


class MadeUpRun:
    """Two steps are an epoch; each `next` is a step, or a phase while `in_phases`."""

    def __init__(self) -> None:
        self.step, self.again, self.in_phases, self.phase = 0, 0, False, 0
        self.hold: Any = None
        self.pass_on: Callable[[Command], None] | None = None
        self.way_to = 0
        self.by: list[str] = []

    @property
    def epoch(self) -> int:
        return self.step // 2

    @property
    def is_on_way(self) -> bool:
        return self.step < self.way_to

    @property
    def is_in_step(self) -> bool:
        return self.phase > 0

    @property
    def stops_in_step(self) -> bool:
        return self.in_phases

    def between_steps(self) -> Any:
        return nullcontext()

    @contextmanager
    def by_hand(self, by: str) -> Iterator[None]:
        self.by.append(by)
        yield

    def check_way(self) -> None:
        raise LabError("Not there.")

    def tell_again(self) -> None:
        self.again += 1

    def snapshot(self, state: Any) -> TrainingSnapshot:
        return TrainingSnapshot(
            run="r", state=state, step=self.step, total_steps=99, epoch=1, epochs=1,
            steps_per_second=0.0, remaining_s=None, steps=StepColumns(), epoch_rows=(),
            device="cpu",
        )  # fmt: skip

    def go(self) -> None:
        assert self.step < 99, "nothing ends it"
        self.phase = (self.phase + 1) % 2 if self.in_phases else 0
        self.step += not self.phase


def train_command(number: int, **fields: Any) -> TrainCommand:
    return TrainCommand(id=number, model=Model(), training=TrainingSetup(), **fields)


class Desk:
    """A session with a run that is paused before its first step."""

    def __init__(self) -> None:
        self.told: list[Any] = []
        made_up: Any = MadeUpRun()
        self.run: MadeUpRun = made_up

        def train(lab: Lab, command: TrainCommand) -> Iterator[Snapshot | None]:
            lab.run = made_up
            yield self.run.snapshot("running")
            while not lab.control.stop.is_set():
                self.run.go()
                yield self.run.snapshot("running")

        def other(lab: Lab, command: Command) -> Iterator[Snapshot | None]:
            yield None
            yield OutputSnapshot(stream="stdout", text=type(command).__name__)

        def find(command: type[Command]) -> Any:
            return train if command is TrainCommand else other

        done = lambda command: self.told.append(DoneSnapshot(reply_to=command.id))  # noqa: E731
        self.session = Session(self.told.append, find, done)
        self.control = self.session.lab.control
        self.session.handle(train_command(1, paused=True))
        self.told.clear()

    def states(self) -> list[tuple[str, int]]:
        return [(s.state, s.step) for s in self.told if isinstance(s, TrainingSnapshot)]

    def advance(self) -> int:
        """All steps until there is nothing to do, at most 9."""
        return sum(self.session.advance() for _ in range(9))


@pytest.fixture
def desk() -> Iterator[Desk]:
    desk = Desk()
    yield desk
    desk.session.close()


@pytest.mark.parametrize("kind", [CompareGradientsCommand, ReadVariablesCommand, ListRunsCommand])
def test_held_code_has_answers_that_only_read(desk: Desk, kind: type[Command]) -> None:
    assert desk.session.handle_held(kind(id=4))
    said, done = desk.told
    assert (said.text, said.reply_to, done.reply_to) == (kind.__name__, 4, 4)
    assert desk.control.goes_on == ""


@pytest.mark.parametrize("kind", [RunCellCommand, TrainCommand])
def test_held_code_lets_all_others_wait_and_a_new_run_ends_the_phase(desk: Desk, kind) -> None:
    command = kind(id=4, source="") if kind is RunCellCommand else train_command(4)
    assert not desk.session.handle_held(command)
    assert desk.told == [] and desk.control.goes_on == ""
    desk.control.holds_run = True
    assert not desk.session.handle_held(command)
    assert desk.control.goes_on == ("phase" if kind is TrainCommand else "")


def test_held_code_goes_on_as_far_as_it_is_asked_to(desk: Desk) -> None:
    control = desk.control
    for command, goes_on, is_paused in (
        (StepLineCommand(id=2), "line", True),
        (ContinueTrainingCommand(id=3), "on", False),
        (StepTrainingCommand(id=4, by="op"), "op", True),
        (StepTrainingCommand(id=5, by="epoch"), "on", False),
    ):
        desk.told.clear()
        assert desk.session.handle_held(command)
        assert (control.goes_on, control.pause.is_set()) == (goes_on, is_paused)
        assert [told.reply_to for told in desk.told] == [command.id]


def test_inside_code_that_runs_only_what_reads_is_answered(desk: Desk) -> None:
    assert not desk.session.answer_inside(CompareGradientsCommand(id=2))
    assert not desk.session.answer_inside(StepTrainingCommand(id=3))
    assert desk.told == [] and desk.control.goes_on == ""
    assert desk.session.answer_inside(ReadVariablesCommand(id=4))
    assert [told.reply_to for told in desk.told] == [4, 4]


def test_an_epoch_that_is_asked_for_inside_of_a_step_ends_the_way_after_it(desk: Desk) -> None:
    desk.control.holds_run = True
    desk.session.handle_held(StepTrainingCommand(id=5, by="epoch"))
    assert desk.advance() == 2
    assert desk.states()[-1] == ("paused", 2)
    desk.session.handle(ContinueTrainingCommand(id=6))
    assert desk.advance() == 9


def test_of_a_cell_an_epoch_of_train_is_no_end(desk: Desk) -> None:
    desk.session.handle_held(StepTrainingCommand(id=5, by="epoch"))
    assert desk.advance() == 9


def test_to_the_end_of_the_epoch_and_not_further(desk: Desk) -> None:
    desk.session.handle(StepTrainingCommand(id=3, by="epoch"))
    assert desk.states() == [] and not desk.control.pause.is_set()
    assert desk.advance() == 2
    assert desk.states() == [("running", 1), ("running", 2), ("paused", 2)]
    desk.session.handle(StepTrainingCommand(id=4, by="epoch"))
    desk.session.handle(ContinueTrainingCommand(id=5))  # further after all
    assert desk.advance() == 9


def test_a_hold_on_the_way_to_the_end_of_the_epoch_is_the_end(desk: Desk) -> None:
    desk.session.handle(StepTrainingCommand(id=3, by="epoch"))
    paused = desk.run.snapshot("paused")
    desk.session._job = iter([paused, *[desk.run.snapshot("running")] * 20])
    desk.session.advance()
    desk.run.step = 2
    assert desk.advance() == 9


def test_a_step_is_whole_and_a_way_through_others_too(desk: Desk) -> None:
    desk.run.in_phases = True
    desk.session.handle(StepTrainingCommand(id=2))
    assert (desk.run.step, desk.run.phase, desk.run.by) == (0, 1, ["step"])
    desk.session.handle(StepTrainingCommand(id=3, by="phase"))
    assert (desk.run.step, desk.run.by[1:]) == (1, ["phase"])
    desk.run.in_phases, desk.run.way_to = False, 4
    desk.session.handle(StepTrainingCommand(id=4))
    assert desk.run.step == 4 and desk.states()[-1] == ("paused", 4)


def test_a_run_that_holds_stops_on_its_way(desk: Desk) -> None:
    desk.run.way_to, desk.run.hold = 4, object()
    desk.session.handle(StepTrainingCommand(id=4))
    assert desk.run.step == 1


def test_a_run_of_other_processes_is_passed_on_to_and_tells_itself(desk: Desk) -> None:
    passed: list[Command] = []
    desk.run.pass_on = passed.append
    step, on = StepTrainingCommand(id=2), ContinueTrainingCommand(id=3)
    desk.session.handle(step)
    assert desk.control.pause.is_set() and desk.run.step == 0
    assert desk.advance() == 9 and desk.states()[-1] == ("running", 9)
    desk.session.handle(StepTrainingCommand(id=4, by="epoch"))
    assert not desk.control.pause.is_set() and desk.session._until_epoch is None
    desk.session.handle(on)
    assert passed == [step, StepTrainingCommand(id=4, by="epoch"), on]


def test_a_way_to_a_step_that_cannot_be_leaves_the_run_as_it_is(desk: Desk) -> None:
    command = train_command(7, to_step=1)
    desk.session.handle(command)
    error, done = desk.told
    assert isinstance(error, ErrorSnapshot) and error.error.message == "Not there."
    assert (error.reply_to, done.reply_to) == (7, 7)
    desk.session.handle(StepTrainingCommand(id=8))
    assert desk.run.step == 1 and desk.session.lab.is_training


def test_the_whole_run_is_told_to_a_window_that_comes(desk: Desk) -> None:
    desk.session.tell_run_again("finished")
    assert desk.run.again == 1 and desk.states() == [("finished", 0)]
    assert desk.told[0].reply_to == 1
    desk.session.lab.run = None
    desk.session.tell_run_again("running")
    assert desk.run.again == 1


def test_a_command_beside_a_run_is_ended_by_its_own_signal_only(desk: Desk) -> None:
    desk.control.stop.set()  # meant for the run
    desk.session.handle(RunCellCommand(id=4, source=""))
    assert [type(told) for told in desk.told] == [OutputSnapshot, DoneSnapshot]
    desk.control.stopped.add(5)
    desk.session.handle(RunCellCommand(id=5, source=""))
    _, _, error, done = desk.told
    assert error.error.message == "It was stopped before it began." and done.reply_to == 5


def test_a_line_of_no_held_code_is_refused(desk: Desk) -> None:
    desk.session.handle(StepLineCommand(id=4))
    error, done = desk.told
    assert error.error.message == "No code is held." and "breakpoint()" in error.error.hint
    assert done.reply_to == 4


def test_a_pause_is_shown_once_for_each_run(desk: Desk) -> None:
    for number in (7, 8):
        desk.told.clear()
        assert not desk.session.advance() and not desk.session.advance()
        assert desk.states() == [("paused", 0)]
        desk.session.handle(train_command(number, paused=True))
