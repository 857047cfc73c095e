"""The form of what holds a run, and of the order of a step."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QComboBox, QLabel, QToolButton

from engine.project import edits
from engine.project.document import HoldWhen, Project, TrainingSetup, replace
from engine.project.step_order import PHASES, unusual_words
from widgets.forms import ParamForm
from widgets.training.settings.watch_form import WatchForm


@pytest.fixture
def form(qtbot) -> WatchForm:
    form = WatchForm()
    qtbot.addWidget(form)
    form.show()
    form.told = []
    form.setup_edited.connect(lambda setup, words: form.told.append((setup, words)))
    return form


def part(form: WatchForm, kind: type, name: str):
    found = form.findChild(kind, name)
    assert found is not None
    return found


def test_it_is_folded_until_something_differs(form: WatchForm) -> None:
    fields = part(form, ParamForm, "setup_hold_form")
    form.show_setup(TrainingSetup())
    assert not fields.isVisible()
    form.show_setup(TrainingSetup(hold=HoldWhen(loss_spike=3.0)))
    assert fields.isVisible()


def test_every_limit_can_be_set_and_the_document_takes_it(form: WatchForm) -> None:
    fields = part(form, ParamForm, "setup_hold_form")
    entered = {
        "not_finite": True,
        "loss_spike": 3.0,
        "gradient_norm": 10.0,
        "ratio_above": 0.1,
        "ratio_below": 1e-6,
        "dead_units": 0.5,
        "unchanged": 50,
    }
    setup = TrainingSetup()
    for name, value in entered.items():
        form.show_setup(setup)
        fields.field(name).committed.emit(value if name == "not_finite" else str(value))
        setup, _ = form.told[-1]
        setup = edits.set_training(Project(), setup).training
    assert setup.hold == HoldWhen(**entered)


def test_each_order_can_be_chosen_and_says_what_it_does(form: WatchForm) -> None:
    box, words = part(form, QComboBox, "setup_order"), part(form, QLabel, "setup_order_words")
    part(form, QToolButton, "setup_watch").click()
    seen = set()
    for place in range(1, box.count()):
        box.setCurrentIndex(place)
        box.activated.emit(place)
        setup, text = form.told[-1]
        seen.add(setup.order)
        assert edits.set_training(Project(), setup).training.order == setup.order
        assert box.currentText() in text
        form.show_setup(setup)
        assert words.text() == unusual_words(setup.order) != ""
        assert words.isVisible()
    assert len(seen) == 5 and PHASES not in seen


def test_an_order_of_another_kind_is_shown(form: WatchForm) -> None:
    order = ("forward", "loss")
    form.show_setup(replace(TrainingSetup(), order=order))
    assert part(form, QComboBox, "setup_order").currentText() == "forward, loss"
