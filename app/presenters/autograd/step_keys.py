"""Whose F6 and F10 to F12 are: the trace's while it is seen, else those of the model's passes."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject

from app.actions import Actions
from app.window.main_window import MainWindow

if TYPE_CHECKING:  # a page is imported once it is visited
    from app.window.autograd_page import AutogradPage

_TRACE_MOVES = {
    "trace.over": "over",
    "trace.back": "back",
    "trace.into": "step",
    "trace.out": "out",
    "trace.line": "line",
    "trace.back_line": "back_line",
}
TRACE_ACTIONS = ("trace.start", *_TRACE_MOVES)


def give_way(actions: Actions, trace_is_seen: bool) -> None:
    """Of the actions that share keys, enable those of what is seen: never both."""
    keys = {actions[name].shortcut() for name in TRACE_ACTIONS}
    for spec, action in actions:
        if action.shortcut() in keys:
            action.setEnabled((spec.id in TRACE_ACTIONS) == trace_is_seen)


class StepKeys(QObject):
    """Lets the actions follow what the window shows."""

    def __init__(self, actions: Actions, window: MainWindow, page: AutogradPage) -> None:
        super().__init__(window)
        self._actions, self._window, self._page = actions, window, page
        actions.on("trace.start", page.trace.start)
        for name, move in _TRACE_MOVES.items():
            actions.on(name, partial(page.trace.bar.trigger, move))
        window.workspace_changed.connect(self._follow)
        page.currentChanged.connect(self._follow)
        self._follow()

    def _follow(self) -> None:
        in_front = self._page.currentWidget() is self._page.trace
        give_way(self._actions, in_front and self._window.workspace == "autograd")
