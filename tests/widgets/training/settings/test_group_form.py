"""The form of modules with options of their own."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QCheckBox, QLineEdit, QToolButton

from engine.project import edits
from engine.project.document import ParamGroup, Project, TrainingSetup, replace
from tests.words import assert_same_words
from widgets.fields import TextField
from widgets.forms import ParamForm
from widgets.training.settings.group_form import GroupForm

SETUP = TrainingSetup(
    optimizer_params={"lr": 0.05},
    groups=(ParamGroup("linear1", {"lr": 0.01}), ParamGroup("layers.0", {}, True)),
)


@pytest.fixture
def form(qtbot) -> GroupForm:
    form = GroupForm()
    qtbot.addWidget(form)
    form.show()
    form.told = []
    form.setup_edited.connect(lambda setup, words: form.told.append((setup, words)))
    return form


def part(form: GroupForm, kind: type, name: str):
    found = form.findChild(kind, name)
    assert found is not None
    return found


def test_a_module_is_added_once_by_its_path(form: GroupForm, qtbot) -> None:
    form.offer_modules(["linear1", "linear2"])
    field = part(form, QLineEdit, "setup_group_module")
    assert field.completer().model().rowCount() == 2
    qtbot.keyClicks(field, " linear2 ")
    qtbot.keyClick(field, Qt.Key.Key_Return)
    assert form.told == [
        (replace(TrainingSetup(), groups=(ParamGroup("linear2"),)), "Own options for linear2")
    ]
    form.show_setup(form.told[0][0])
    qtbot.keyClicks(field, "linear2")
    qtbot.keyClick(field, Qt.Key.Key_Return)
    assert len(form.told) == 1 and field.text() == "linear2"


def test_each_group_tells_its_own_options_and_shows_those_of_all(form: GroupForm) -> None:
    form.show_setup(SETUP)
    title = part(form, QToolButton, "setup_group_linear1")
    options = part(form, ParamForm, "setup_group_linear1_form")
    assert title.text() == "linear1: lr 0.01" and not options.isVisible()
    title.click()
    assert options.isVisible()
    assert options.field("lr").text() == "0.01"
    assert part(form, ParamForm, "setup_group_layers.0_form").field("lr").text() == "0.05"
    assert part(form, QCheckBox, "setup_group_layers.0_frozen").isChecked()
    form.show_setup(replace(SETUP, optimizer_params={"lr": 0.5}))
    assert options.isVisible()
    assert part(form, ParamForm, "setup_group_layers.0_form").field("lr").text() == "0.5"
    assert_same_words(form, "train_groups")


def test_edits_tell_the_whole_setup(form: GroupForm, qtbot) -> None:
    form.show_setup(SETUP)
    part(form, QToolButton, "setup_group_linear1").click()
    field = part(form, ParamForm, "setup_group_linear1_form").field("weight_decay")
    assert isinstance(field, TextField)
    field.selectAll()
    qtbot.keyClicks(field, "0.25")
    qtbot.keyClick(field, Qt.Key.Key_Return)
    first, second = SETUP.groups
    wider = replace(first, params={"lr": 0.01, "weight_decay": 0.25})
    assert form.told[-1] == (
        replace(SETUP, groups=(wider, second)),
        "Set weight decay to 0.25: linear1",
    )
    assert edits.set_training(Project(), form.told[-1][0]).training == form.told[-1][0]
    part(form, QToolButton, "param_lr_reset").click()
    assert form.told[-1][0].groups[0] == replace(first, params={})
    part(form, QCheckBox, "setup_group_layers.0_frozen").click()
    assert form.told[-1] == (
        replace(SETUP, groups=(first, replace(second, frozen=False))),
        "Let learn: layers.0",
    )
    part(form, QToolButton, "setup_group_linear1_remove").click()
    assert form.told[-1] == (replace(SETUP, groups=(second,)), "No own options for linear1")
    form.show_setup(form.told[-1][0])
    assert form.findChild(QToolButton, "setup_group_layers.0").isVisible()
