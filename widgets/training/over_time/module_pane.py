"""How far the modules of a run moved: a line for each, over the steps."""

from __future__ import annotations

from math import nan
from typing import Literal

from PySide6.QtCore import Signal
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QStackedWidget, QWidget

from engine.protocol import EACH_MODULE, MAX_LINES, ModuleNormsSnapshot, NormLine
from widgets import make, theme
from widgets.charts.line_chart import Line, LineChart, point_text
from widgets.colormap import distinct_colors
from widgets.flow_layout import FlowLayout
from widgets.theme import GRID
from widgets.training.over_time.name_list import NameList

Figure = Literal["ratio", "gradient", "weight", "update"]
WHOLE = "(model)"
"""The names for the model's own parameters, and for the whole model."""
EMPTY = (
    "No run yet.\n\nEvery run of Train is looked at from time to time, in at most 0.5 % of its"
    " time, whether this page is open or not. The gradient norm of each module and how far a step"
    " moves it appear here; a run that is opened again has them too."
    " A loop in a cell or file has them while it is the newest. A script that is attached to is"
    " looked at from when this page or Histograms is opened. Not looked at are models that FSDP2"
    " shards: no process has a whole parameter."
)
SOON = "The run has started: its first figures come in a moment."
_FIGURES: tuple[tuple[str, Figure, str], ...] = (
    (
        "update ÷ weights",
        "ratio",
        "The 2-norm of the update over that of the weights. Some 0.001 is usual: far above, the"
        " rate is too high, far below, the module hardly learns.",
    ),
    (
        "gradient norm",
        "gradient",
        "The 2-norm of the gradients of its parameters, before clipping. Near zero: little reaches"
        " the module.",
    ),
    ("weight norm", "weight", "The 2-norm of its parameters"),
    ("update norm", "update", "The 2-norm of how far the step moves its parameters"),
)


class ModulePane(QStackedWidget):
    """`asked()`: other lines are wanted; `depth`, `by_parameter` and `wanted` say which.
    `chosen(name, is_parameter)`: the reader has chosen a module or parameter.
    `came_in_sight()`: the pane is shown."""

    asked = Signal()
    chosen = Signal(str, bool)
    came_in_sight = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        make.named(self, "module_lines", "Modules over time")
        self._found = ModuleNormsSnapshot(folder="")
        self.wanted: tuple[str, ...] = ()
        self.trouble = make.empty(EMPTY, "module_lines_trouble")
        self._figure = make.combo(
            "module_lines_figure", "Figure", "What the lines show of each module", _FIGURES
        )
        self._figure.currentIndexChanged.connect(lambda _: self._draw())
        self._depth = make.combo(
            "module_lines_depth",
            "Depth",
            "How deep modules are told apart: those inside a module are taken together with it.",
        )
        self._offer_depths(1)
        self._depth.activated.connect(lambda _: self._ask())
        self._log = make.check(
            "module_lines_log",
            "Logarithmic",
            "Equal distances are equal ratios: lines of very different modules can be compared.",
            checked=True,
        )
        self._log.toggled.connect(lambda _: self._draw())
        self._pointed = make.text("module_lines_pointed", "muted", width="any")
        head = FlowLayout(GRID, even=False)
        for control in (self._figure, self._depth, self._log, self._pointed):
            head.addWidget(control)
        self.names = NameList(
            "module_lines_names",
            "Modules",
            f"Modules in the order of the model. Tick those whose lines you want, {MAX_LINES} at"
            " most; select one to choose it in all views.",
            MAX_LINES,
        )
        self.names.ticked_changed.connect(self._tick)
        self.names.chosen.connect(self._tell)
        self.chart = LineChart(
            "module_lines_chart",
            "Modules over steps",
            "A line for each ticked module. Click one to choose its module in all views; arrow keys"
            " go along the lines, Enter chooses.",
            "step",
        )
        self.chart.pointed.connect(
            lambda line, place: self._pointed.setText(point_text(line, place, "step"))
        )
        self.chart.chosen.connect(lambda title: self._tell(_name_of(title)))
        both = make.splitter(self.names, self.chart, sizes=(190, 800), shares=(0, 1))
        self.addWidget(self.trouble)
        self.addWidget(make.page(head, (both, 1), margins=(0, GRID, GRID, 0)))
        theme.notifier.changed.connect(self._draw)

    @property
    def depth(self) -> int:
        chosen = self._depth.currentData()
        return EACH_MODULE if chosen is None else chosen

    @property
    def by_parameter(self) -> bool:
        return self._depth.currentData() is None

    # -- showing ---------------------------------------------------------------------------------

    def show_norms(self, found: ModuleNormsSnapshot) -> None:
        self._found = found
        if not found.steps:
            self.show_trouble(SOON if found.folder else EMPTY)
            return
        self._offer_depths(found.deepest)
        titles = {"": WHOLE}
        self.names.show_names(found.names, titles, [line.name for line in found.lines])
        self._draw()
        self.setCurrentIndex(1)

    def show_trouble(self, text: str) -> None:
        """Say why there are no lines."""
        self.trouble.setText(text)
        self.setCurrentIndex(0)

    def forget(self) -> None:
        """Another run has come: no lines are ticked."""
        self.wanted = ()

    def show_chosen(self, name: str | None) -> None:
        """Light what another view has chosen; emits nothing."""
        self.names.choose("" if name is None else name)
        self.chart.light("" if name is None else name or WHOLE)

    def _draw(self) -> None:
        figure: Figure = self._figure.currentData()
        count = max(MAX_LINES, len(self._found.lines))
        colors = theme.current()
        hues = distinct_colors(colors.series, colors.surface, count)
        lines, of_name = [], {}
        for place, line in enumerate(self._found.lines):
            of_name[line.name] = hues[place]
            lines.append(
                Line(line.name or WHOLE, hues[place], self._found.steps, _numbers_of(line, figure))
            )
        self.names.show_colors(of_name)
        nothing = "No step has this figure."
        if self._log.isChecked():
            nothing += " A logarithmic scale has no place for 0."
        self.chart.show_lines(
            lines, self._figure.currentText(), is_log=self._log.isChecked(), nothing=nothing
        )

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.came_in_sight.emit()

    # -- the reader's wishes ---------------------------------------------------------------------

    def _offer_depths(self, deepest: int) -> None:
        choices: list[tuple[str, int | None, str]] = [
            ("each module", EACH_MODULE, "A line for each module that has parameters of its own"),
            ("each parameter", None, "A line for each weight and bias"),
            ("whole model", 0, "One line for all parameters together"),
        ]
        for depth in range(1, deepest):
            words = f"{depth} part" if depth == 1 else f"{depth} parts"
            choices.append((f"{words} of the path", depth, "Modules inside are taken together"))
        if self._depth.count() != len(choices):
            chosen = self._depth.currentData() if self._depth.count() else EACH_MODULE
            self._depth.clear()
            make.add_choices(self._depth, choices)
            self._depth.setCurrentIndex(max(0, self._depth.findData(chosen)))

    def _ask(self) -> None:
        self.wanted = ()
        self.asked.emit()

    def _tick(self) -> None:
        self.wanted = tuple(self.names.ticked)
        self.asked.emit()

    def _tell(self, name: str) -> None:
        self.chosen.emit(name, self.by_parameter)


def _name_of(title: str) -> str:
    return "" if title == WHOLE else title


def _numbers_of(line: NormLine, figure: Figure) -> tuple[float, ...]:
    if figure != "ratio":
        return getattr(line, figure)
    pairs = zip(line.update, line.weight, strict=True)
    return tuple(moved / length if length else nan for moved, length in pairs)
