"""The form of several processes and machines."""

from __future__ import annotations

import pytest
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QLabel

from engine.project import edits
from engine.project.document import Project, TrainingSetup
from tests.labels import said
from widgets.forms import ParamForm
from widgets.training.settings.ranks_form import RanksForm


@pytest.fixture
def form(qtbot) -> RanksForm:
    form = RanksForm()
    qtbot.addWidget(form)
    form.show()
    return form


def test_it_is_folded_until_there_are_several(form: RanksForm) -> None:
    fields = form.findChild(ParamForm, "setup_ranks_form")
    assert not fields.isVisible()
    form.show_setup(TrainingSetup(processes=2))
    assert fields.isVisible() and "BatchNorm" in said(form, "setup_ranks_words")
    form.show_setup(TrainingSetup())
    assert not form.findChild(QLabel, "setup_ranks_words").isVisible()


def test_the_document_takes_the_number(form: RanksForm, qtbot) -> None:
    field = form.findChild(ParamForm, "setup_ranks_form").field("processes")
    with qtbot.waitSignal(form.setup_edited) as edited:
        field.committed.emit("4")
    setup, words = edited.args
    assert edits.set_training(Project(), setup).training.processes == 4
    assert words == "Set processes to 4"
    with pytest.raises(edits.EditError, match="at most 64"):
        edits.set_training(Project(), TrainingSetup(processes=65))


def test_the_command_is_shown_and_copied(form: RanksForm) -> None:
    assert not form.copy.isEnabled() and "Save the project" in form.command.text()
    form.show_arguments(("/home/me/my net.tlab",))
    form.show_setup(TrainingSetup(processes=2))
    form.machines.setValue(3)
    form.copy.click()
    assert (
        QGuiApplication.clipboard().text()
        == form.command.text()
        == (
            "torchrun --nnodes 3 --nproc-per-node 2 --rdzv-backend c10d --rdzv-endpoint HOST:29400"
            " -m -- tensorlab train '/home/me/my net.tlab'"
        )
    )
    form.show_problem("Not so.")
    assert not form.copy.isEnabled() and form.command.text() == "Not so."
