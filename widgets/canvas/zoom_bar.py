"""Zoom out, the zoom in percent, zoom in, fit: in the canvas's lower left corner."""

from __future__ import annotations

import qtawesome
from PySide6.QtCore import QSize
from PySide6.QtWidgets import QFrame, QHBoxLayout, QToolButton

from widgets import make, theme

from .view import WHEEL_STEP, CanvasView


class ZoomBar(QFrame):
    def __init__(self, view: CanvasView) -> None:
        super().__init__(view)
        self.setObjectName("zoom_bar")
        row = make.row(on=self, gap=0, margins=2)
        self._icons: dict[QToolButton, str] = {}
        self._button(row, "zoom_out", "mdi6.minus", "Zoom out (-)",
                     lambda: view.zoom_by(1 / WHEEL_STEP))  # fmt: skip
        self._percent = self._button(row, "actual_size", "", "Show at 100 % (0)", view.actual_size)
        self._percent.setFixedWidth(56)
        self._button(row, "zoom_in", "mdi6.plus", "Zoom in (+)", lambda: view.zoom_by(WHEEL_STEP))
        self._button(row, "fit", "mdi6.fit-to-screen-outline", "Fit everything into view (F)",
                     view.fit)  # fmt: skip
        view.view_changed.connect(self._show_zoom)
        theme.notifier.changed.connect(self._restyle)
        self._restyle()
        self._show_zoom(view.zoom)

    def _button(
        self, row: QHBoxLayout, name: str, icon: str, words: str, act: make.Slot
    ) -> QToolButton:
        button = make.tool_button(name, tip=words, slot=act, accessible=words)
        button.setIconSize(QSize(16, 16))
        button.setFixedHeight(24)
        # No Tab stops: the canvas's keys do the same, and one Tab shall leave the canvas.
        button.setFocusPolicy(button.focusPolicy().NoFocus)
        row.addWidget(button)
        if icon:
            self._icons[button] = icon
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
        for button, icon in self._icons.items():
            button.setIcon(qtawesome.icon(icon, color=colors.text))
