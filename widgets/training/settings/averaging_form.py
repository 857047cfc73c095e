"""Which running average of the weights a run keeps beside it."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from engine.project.catalogue import Param
from engine.project.document import Averaging, ParamValue, TrainingSetup, replace
from engine.project.limits import MAX_CLIP, MAX_EPOCHS
from widgets import make
from widgets.forms import ParamForm
from widgets.theme import GRID
from widgets.training.settings.choices import set_text

_DEFAULT = Averaging()
_AVERAGING = {
    param.name: param
    for param in (
        Param(
            "kind",
            "choice",
            _DEFAULT.kind,
            choices=("none", "EMA", "SWA"),
            doc="A running average of the weights beside the run (torch.optim.swa_utils): EMA after"
            " each step, SWA after each epoch. It is validated in place of the last weights; after"
            " the run, Averaged weights loads it.",
        ),
        Param(
            "decay",
            "float",
            _DEFAULT.decay,
            minimum=0.0,
            maximum=1.0,
            doc="EMA: the share of the average that each step keeps.",
        ),
        Param(
            "start",
            "int",
            _DEFAULT.start,
            minimum=0,
            maximum=MAX_EPOCHS,
            doc="Epochs before averaging begins.",
        ),
        Param(
            "swa_lr",
            "float",
            _DEFAULT.swa_lr,
            minimum=0.0,
            maximum=MAX_CLIP,
            doc="Learning rate of the epochs that are averaged (SWALR). From `start` on it takes"
            " the place of the schedule above. 0: the schedule goes on.",
        ),
        Param(
            "anneal_epochs",
            "int",
            _DEFAULT.anneal_epochs,
            minimum=1,
            maximum=MAX_EPOCHS,
            doc="Epochs in which the rate goes from its value at `start` to swa_lr.",
        ),
        Param(
            "anneal_strategy",
            "choice",
            _DEFAULT.anneal_strategy,
            choices=("cos", "linear"),
            doc="Along which curve: half a cosine, or a line.",
        ),
    )
}
_OF_KIND = {
    "none": ("kind",),
    "EMA": ("kind", "decay", "start"),
    "SWA": ("kind", "start", "swa_lr", "anneal_epochs", "anneal_strategy"),
}


class AveragingForm(QWidget):
    """Shows the averaging of a `TrainingSetup`, with the fields of its kind. Each edit emits the
    whole new set-up."""

    setup_edited = Signal(object, str)
    """(the new TrainingSetup, what was done)"""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._setup = TrainingSetup()
        self._form = make.named(ParamForm(), "setup_average_form")
        title = make.label("averaged weights", of=self._form)
        make.column(title, self._form, on=self, gap=GRID // 2, margins=0)
        self._form.value_edited.connect(self._edit)

    def show_setup(self, setup: TrainingSetup) -> None:
        self._setup = setup
        names = _OF_KIND[setup.averaging.kind]
        values = {name: getattr(setup.averaging, name) for name in names}
        self._form.show_params([_AVERAGING[name] for name in names], values)

    def _edit(self, name: str, value: ParamValue) -> None:
        averaging = replace(self._setup.averaging, **{name: value})
        self.setup_edited.emit(replace(self._setup, averaging=averaging), set_text(name, value))
