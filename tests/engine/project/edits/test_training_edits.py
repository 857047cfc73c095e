"""The set-up of training as an edit: what is taken, left out and refused."""

from __future__ import annotations

import pytest

from engine.project import edits
from engine.project.document import (
    CHAINED,
    SEQUENTIAL,
    DataSetup,
    Project,
    Schedule,
    SchedulePart,
    TrainingSetup,
    replace,
)
from engine.project.edits import EditError
from engine.project.files import FileProblem, dumps, loads


def test_the_least_values_of_a_set_up_are_taken_and_defaults_left_out():
    setup = TrainingSetup(
        data=DataSetup(kind="moons", params={"samples": "1000", "noise": 0.2}),
        batch_size=1, epochs=1, seed=0, optimizer="optim.SGD",
        optimizer_params={"momentum": 0, "nesterov": True},
    )  # fmt: skip
    trained = edits.set_training(Project(), setup).training
    assert trained.data.params == {"noise": 0.2}
    assert trained.optimizer_params == {"nesterov": True}
    assert (trained.batch_size, trained.epochs, trained.seed) == (1, 1, 0)


def test_a_refused_set_up_says_what_there_is():
    setup = TrainingSetup(data=DataSetup(kind="no"))
    with pytest.raises(EditError) as caught:
        edits.set_training(Project(), setup)
    message = str(caught.value)
    assert message.startswith("There is no data set “no”. Choose digits, iris,")
    assert message.endswith("cifar or text.")
    with pytest.raises(EditError, match="epochs is 0: it must be at least 1"):
        edits.set_training(Project(), TrainingSetup(epochs=0))


def test_training_parameters_are_checked():
    setup = TrainingSetup(optimizer="optim.SGD", optimizer_params={"lr": "0.1", "momentum": 0.9})
    trained = edits.set_training(Project(), setup).training
    assert trained.optimizer_params == {"lr": 0.1, "momentum": 0.9}


@pytest.mark.parametrize(
    ("setup", "words"),
    [
        (TrainingSetup(batch_size=0), "batch_size"),
        (TrainingSetup(epochs=0), "epochs"),
        (TrainingSetup(seed=-1), "seed"),
        (TrainingSetup(optimizer="optim.Luck"), "optim.Luck"),
        (TrainingSetup(loss="nn.Nope"), "nn.Nope"),
        (TrainingSetup(data=DataSetup(kind="no")), "“no”"),
        (TrainingSetup(data=DataSetup(validation_fraction=1.0)), "between 0 and 1"),
        (TrainingSetup(data=DataSetup(validation_fraction=0.0)), "between 0 and 1"),
        (TrainingSetup(data=DataSetup(params={"wings": 2})), "wings"),
        (TrainingSetup(optimizer_params={"lr": "fast"}), "lr"),
        (TrainingSetup(optimizer_params={"wings": 2}), "wings"),
    ],
)
def test_a_set_up_that_makes_no_sense_is_refused(setup, words):
    with pytest.raises(EditError, match=words):
        edits.set_training(Project(), setup)


STEPS = SchedulePart("lr_scheduler.StepLR", {"step_size": 2})
FALLS = SchedulePart("lr_scheduler.ExponentialLR", {"gamma": 0.5})


@pytest.mark.parametrize(
    ("schedule", "words"),
    [
        (Schedule("lr_scheduler.StepLR", {"step_size": 1}, parts=(STEPS,)), "StepLR runs no other"),
        (Schedule(parts=(STEPS,)), "A constant rate runs no other"),
        (Schedule(CHAINED, parts=(STEPS,)), "ChainedScheduler runs 2 to 16 schedulers, not 1"),
        (Schedule(CHAINED, parts=(STEPS,) * 17), "runs 2 to 16 schedulers, not 17"),
        (Schedule(CHAINED, parts=(STEPS, SchedulePart("lr_scheduler.None"))), "no scheduler"),
        (Schedule(CHAINED, parts=(STEPS, SchedulePart(CHAINED))), "which runs others itself"),
        (Schedule(CHAINED, parts=(STEPS, FALLS), warmup=3), "no warm-up before it"),
        (Schedule(SEQUENTIAL, {"milestones": (1, 2)}, parts=(STEPS, FALLS)), "has 1 mile"),
        (Schedule(SEQUENTIAL, {"milestones": (3, 3)}, parts=(STEPS, FALLS, STEPS)), "comes after"),
        (Schedule(SEQUENTIAL, {"milestones": 0}, parts=(STEPS, FALLS)), "milestones"),
        (Schedule(SEQUENTIAL, {"milestones": 4}, parts=(STEPS, SchedulePart("lr_scheduler.StepLR",
         {"gone": 1}))), "gone"),
    ],
)  # fmt: skip
def test_schedulers_that_torch_cannot_run_are_refused(schedule: Schedule, words: str) -> None:
    """By an edit, and in a file."""
    setup = replace(Project().training, schedule=schedule)
    with pytest.raises(EditError, match=words):
        edits.set_training(Project(), setup)
    text = dumps(replace(Project(), training=setup)).encode()
    if words != "milestones":  # a value out of its range is told when the run begins
        with pytest.raises(FileProblem, match=words):
            loads(text)


def test_schedulers_that_torch_runs_are_kept_in_the_file() -> None:
    schedule = Schedule(SEQUENTIAL, {"milestones": 4}, "step", parts=(STEPS, FALLS))
    project = edits.set_training(Project(), replace(Project().training, schedule=schedule))
    kept = project.training.schedule
    assert (kept.milestones, kept.parts) == ((4,), (STEPS, FALLS))
    assert loads(dumps(project).encode()).training.schedule == kept
