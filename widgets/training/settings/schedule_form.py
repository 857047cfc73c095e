"""How the learning rate changes: a scheduler of torch's, and those that it runs."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from engine.project.catalogue import Param, schedulers
from engine.project.document import (
    COMPOSED,
    MAX_SCHEDULERS,
    ParamValue,
    Schedule,
    SchedulePart,
    TrainingSetup,
    replace,
)
from engine.project.edits.schedule import (
    new_part,
    new_schedule,
    part_kinds,
    with_changed_part,
    with_part,
    without_part,
)
from engine.project.limits import MAX_WARMUP
from widgets import make
from widgets.forms import ParamForm
from widgets.theme import GRID
from widgets.training.settings.choices import Choice, set_text, show_choice, with_value
from widgets.training.settings.rate_curve import RateCurve

_DEFAULT = Schedule()
_EACH = Param(
    "each",
    "choice",
    _DEFAULT.each,
    choices=("epoch", "step"),
    doc="When the scheduler steps: after each epoch, or after each optimizer step. Its numbers"
    " count these.",
)
_WARMUP = (
    Param(
        "warmup",
        "int",
        _DEFAULT.warmup,
        minimum=0,
        maximum=MAX_WARMUP,
        doc="Steps (or epochs) before the schedule in which the rate rises to lr (LinearLR, joined"
        " by SequentialLR). 0: none.",
    ),
    Param(
        "warmup_from",
        "float",
        _DEFAULT.warmup_from,
        minimum=1e-12,
        maximum=1.0,
        doc="The share of lr with which the warm-up begins.",
    ),
)
_OF_SCHEDULE = ("each", "warmup", "warmup_from")
_WARMED = "warmup"
_WARMED_SCHEDULE = Schedule("lr_scheduler.CosineAnnealingLR", {}, "step", warmup=50)


class ScheduleForm(QWidget):
    """Shows the schedule of a `TrainingSetup`. Each edit emits the whole new set-up."""

    setup_edited = Signal(object, str)
    """(the new TrainingSetup, what was done)"""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._setup = TrainingSetup()
        title = make.label("learning rate")
        self._scheduler = make.named(
            Choice(), "setup_scheduler", "Schedule of the learning rate", "How the rate changes"
        )
        title.setBuddy(self._scheduler)
        rows = [("constant", "", "The learning rate stays what the optimizer has")]
        rows += [(_name(key), key, f"torch.optim.{key}") for key in schedulers()]
        words = "LinearLR rises for 50 steps, then CosineAnnealingLR falls to the end of the run"
        rows.insert(1, ("warm-up, then cosine", _WARMED, words))
        make.add_choices(self._scheduler, rows)
        self._form = make.named(ParamForm(), "setup_schedule_form")
        self._parts: list[_Part] = []
        self._list = make.column(gap=GRID // 2)
        self._add = make.button(
            "setup_schedule_add",
            "Add a scheduler",
            slot=lambda: self._emit(
                with_part(self._schedule, next(iter(part_kinds()))), "Add a scheduler"
            ),
            tip="One more, at the end. SequentialLR begins with it at a milestone of its own.",
        )
        self.rates = RateCurve()
        parts = (title, self._scheduler, self._form, self._list, self._add, self.rates)
        make.column(*parts, on=self, gap=GRID // 2, margins=0)
        self._scheduler.activated.connect(lambda: self._choose(self._scheduler.currentData()))
        self._form.value_edited.connect(self._edit)

    @property
    def _schedule(self) -> Schedule:
        return self._setup.schedule

    def show_setup(self, setup: TrainingSetup) -> None:
        self._setup, schedule = setup, setup.schedule
        show_choice(self._scheduler, schedule.kind)
        known, runs_others = schedulers().get(schedule.kind), schedule.kind in COMPOSED
        params = () if known is None else (_EACH, *known, *(() if runs_others else _WARMUP))
        values = {**schedule.params, **{name: getattr(schedule, name) for name in _OF_SCHEDULE}}
        self._form.show_params(params, values, of=schedule.kind)
        self._form.setVisible(bool(params))
        self._show_parts(schedule)
        self._add.setVisible(runs_others and len(schedule.parts) < MAX_SCHEDULERS)
        self.rates.setVisible(bool(params) or bool(setup.averaging.swa_lr))

    def _show_parts(self, schedule: Schedule) -> None:
        while len(self._parts) > len(schedule.parts):
            row = self._parts.pop()
            self._list.removeWidget(row)
            row.hide()
            row.deleteLater()
        while len(self._parts) < len(schedule.parts):
            number = len(self._parts)
            row = _Part(number)
            row.changed.connect(partial(self._change, number))
            row.removed.connect(partial(self._remove, number))
            self._parts.append(row)
            self._list.addWidget(row)
        for row, part in zip(self._parts, schedule.parts, strict=True):
            row.show_part(part, can_go=len(schedule.parts) > 2)

    def _choose(self, key: str) -> None:
        """Choose a scheduler, with values for what it requires."""
        if key == self._schedule.kind:
            return
        if key == _WARMED:
            self._emit(_WARMED_SCHEDULE, "Use a warm-up, then a cosine")
            return
        words = f"Use the schedule {_name(key)}" if key else "Keep the rate constant"
        self._emit(new_schedule(key), words)

    def _edit(self, name: str, value: ParamValue) -> None:
        schedule = self._schedule
        if name in _OF_SCHEDULE:
            schedule = replace(schedule, **{name: value})
        else:
            params = with_value(schedulers()[schedule.kind], schedule.params, name, value)
            schedule = replace(schedule, params=params)
        self._emit(schedule, set_text(name, value))

    def _change(self, number: int, part: SchedulePart, what: str) -> None:
        self._emit(with_changed_part(self._schedule, number, part), what)

    def _remove(self, number: int) -> None:
        what = f"Remove {_name(self._schedule.parts[number].kind)}"
        self._emit(without_part(self._schedule, number), what)

    def _emit(self, schedule: Schedule, what: str) -> None:
        self.setup_edited.emit(replace(self._setup, schedule=schedule), what)


class _Part(QWidget):
    """A scheduler that another one runs."""

    changed = Signal(object, str)
    """(the new SchedulePart, what was done)"""
    removed = Signal()

    def __init__(self, number: int) -> None:
        super().__init__()
        self._part = SchedulePart("")
        name = f"setup_schedule_{number + 1}"
        self._kind = make.named(
            Choice(), name, f"Scheduler {number + 1}", "One of the schedulers that it runs"
        )
        rows = [(_name(key), key, f"torch.optim.{key}") for key in part_kinds()]
        make.add_choices(self._kind, rows)
        self._gone = make.tool_button(
            f"{name}_remove",
            "mdi6.close",
            "Remove: this scheduler is not run any more",
            slot=self.removed.emit,
            ink="muted",
        )
        self._form = make.named(ParamForm(), f"{name}_form")
        head = make.row((self._kind, 1), self._gone)
        make.column(head, self._form, on=self, gap=GRID // 2, margins=0)
        self._kind.activated.connect(lambda: self._choose(self._kind.currentData()))
        self._form.value_edited.connect(self._edit)

    def show_part(self, part: SchedulePart, can_go: bool) -> None:
        self._part = part
        show_choice(self._kind, part.kind)
        self._gone.setVisible(can_go)
        params = schedulers().get(part.kind, ())
        self._form.show_params(params, part.params, of=part.kind)

    def _choose(self, kind: str) -> None:
        if kind != self._part.kind:
            self.changed.emit(new_part(kind), f"Run {_name(kind)}")

    def _edit(self, name: str, value: ParamValue) -> None:
        params = with_value(schedulers()[self._part.kind], self._part.params, name, value)
        self.changed.emit(replace(self._part, params=params), set_text(name, value))


def _name(key: str) -> str:
    return key.partition(".")[2]
