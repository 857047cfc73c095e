"""The form of schedule, accumulation, clipping and precision."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QComboBox, QLabel, QPushButton, QToolButton

from engine.project import edits
from engine.project.catalogue import schedulers
from engine.project.document import (
    COMPOSED,
    Averaging,
    Project,
    Schedule,
    Stopping,
    TrainingSetup,
    replace,
)
from widgets.fields import TextField
from widgets.forms import ParamForm
from widgets.training.settings.step_form import StepForm


@pytest.fixture
def form(qtbot) -> StepForm:
    form = StepForm()
    qtbot.addWidget(form)
    form.show()
    form.told = []
    form.setup_edited.connect(lambda setup, words: form.told.append((setup, words)))
    return form


def part(form: StepForm, kind: type, name: str):
    found = form.findChild(kind, name)
    assert found is not None
    return found


def choose(form: StepForm, key: str) -> None:
    box = part(form, QComboBox, "setup_scheduler")
    box.setCurrentIndex(box.findData(key))
    box.activated.emit(box.currentIndex())


def type_into(form: StepForm, qtbot, of: str, name: str, text: str) -> None:
    field = part(form, ParamForm, of).field(name)
    assert isinstance(field, TextField)
    field.selectAll()
    qtbot.keyClicks(field, text)
    qtbot.keyClick(field, Qt.Key.Key_Return)


def test_it_is_folded_until_something_differs_or_the_reader_opens_it(form: StepForm) -> None:
    scheduler = part(form, QComboBox, "setup_scheduler")
    more = part(form, QToolButton, "setup_more")
    assert [label.text() for label in form.findChildren(QLabel) if label.buddy() is scheduler] == [
        "learning rate"
    ]
    form.show_setup(TrainingSetup())
    assert not scheduler.isVisible()
    more.click()
    assert scheduler.isVisible()
    more.click()
    form.show_setup(TrainingSetup(clip_norm=1.0))
    assert scheduler.isVisible() and more.isChecked()


@pytest.mark.parametrize("key", list(schedulers()))
def test_a_schedule_is_chosen_with_values_that_the_document_takes(form: StepForm, key) -> None:
    form.show_setup(TrainingSetup())
    choose(form, key)
    ((setup, words),) = form.told
    assert words == f"Use the schedule {key.removeprefix('lr_scheduler.')}"
    assert setup.schedule.kind == key
    assert edits.set_training(Project(), setup).training == setup
    form.show_setup(setup)
    shown = part(form, ParamForm, "setup_schedule_form")
    assert shown.isVisible()
    for param in schedulers()[key]:
        shown.field(param.name)  # raises KeyError for one that is not shown
    choose(form, "")
    assert form.told[-1] == (TrainingSetup(), "Keep the rate constant")


def test_cycles_step_with_each_batch(form: StepForm) -> None:
    choose(form, "lr_scheduler.OneCycleLR")
    choose(form, "lr_scheduler.StepLR")
    assert [setup.schedule.each for setup, _ in form.told] == ["step", "epoch"]


def test_edits_tell_the_whole_setup(form: StepForm, qtbot) -> None:
    setup = TrainingSetup(schedule=Schedule("lr_scheduler.StepLR", {"step_size": 10}))
    form.show_setup(setup)
    type_into(form, qtbot, "setup_schedule_form", "step_size", "3")
    type_into(form, qtbot, "setup_step_form", "accumulate", "4")
    type_into(form, qtbot, "setup_step_form", "clip_norm", "0.5")
    each = part(form, ParamForm, "setup_schedule_form").field("each")
    assert isinstance(each, QComboBox)
    each.setCurrentText("step")
    each.activated.emit(each.currentIndex())
    of_step = replace(setup.schedule, params={"step_size": 3})
    assert form.told == [
        (replace(setup, schedule=of_step), "Set step size to 3"),
        (replace(setup, accumulate=4), "Set accumulate to 4"),
        (replace(setup, clip_norm=0.5), "Set clip norm to 0.5"),
        (replace(setup, schedule=replace(setup.schedule, each="step")), "Set each to step"),
    ]


def test_what_cannot_be_is_said_and_not_told(form: StepForm, qtbot) -> None:
    form.show_setup(TrainingSetup(accumulate=2))
    type_into(form, qtbot, "setup_step_form", "accumulate", "0")
    assert form.told == []
    assert "accumulate" in part(form, ParamForm, "setup_step_form").error("accumulate")


def test_early_stopping_is_edited(form: StepForm, qtbot) -> None:
    form.show_setup(TrainingSetup())
    part(form, QToolButton, "setup_more").click()
    type_into(form, qtbot, "setup_stop_form", "patience", "5")
    type_into(form, qtbot, "setup_stop_form", "min_delta", "0.01")
    assert form.told == [
        (TrainingSetup(stopping=Stopping(patience=5)), "Set patience to 5"),
        (TrainingSetup(stopping=Stopping(min_delta=0.01)), "Set min delta to 0.01"),
    ]
    for setup, _ in form.told:
        assert edits.set_training(Project(), setup).training == setup


def test_a_warm_up_before_a_cosine_is_one_choice(form: StepForm, qtbot) -> None:
    form.show_setup(TrainingSetup())
    choose(form, "warmup")
    schedule = Schedule("lr_scheduler.CosineAnnealingLR", {}, "step", 50)
    setup = TrainingSetup(schedule=schedule)
    assert form.told == [(setup, "Use a warm-up, then a cosine")]
    assert edits.set_training(Project(), setup).training == setup
    form.show_setup(setup)
    assert form.rates.isVisible()
    type_into(form, qtbot, "setup_schedule_form", "warmup", "7")
    assert form.told[-1][0] == replace(setup, schedule=replace(schedule, warmup=7))


def test_averaging_is_edited(form: StepForm, qtbot) -> None:
    setup = TrainingSetup(averaging=Averaging("EMA"))
    form.show_setup(setup)
    type_into(form, qtbot, "setup_average_form", "decay", "0.5")
    assert form.told == [
        (TrainingSetup(averaging=Averaging("EMA", 0.5)), "Set decay to 0.5"),
    ]
    assert edits.set_training(Project(), form.told[0][0]).training == form.told[0][0]


def test_the_form_of_averaging_has_the_fields_of_its_kind(form: StepForm, qtbot) -> None:
    fields = part(form, ParamForm, "setup_average_form")
    for averaging, names in (
        (Averaging(), ["kind"]),
        (Averaging("EMA"), ["kind", "decay", "start"]),
        (Averaging("SWA"), ["kind", "start", "swa_lr", "anneal_epochs", "anneal_strategy"]),
    ):
        form.show_setup(TrainingSetup(averaging=averaging))
        assert [param.name for param in fields.params] == names
    type_into(form, qtbot, "setup_average_form", "swa_lr", "0.05")
    setup, words = form.told[-1]
    assert (setup.averaging, words) == (Averaging("SWA", swa_lr=0.05), "Set swa lr to 0.05")
    assert edits.set_training(Project(), setup).training == setup
    with pytest.raises(edits.EditError, match="anneal_epochs is 0"):
        edits.set_training(Project(), TrainingSetup(averaging=Averaging(anneal_epochs=0)))


def test_a_schedule_of_several_schedulers(form: StepForm) -> None:
    """They are chosen, set, added and removed; SequentialLR keeps a milestone for each but one."""
    box = part(form, QComboBox, "setup_scheduler")
    last: list[TrainingSetup] = []

    def take(setup: TrainingSetup) -> None:
        last.append(setup)
        form.show_setup(setup)

    form.setup_edited.connect(take)

    def choose(name: str, key: str) -> None:
        chooser = part(form, QComboBox, name)
        chooser.setCurrentIndex(chooser.findData(f"lr_scheduler.{key}"))
        chooser.activated.emit(chooser.currentIndex())

    choose("setup_scheduler", "SequentialLR")
    schedule = last[-1].schedule
    assert [each.kind[13:] for each in schedule.parts] == ["LinearLR", "ExponentialLR"]
    assert schedule.milestones == (5,) and not schedule.problem
    names = [p.name for p in part(form, ParamForm, "setup_schedule_form").params]
    assert names == ["each", "milestones"]  # no warm-up before it
    part(form, QPushButton, "setup_schedule_add").click()
    choose("setup_schedule_3", "MultiplicativeLR")
    part(form, ParamForm, "setup_schedule_3_form").value_edited.emit("lr_lambda", "0.5")
    part(form, QToolButton, "setup_schedule_1_remove").click()
    schedule = last[-1].schedule
    assert [each.kind[13:] for each in schedule.parts] == ["ExponentialLR", "MultiplicativeLR"]
    assert schedule.parts[1].params == {"lr_lambda": "0.5"} and schedule.milestones == (10,)
    assert part(form, QToolButton, "setup_schedule_1_remove").isHidden()  # two are the least
    offered = {part(form, QComboBox, "setup_schedule_2").itemData(i) for i in range(12)}
    assert not offered & {*COMPOSED, "lr_scheduler.ReduceLROnPlateau"}
    choose("setup_scheduler", "ChainedScheduler")
    assert part(form, ParamForm, "setup_schedule_form").params[0].name == "each"
    assert len(last[-1].schedule.parts) == 2 and last[-1].schedule.milestones == ()
    choose("setup_scheduler", "StepLR")
    assert last[-1].schedule.parts == () and not form.schedule._parts
    assert box.currentData() == "lr_scheduler.StepLR"
