"""The form of a sweep: which settings vary, and how trials are compared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QComboBox, QLineEdit, QToolButton, QVBoxLayout, QWidget

from engine.project.limits import MAX_SEED, MAX_TRIALS
from engine.project.sweeps.sweep import Sweep, SweepProblem, parse_choice
from widgets import make
from widgets.flow_layout import FlowLayout
from widgets.theme import GRID

_VALUES_TIP = (
    "What the setting may be: a range (1e-4..1e-1:log, 16..128) or a list (16,32,64). With :log the"
    " values are spread evenly in their logarithm, as suits a learning rate."
)
_FIGURES = (
    ("Validation loss", "validation loss", "The best trial has the lowest one in its last epoch."),
    ("Validation accuracy", "validation accuracy", "The best trial has the highest one."),
    ("Train loss", "train loss", "For data that is not validated."),
)


class SweepOption(NamedTuple):
    """A setting that can vary: its path, its title, and what could be tried."""

    name: str
    title: str
    values: str


class _Row(NamedTuple):
    box: QWidget
    setting: QComboBox
    values: QLineEdit
    remove: QToolButton


class SweepPane(QWidget):
    """`sweep_requested(Sweep)`: train the trials."""

    sweep_requested = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        make.named(self, "sweep_pane", "Sweep over settings")
        self.rows: list[_Row] = []
        self._options: tuple[SweepOption, ...] = ()
        self._lines = QVBoxLayout()
        self._lines.setSpacing(GRID // 2)
        self.add = make.button(
            "sweep_add",
            "Add setting",
            "mdi6.plus",
            self.add_row,
            tip="Vary one more setting. Each trial draws a value for each.",
        )
        self.trials = make.spin(
            "sweep_trials",
            "Trials",
            "How many runs the sweep has. Each is kept in the list, with its settings.",
            low=1,
            high=MAX_TRIALS,
            value=20,
        )
        self.figure = make.combo(
            "sweep_figure", "Compared by", "By which figure trials are compared.", _FIGURES
        )
        self.seed = make.spin(
            "sweep_seed",
            "Seed of the sampler",
            "The same sweep with the same seed draws the same values.",
            high=min(MAX_SEED, 2**31 - 1),
        )
        self.prune = make.check(
            "sweep_prune",
            "End poor trials early",
            "After each epoch, end a trial whose figure is worse than the median of the trials"
            " before it at the same epoch (Optuna's median pruner).",
            checked=True,
        )
        self.start = make.button(
            "sweep_start",
            "Start sweep",
            "mdi6.play",
            self._start,
            tip="Train each trial from fresh weights, as a run of its own. Afterwards the model has"
            " the weights again that it has now; the list has all trials, and marks the best.",
            primary=True,
        )
        self.told = make.text("sweep_told", "error", wrap=True, width="own")
        foot = FlowLayout(GRID, even=False)
        for part in (
            *(self.add, _labelled("Trials", self.trials), _labelled("Compared by", self.figure)),
            *(_labelled("Seed", self.seed), self.prune, self.start),
        ):
            foot.addWidget(part)
        make.column(self._lines, foot, self.told, on=self, gap=GRID // 2)
        self.show_problem("")

    def show_options(self, options: Sequence[SweepOption]) -> None:
        """Offer these settings. Rows whose setting is gone are removed; the first row is the first
        option."""
        self._options = tuple(options)
        names = {option.name for option in options}
        for row in [row for row in self.rows if row.setting.currentData() not in names]:
            self._remove(row)
        for row in self.rows:
            chosen = row.setting.currentData()
            row.setting.blockSignals(True)
            row.setting.clear()
            make.add_choices(row.setting, [(option.title, option.name) for option in options])
            row.setting.setCurrentIndex(row.setting.findData(chosen))
            row.setting.blockSignals(False)
        if not self.rows and options:
            self.add_row()
        self.add.setEnabled(len(self.rows) < len(options))

    def show_problem(self, text: str) -> None:
        make.tell(self.told, text)

    def add_row(self) -> None:
        """Vary one more setting: the first that no row has yet."""
        taken = {row.setting.currentData() for row in self.rows}
        option = next((one for one in self._options if one.name not in taken), None)
        if option is None:
            return
        number = len(self.rows) + 1
        setting = make.combo(
            f"sweep_setting_{number}",
            f"Setting {number}",
            "The setting that varies.",
            [(one.title, one.name) for one in self._options],
        )
        setting.setCurrentIndex(setting.findData(option.name))
        values = make.field(
            f"sweep_values_{number}",
            f"Values of setting {number}",
            _VALUES_TIP,
            mono=True,
            entered=self._start,
        )
        values.setText(option.values)
        remove = make.tool_button(
            f"sweep_remove_{number}", "mdi6.close", tip="Leave this setting as it is."
        )
        box = QWidget()
        make.row(setting, (values, 1), remove, on=box, gap=GRID // 2)
        row = _Row(box, setting, values, remove)
        setting.currentIndexChanged.connect(lambda _: self._suggest(row))
        remove.clicked.connect(lambda: self._remove(row))
        self.rows.append(row)
        self._lines.addWidget(box)
        self.add.setEnabled(len(self.rows) < len(self._options))

    def _suggest(self, row: _Row) -> None:
        name = row.setting.currentData()
        row.values.setText(next((o.values for o in self._options if o.name == name), ""))

    def _remove(self, row: _Row) -> None:
        self.rows.remove(row)
        self._lines.removeWidget(row.box)
        row.box.hide()
        row.box.deleteLater()
        self.add.setEnabled(len(self.rows) < len(self._options))

    def _start(self) -> None:
        self.show_problem("")
        choices = []
        for row in self.rows:
            try:
                choices.append(parse_choice(row.setting.currentData(), row.values.text()))
            except SweepProblem as problem:
                self.show_problem(str(problem))
                row.values.setFocus()
                return
        figure = self.figure.currentData()
        self.sweep_requested.emit(
            Sweep(
                tuple(choices),
                trials=self.trials.value(),
                seed=self.seed.value(),
                figure=figure,
                maximise="accuracy" in figure,
                prune=self.prune.isChecked(),
            )
        )


def _labelled(text: str, field: QWidget) -> QWidget:
    """A field and its label, which stay in one row."""
    both = QWidget()
    make.row(make.label(text, of=field), field, on=both)
    return both
