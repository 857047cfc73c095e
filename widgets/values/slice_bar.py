"""The slice of a tensor to show: typed, or set by a control for each dimension."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace
from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QLabel,
    QSlider,
    QWidget,
)

from engine.protocol import DimCut
from widgets import make
from widgets.theme import GRID, mono_font
from widgets.values.cut import dim_text, slice_text

_PER_ROW = 4


class SliceBar(QWidget):
    """A field for the slice between `x[` and `]`, and under it a slider for each dimension.
    `slice_changed(text)` asks for another slice. The bar shows it once `show_dims` is called."""

    slice_changed = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("slice_bar")
        self._dims: tuple[DimCut, ...] = ()
        self._before, self._after = _mono("slice_before"), _mono("slice_after")
        self.edit = make.field("slice_edit", "Slice", mono=True)
        self.edit.setToolTip(
            "The part of each dimension to show: an index (3, -1), a slice (2:8, ::2) or : for"
            " all; ... stands for the dimensions left out. Press Enter to show it."
        )
        self.edit.returnPressed.connect(lambda: self.slice_changed.emit(self.edit.text()))
        self._all = make.tool_button(
            "slice_all", text="Show all", accessible="Show the whole tensor", framed=True
        )
        self._all.setToolTip("Show the whole of every dimension again.")
        self._all.clicked.connect(lambda: self.slice_changed.emit(""))
        self._error = make.label("", "error", "slice_error", wrap=True)
        self._error.setTextFormat(Qt.TextFormat.PlainText)
        self._error.hide()
        line = make.row(self._before, (self.edit, 1), self._after, GRID, self._all, gap=2)
        self._grid = make.grid(across=2 * GRID, down=2)
        self._controls: list[_DimControl] = []
        make.column(line, self._error, self._grid, on=self, gap=GRID // 2)

    def show_dims(self, expression: str, dims: tuple[DimCut, ...]) -> None:
        """Show the slice that the views have now: a DimCut for each dimension of the tensor."""
        self._before.setText(f"{expression}[")
        self._after.setText("]")
        self._error.hide()
        self._dims = dims
        self.edit.setEnabled(bool(dims))
        self._all.setEnabled(any(dim.fixed or dim.count < dim.size for dim in dims))
        text = slice_text(dims)
        if self.edit.text() != text:
            self.edit.setText(text)
        self._fit_controls(len(dims))
        for control, dim in zip(self._controls, dims, strict=True):
            control.show_dim(dim)

    def show_error(self, text: str) -> None:
        """Show why the typed slice is refused. The views keep the last valid one."""
        self._error.setText(text)
        self._error.show()

    def error(self) -> str:
        """The error that is shown; empty without one."""
        return self._error.text() if not self._error.isHidden() else ""

    def _fit_controls(self, count: int) -> None:
        while len(self._controls) > count:
            control = self._controls.pop()
            control.hide()
            control.deleteLater()
        while len(self._controls) < count:
            number = len(self._controls)
            control = _DimControl(number)
            control.fixed.connect(self._fix)
            control.released.connect(self._release)
            self._grid.addWidget(control, number // _PER_ROW, number % _PER_ROW)
            self._controls.append(control)

    def _fix(self, number: int, at: int) -> None:
        self._emit_with(number, replace(self._dims[number], start=at, step=1, count=1, fixed=True))

    def _release(self, number: int) -> None:
        size = self._dims[number].size
        self._emit_with(number, DimCut(size=size, start=0, step=1, count=size))

    def _emit_with(self, number: int, dim: DimCut) -> None:
        dims: Sequence[DimCut] = (*self._dims[:number], dim, *self._dims[number + 1 :])
        self.slice_changed.emit(slice_text(dims))


class _DimControl(QWidget):
    """The name of a dimension (`dim 0`), a slider that fixes its index, and a button with the part
    that is shown; a click on the button shows the whole dimension."""

    fixed = Signal(int, int)
    released = Signal(int)

    def __init__(self, number: int) -> None:
        super().__init__()
        self._number = number
        self._name = make.label(f"dim {number}", "muted")
        self.slider = QSlider(Qt.Orientation.Horizontal)
        make.named(self.slider, f"dim_slider_{number}", f"Index along dim {number}")
        self.slider.setMinimumWidth(8 * GRID)
        self.slider.valueChanged.connect(lambda at: self.fixed.emit(self._number, at))
        self.shown = make.tool_button(f"dim_shown_{number}")
        self.shown.setFont(mono_font(9))
        self.shown.setMinimumWidth(6 * GRID)
        self.shown.clicked.connect(lambda: self.released.emit(self._number))
        make.row(self._name, (self.slider, 1), self.shown, on=self, gap=GRID // 2)

    def show_dim(self, dim: DimCut) -> None:
        self.slider.setToolTip(
            f"Drag to show one index of dim {self._number} ({dim.size:,} elements). An integer"
            " index removes the dimension."
        )
        self.shown.setToolTip(
            f"The part of dim {self._number} that is shown. Click to show all of it."
        )
        self.shown.setAccessibleName(f"dim {self._number}: {dim_text(dim)}. Show all")
        self.shown.setText(dim_text(dim))
        self.shown.setEnabled(dim.fixed or dim.count < dim.size)
        self.slider.setEnabled(dim.size > 1)
        if self.slider.isSliderDown():  # the user drags it: the answer is to an earlier position
            return
        blocked = self.slider.blockSignals(True)
        self.slider.setRange(0, max(0, dim.size - 1))
        self.slider.setPageStep(max(1, dim.size // 10))
        self.slider.setValue(dim.start if dim.fixed else 0)
        self.slider.blockSignals(blocked)


def _mono(name: str) -> QLabel:
    label = make.label(name=name)
    label.setFont(mono_font())
    label.setTextFormat(Qt.TextFormat.PlainText)
    return label
