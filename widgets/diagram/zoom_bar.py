"""Zoom out, the zoom in percent, zoom in, fit: in a diagram's lower left corner."""

from __future__ import annotations

from PySide6.QtCore import QSize
from PySide6.QtWidgets import QFrame, QToolButton

from widgets import make, theme
from widgets.icons import set_icon

from .view import WHEEL_STEP, DiagramView


class ZoomBar(QFrame):
    """Buttons that zoom out, to 100 %, in, and fit; the middle one shows the zoom."""

    def __init__(self, view: DiagramView) -> None:
        super().__init__(view)
        self.setObjectName("zoom_bar")
        self._row = make.row(on=self, gap=0, margins=2)
        self.add("zoom_out", "mdi6.minus", "Zoom out (-)", lambda: view.zoom_by(1 / WHEEL_STEP))
        self._percent = self.add("actual_size", "", "Show at 100 % (0)", view.actual_size)
        self._percent.setFixedWidth(56)
        self.add("zoom_in", "mdi6.plus", "Zoom in (+)", lambda: view.zoom_by(WHEEL_STEP))
        self.add("fit", "mdi6.fit-to-screen-outline", "Fit everything into view (F)", view.fit)
        view.view_changed.connect(self._show_zoom)
        theme.notifier.changed.connect(self._restyle)
        self._restyle()
        self._show_zoom(view.zoom)

    def add(self, name: str, icon: str, words: str, act: make.Slot) -> QToolButton:
        """Add a button at the end."""
        button = make.tool_button(name, tip=words, slot=act, accessible=words)
        button.setIconSize(QSize(16, 16))
        button.setFixedHeight(24)
        # The buttons are not Tab stops: keys of the canvas do the same, and one Tab leaves it.
        button.setFocusPolicy(button.focusPolicy().NoFocus)
        self._row.addWidget(button)
        if icon:
            set_icon(button, icon)
        return button

    def _show_zoom(self, zoom: float, *_: float) -> None:
        percent = f"{zoom:.0%}" if zoom > 0.01 else f"{100 * zoom:.1g}%"
        self._percent.setText(percent.replace("%", " %"))

    def _restyle(self) -> None:
        colors = theme.current()
        self.setStyleSheet(
            f"#zoom_bar {{ background: {colors.surface}; border: 1px solid {colors.border};"
            f" border-radius: 6px; }} QToolButton {{ color: {colors.text}; border: none; }}"
            f" QToolButton:hover {{ background: {colors.border}; border-radius: 4px; }}"
        )
