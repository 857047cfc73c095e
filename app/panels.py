"""The panels at the sides of workspaces: shown, hidden, and remembered."""

from __future__ import annotations

from PySide6.QtCore import Qt

from app.window.docked_page import DockedPage
from app.workbench import Workbench
from engine.project.document import Workspace


class Panels:
    def __init__(self, bench: Workbench) -> None:
        self._bench, self._window = bench, bench.window

    def add(self, name: Workspace, page: DockedPage) -> None:
        """Add a page to the window as it was left, unless it was painted before the rest of the
        program was loaded, and its panels to the menu."""
        if name not in self._window.pages:
            page.restore_docks(self._bench.settings.bytes(f"{name}_docks"))
            self._window.add_page(name, page)
        menu = self._window.panels_menu
        if not menu.isEmpty():
            menu.addSeparator()
        menu.addActions([dock.toggleViewAction() for dock in page.docks()])

    def fold(self, area: Qt.DockWidgetArea) -> None:
        """Show or hide the panels at a side of the workspace in front, if it has panels."""
        page = self._window.stack.currentWidget()
        if isinstance(page, DockedPage):
            page.fold(area)

    def remember(self) -> None:
        """Save their positions for the next start."""
        for name, page in self._window.pages.items():
            if isinstance(page, DockedPage):
                self._bench.settings.set_bytes(f"{name}_docks", page.dock_state())
