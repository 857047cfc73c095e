"""The settings of an optimizer step that a first model leaves alone, folded away."""

from __future__ import annotations

from typing import get_args

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from engine.project.catalogue import Param
from engine.project.document import (
    BestFigure,
    Decay,
    ParamValue,
    Precision,
    TrainingSetup,
    replace,
)
from engine.project.limits import MAX_ACCUMULATE, MAX_CLIP, MAX_PATIENCE
from widgets import make
from widgets.forms import ParamForm
from widgets.theme import GRID
from widgets.training.settings.averaging_form import AveragingForm
from widgets.training.settings.choices import set_text
from widgets.training.settings.execution_form import ExecutionForm
from widgets.training.settings.group_form import GroupForm
from widgets.training.settings.schedule_form import ScheduleForm

_DEFAULT = TrainingSetup()
_STEP = (
    Param(
        "accumulate",
        "int",
        _DEFAULT.accumulate,
        minimum=1,
        maximum=MAX_ACCUMULATE,
        doc="Batches whose gradients are added up for one optimizer step. The loss of each is"
        " divided by this number, so the step is that of one larger batch.",
    ),
    Param(
        "clip_norm",
        "float",
        _DEFAULT.clip_norm,
        minimum=0.0,
        maximum=MAX_CLIP,
        doc="Largest norm of all gradients together (clip_grad_norm_); longer ones are scaled"
        " down to it. 0: no limit.",
    ),
    Param(
        "clip_value",
        "float",
        _DEFAULT.clip_value,
        minimum=0.0,
        maximum=MAX_CLIP,
        doc="Largest size of each element of a gradient (clip_grad_value_). 0: no limit.",
    ),
    Param(
        "precision",
        "choice",
        _DEFAULT.precision,
        choices=get_args(Precision),
        doc="dtype of autocast: with bfloat16 or float16, matrix products and convolutions compute"
        " in it; weights stay float32. float16 scales the loss (GradScaler).",
    ),
    Param(
        "decay",
        "choice",
        _DEFAULT.decay,
        choices=get_args(Decay),
        doc="Which parameters the optimizer's weight_decay pulls to 0: all, or only weights,"
        " without biases and the parameters of norms.",
    ),
)
_STOPPING = (
    Param(
        "patience",
        "int",
        _DEFAULT.stopping.patience,
        minimum=0,
        maximum=MAX_PATIENCE,
        doc="Stop the run early once so many epochs have not become better. 0: it runs all epochs.",
    ),
    Param(
        "min_delta",
        "float",
        _DEFAULT.stopping.min_delta,
        minimum=0.0,
        maximum=MAX_CLIP,
        doc="By how much an epoch must be better to count. An accuracy is from 0 to 1.",
    ),
    Param(
        "figure",
        "choice",
        _DEFAULT.stopping.figure,
        choices=get_args(BestFigure),
        doc="What says which epoch is better: a smaller loss or a larger accuracy. The weights of"
        " the best epoch are kept; after the run, Best weights loads them. Without validation"
        " data, that of training is taken.",
    ),
)
_SHOWN = (
    *("schedule", "groups", "stopping", "averaging", "deterministic", "compile", "recomputed"),
    *(param.name for param in _STEP),
)


class StepForm(QWidget):
    """Shows schedule, accumulation, clipping, precision, groups and early stopping of a
    `TrainingSetup`. It is folded while all have their defaults, until the reader opens it. Each
    edit emits the whole new set-up."""

    setup_edited = Signal(object, str)
    """(the new TrainingSetup, what was done)"""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._setup = _DEFAULT
        self.schedule = ScheduleForm()
        self.schedule.setup_edited.connect(self.setup_edited)
        self._form = make.named(ParamForm(), "setup_step_form")
        self.groups = GroupForm()
        self.groups.setup_edited.connect(self.setup_edited)
        stop = make.label("early stopping")
        self._stop_form = make.named(ParamForm(), "setup_stop_form")
        stop.setBuddy(self._stop_form)
        self.rates = self.schedule.rates
        self._averaging = AveragingForm()
        self._averaging.setup_edited.connect(self.setup_edited)
        self.execution = ExecutionForm()
        self.execution.setup_edited.connect(self.setup_edited)
        stopping = (stop, self._stop_form, self._averaging, self.execution)
        parts = (self.schedule, self._form, self.groups, *stopping)
        body = make.page(*parts, gap=GRID // 2)
        self._more = make.fold(
            "setup_more",
            "More: schedule, groups, stopping",
            "Schedule of the learning rate, accumulated gradients, clipping, mixed precision,"
            " weight decay, modules with options of their own or frozen, early stopping, averaged"
            " weights, deterministic mode, torch.compile, activation checkpointing.",
            body,
            accessible="More settings of a step",
        )
        make.column(self._more, body, on=self, gap=GRID // 2)
        self._form.value_edited.connect(self._edit_step)
        self._stop_form.value_edited.connect(self._edit_stopping)
        self.show_setup(_DEFAULT)

    def show_setup(self, setup: TrainingSetup) -> None:
        self._setup = setup
        self.schedule.show_setup(setup)
        values = {param.name: getattr(setup, param.name) for param in _STEP}
        self._form.show_params(_STEP, values)
        self.groups.show_setup(setup)
        stopping = {param.name: getattr(setup.stopping, param.name) for param in _STOPPING}
        self._stop_form.show_params(_STOPPING, stopping)
        self._averaging.show_setup(setup)
        self.execution.show_setup(setup)
        if any(getattr(setup, name) != getattr(_DEFAULT, name) for name in _SHOWN):
            self._more.setChecked(True)

    def _edit_stopping(self, name: str, value: ParamValue) -> None:
        stopping = replace(self._setup.stopping, **{name: value})
        self.setup_edited.emit(replace(self._setup, stopping=stopping), set_text(name, value))

    def _edit_step(self, name: str, value: ParamValue) -> None:
        self.setup_edited.emit(replace(self._setup, **{name: value}), set_text(name, value))
