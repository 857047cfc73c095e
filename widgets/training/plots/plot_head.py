"""The line over a live plot: its title, the step under the crosshair, and its switches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from PySide6.QtWidgets import QLayout, QToolButton

from widgets import make
from widgets.theme import GRID

Toggled = Callable[[bool], object]


class PlotHead:
    """`row` is to be put over the plot."""

    def __init__(
        self,
        title: str,
        unit: str,
        tip: str,
        *,
        smooth: Toggled,
        log: Toggled,
        log_steps: Toggled,
        follow: Toggled,
    ) -> None:
        self._title = title
        self._step = make.label("", "muted", "plot_step", tip="The step under the crosshair")
        self.smooth = self._button(
            "plot_smooth",
            "mdi6.chart-bell-curve",
            "Smooth: draw the running average over the raw line, which fades",
            smooth,
        )
        self.log = self._button(
            "plot_log",
            "mdi6.math-log",
            "Logarithmic scale: equal distances are equal ratios; shows small values apart",
            log,
        )
        self.log_steps = self._button(
            "plot_log_steps",
            "mdi6.axis-x-arrow",
            "Logarithmic steps: each doubling of the steps has the same width; shows the beginning"
            " of a long run",
            log_steps,
        )
        self.follow = self._button(
            "plot_follow",
            "mdi6.arrow-expand-right",
            "Follow the newest steps and fit the height. Zooming or dragging stops this.",
            follow,
        )
        self._buttons = (self.smooth, self.log, self.log_steps, self.follow)
        for button in self._buttons:  # a picture hides them, and keeps their height
            policy = button.sizePolicy()
            policy.setRetainSizeWhenHidden(True)
            button.setSizePolicy(policy)
        heading, unit_label = make.label(title, "heading", tip=tip), make.label(unit, "muted")
        about = (heading, unit_label, self._step)
        self.row: QLayout = make.row(*about, make.STRETCH, *self._buttons, gap=GRID // 2)

    def _button(self, name: str, icon: str, tip: str, toggled: Toggled) -> QToolButton:
        button = make.tool_button(name, icon, tip, toggled=toggled, ink="muted")
        button.setAccessibleName(f"{self._title}: {make.first_words(tip)}")
        return button

    def show_step(self, step: float | None) -> None:
        """Name the step under the crosshair; nothing with None."""
        self._step.setText("" if step is None else f"step {step:,.0f}")

    @contextmanager
    def without_buttons(self) -> Iterator[None]:
        """In this context a picture is taken."""
        shown = [button for button in self._buttons if not button.isHidden()]
        for button in shown:
            button.hide()
        try:
            yield
        finally:
            for button in shown:
                button.show()
