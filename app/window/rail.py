"""The rail at the left of the window: one button per page."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import QFrame, QToolButton

from app.actions import Actions
from app.window.pages import PAGES, Page
from widgets import make, theme
from widgets.theme import GRID


class Rail(QFrame):
    """Each button triggers its page's action. That of the page Files is hidden until it is shown
    first."""

    def __init__(self, actions: Actions) -> None:
        super().__init__()
        self.setObjectName("rail")
        self.buttons: dict[Page, QToolButton] = {}
        icons = {spec.id: spec.icon for spec, _ in actions}
        layout = make.column(on=self, gap=GRID // 2, margins=(0, GRID, 0, GRID))
        for name in PAGES:
            action = actions[f"view.{name}"]
            button = make.tool_button(
                f"rail_{name}",
                f"mdi6.{icons[f'view.{name}']}",
                action.toolTip(),
                action.trigger,
                text=name.capitalize(),
                accessible="Files" if name == "files" else f"{name.capitalize()} workspace",
            )
            button.setCheckable(True)
            button.setAutoExclusive(True)
            button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextUnderIcon)
            button.setIconSize(QSize(3 * GRID, 3 * GRID))
            layout.addWidget(button)
            self.buttons[name] = button
        self.buttons["files"].hide()
        layout.addStretch(1)
        text = self.fontMetrics()
        width = max(text.horizontalAdvance(button.text()) for button in self.buttons.values())
        width = max(9 * GRID, width + GRID)
        self.setFixedWidth(width)
        for button in self.buttons.values():
            button.setFixedSize(width, max(7 * GRID, text.height() + 5 * GRID))
        self._restyle()
        theme.notifier.changed.connect(self._restyle)

    def _restyle(self) -> None:
        colors = theme.current()
        self.setStyleSheet(
            f"QFrame#rail {{ background: {colors.surface};"
            f" border-right: 1px solid {colors.border}; }}"
            f"QToolButton {{ border: none; border-left: 3px solid transparent;"
            f" color: {colors.muted}; }}"
            f"QToolButton:hover {{ background: {colors.window}; }}"
            f"QToolButton:checked {{ border-left-color: {colors.accent};"
            f" color: {colors.text}; background: {colors.window}; }}"
            f"QToolButton:focus {{ color: {colors.accent}; }}"
        )
