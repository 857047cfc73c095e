"""The options of the loss in the form of the set-up."""

from __future__ import annotations

from PySide6.QtWidgets import QComboBox, QLabel, QToolButton

from engine.project.catalogue import other_losses
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


def test_a_loss_that_is_not_used_by_the_form_says_why(qtbot) -> None:
    form = SetupForm()
    qtbot.addWidget(form)
    form.show_setup(TrainingSetup(), None)
    box = form.findChild(QComboBox, "setup_loss")
    words = form.findChild(QLabel, "setup_loss_words")
    box.setCurrentIndex(box.findData("nn.CTCLoss"))
    with qtbot.assertNotEmitted(form.loss_edited):
        box.activated.emit(box.currentIndex())
    assert box.currentData() == "nn.CrossEntropyLoss"
    assert words.text() == f"nn.CTCLoss is not used here. {other_losses()['nn.CTCLoss']}"
    form.show_setup(TrainingSetup(loss="nn.MSELoss"), None)
    assert "one-hot" in words.text()
