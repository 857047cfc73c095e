"""What each of Train's controls sends: whole commands, also to code that is held."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from app.presenters.train.train import TrainPresenter
from engine.project import edits
from engine.project.document import Averaging, Schedule, replace
from engine.project.problems import Problem
from engine.project.subject import ConsoleSubject, Objective
from engine.project.sweeps.sweep import Sweep
from engine.protocol import (
    AdjustTrainingCommand,
    ContinueTrainingCommand,
    ErrorReport,
    ErrorSnapshot,
    HeldSnapshot,
    PauseSignal,
    StepTrainingCommand,
    StopSignal,
    SweepCommand,
    TrainCommand,
)
from tests.model_snapshots import model_snapshot
from widgets.training.train_view import TrainView

CODE = {"subject": ConsoleSubject("net"), "objective": Objective(data="data")}
SWEEP = Sweep((), trials=3)


@pytest.fixture
def view(bench, link, qtbot) -> TrainView:
    link.get_ready()
    view = TrainView()
    qtbot.addWidget(view)
    return view


@pytest.fixture
def train(bench, view: TrainView) -> TrainPresenter:
    return TrainPresenter(bench, view, bench.window)


def sent(link: Any) -> list[type]:
    return [type(command) for command in link.sent]


def test_a_run_is_of_the_subject_with_its_data_and_has_its_place(
    train, bench, link, tmp_path: Path
) -> None:
    bench.files.path = str(tmp_path / "net.tlab")
    bench.store.set_project(replace(bench.project, **CODE))
    link.sent.clear()  # it has looked for a checkpoint
    train.train(paused=True, to_step=4, find_divergence=True)
    (command,) = link.sent
    assert (command.subject, command.objective) == (CODE["subject"], CODE["objective"])
    assert (command.paused, command.to_step, command.find_divergence) == (True, 4, True)
    assert command.runs == str(tmp_path / "net.runs")
    train.train()
    command = link.sent[-1]
    assert (command.paused, command.to_step, command.find_divergence) == (False, None, False)


def test_fresh_weights_are_for_a_run_that_begins(train, view: TrainView, link) -> None:
    view.bar.weights.choose_fresh(True)
    train.train()
    train.train(checkpoint="/a.pt")
    assert [command.fresh for command in link.sent] == [True, False]
    view.bar.weights.choose_fresh(False)
    train.train()
    assert not link.sent[-1].fresh


def test_code_without_data_is_not_trained(train, view: TrainView, bench, link) -> None:
    bench.store.set_project(replace(bench.project, subject=CODE["subject"]))
    link.sent.clear()  # it has looked for a checkpoint
    shown: list[str] = []
    view.show_problem = shown.append
    train.train()
    assert not train.sweep(SWEEP)
    assert link.sent == [] and len(shown) == 2 and shown[0].startswith("There is no data")
    bench.store.set_project(replace(bench.project, objective=CODE["objective"]))
    assert shown[2:] == [""]  # it was about what was there before
    assert train.sweep(SWEEP)
    (command,) = link.sent
    assert isinstance(command, SweepCommand) and command.sweep == SWEEP
    project = bench.project
    assert (command.model, command.training, command.subject, command.objective) == (
        project.model, project.training, project.subject, project.objective,
    )  # fmt: skip
    assert command.runs == bench.files.runs_folder


def test_a_model_that_cannot_run_is_not_swept(train, bench, link) -> None:
    bench.store.take(model_snapshot(revision=1, problems=(Problem("Wrong."),), runnable=False))
    assert not train.sweep(SWEEP) and link.sent == []


def test_code_that_is_held_goes_on_and_steps_whole_steps(
    train, bench, link, training_snapshot
) -> None:
    bench.store.take(HeldSnapshot(at="step", title="cell 1", line=3))
    assert bench.store.held is not None
    train.step("phase")
    train.pause_or_continue()
    assert sent(link) == [StepTrainingCommand, ContinueTrainingCommand] and link.signals == []
    bench.store.take(HeldSnapshot())
    train.pause_or_continue()
    assert link.signals == [PauseSignal()]
    bench.store.take(training_snapshot(state="paused"))
    train.step("phase")
    assert sent(link)[2:] == [StepTrainingCommand] and link.sent[-1].by == "phase"


def test_a_run_that_has_ended_begins_anew_with_a_step(
    train, bench, link, training_snapshot
) -> None:
    bench.store.take(training_snapshot(state="finished"))
    train.step("phase")
    assert sent(link) == [TrainCommand, StepTrainingCommand] and link.sent[0].paused
    assert link.sent[1].by == "phase"
    train.stop()
    assert link.signals == [StopSignal(command=1)]


@pytest.mark.parametrize(
    ("fields", "to_step"),
    [
        ({"step": 5, "is_in_step": False}, 4), ({"step": 5, "is_in_step": True}, 5),
        ({"step": 0, "is_in_step": True}, 0),
    ],
)  # fmt: skip
def test_back_goes_to_the_start_of_a_step_under_way(
    train, bench, link, training_snapshot, fields: dict, to_step: int
) -> None:
    bench.store.take(training_snapshot(state="paused", **fields))
    train.back()
    assert [command.to_step for command in link.sent] == [to_step]


def test_what_a_run_takes_over_at_once_is_sent_to_it(train, bench, link, training_snapshot) -> None:
    def use(**changes: Any) -> list[Any]:
        before = len(link.sent)
        training = replace(bench.project.training, **changes)
        bench.store.set_project(edits.set_training(bench.project, training))
        return link.sent[before:]

    rate = {"optimizer_params": {"lr": 0.5}}
    assert use(**rate) == []  # there is no run
    bench.store.take(training_snapshot(state="paused"))
    (command,) = use(optimizer_params={"lr": 0.25})
    assert isinstance(command, AdjustTrainingCommand)
    assert command.training == bench.project.training
    assert [type(each) for each in use(hold=replace(bench.project.training.hold, unchanged=3))] == [
        AdjustTrainingCommand
    ]
    for later in (
        {"seed": 9}, {"schedule": Schedule("lr_scheduler.StepLR", {"step_size": 2})},
        {"averaging": Averaging("EMA")}, {"optimizer": "optim.SGD", **rate},
    ):  # fmt: skip
        assert use(**later) == []
    bench.store.take(training_snapshot(state="stopped"))
    assert use(optimizer_params={"lr": 0.1}) == []


def test_settings_that_a_run_refuses_are_said_and_the_run_goes_on(
    train, view: TrainView, bench, link, training_snapshot
) -> None:
    shown: list[str] = []
    view.show_problem = shown.append
    bench.store.take(training_snapshot())
    command = AdjustTrainingCommand(training=bench.project.training)
    bench.send(command)
    link.fail("lr is negative.", "Raise it.")
    assert bench.window.said == ["lr is negative. Raise it."] and shown == []
    error = ErrorReport("LabError", "No trial.", "Try.")
    link._receive(ErrorSnapshot(command="SweepCommand", error=error))
    assert shown == ["No trial. Try."]
