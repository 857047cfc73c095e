"""The options of the loss in the form of the set-up."""

from __future__ import annotations

from PySide6.QtWidgets import QToolButton

from engine.project.document import TrainingSetup
from widgets.forms import ParamForm
from widgets.training.settings.setup_form import SetupForm


def test_the_options_of_a_loss_are_folded_until_one_differs(qtbot) -> None:
    form = SetupForm()
    qtbot.addWidget(form)
    form.show()
    options = form.findChild(ParamForm, "setup_loss_form")
    more = form.findChild(QToolButton, "loss_more")
    form.show_setup(TrainingSetup(), None)
    assert more.isVisible() and not options.isVisible()
    form.show_setup(TrainingSetup(loss_params={"label_smoothing": 0.1}), None)
    assert options.isVisible() and more.isChecked()
