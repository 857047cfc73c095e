"""What holds a run or a loop, and in which order a step runs its phases, folded away."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from engine.project.catalogue import Param
from engine.project.document import HoldWhen, ParamValue, TrainingSetup, replace
from engine.project.limits import HOLD_LIMITS
from engine.project.step_order import PHASES, Phase, unusual_words
from widgets import make
from widgets.forms import ParamForm
from widgets.theme import GRID
from widgets.training.settings.choices import Choice, set_text, show_choice

_DEFAULT = HoldWhen()
_DOCS = {
    "not_finite": "Hold where a loss or a gradient becomes NaN or infinite, before it reaches a"
    " weight. The run is repeated up to there, and the operation is named. It costs nothing while"
    " all is well. Without, the run ends there and says what to try, and “Hold where it began” does"
    " the same afterwards.",
    "loss_spike": "Hold before the backward of a loss that is so many times the median of the 20"
    " before it. 0: never.",
    "gradient_norm": "Hold before the update when the 2-norm of all gradients is above this. 0:"
    " never.",
    "ratio_above": "Hold after the step when the update of some parameter has more than this share"
    " of its 2-norm. 0: never; 0.001 is usual, 0.1 is much.",
    "ratio_below": "Hold after the step when the update of some parameter has less than this share"
    " of its 2-norm. 0: never.",
    "dead_units": "Hold when this share (0 to 1) of the units behind a ReLU gave 0 only, in three"
    " looks at every tenth step. 0: never.",
    "unchanged": "Hold when some parameter has not changed in so many steps. 0: never.",
}
_HOLD = tuple(
    Param(
        name,
        "bool" if name == "not_finite" else "int" if name == "unchanged" else "float",
        getattr(_DEFAULT, name),
        minimum=None if name == "not_finite" else 0,
        maximum=HOLD_LIMITS.get(name),
        doc=doc,
    )
    for name, doc in _DOCS.items()
)
OF_LOOPS = ("not_finite", "loss_spike", "gradient_norm")
"""The watchpoints that hold a loop of the user's own, too."""


_ORDERS: tuple[tuple[str, tuple[Phase, ...]], ...] = (
    ("usual order", PHASES),
    ("without zero_grad", ("forward", "loss", "backward", "step")),
    ("zero_grad before step", ("forward", "loss", "backward", "zero_grad", "step")),
    ("step first", ("step", "zero_grad", "forward", "loss", "backward")),
    ("without backward", ("zero_grad", "forward", "loss", "step")),
    ("without step", ("zero_grad", "forward", "loss", "backward")),
)


class HoldForm(ParamForm):
    """Shows these watchpoints of a `TrainingSetup`. Each edit emits the whole new set-up."""

    setup_edited = Signal(object, str)
    """(the new TrainingSetup, what was done)"""

    def __init__(self, name: str, of: Sequence[str] = tuple(_DOCS)) -> None:
        super().__init__()
        make.named(self, name)
        self._shown = tuple(param for param in _HOLD if param.name in of)
        self._setup = TrainingSetup()
        self.value_edited.connect(self._edit)

    def show_setup(self, setup: TrainingSetup) -> None:
        self._setup = setup
        values = {param.name: getattr(setup.hold, param.name) for param in self._shown}
        self.show_params(self._shown, values)

    def _edit(self, name: str, value: ParamValue) -> None:
        hold = replace(self._setup.hold, **{name: value})
        words = f"Hold when {name}: {value}" if name != "not_finite" else set_text(name, value)
        self.setup_edited.emit(replace(self._setup, hold=hold), words)


class LoopHold(QWidget):
    """The watchpoints of the loop of a script that the window is attached to, folded away."""

    def __init__(self) -> None:
        super().__init__()
        self.form = HoldForm("loop_hold_form", OF_LOOPS)
        self.more = make.fold(
            "loop_hold",
            "Hold when…",
            "Watchpoints: the script is held before the update of the step in which its loss or a"
            " gradient is not finite, or above a limit.",
            self.form,
            accessible="What holds the loop",
        )
        make.column(self.more, self.form, on=self, gap=GRID // 2)
        self.setMaximumWidth(420)


class WatchForm(QWidget):
    """Shows `hold` and `order` of a `TrainingSetup`. It is folded while both have their defaults,
    until the reader opens it. Each edit emits the whole new set-up."""

    setup_edited = Signal(object, str)
    """(the new TrainingSetup, what was done)"""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._setup = TrainingSetup()
        self._hold = HoldForm("setup_hold_form")
        title = make.label("order of a step")
        self._order = make.named(
            Choice(), "setup_order", "Order of a step", "The order of a step's phases, on purpose"
        )
        title.setBuddy(self._order)
        rows = [(text, ", ".join(order), ", ".join(order)) for text, order in _ORDERS]
        make.add_choices(self._order, rows)
        self._words = make.label("", "muted", "setup_order_words", wrap=True)
        parts = (self._hold, title, self._order, self._words)
        body = make.page(*parts, gap=GRID // 2)
        self._more = make.fold(
            "setup_watch",
            "Hold when…, order of a step",
            "Watchpoints: the run is held at the exact step, and Back goes before it. And the order"
            " of zero_grad, forward, loss, backward and step, to see what another one does.",
            body,
            accessible="What holds a run, and the order of a step",
        )
        make.column(self._more, body, on=self, gap=GRID // 2)
        self._hold.setup_edited.connect(self.setup_edited)
        self._order.activated.connect(self._choose_order)
        self.show_setup(self._setup)

    def show_setup(self, setup: TrainingSetup) -> None:
        self._setup = setup
        self._hold.show_setup(setup)
        show_choice(self._order, ", ".join(setup.order))
        make.tell(self._words, unusual_words(setup.order))
        if setup.hold != _DEFAULT or tuple(setup.order) != PHASES:
            self._more.setChecked(True)

    def _choose_order(self) -> None:
        order = tuple(self._order.currentData().split(", "))
        if order != self._setup.order:
            text = f"Choose the order of a step: {self._order.currentText()}"
            self.setup_edited.emit(replace(self._setup, order=order), text)
