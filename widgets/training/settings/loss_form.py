"""The loss of a run: of blocks, or with which the step of a module of code is written."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from engine.project.catalogue import losses, other_losses
from engine.project.document import ParamValue, TrainingSetup, replace
from widgets import make
from widgets.forms import ParamForm
from widgets.theme import GRID
from widgets.training.settings.choices import Choice, set_text, show_choice, with_value

_OF_STEP = (
    "that of the step below",
    "",
    "The step says it: one that is written for the first batch and what the model gives, or yours.",
)


class LossForm(QWidget):
    """Shows the loss of a `TrainingSetup`. A model of blocks takes a loss of a prediction and a
    target, the step of code is written with any."""

    setup_edited = Signal(object, str)
    """(the new TrainingSetup, what was done)"""
    loss_edited = Signal(str)
    """The key of the loss chosen; empty for that of the step."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._setup = TrainingSetup()
        self._block: str | None = None
        self._is_code = self._writes = False
        tip = "Loss: the number that training minimises"
        self._loss = make.named(Choice(), "setup_loss", make.first_words(tip), tip)
        self._words = make.label("", "muted", "setup_loss_words", wrap=True)
        self._step = make.text("setup_loss_step", wrap=True, mono=9)
        self._step.hide()
        self._form = make.named(ParamForm(), "setup_loss_form")
        self._more = make.fold(
            "loss_more",
            "More: options of the loss",
            "The arguments of torch's loss besides prediction and target.",
            self._form,
        )
        options = make.page(self._more, self._form, gap=GRID // 2)
        heading = make.label("Loss", "heading")
        heading.setContentsMargins(0, 2 * GRID, 0, 0)
        make.column(
            heading, self._loss, self._words, self._step, options, on=self, gap=GRID // 2, margins=0
        )
        self._loss.activated.connect(lambda: self._choose(self._loss.currentData()))
        self._form.value_edited.connect(self._edit)
        self._offer()

    def _offer(self) -> None:
        self._loss.clear()
        if self._is_code:
            make.add_choices(self._loss, [_OF_STEP])
        rows = [(kind.title, key, kind.summary) for key, kind in losses().items()]
        mark = "" if self._is_code else " …"
        for key, other in other_losses().items():
            rows.append((f"{key.removeprefix('nn.')}{mark}", key, f"Takes {other.takes}."))
        make.add_choices(self._loss, rows)

    # -- showing ---------------------------------------------------------------------------------

    def show_subject(self, is_code: bool, writes: bool) -> None:
        """`writes`: the step of code is written with the loss of the set-up."""
        if is_code != self._is_code:
            self._is_code = is_code
            self._offer()
        self._writes = writes
        self._show()

    def show_setup(self, setup: TrainingSetup, loss_from_block: str | None) -> None:
        """`loss_from_block` is the kind of the loss block on the canvas, which then decides the
        loss of blocks; None if there is none."""
        self._setup, self._block = setup, loss_from_block
        self._show()

    @property
    def _shown(self) -> str:
        if self._is_code:
            return self._setup.loss if self._writes else ""
        return self._block or self._setup.loss

    def _show(self) -> None:
        of_block = self._block is not None and not self._is_code
        show_choice(self._loss, self._shown)
        self._loss.setEnabled(not of_block)
        self._step.hide()
        known = {**losses(), **other_losses()}.get("" if of_block else self._shown)
        params = known.params if known else ()
        self._form.show_params(params, self._setup.loss_params, of=self._shown)
        self._more.setVisible(bool(params))
        if self._setup.loss_params and params:
            self._more.setChecked(True)
        words = "Set by the loss block on the canvas." if of_block else _words(self._shown)
        make.tell(self._words, words)

    # -- editing ---------------------------------------------------------------------------------

    def _choose(self, key: str) -> None:
        other = other_losses().get(key)
        if other is not None and not self._is_code:
            self._show()
            make.tell(
                self._words,
                f"{key} takes {other.takes}. A model of blocks has one prediction: train a module"
                " of your own, and choose it there. Its step is:",
            )
            make.tell(self._step, other.source(f"{key}()", "model.loss").rstrip())
        elif key != self._shown:
            self.loss_edited.emit(key)

    def _edit(self, name: str, value: ParamValue) -> None:
        params = with_value(self._form.params, self._setup.loss_params, name, value)
        setup = replace(self._setup, loss_params=params)
        self.setup_edited.emit(setup, set_text(name, value))


def _words(kind: str) -> str:
    """What a loss takes."""
    if kind in other_losses():
        return f"Takes {other_losses()[kind].takes}."
    known = losses().get(kind)
    if known is None:
        return ""
    if kind == "nn.CrossEntropyLoss":
        return "Takes raw scores (logits): the model needs no softmax."
    if known.target == "numbers":
        return (
            "Targets that are numbers stay as they are; classes become one-hot: 1 for the"
            " sample's class, 0 for all others."
        )
    return known.summary
