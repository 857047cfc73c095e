"""The ways from what is selected to the views that show it: one menu, the same everywhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct
from PySide6.QtCore import QObject
from PySide6.QtGui import QCursor
from PySide6.QtWidgets import QApplication, QMenu, QWidget

from app.selection.known import Known
from app.selection.references import Reference
from app.selection.titles import title_of
from app.workbench import Workbench
from widgets import make


class Destination(Struct, frozen=True):
    """A view that shows things. `leads` says whether it shows this one, `show` brings it to the
    front there. `begins`: it has to compute something first, so it is gone to by the menu only."""

    view: str
    title: str
    leads: Callable[[Reference, Known], object]
    show: Callable[[Reference], object]
    begins: bool = False


class ShowIn(QObject):
    """Ends the context menu of each of `Selection.views` with a menu of the ways, and goes to the
    view in which something was chosen when the user goes back to it. `ways` are in the order of
    the menu; what leads nowhere is left out."""

    def __init__(self, bench: Workbench, ways: Sequence[Destination], parent: QObject) -> None:
        super().__init__(parent)
        self._bench, self._ways = bench, ways
        make.menus.opened.connect(self._on_menu)
        bench.selection.returned.connect(self._return)

    def ways_from(self, view: str = "") -> list[Destination]:
        """The ways from what is selected to other views than this."""
        reference, known = self._bench.selection.current, self._bench.known
        if reference is None:
            return []
        ways = (way for way in self._ways if way.view != view)
        return [way for way in ways if way.leads(reference, known)]

    def ask(self) -> None:
        """Open the menu of the ways at the cursor."""
        focus = QApplication.focusWidget()
        view = self._view_of(focus) or ""
        if not self.ways_from(view):
            self._bench.say("No other view shows what is selected.")
            return
        menu = make.context_menu(focus or self._bench.window)
        self._fill(menu, view)
        menu.popup(QCursor.pos())

    def _on_menu(self, menu: QMenu, owner: QWidget) -> None:
        view = self._view_of(owner)
        if view is None or not self.ways_from(view):
            return
        if not menu.isEmpty():
            menu.addSeparator()
        assert self._bench.selection.current is not None
        title = title_of(self._bench.selection.current, self._bench.known)
        self._fill(menu.addMenu(f"Show {title} in".replace("&", "&&")), view)

    def _view_of(self, widget: QWidget | None) -> str | None:
        """The view that a widget is, or is in; None if it is in none."""
        while widget is not None:
            if widget in self._bench.selection.views:
                return self._bench.selection.views[widget]
            widget = widget.parentWidget()
        return None

    def _fill(self, menu: QMenu, view: str) -> None:
        reference = self._bench.selection.current
        assert reference is not None
        for way in self.ways_from(view):
            menu.addAction(way.title, lambda way=way: self._follow(way, reference))

    def _follow(self, way: Destination, reference: Reference) -> None:
        self._bench.selection.look_in(way.view)
        way.show(reference)

    def _return(self, view: str, reference: Reference) -> None:
        known = self._bench.known
        for way in self._ways:
            if way.view == view and not way.begins and way.leads(reference, known):
                way.show(reference)
