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


def test_a_loss_that_blocks_cannot_have_says_why_and_offers_a_step(qtbot) -> None:
    form = SetupForm()
    qtbot.addWidget(form)
    form.show_setup(TrainingSetup(), None)
    box = form.findChild(QComboBox, "setup_loss")
    words, step = (form.findChild(QLabel, f"setup_loss_{name}") for name in ("words", "step"))
    box.setCurrentIndex(box.findData("nn.CosineEmbeddingLoss"))
    with qtbot.assertNotEmitted(form.loss.loss_edited):
        box.activated.emit(box.currentIndex())
    assert box.currentData() == "nn.CrossEntropyLoss"
    takes = other_losses()["nn.CosineEmbeddingLoss"].takes
    assert words.text().startswith(f"nn.CosineEmbeddingLoss takes {takes}. A model of blocks has")
    assert step.text() == (
        "def step(batch):\n    x1, x2, y = batch\n"
        "    loss = nn.CosineEmbeddingLoss()(model(x1), model(x2), y)\n    return loss"
    )
    form.show_setup(TrainingSetup(loss="nn.MSELoss"), None)
    assert "one-hot" in words.text() and step.isHidden()


def test_the_step_of_code_has_any_loss_with_its_options(qtbot) -> None:
    form = SetupForm()
    qtbot.addWidget(form)
    form.show_subject(is_code=True, of_setup=False, writes=True)
    form.show_setup(TrainingSetup(loss="nn.CTCLoss", loss_params={"blank": 2}), "nn.MSELoss")
    box = form.findChild(QComboBox, "setup_loss")
    options = form.findChild(ParamForm, "setup_loss_form")
    assert box.isEnabled() and box.currentData() == "nn.CTCLoss"  # no loss block is asked
    assert [param.name for param in options.params] == ["blank", "reduction", "zero_infinity"]
    with qtbot.waitSignal(form.setup_edited) as edited:
        options.value_edited.emit("zero_infinity", True)
    assert edited.args[0].loss_params == {"blank": 2, "zero_infinity": True}
    with qtbot.waitSignal(form.loss.loss_edited) as chosen:
        box.setCurrentIndex(box.findData("nn.GaussianNLLLoss"))
        box.activated.emit(box.currentIndex())
    assert chosen.args == ["nn.GaussianNLLLoss"]
    form.show_subject(is_code=True, of_setup=False, writes=False)
    assert box.currentData() == "" and options.params == ()
