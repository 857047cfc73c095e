"""The drawing area of a live plot: pyqtgraph's view box and curves, in the theme's colours."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pyqtgraph as pg
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, Qt, Signal
from PySide6.QtGui import QColor, QFont, QPainter

from widgets import theme
from widgets.text import format_number
from widgets.theme import GRID
from widgets.training.plots.series import Series
from widgets.training.plots.step_scale import place_of, placed, step_at
from widgets.training.plots.upright_lines import UprightLine, UprightLines, rows_of

FAINT = 0.35
"""The share of its colour that the raw line keeps under the smoothed one."""
AXIS_WIDTH = 56
DOT_SIZE = 6
DIGIT_PX, LABEL_GAP_PX, LABEL_PX = 7, 8, 14
"""The width of a digit of a tick's label, the room between two labels, and the height of one."""
LEAST_TICK_PX = 11
"""The least distance of two labels above each other: they do not touch."""

Floats = NDArray[np.float64]


class PlotCanvas(pg.GraphicsView):
    """Draws the curves of series, named by their keys. It keeps no data."""

    hovered = Signal(object)
    """The x (a step) under the pointer; None outside of the plot."""
    moved_by_hand = Signal()
    """Emitted when the user has dragged."""
    wheel_turned = Signal(float, float)
    """(notches, the x under the pointer): the wheel was turned; positive means zoom in."""
    range_changed = Signal()
    """Emitted when the visible range of x, or its width in pixels, has changed."""

    def __init__(self, series: Sequence[Series]) -> None:
        super().__init__()
        self._series = tuple(series)
        self._log = self._log_steps = False
        self.setMinimumSize(160, 72)
        # Made without pyqtgraph's PlotItem, which makes eight menus that nobody opens.
        self.box = _Box(enableMenu=False, defaultPadding=0.0)
        self.box.wheel_turned.connect(
            lambda notches, x: self.wheel_turned.emit(notches, step_at(x, self._log_steps))
        )
        self.box.disableAutoRange()
        self.box.setMouseEnabled(x=True, y=False)  # the height fits what is seen
        self.axes = {side: _Axis(side) for side in ("left", "bottom")}
        panes = pg.GraphicsLayout()
        panes.setContentsMargins(0, 0, 2 * GRID, 0)  # half of a last tick's number stands there
        panes.setSpacing(0)
        panes.addItem(self.axes["left"], 0, 0)
        panes.addItem(self.box, 0, 1)
        panes.addItem(self.axes["bottom"], 1, 1)
        self._x_title = pg.LabelItem("step", justify="right")
        panes.addItem(self._x_title, 1, 0)  # in the corner it costs the curves no height
        for axis in self.axes.values():
            axis.linkToView(self.box)
            axis.setZValue(self.box.zValue() - 1)  # the grid lies under the curves
        self.axes["left"].setGrid(255)
        self.setCentralItem(panes)
        self.curves = {line.key: self._add_curve() for line in self._series}
        self.faint = {line.key: self._add_curve(z=-1) for line in self._series}
        self._dots = {line.key: self._add_dots() for line in self._series}
        self._points = {line.key for line in self._series if line.points}
        self._overlays: list[pg.PlotCurveItem] = []
        self.crosshair = pg.InfiniteLine(angle=90, movable=False)
        self.crosshair.hide()
        self.box.addItem(self.crosshair, ignoreBounds=True)
        dots, line = Qt.PenStyle.DotLine, Qt.PenStyle.SolidLine
        self.marks = UprightLines(self.box, lambda: theme.current().muted, dots, -2)
        self.notes = UprightLines(self.box, lambda: theme.current().accent, line, 2)
        self.box.sigRangeChangedManually.connect(lambda *_: self.moved_by_hand.emit())
        self.box.sigXRangeChanged.connect(
            lambda *_: (self._place_words(), self.range_changed.emit())
        )
        self.box.sigResized.connect(lambda *_: (self._place_words(), self.range_changed.emit()))
        scene = self.sceneObj
        assert scene is not None  # until the view is closed
        scene.sigMouseMoved.connect(self._hover)
        self.restyle()

    def add_series(self, line: Series) -> None:
        """Draw one series more."""
        self._series += (line,)
        self.curves[line.key] = self._add_curve()
        self.faint[line.key] = self._add_curve(z=-1)
        self._dots[line.key] = self._add_dots()
        if line.points:
            self._points.add(line.key)
        self.restyle()

    def remove_series(self, lines: Sequence[Series]) -> None:
        """Draw these series no more."""
        for line in lines:
            for items in (self.curves, self.faint, self._dots):
                self.box.removeItem(items.pop(line.key))
            self._points.discard(line.key)
        self._series = tuple(line for line in self._series if line not in lines)

    def _add_curve(self, z: int = 0) -> pg.PlotCurveItem:
        curve = pg.PlotCurveItem(antialias=True, connect="finite")
        # Line by line: Qt strokes long antialiased paths ten times slower.
        curve.setSegmentedLineMode("on")
        curve.setZValue(z)
        self.box.addItem(curve, ignoreBounds=True)
        return curve

    def _add_dots(self) -> pg.ScatterPlotItem:
        dots = pg.ScatterPlotItem(size=DOT_SIZE, antialias=True)
        self.box.addItem(dots, ignoreBounds=True)
        return dots

    # -- curves ----------------------------------------------------------------------------------

    @property
    def log(self) -> bool:
        return self._log

    def set_log(self, on: bool) -> None:
        """Draw y on a logarithmic scale from now on. The caller redraws everything."""
        self._log = on
        self.axes["left"].setLogMode(False, on)  # type: ignore[arg-type] - wrong in pyqtgraph

    @property
    def log_steps(self) -> bool:
        return self._log_steps

    def set_log_steps(self, on: bool) -> None:
        """Draw x on a logarithmic scale from now on. The caller redraws everything."""
        self._log_steps = on
        self.axes["bottom"].setLogMode(on, False)  # type: ignore[arg-type] - wrong in pyqtgraph
        self.marks.rescale(on)
        self.notes.rescale(on)

    def x_range(self) -> tuple[float, float]:
        """The (first, last) visible x."""
        (x0, x1), _ = self.box.viewRange()
        return step_at(x0, self._log_steps), step_at(x1, self._log_steps)

    def pixels(self) -> int:
        """The width of the curves' area in pixels."""
        return max(1, int(self.box.width()))

    def show_x(self, x0: float, x1: float) -> None:
        """Set the visible range of x."""
        places = (place_of(x, self._log_steps) for x in (x0, x1))
        self.box.setXRange(*places, padding=0)

    def show_y(self, y0: float, y1: float) -> None:
        """Set the visible range of y, in units as drawn: logarithms on a logarithmic scale."""
        self.box.setYRange(y0, y1, padding=0)

    def draw(self, key: str, x: Floats, y: Floats) -> Floats:
        """Draw a series. Returns y as drawn: on a logarithmic scale its logarithm, NaN where there
        is none. Points are dots if there is room between them; so is a number between two gaps,
        which has no line."""
        shown = self._scaled(y)
        x = placed(x, self._log_steps)
        self.curves[key].setData(x, shown)
        dots = np.isfinite(shown) & np.isfinite(x)
        if key in self._points:
            dots &= len(x) * DOT_SIZE <= self.pixels()
        else:
            around = np.concatenate([[False], dots, [False]])
            dots = dots & ~around[:-2] & ~around[2:]
        self._dots[key].setData(x[dots], shown[dots])
        return shown

    def draw_faint(self, key: str, x: Floats, y: Floats) -> Floats:
        """Draw the raw line under a smoothed series. Returns y as drawn."""
        shown = self._scaled(y)
        self.faint[key].setData(placed(x, self._log_steps), shown)
        self.faint[key].show()
        return shown

    def hide_faint(self, key: str) -> None:
        self.faint[key].hide()

    def draw_overlay(self, place: int, color: int, x: Floats, y: Floats) -> Floats:
        """Draw a dashed curve of another run; `place` counts them from 0. Returns y as drawn."""
        if place == len(self._overlays):
            curve = self._add_curve(z=-1)
            curve.setSegmentedLineMode("off")  # dashes would begin again at each segment
            self._overlays.append(curve)
        curve, shown = self._overlays[place], self._scaled(y)
        curve.setPen(pg.mkPen(color_of(color), width=1, style=Qt.PenStyle.DashLine))
        curve.setData(placed(x, self._log_steps), shown)
        curve.show()
        return shown

    def end_overlays(self, count: int) -> None:
        """Hide the curves from this place on."""
        for curve in self._overlays[count:]:
            curve.hide()

    def show_crosshair(self, x: float | None) -> None:
        """Put the crosshair on an x; None hides it."""
        self.crosshair.setVisible(x is not None)
        if x is not None:
            self.crosshair.setPos(place_of(x, self._log_steps))

    def show_marks(self, marks: Sequence[UprightLine]) -> None:
        """Draw what was changed in the run, in place of all marks before."""
        self.marks.show(marks, self._log_steps)
        self._place_words()

    def show_notes(self, notes: Sequence[UprightLine]) -> None:
        """Draw what the user has written, in place of all notes before."""
        self.notes.show(notes, self._log_steps)
        self._place_words()

    def _place_words(self) -> None:
        """The user's words come first: there may not be room for all."""
        rows = rows_of(self.box.height())
        self.notes.place_words(rows)
        self.marks.place_words(rows)

    def _scaled(self, y: Floats) -> Floats:
        if not self._log:
            return y
        return np.log10(y, where=y > 0, out=np.full_like(y, np.nan))

    def _hover(self, scene_point: QPointF) -> None:
        inside = self.box.sceneBoundingRect().contains(scene_point)
        x = step_at(self.box.mapSceneToView(scene_point).x(), self._log_steps)
        self.hovered.emit(x if inside else None)

    # -- look ------------------------------------------------------------------------------------

    def restyle(self) -> None:
        """Set the colours of the theme."""
        colors = theme.current()
        font = QFont(self.font())
        font.setPixelSize(11)
        self.setBackground(colors.color("surface"))
        self._x_title.setText("step&nbsp;", color=colors.muted, size="8pt")
        for axis in self.axes.values():
            axis.setPen(pg.mkPen(colors.border))
            axis.setTextPen(pg.mkPen(colors.muted))
            axis.setTickFont(font)
            axis.setTickPen(pg.mkPen(colors.grid))
            # Few lines, and opaque: blended grid lines cost more than the curves.
            axis.setStyle(tickLength=4, maxTickLevel=0, tickAlpha=255, hideOverlappingLabels=False)
            axis.enableAutoSIPrefix(False)
        self.axes["left"].setWidth(AXIS_WIDTH)
        self.crosshair.setPen(pg.mkPen(colors.muted, style=Qt.PenStyle.DashLine))
        self.marks.restyle()
        self.notes.restyle()
        for line in self._series:
            color = series_color(line)
            self.curves[line.key].setPen(pg.mkPen(color, width=1))
            self.faint[line.key].setPen(pg.mkPen(_mixed(color, colors.surface, FAINT), width=1))
            self._dots[line.key].setBrush(pg.mkBrush(color))
            self._dots[line.key].setPen(pg.mkPen(None))


def series_color(line: Series) -> str:
    """The colour of a series in the current theme, as `#rrggbb`."""
    return color_of(line.color)


def color_of(index: int) -> str:
    """A colour of `Theme.series` as `#rrggbb`; they come again from the first."""
    names = theme.current().series
    return names[index % len(names)]


class _Box(pg.ViewBox):
    """A view box that leaves the wheel to the plot: pyqtgraph would zoom both ways, out of the
    data."""

    wheel_turned = Signal(float, float)

    def wheelEvent(self, ev, axis=None) -> None:
        self.wheel_turned.emit(ev.delta() / 120, self.mapSceneToView(ev.scenePos()).x())
        ev.accept()


class _Axis(pg.AxisItem):
    """An axis whose tick labels are written by `format_number`, and do not touch."""

    def tickSpacing(self, minVal: float, maxVal: float, size: float) -> list[tuple[float, float]]:
        """As the base class has it, but wide enough for labels, also in a low plot."""
        levels = [
            (float(each), float(at)) for each, at in super().tickSpacing(minVal, maxVal, size) or []
        ]
        least = LEAST_TICK_PX * (maxVal - minVal) / max(size, 1.0)
        if self.orientation == "bottom" or self.logMode or not levels or levels[0][0] >= least:
            return levels
        ten = 10.0 ** math.floor(math.log10(least))
        return [(next(ten * times for times in (1, 2, 5, 10) if ten * times >= least), 0.0)]

    def tickStrings(self, values: list[float], scale: float, spacing: float) -> list[str]:
        if self.logMode:
            return self._without_collisions([(v, format_number(float(10.0**v), 3)) for v in values])
        # As many digits as it takes to tell the ticks apart: at 436.1 MiB they differ by less.
        for digits in range(4, 16):
            labels = [format_number(float(value), digits) for value in values]
            if len(set(labels)) == len(labels):
                break
        return labels

    def _without_collisions(self, labels: list[tuple[float, str]]) -> list[str]:
        """The labels, empty where they would stand on each other; powers of ten come first."""
        is_flat = self.orientation == "bottom"
        first, last = self.range
        length = self.width() if is_flat else self.height()
        taken: list[tuple[float, float]] = []
        kept: set[float] = set()
        for value, text in sorted(labels, key=lambda label: label[0] % 1 != 0):
            middle = (value - first) / ((last - first) or 1.0) * length
            half = (DIGIT_PX * len(text) + LABEL_GAP_PX if is_flat else LABEL_PX) / 2
            if all(middle + half <= low or high <= middle - half for low, high in taken):
                taken.append((middle - half, middle + half))
                kept.add(value)
        return [text if value in kept else "" for value, text in labels]

    def paint(self, p: QPainter, opt, widget) -> None:
        """Paint as the base class does, but without a QPicture, whose text costs half a millisecond
        per axis and frame. The base class sets `picture` to None when it is stale."""
        if self.picture is None:
            style: dict = self.__dict__["style"]  # hides QGraphicsWidget.style
            p.setFont(style["tickFont"])
            self.picture = self.generateDrawSpecs(p)
        if self.picture is not None:
            self.drawPicture(p, *self.picture)


def _mixed(color: str, ground: str, share: float) -> QColor:
    """The opaque mix of `share` of a colour with a background. Painting transparent lines would
    take ten times as long."""
    top, under = QColor(color), QColor(ground)
    return QColor.fromRgbF(
        *(share * a + (1 - share) * b for a, b in zip(_rgb(top), _rgb(under), strict=True))
    )


def _rgb(color: QColor) -> tuple[float, float, float]:
    return color.redF(), color.greenF(), color.blueF()
