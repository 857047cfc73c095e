"""A slice of the loss landscape: what to compute, and the picture as it grows."""

from __future__ import annotations

from math import inf, isfinite, nan

import numpy as np
from PySide6.QtCore import Signal
from PySide6.QtWidgets import QDoubleSpinBox, QProgressBar, QStackedWidget, QWidget

from engine.protocol import MAX_POINTS_ALONG, LandscapeSnapshot
from widgets import make, theme
from widgets.charts.axes import Scale
from widgets.charts.heat_map import HeatMap
from widgets.charts.line_chart import Line, LineChart, point_text
from widgets.flow_layout import FlowLayout
from widgets.text import format_number
from widgets.theme import GRID

LEVELS = 8
EMPTY = (
    "How does the loss change around the weights?\n\nCompute takes the mean loss of a few batches"
    " along random directions from the weights as they are now. Each filter of a direction is as"
    " long as the filter of the weights, so that flat and sharp minima can be told apart. It works"
    " on a copy of the weights."
)
_DIRECTIONS = (
    ("one direction", False, "A line: the loss at multiples of one random direction"),
    ("two directions", True, "A plane: the loss at multiples of two random directions"),
)


class LandscapePane(QWidget):
    """`compute_requested()`: `is_plane`, `points`, `span`, `batches` and `seed` say what.
    `stop_requested()`: end it. Numbers are not changed by what another view does."""

    compute_requested = Signal()
    stop_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        make.named(self, "landscape", "Loss landscape")
        self._along: tuple[float, ...] = ()
        self.losses: list[float] = []
        self._total = self._samples = 0
        self._shows_plane = False
        self._directions = make.combo(
            "landscape_directions", "Directions", "A line or a plane through the weights",
            _DIRECTIONS,
        )  # fmt: skip
        self._points = make.spin(
            "landscape_points", "Points per direction",
            "Points: how many along each direction. A plane has their square.",
            low=3, high=MAX_POINTS_ALONG, value=31,
        )  # fmt: skip
        self._points.setSuffix(" points")
        self._span = make.named(
            QDoubleSpinBox(), "landscape_span", "Reach",
            "Reach: how far the slice goes, in multiples of a direction. At 1 each filter is moved"
            " by as much as it is long.",
        )  # fmt: skip
        self._span.setRange(0.001, 100.0)
        self._span.setDecimals(3)
        self._span.setValue(1.0)
        self._span.setPrefix("± ")
        self._batches = make.spin(
            "landscape_batches", "Batches",
            "Batches: the loss is the mean over as many first batches of the training part, the"
            " same at each point.",
            low=1, high=1000, value=4,
        )  # fmt: skip
        self._batches.setSuffix(" batches")
        self._seed = make.spin(
            "landscape_seed", "Seed of the directions",
            "Seed: another one draws other directions. Compare several before you trust a shape.",
            high=9999,
        )  # fmt: skip
        self._seed.setPrefix("seed ")
        self.compute = make.button(
            "landscape_compute", "Compute", "mdi6.play", self.compute_requested, primary=True,
            tip="Compute the loss around the weights. Weights, gradients, buffers and random"
            " numbers stay as they are. While a run goes on, pause it first.",
        )  # fmt: skip
        self.stop = make.button(
            "landscape_stop", "Stop", "mdi6.stop", self.stop_requested,
            tip="Stop here; what was computed stays in the picture.",
        )  # fmt: skip
        self._log = make.check(
            "landscape_log", "Logarithmic",
            "Draw the logarithm of the loss: small differences near the minimum are seen beside"
            " a large loss far away.",
        )  # fmt: skip
        self._log.toggled.connect(lambda _: self._draw())
        controls = FlowLayout(GRID, even=False)
        for control in (
            self.compute, self.stop, self._directions, self._points, self._span, self._batches,
            self._seed, self._log,
        ):  # fmt: skip
            controls.addWidget(control)
        self._progress = make.named(
            QProgressBar(), "landscape_progress", "Progress of the landscape"
        )
        self._progress.setTextVisible(False)
        self._progress.setFixedHeight(GRID)
        self._words = make.text("landscape_words", wrap=True, width="own")
        self._pointed = make.text("landscape_pointed", "muted")
        self.line = LineChart(
            "landscape_line", "Loss along one direction",
            "The loss over multiples of a random direction; 0 is the weights as they are. Arrow"
            " keys go along the line.",
            "multiple of the direction",
        )  # fmt: skip
        self.line.pointed.connect(
            lambda line, place: self._pointed.setText(point_text(line, place, "multiple"))
        )
        self.plane = HeatMap(
            "landscape_plane", "Loss in a plane",
            "The loss over a plane of two random directions; the dot is the weights as they are."
            " Arrow keys go from point to point.",
        )  # fmt: skip
        self.plane.pointed.connect(self._tell_cell)
        self._pages = QStackedWidget()
        for page in (make.empty(EMPTY, "landscape_empty"), self.line, self.plane):
            self._pages.addWidget(page)
        make.column(
            controls, self._progress, self._words, self._pointed, (self._pages, 1), on=self,
            margins=(0, GRID, GRID, 0),
        )  # fmt: skip
        theme.notifier.changed.connect(self._draw)
        self.end("")

    @property
    def is_plane(self) -> bool:
        return bool(self._directions.currentData())

    @property
    def points(self) -> int:
        return self._points.value()

    @property
    def span(self) -> float:
        return self._span.value()

    @property
    def batches(self) -> int:
        return self._batches.value()

    @property
    def seed(self) -> int:
        return self._seed.value()

    # -- showing ---------------------------------------------------------------------------------

    def begin(self) -> None:
        """The points come next."""
        self.losses.clear()
        self._total = 0
        self.compute.setEnabled(False)
        self.stop.show()
        self._progress.setRange(0, 0)
        self._progress.show()
        self._say("Computing on a copy of the weights…")

    def show_points(self, found: LandscapeSnapshot) -> bool:
        """Add points; returns whether they were the last."""
        self._along, self._shows_plane = found.along, found.is_plane
        self.losses[found.first :] = found.losses
        self._total, self._samples = found.total, found.samples
        make.progress(self._progress, len(self.losses), found.total)
        is_last = len(self.losses) == found.total
        if is_last:
            self.end(self._summary())
        self._draw()
        return is_last

    def end(self, words: str, is_error: bool = False) -> None:
        """Nothing is computed any more: say how it ended."""
        self.compute.setEnabled(True)
        self.stop.hide()
        self._progress.hide()
        self._say(words, is_error)

    def clear(self) -> None:
        """Another model has come."""
        self.losses.clear()
        self._pages.setCurrentIndex(0)
        self.end("")

    def tell_outdated(self) -> None:
        """What is shown is of other weights or settings."""
        if self.losses:
            self._say("Weights or settings have changed since: compute again.")

    def _say(self, words: str, is_error: bool = False) -> None:
        make.tell(self._words, words)
        make.set_role(self._words, "error" if is_error else "muted")

    def _summary(self) -> str:
        finite = [loss for loss in self.losses if isfinite(loss)]
        if not finite:
            return "No point has a finite loss: make the reach smaller."
        words = f"{self._total:,} points, each the mean loss of {self._samples:,} samples:"
        words += f" from {format_number(min(finite))} to {format_number(max(finite))}"
        at = self._at_weights()
        if at is not None:
            words += f", {format_number(at)} at the weights"
        lost = len(self.losses) - len(finite)
        return f"{words}. {lost:,} points have no finite loss." if lost else f"{words}."

    def _at_weights(self) -> float | None:
        """The loss at the weights themselves; None if no point is there."""
        count = len(self._along)
        middle = (count * count) // 2 if self._shows_plane else count // 2
        has_middle = count % 2 == 1 and len(self.losses) > middle
        return self.losses[middle] if has_middle else None

    def _draw(self) -> None:
        if not self.losses:
            return
        is_log = self._log.isChecked()
        if self._shows_plane:
            self._draw_plane(is_log)
            return
        missing = [nan] * (len(self._along) - len(self.losses))
        color = theme.current().series[0]
        line = Line("loss", color, self._along, (*self.losses, *missing))
        nothing = "No loss is finite." if not is_log else "No loss is finite and above 0."
        self.line.show_lines((line,), "loss", is_log=is_log, nothing=nothing)
        self._pages.setCurrentWidget(self.line)

    def _draw_plane(self, is_log: bool) -> None:
        side = len(self._along)
        grid = np.full(side * side, nan)
        grid[: len(self.losses)] = self.losses
        grid[~np.isfinite(grid)] = nan
        half = (self._along[1] - self._along[0]) / 2
        scale = Scale(self._along[0] - half, self._along[-1] + half)
        self.plane.show_values(
            grid.reshape(side, side),
            scale,
            scale,
            ("second direction", "first direction", "log loss" if is_log else "loss"),
            is_log=is_log,
            is_square=True,
            levels=LEVELS,
            marks=((0.0, 0.0),),
        )
        self._pages.setCurrentWidget(self.plane)

    def _tell_cell(self, row: int, column: int) -> None:
        place = row * len(self._along) + column
        known = row >= 0 and place < len(self.losses)
        loss = self.losses[place] if known else inf
        text = ""
        if known:
            first, second = (format_number(self._along[i], 3) for i in (row, column))
            value = format_number(loss) if isfinite(loss) else "not finite"
            text = f"first direction × {first}, second × {second}: loss {value}"
        self._pointed.setText(text)
