"""The ways from what is selected to other views: a menu of them, and the way back."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QApplication, QLineEdit, QMenu, QWidget

from app.presenters.show_in import Destination, ShowIn
from app.selection.references import Parameter
from widgets import make

W = Parameter("linear_1.weight")


class Desk:
    """Three views: the first two show everything, the third nothing."""

    def __init__(self, bench, qtbot) -> None:
        self.bench = bench
        self.shown: list[tuple[str, object]] = []
        ways = [
            Destination(view, f"&{view.title()}", lambda _, __, on=view != "none": on,
                        lambda r, view=view: self.shown.append((view, r)))
            for view in ("graph", "canvas", "none")
        ]  # fmt: skip
        self.show_in = ShowIn(bench, ways, bench.window)
        self.views = {}
        for view in ("graph", "canvas"):
            self.views[view] = QWidget(bench.window)
            bench.selection.views[self.views[view]] = view
        self.field = QLineEdit(self.views["graph"])

    def menu_of(self, owner: QWidget, *own: str) -> QMenu:
        """The context menu that opens over a widget with entries of its own."""
        menu = make.context_menu(owner)
        for text in own:
            menu.addAction(text)
        make.menus.opened.emit(menu, owner)
        return menu


@pytest.fixture
def desk(bench, qtbot) -> Desk:
    return Desk(bench, qtbot)


def titles(menu: QMenu) -> list[str]:
    return [action.text() for action in menu.actions()]


def test_a_menu_ends_with_the_ways_to_the_other_views(desk):
    assert titles(desk.menu_of(desk.views["graph"], "Copy")) == ["Copy"]  # nothing is selected
    desk.bench.selection.choose(W, "graph")
    for owner in (desk.views["graph"], desk.field):
        menu = desk.menu_of(owner, "Copy")
        assert titles(menu) == ["Copy", "", "Show linear_1.weight in"]
        assert menu.actions()[1].isSeparator()
        assert titles(menu.actions()[2].menu()) == ["&Canvas"]
    assert titles(desk.menu_of(desk.views["canvas"])) == ["Show linear_1.weight in"]
    assert titles(desk.menu_of(desk.bench.window, "Copy")) == ["Copy"]  # no view of things


def test_a_name_with_an_ampersand_is_told_as_it_is(desk):
    desk.bench.selection.choose(Parameter("a&b"), "graph")
    assert titles(desk.menu_of(desk.views["graph"])) == ["Show a&&b in"]


def test_to_follow_a_way_shows_the_thing_and_back_returns_to_both_views(desk):
    selection = desk.bench.selection
    selection.choose(W, "graph")
    menu = desk.menu_of(desk.views["graph"])
    menu.actions()[0].menu().actions()[0].trigger()
    assert desk.shown == [("canvas", W)]
    selection.back()
    assert desk.shown == [("canvas", W), ("graph", W)]
    selection.forward()
    assert desk.shown[2:] == [("canvas", W)]
    selection.look_in("none")
    selection.back()
    selection.forward()  # that view shows nothing of it
    assert desk.shown[3:] == [("canvas", W)]


def test_without_a_way_that_is_said(desk):
    desk.show_in.ask()
    assert desk.bench.window.said == ["No other view shows what is selected."]
    assert QApplication.activePopupWidget() is None


@pytest.mark.parametrize("inside", [False, True])
def test_the_menu_is_asked_for_by_a_key_in_a_view_or_outside(desk, qtbot, inside):
    window = desk.bench.window
    window.show()
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow)
    desk.field.setFocus() if inside else desk.field.clearFocus()
    desk.bench.selection.choose(W, "graph")
    desk.show_in.ask()
    menu = QApplication.activePopupWidget()
    assert isinstance(menu, QMenu)
    assert titles(menu) == (["&Canvas"] if inside else ["&Graph", "&Canvas"])
    menu.actions()[-1].trigger()
    menu.close()
    assert desk.shown == [("canvas", W)] and window.said == []
