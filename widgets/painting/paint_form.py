"""The pad with its brush, and points added by numbers."""

from __future__ import annotations

from collections import Counter

from PySide6.QtCore import Signal
from PySide6.QtGui import QIcon, QPixmap
from PySide6.QtWidgets import QWidget

from engine.project.catalogue import Param
from engine.project.document import DataSetup, PaintedPoint, ParamValue, replace
from engine.project.limits import MAX_PAINTED_CLASSES, MAX_POINTS, point_problem
from widgets import make, theme
from widgets.forms import ParamForm
from widgets.painting.paint_pad import Brush, PaintPad, class_color
from widgets.theme import GRID

_BRUSH = (
    Param(
        "points",
        "int",
        Brush().count,
        minimum=1,
        maximum=50,
        doc="Points that each dab of the brush puts down; a drag makes many dabs.",
    ),
    Param(
        "scatter",
        "float",
        Brush().radius,
        minimum=0.0,
        maximum=1.0,
        doc="Radius of the brush: points lie anywhere in it. The plane is 2 wide. Erasing takes the"
        " same radius.",
    ),
)


class PaintForm(QWidget):
    """Shows the points of a `DataSetup`. Each stroke, and each point added by numbers, emits the
    whole new one."""

    edited = Signal(object, str)
    """(the new DataSetup, what was done: "Paint 12 points, 40 in all")"""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._setup = DataSetup("painted")
        self.pad = PaintPad()
        self.pad.painted.connect(self._take)
        self._label = make.combo(
            "paint_class",
            "Class of the brush",
            "Class of the points that the brush paints. Of numbers, y is the height.",
            [(f"class {label}", label) for label in range(MAX_PAINTED_CLASSES)],
        )
        self._label.currentIndexChanged.connect(self._set_brush)
        self._erase = make.check(
            "paint_erase", "erase", "The brush takes points away instead of painting them."
        )
        self._erase.toggled.connect(self._set_brush)
        clear = make.button(
            "paint_clear", "Clear", slot=self._clear, tip="Take all points away. Ctrl+Z undoes it."
        )
        self._brush = make.named(ParamForm(), "paint_brush_form")
        self._brush.show_params(_BRUSH, {})
        self._brush.value_edited.connect(self._edit_brush)
        self._number = make.field(
            "paint_point",
            "Point to add",
            "Add a point by its numbers, x and y from -1 to 1, such as 0.5, -0.2. Enter adds it,"
            " with the class of the brush.",
            placeholder="x, y",
            mono=True,
            entered=self._add,
        )
        add = make.tool_button("paint_add", "mdi6.plus", "Add this point", slot=self._add)
        self._problem = make.label("", "error", "paint_problem", wrap=True)
        self._problem.hide()
        self._words = make.label("", "muted", "paint_words", wrap=True)
        make.column(
            make.row((self._label, 1), self._erase, clear),
            self.pad,
            self._words,
            self._brush,
            make.row((self._number, 1), add),
            self._problem,
            on=self,
            gap=GRID // 2,
        )
        theme.notifier.changed.connect(self._show_colors)
        self._show_colors()

    def show_setup(self, setup: DataSetup) -> None:
        self._setup = setup
        as_numbers = setup.params.get("target") == "numbers"
        self._label.setEnabled(not as_numbers)
        self.pad.show_points(setup.points, as_numbers)
        self._words.setText(_words(setup.points, as_numbers))
        make.tell(self._problem, "")

    def _show_colors(self) -> None:
        for label in range(self._label.count()):
            chip = QPixmap(GRID, GRID)
            chip.fill(class_color(label))
            self._label.setItemIcon(label, QIcon(chip))

    def _set_brush(self) -> None:
        label, erases = self._label.currentIndex(), self._erase.isChecked()
        self.pad.brush = self.pad.brush._replace(label=label, erases=erases)

    def _edit_brush(self, name: str, value: ParamValue) -> None:
        field = "count" if name == "points" else "radius"
        self.pad.brush = self.pad.brush._replace(**{field: value})

    def _take(self, points: tuple[PaintedPoint, ...]) -> None:
        change = len(points) - len(self._setup.points)
        done = f"Paint {_counted(change)}" if change > 0 else f"Erase {_counted(-change)}"
        self._emit(points, f"{done}, {len(points):,} in all")

    def _clear(self) -> None:
        if self._setup.points:
            self._emit((), "Clear the points")

    def _add(self) -> None:
        parts = self._number.text().replace(",", " ").split()
        try:
            x, y = (float(part) for part in parts)
        except ValueError:
            make.tell(self._problem, "Type two numbers: x, y, such as 0.5, -0.2.")
            return
        point = (x, y, self._label.currentIndex())
        if problem := point_problem(point):
            make.tell(self._problem, problem)
            return
        self._number.clear()
        points = (*self._setup.points, point)
        self._emit(points, f"Add the point ({x:g}, {y:g}), {len(points):,} in all")

    def _emit(self, points: tuple[PaintedPoint, ...], what: str) -> None:
        self.edited.emit(replace(self._setup, points=points), what)


def _counted(points: int) -> str:
    return "1 point" if points == 1 else f"{points:,} points"


def _words(points: tuple[PaintedPoint, ...], as_numbers: bool) -> str:
    if not points:
        return f"No points yet; at most {MAX_POINTS:,}."
    total = _counted(len(points))
    full = " That is the most." if len(points) >= MAX_POINTS else ""
    if as_numbers:
        return f"{total}: y over x.{full}"
    counts = sorted(Counter(label for _, _, label in points).items())
    return f"{total}: {', '.join(f'{n:,} of class {label}' for label, n in counts)}.{full}"
