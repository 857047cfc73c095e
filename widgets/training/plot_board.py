"""The plots of a run in a grid: those that each run has, then those of figures with names."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

from PySide6.QtCore import QSize, QTimer, Signal
from PySide6.QtGui import QResizeEvent, QShowEvent
from PySide6.QtWidgets import QWidget

from engine.protocol import (
    LOSS_PART,
    Annotation,
    GpuMemory,
    KeptRunSnapshot,
    LoopSnapshot,
    RunSnapshot,
    TrainingMemory,
    TrainingSnapshot,
)
from widgets import make
from widgets.text import format_bytes
from widgets.training.plots.figure_plots import (
    LOSS,
    RATES,
    figure_plot,
    is_watched,
    place_of,
    rate_series,
)
from widgets.training.plots.loop_lines import (
    BY_OPTIMIZER,
    bad_of,
    part_series,
    points_of,
    series_of,
)
from widgets.training.plots.overlay import figures_in, overlay_of
from widgets.training.plots.places import UNITS, columns_in, places
from widgets.training.plots.plots import LivePlot
from widgets.training.plots.standard_plots import MAY_BE_UNKNOWN, SCALES, standard_plots
from widgets.training.run_words import DIVERGED

_ACCURACY = "accuracy"
"""A figure of this name that code logs is drawn as that which Train counts."""
_OPTIONAL_PLOTS = (_ACCURACY, "samples_per_second", "gpu_percent")
_USUAL = frozenset({"accuracy", "samples_per_second"})
"""Plots of figures that not every run has, and those of them that are there before a run."""
FRAME_MS = 16
"""The shortest time between two repaints of the plots: a display's frame."""
PLOTS_PER_FRAME = 2
"""The number of plots painted in one frame: all six would take longer than that."""
HEAD_PX = 128
"""The least height of the curves of loss and accuracy."""
FIRST_COLOR = 3
"""The colour of the first run that is drawn over the plots. The run's own lines have the colours
before it."""
RATE_COLOR = 4
"""The colour of the first series of learning rates; the series of modules have the next
ones."""
MAX_FIGURES = 8
"""The most figures of the user's step that get a plot."""


def gpu_text(gpu: GpuMemory | None) -> str:
    """The memory of the GPU that is taken, and why its use is not known."""
    if gpu is None:
        return ""
    used = (
        f"{format_bytes(gpu.used_bytes)} of {format_bytes(gpu.total_bytes)} taken by all programs"
    )
    return f"{used}. {gpu.problem}" if gpu.problem else used


def memory_text(memory: TrainingMemory) -> str:
    """The memory that training takes, in one line; empty while it is not known."""
    parts = (
        ("parameters", memory.parameter_bytes),
        ("gradients", memory.gradient_bytes),
        ("optimizer", memory.optimizer_bytes),
        ("buffers", memory.buffer_bytes),
    )
    known = (
        f"{name} {format_bytes(size)}".replace(" ", "\N{NO-BREAK SPACE}")
        for name, size in parts
        if size
    )
    return " · ".join(known)


class PlotBoard(QWidget):
    """Shows the points of one run, and other runs over them. `figure_asked(name)`: the context menu
    of the plot of this figure is about to open. `note_asked(plot, step)`: the user
    wants to write, change or delete words at a step of this plot."""

    figure_asked = Signal(str)
    note_asked = Signal(str, int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._annotations: tuple[Annotation, ...] = ()
        self._overlaid: tuple[tuple[str, KeptRunSnapshot], ...] = ()
        self._frame = QTimer(self, singleShot=True, interval=FRAME_MS)
        self._frame.timeout.connect(self._paint_frame)
        self.plots = standard_plots()
        self.figures: dict[str, LivePlot] = {}
        """The plots of figures that the user's code names, and of watched modules, by name."""
        self._expected = _USUAL
        self._waiting: list[LivePlot] = []
        self._grid = make.grid(self)
        self._columns = 2
        for name, plot in self.plots.items():
            self._place(plot, f"plot_{name}")
            plot.note_asked.connect(partial(self.note_asked.emit, name))
        self._show_known()
        self._arrange()
        for name in ("loss", "accuracy"):
            self.plots[name].set_smoothing(True)
            self.plots[name].set_least_height(HEAD_PX)

    # -- showing ---------------------------------------------------------------------------------

    def show_training(self, snapshot: RunSnapshot) -> None:
        """Add the new points of the run."""
        self._append(snapshot)
        self._show_marks(snapshot)
        self.plots["memory"].set_caption(memory_text(snapshot.memory))
        self.plots["gpu_percent"].set_caption(gpu_text(snapshot.gpu))
        error = snapshot.error
        spoilt = error is not None and error.type == DIVERGED
        self.plots["loss"].set_caption(error.message if error is not None and spoilt else "")
        self._expected = self._expected_of(snapshot)
        self._show_known()

    def show_annotations(self, annotations: Sequence[Annotation]) -> None:
        """Show the user's words, each in its plot; elsewhere as a line."""
        self._annotations = tuple(annotations)
        for name, plot in (*self.plots.items(), *self.figures.items()):
            self._annotate(name, plot)

    def _annotate(self, name: str, plot: LivePlot) -> None:
        plot.show_notes(
            [(each.step, each.text if each.plot == name else "") for each in self._annotations]
        )

    def ask_note(self) -> None:
        """Ask for words at the crosshair, in the plot under the pointer; else at the newest step of
        the loss."""
        under = [(n, p) for n, p in (*self.plots.items(), *self.figures.items()) if p.underMouse()]
        name, plot = under[0] if under else ("loss", self.plots["loss"])
        if (step := plot.step_to_note()) is not None:
            self.note_asked.emit(name, step)

    def show_overlays(self, runs: Sequence[tuple[str, KeptRunSnapshot]]) -> None:
        """Draw other runs over the plots, each with its title. A figure that only they have gets a
        plot for as long."""
        self._overlaid = tuple(runs)
        found = dict.fromkeys(name for _, run in runs for name in figures_in(run))
        wanted = [name for name in found if name not in self.plots]
        for name in wanted:
            self._figure_plot(name)
        for name in [name for name in self.figures if name not in wanted]:
            if not any(len(track.raw) for track in self.figures[name].tracks.values()):
                self._remove(self.figures.pop(name))
        self._arrange()
        for name, plot in (*self.plots.items(), *self.figures.items()):
            self._overlay(name, plot)
        self._show_known()

    def _overlay(self, name: str, plot: LivePlot) -> None:
        scale = SCALES.get(name, 1.0)
        found = (
            overlay_of(title, FIRST_COLOR + place, run, name, plot.series, scale)
            for place, (title, run) in enumerate(self._overlaid)
        )
        plot.show_overlays([overlay for overlay in found if overlay is not None])

    def clear(self) -> None:
        """Remove the points of the run."""
        for plot in self.plots.values():
            plot.clear()
            plot.set_caption("")
        self._expected = _USUAL
        for plot in self.figures.values():
            self._remove(plot)
        self.figures.clear()
        self.show_overlays(self._overlaid)

    def _remove(self, plot: LivePlot) -> None:
        self._grid.removeWidget(plot)
        self._waiting = [waiting for waiting in self._waiting if waiting is not plot]
        plot.hide()
        plot.deleteLater()

    def _expected_of(self, snapshot: RunSnapshot) -> frozenset[str]:
        """The plots of _OPTIONAL_PLOTS that may get points, or say why there are none."""
        may = {
            "accuracy": not len(self.plots["loss"].tracks["loss"].raw),
            "samples_per_second": isinstance(snapshot, TrainingSnapshot),
            "gpu_percent": snapshot.gpu is not None,
        }
        return frozenset(name for name in _OPTIONAL_PLOTS if may[name])

    def _show_known(self) -> None:
        """Hide the plots of figures that the run does not have. In a run that counts no accuracy,
        the loss has its place."""
        changed = False
        for name in _OPTIONAL_PLOTS:
            plot = self.plots[name]
            shown = name in self._expected or plot.has_points
            changed |= plot.isHidden() == shown
            plot.setVisible(shown)
        if changed:
            self._arrange()
            self._frame.start()

    def _place(self, plot: LivePlot, name: str) -> None:
        """Put a plot behind the others."""
        plot.setObjectName(name)
        plot.changed.connect(partial(self._schedule, plot))
        plot.pointed.connect(partial(self._point_others, plot))
        plot.setParent(self)
        self._waiting.append(plot)

    # -- places ----------------------------------------------------------------------------------

    def _arrange(self) -> None:
        """Give each plot its place: loss and accuracy first, and higher than the others."""
        left_out = [self.plots[name] for name in _OPTIONAL_PLOTS if self.plots[name].isHidden()]
        plots = [*self.plots.values(), *self.figures.values()]
        plots = [plot for plot in plots if plot not in left_out]
        heads = 1 if self.plots["accuracy"] in left_out else 2
        for row in range(self._grid.rowCount()):
            self._grid.setRowStretch(row, 0)
        for plot, place in zip(plots, places(len(plots), heads, self._columns), strict=True):
            self._grid.addWidget(plot, place.row, place.column, 1, place.units)
            self._grid.setRowStretch(place.row, place.stretch)
        for column in range(UNITS):
            self._grid.setColumnStretch(column, 1)

    def _widest(self) -> int:
        """The least width of a column."""
        plots = (*self.plots.values(), *self.figures.values())
        return max(plot.minimumSizeHint().width() for plot in plots)

    def minimumSizeHint(self) -> QSize:
        """The least width of one column: where two have no room, there is one."""
        return QSize(self._widest(), super().minimumSizeHint().height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        columns = columns_in(self.width(), self._widest(), self._grid.horizontalSpacing())
        if columns != self._columns:
            self._columns = columns
            self._arrange()

    def _point_others(self, pointed: LivePlot, step: float | None) -> None:
        """Put the crosshairs of the other plots on the step of this one."""
        for plot in (*self.plots.values(), *self.figures.values()):
            if plot is not pointed:
                plot.point_at(step)

    def _figure_plot(self, name: str) -> LivePlot | None:
        """The plot of named figures, made at its first value; None beyond the first MAX_FIGURES
        that the user's code names."""
        if name not in self.figures:
            named = sum(not is_watched(known) for known in self.figures)
            if named >= MAX_FIGURES and not is_watched(name):
                return None
            plot = self.figures[name] = figure_plot(name)
            plot.menu_asked.connect(partial(self.figure_asked.emit, name))
            plot.note_asked.connect(partial(self.note_asked.emit, name))
            self._place(plot, f"figure_{len(self.figures)}")
            self._arrange()
            self._overlay(name, plot)
            self._annotate(name, plot)
        return self.figures[name]

    def _append_figures(self, snapshot: RunSnapshot) -> None:
        points: list[tuple[str, str, Sequence[int], Sequence[float]]] = [
            (*place_of(name), *_known(snapshot.steps.step, values))
            for name, values in snapshot.steps.figures.items()
        ]
        if isinstance(snapshot, LoopSnapshot):
            points += [
                (*place_of(name), *_known(logged.steps, logged.values))
                for name, logged in snapshot.logged.items()
            ]
        for row in snapshot.epoch_rows:
            for key, figures in (
                ("train", row.train_figures),
                ("validation", row.validation_figures),
            ):
                points += [(name, key, (row.step,), (value,)) for name, value in figures.items()]
        for name, key, steps, values in points:
            if name == _ACCURACY:
                self.plots[name].append(name, steps, [SCALES[name] * value for value in values])
                continue
            is_part = key.startswith(LOSS_PART)
            plot = self.plots[name] if is_part or name == RATES else self._figure_plot(name)
            if plot is not None:
                if key not in plot.tracks:
                    color = len(plot.series)
                    plot.show_series(
                        part_series(key, color) if is_part else rate_series(key, RATE_COLOR + color)
                    )
                plot.append(key, steps, values)

    def _show_marks(self, snapshot: RunSnapshot) -> None:
        """Mark what was changed: on the loss in words, elsewhere as lines."""
        for name, plot in {**self.plots, **self.figures}.items():
            plot.show_marks([(m.step, m.text if name == "loss" else "") for m in snapshot.marks])

    def _append(self, snapshot: RunSnapshot) -> None:
        self._append_figures(snapshot)
        drawn: set[str] = set()
        if isinstance(snapshot, LoopSnapshot) and snapshot.lines:
            drawn = self._append_lines(snapshot)
        columns = snapshot.steps
        validates = isinstance(snapshot, TrainingSnapshot) and snapshot.validation_samples > 0
        for name, plot in self.plots.items():
            for line in plot.series:
                if line.points:
                    steps = [row.step for row in snapshot.epoch_rows]
                    values = [getattr(row, line.key) for row in snapshot.epoch_rows]
                elif line.key in columns.figures or line.key in drawn:
                    continue  # it is there already
                else:
                    values = getattr(columns, line.key, ())
                    steps = columns.step if values else ()
                if name in MAY_BE_UNKNOWN or (line.points and not validates):
                    steps, values = _known(steps, values)
                if values:
                    plot.append(line.key, steps, [value * SCALES.get(name, 1) for value in values])

    def _append_lines(self, loop: LoopSnapshot) -> set[str]:
        """Draw what each optimizer has of its own; returns the keys of these series."""
        drawn: set[str] = set()
        for name in BY_OPTIMIZER:
            plot = self.plots[name]
            own = plot.own_series[0]
            for line, series in enumerate(series_of(name, own, loop)):
                plot.show_series(series)
                steps, values = points_of(name, line, loop)
                if name in MAY_BE_UNKNOWN:
                    steps, values = _known(steps, values)
                plot.append(series.key, steps, values)
                bad = bad_of(loop.lines[line]) if name == LOSS else None
                if bad is not None:
                    plot.tell_bad(series.key, bad)
                drawn.add(series.key)
        return drawn

    # -- frames ----------------------------------------------------------------------------------

    def _schedule(self, plot: LivePlot) -> None:
        if plot not in self._waiting:
            self._waiting.append(plot)
        if not self._frame.isActive():
            self._frame.start()

    def _paint_frame(self) -> None:
        """Paint the plots that have waited longest, if the board is visible."""
        if not self.isVisible():
            return
        for plot in self._seen()[:PLOTS_PER_FRAME]:
            self._waiting.remove(plot)
            plot.refresh()
        if self._seen():
            self._frame.start()

    def _seen(self) -> list[LivePlot]:
        """The plots that wait and are not hidden."""
        return [plot for plot in self._waiting if not plot.isHidden()]

    def refresh(self) -> None:
        """Paint all plots that need it now, if the board is visible."""
        while self.isVisible() and self._seen():
            self._paint_frame()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if self._waiting:
            self._frame.start()


def _known(steps: Sequence[int], values: Sequence[float]) -> tuple[Sequence[int], Sequence[float]]:
    """The points without those whose value is NaN, which is not known."""
    if not any(map(math.isnan, values)):
        return steps, values
    kept = [(s, v) for s, v in zip(steps, values, strict=True) if not math.isnan(v)]
    return [s for s, _ in kept], [v for _, v in kept]
