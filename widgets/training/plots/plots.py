"""A live plot: lines over the optimizer's steps that grow during training."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from numpy.typing import ArrayLike
from PySide6.QtCore import QPointF, Signal
from PySide6.QtGui import QContextMenuEvent, QPainter, QResizeEvent
from PySide6.QtWidgets import (
    QFrame,
    QMenu,
    QSizePolicy,
    QWidget,
)

from widgets import make, theme
from widgets.save_picture import add_picture_actions
from widgets.text import format_number
from widgets.theme import GRID
from widgets.training.plots.legend import Legend, WrappedWords
from widgets.training.plots.notes import lines_of, noted_near
from widgets.training.plots.numbers import PlotNumbers
from widgets.training.plots.plot_canvas import PlotCanvas
from widgets.training.plots.plot_head import PlotHead
from widgets.training.plots.ranges import nearest_step, value_at, whole, with_room, zoomed
from widgets.training.plots.series import (
    BadSteps,
    Overlay,
    Series,
    Track,
    bad_words,
    reach,
)
from widgets.training.plots.step_scale import seen
from widgets.training.plots.upright_lines import UprightLine


class LivePlot(QFrame):
    """Lines over steps. `append` is cheap and paints nothing; `refresh` paints what is new.

    The plot follows the data until the user zooms or pans, and again after a click on Follow.
    `text` formats the values of the legend; the axis has numbers only, in `unit`.
    """

    changed = Signal()
    """Emitted when the plot needs painting: call `refresh` at the next frame."""
    pointed = Signal(object)
    """The step under the pointer; None once it has left the curves."""
    menu_asked = Signal()
    """Its context menu is about to open."""
    note_asked = Signal(int)
    """The user wants to write, change or delete words at this step."""

    def __init__(
        self,
        title: str,
        unit: str,
        series: Sequence[Series],
        text: Callable[[float], str] = format_number,
        tip: str = "",
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.title = title
        self.series = self.own_series = tuple(series)
        self._known_bad: dict[str, BadSteps] = {}
        self.tracks = {line.key: Track() for line in self.series}
        self._overlays: tuple[tuple[Overlay, Track], ...] = ()
        self._legend = Legend(self.series, text)
        self._smoothing = False
        self._following = True
        self._fits_height = False
        self._cursor: float | None = None
        self._dirty = True
        self._marks: tuple[tuple[int, str], ...] = ()
        self._notes: tuple[tuple[int, str], ...] = ()
        self.setProperty("role", "card")
        self.setAccessibleName(f"Plot of {title}")

        self._canvas = PlotCanvas(self.series)
        self._canvas.setAccessibleName(f"{title} over steps")
        self._canvas.hovered.connect(self._point)
        self._canvas.moved_by_hand.connect(self._move_by_hand)
        self._canvas.wheel_turned.connect(self.zoom)
        self._canvas.range_changed.connect(self._touch)
        self._build_chrome(title, unit, tip)
        self._show_legend()
        theme.notifier.changed.connect(self._restyle)

    def _build_chrome(self, title: str, unit: str, tip: str) -> None:
        self._head = PlotHead(
            title,
            unit,
            tip,
            smooth=self.set_smoothing,
            log=self.set_log,
            log_steps=self.set_log_steps,
            follow=lambda on: self.follow() if on else self._stop_following(),
        )
        self._head.follow.setChecked(True)
        self._head.smooth.setVisible(any(not line.points for line in self.series))
        self._caption = WrappedWords("plot_caption")
        make.set_role(self._caption, "muted")
        self._caption.hide()
        # One line, whose tooltip has all: a label that wraps would take the height of the lines.
        self._notice = make.label("", "error", "plot_notice")
        self._notice.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self._notice.hide()
        parts = (self._head.row, self._legend, self._caption, self._notice, (self._canvas, 1))
        make.column(*parts, on=self, gap=0, margins=(GRID, GRID // 2, GRID, GRID // 2))

    def show_series(self, line: Series) -> None:
        """Let the plot have this series, without points; one of its key gets the title and tip."""
        if line in self.series:
            return
        if line.key in self.tracks:
            self.series = tuple(line if each.key == line.key else each for each in self.series)
        else:
            self.series += (line,)
            self.tracks[line.key] = Track()
            self._canvas.add_series(line)
        self._legend.show_series(self.series)
        self._touch()

    def tell_bad(self, key: str, bad: BadSteps) -> None:
        """The numbers of a series are NaN or infinite at these steps, whatever points it has."""
        if self._known_bad.get(key) != bad:
            self._known_bad[key] = bad
            self._touch()

    def set_least_height(self, curves_px: int) -> None:
        self._canvas.setMinimumHeight(curves_px)

    # -- data ------------------------------------------------------------------------------------

    def append(self, key: str, steps: ArrayLike, values: ArrayLike) -> None:
        """Append points to a series. Raises KeyError for an unknown series, and ValueError if a
        step is less than the one before or there are not as many values as steps."""
        self.tracks[key].extend(steps, values)
        self._touch()

    def clear(self) -> None:
        """Remove all points, and the series that were shown since; follow the data again."""
        self._canvas.remove_series(self.series[len(self.own_series) :])
        self.series = self.own_series
        self._legend.show_series(self.series)
        self._known_bad = {}
        self.tracks = {line.key: Track() for line in self.series}
        self._legend.start_again()
        self.show_marks(())
        self.follow()

    def show_overlays(self, overlays: Sequence[Overlay]) -> None:
        """Draw these curves of other runs, too; `clear` leaves them."""
        made = [(overlay, Track()) for overlay in overlays]
        for overlay, track in made:
            track.extend(overlay.steps, overlay.values)
        self._overlays = tuple(made)
        self._draw_notes()
        self._legend.start_again()
        self._touch()

    @property
    def has_points(self) -> bool:
        return any(len(track.raw) for track in self._all_tracks())

    def set_caption(self, text: str) -> None:
        """Show a notice under the legend; none if empty."""
        self._caption.start_again()
        make.tell(self._caption, text)

    def show_marks(self, marks: Sequence[tuple[int, str]]) -> None:
        """Mark steps with words: all marks of the run."""
        if tuple(marks) != self._marks:
            self._marks = tuple(marks)
            self._canvas.show_marks([UprightLine(step, text) for step, text in self._marks])
            self._touch()

    def show_notes(self, notes: Sequence[tuple[int, str]]) -> None:
        """Show the user's words at steps of the run: all of them, "" for those of other plots."""
        if tuple(notes) != self._notes:
            self._notes = tuple(notes)
            self._draw_notes()

    def _draw_notes(self) -> None:
        overlaid = [overlay for overlay, _ in self._overlays]
        self._canvas.show_notes(lines_of(self._notes, overlaid))
        self._touch()

    # -- drawing ---------------------------------------------------------------------------------

    @property
    def smoothing(self) -> bool:
        return self._smoothing

    def set_smoothing(self, on: bool) -> None:
        self._smoothing = on
        self._head.smooth.setChecked(on)
        self._touch()

    @property
    def log(self) -> bool:
        return self._canvas.log

    def set_log(self, on: bool) -> None:
        """Use a logarithmic scale for the values; values of zero or less become gaps."""
        self._canvas.set_log(on)
        self._head.log.setChecked(on)
        self.follow()

    def set_log_steps(self, on: bool) -> None:
        """Use a logarithmic scale for the steps."""
        self._canvas.set_log_steps(on)
        self._head.log_steps.setChecked(on)
        self.follow()

    @property
    def following(self) -> bool:
        """Whether the plot shows all steps, and the new ones as they come."""
        return self._following

    def follow(self) -> None:
        """Show all steps, including those still to come."""
        self._following = True
        self._head.follow.setChecked(True)
        self._touch()

    def _stop_following(self) -> None:
        self._following = False
        self._head.follow.setChecked(False)
        self._touch()

    def _touch(self) -> None:
        if not self._dirty:
            self._dirty = True
            self.changed.emit()

    def zoom(self, notches: float, x: float) -> None:
        """Zoom the steps in by the notches of a wheel, around `x`. The height fits what is seen.
        Zoomed out to all steps, the plot follows the data again."""
        canvas = self._canvas
        steps = zoomed(self._whole_x(), canvas.x_range(), notches, x, canvas.log_steps)
        if steps is None:
            self.follow()
            return
        self._stop_following()
        self._fits_height = True
        canvas.show_x(*steps)
        self._touch()

    def _move_by_hand(self) -> None:
        self._fits_height = True
        self._stop_following()

    def refresh(self) -> None:
        """Update curves, range and legend, if anything has changed."""
        if not self._dirty:
            return
        canvas = self._canvas
        if self._following:
            canvas.show_x(*self._whole_x())
        view = (*canvas.x_range(), canvas.pixels(), canvas.log_steps)
        low, high = np.inf, -np.inf
        for line in self.series:
            track = self.tracks[line.key]
            smooth = self._smoothing and not line.points
            points = seen(track.smooth if smooth else track.raw, *view)
            low, high = reach(low, high, canvas.draw(line.key, *points))
            if smooth:
                points = seen(track.raw, *view)
                low, high = reach(low, high, canvas.draw_faint(line.key, *points))
            else:
                canvas.hide_faint(line.key)
        for place, (overlay, track) in enumerate(self._overlays):
            smooth = self._smoothing and overlay.is_smoothed
            points = seen(track.smooth if smooth else track.raw, *view)
            low, high = reach(low, high, canvas.draw_overlay(place, overlay.color, *points))
        canvas.end_overlays(len(self._overlays))
        if (self._following or self._fits_height) and low <= high:
            canvas.show_y(*with_room(low, high))
        elif self._following:
            canvas.show_y(0.0, 1.0)  # else the numbers of a run before would stay
        self._show_legend()
        self._show_notice()
        self._dirty = False

    def _whole_x(self) -> tuple[float, float]:
        return whole(self._all_tracks(), self._canvas.log_steps)

    def _all_tracks(self) -> list[Track]:
        return [*self.tracks.values(), *(track for _, track in self._overlays)]

    # -- legend, crosshair, notice ---------------------------------------------------------------

    def legend_values(self) -> dict[str, float | None]:
        """The value of each series in the legend: at the crosshair, else the newest."""
        return {key: value_at(track, self._cursor) for key, track in self.tracks.items()}

    def _point(self, step: float | None) -> None:
        self.point_at(step)
        self.pointed.emit(self._cursor)

    def point_at(self, step: float | None) -> None:
        """Put the crosshair on a step; None removes it. Emits nothing."""
        self._cursor = None if step is None else nearest_step(self._all_tracks(), step)
        self._canvas.show_crosshair(self._cursor)
        self._show_legend()

    def leaveEvent(self, event) -> None:
        self._point(None)
        super().leaveEvent(event)

    def _show_legend(self) -> None:
        """Show the newest numbers, or those at the crosshair and its step."""
        self._head.show_step(self._cursor)
        behind = [(overlay, value_at(track, self._cursor)) for overlay, track in self._overlays]
        known = [(overlay, value) for overlay, value in behind if value is not None]
        self._legend.show_values(self.legend_values(), known)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._touch()

    def _show_notice(self) -> None:
        found = {key: track.bad for key, track in self.tracks.items()} | self._known_bad
        bad = [
            f"{line.title} {bad_words(steps)}."
            for line in self.series
            if not line.points and (steps := found[line.key]) is not None
        ]
        make.tell(self._notice, " ".join(bad))
        self._notice.setToolTip("\n".join(bad))

    def _restyle(self) -> None:
        self._canvas.restyle()
        if self._overlays:
            self._draw_notes()
        self._show_legend()

    # -- copies ----------------------------------------------------------------------------------

    def paint(self, painter: QPainter) -> None:
        """Paint the whole plot with heading and legend, without buttons and crosshair."""
        self.point_at(None)
        self.refresh()
        with self._head.without_buttons():
            self.render(painter, QPointF(0, 0).toPoint())

    def csv(self) -> str:
        return self._numbers().csv()

    def _numbers(self) -> PlotNumbers:
        return PlotNumbers(self.title, self.series, self.tracks)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        self.menu_asked.emit()
        menu = make.context_menu(self)
        self.fill_menu(menu)
        make.pop_up(menu, event.globalPos())

    def fill_menu(self, menu: QMenu) -> None:
        add_picture_actions(menu, self, self.paint)
        menu.addSeparator()
        self._numbers().add_actions(menu, self)
        if (step := self.step_to_note()) is not None:
            menu.addSeparator()
            words = "Edit the annotation at" if self._noted_near(step) else "Annotate"
            add = partial(self.note_asked.emit, step)
            menu.addAction(f"{words} step {step:,}…", add)

    def step_to_note(self) -> int | None:
        """The step of the annotation nearest to the crosshair, else the step at it; without a
        crosshair the newest. None without points."""
        ends = [track.raw.x[-1] for track in self.tracks.values() if len(track.raw)]
        step = max(ends, default=None) if self._cursor is None else self._cursor
        return None if step is None else self._noted_near(int(step)) or int(step)

    def _noted_near(self, step: int) -> int | None:
        log = self._canvas.log_steps
        ends = self._canvas.x_range()
        return noted_near(self._notes, step, ends, self._canvas.pixels(), log)
