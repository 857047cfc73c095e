"""The set-up of training as an edit: what is taken, left out and refused."""

from __future__ import annotations

from typing import Any

import pytest

from engine.project import catalogue, edits
from engine.project.document import (
    CHAINED,
    SEQUENTIAL,
    Column,
    DataSetup,
    Loading,
    ParamGroup,
    Project,
    Schedule,
    SchedulePart,
    TrainingSetup,
    Transform,
    replace,
)
from engine.project.edits import EditError
from engine.project.files import FileProblem, dumps, loads
from engine.project.problems import LOSS, Fix
from engine.project.subject import ConsoleSubject, Objective


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


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"order": ("loss", "forward")}, "forward comes before it"),
        ({"data": DataSetup("painted", points=((0.0, 0.0, 0),) * 2001)},
         "At most 2,000 points can be painted"),
        ({"data": DataSetup("painted", points=((0.0, 0.0, 0), (-1.5, 0.0, 1)))},
         r"\(-1\.5, 0\) is outside the plane"),
        ({"data": DataSetup(transforms=(Transform("GaussianNoise"),) * 21)}, "20 transforms"),
        ({"data": DataSetup(transforms=(Transform("Blur"),))}, "Blur"),
        ({"data": DataSetup(transforms=(Transform("GaussianNoise", {"wings": 2}),))}, "wings"),
        ({"data": DataSetup(loading=Loading(sampler="x" * 4097))}, "4,09[67] characters"),
        ({"recomputed": tuple(f"m{n}" for n in range(1001))}, "At most 1,000 modules"),
    ],
)  # fmt: skip
def test_what_no_project_holds_is_refused_by_an_edit_and_in_a_file(
    changes: dict[str, Any], words: str
) -> None:
    setup = replace(Project().training, **changes)
    with pytest.raises(EditError, match=words):
        edits.set_training(Project(), setup)
    with pytest.raises(FileProblem, match=words):
        loads(dumps(replace(Project(), training=setup)).encode())


def test_as_much_as_a_project_holds_is_taken() -> None:
    data = DataSetup(
        "painted", points=((1.0, -1.0, 5), *((0.0, 0.0, 0),) * 1999),
        transforms=(Transform("GaussianNoise"),) * 20, loading=Loading(sampler="x" * 4096),
    )  # fmt: skip
    setup = TrainingSetup(data=data, recomputed=tuple(f"m{n}" for n in range(1000)))
    project = edits.set_training(Project(), setup)
    assert project.training.data.points == data.points
    assert loads(dumps(project).encode()).training == project.training
    with pytest.raises(EditError, match="are computed again already"):
        edits.set_training(Project(), replace(Project().training, recomputed=("a", "b", "a")))


def test_more_groups_and_columns_than_a_file_may_have_are_named() -> None:
    for changes, place in (
        ({"groups": tuple(ParamGroup(f"m{n}") for n in range(1001))}, "training.groups"),
        ({"groups": (ParamGroup("a"), ParamGroup("x" * 1001))}, "training.groups[1].module"),
        ({"groups": (ParamGroup("a", {"wings": 1}),)}, "training.groups[0].params"),
        ({"data": DataSetup("csv", columns={f"c{n}": Column() for n in range(1001)})},
         "training.data.columns"),
        ({"data": DataSetup("csv", columns={"x" * 1001: Column()})}, "training.data.columns"),
        ({"recomputed": ("a", "x" * 1001)}, "training.recomputed[1]"),
    ):  # fmt: skip
        text = dumps(replace(Project(), training=replace(Project().training, **changes)))
        with pytest.raises(FileProblem) as told:
            loads(text.encode())
        assert told.value.field.startswith(place)
    whole = replace(
        Project().training, groups=tuple(ParamGroup(f"m{n}") for n in range(1000)),
        data=DataSetup("csv", columns={f"c{n}": Column() for n in range(1000)}),
    )  # fmt: skip
    assert loads(dumps(replace(Project(), training=whole)).encode()).training == whole


def test_the_loss_of_a_step_of_code_is_written_in_place_of_one_of_the_users() -> None:
    own = replace(
        Project(), subject=ConsoleSubject("net"), objective=Objective("data", step="def step"),
        training=TrainingSetup(loss="nn.HuberLoss", loss_params={"delta": 0.5, "reduction": "sum"}),
    )  # fmt: skip
    chosen = edits.set_loss(own, "nn.MSELoss")
    assert chosen.objective == Objective("data", loss_of_setup=True)
    assert (chosen.training.loss, chosen.training.loss_params) == (
        "nn.MSELoss",
        {"reduction": "sum"},
    )
    fitting = edits.set_loss(own, "")
    assert fitting.objective == Objective("data") and fitting.training == own.training
    other = next(iter(catalogue.other_losses()))
    made = edits.set_loss(own, other).training
    initial = {
        param.name: param.initial
        for param in catalogue.other_losses()[other].params
        if param.initial is not None
    }
    assert made.loss == other and made.loss_params.items() >= initial.items()
    with pytest.raises(EditError, match=f"There is no loss “{other}”"):
        edits.set_loss(Project(), other)  # of a model of blocks


def test_an_offered_loss_is_a_fix() -> None:
    fixed = edits.apply_fix(Project(), Fix("", "", LOSS, "nn.MSELoss"))
    assert fixed.training.loss == "nn.MSELoss"
