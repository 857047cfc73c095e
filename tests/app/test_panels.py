"""The panels of a workspace: in the menu, folded, and as they were left."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from PySide6.QtCore import QByteArray, QSettings, Qt
from PySide6.QtWidgets import QMenu, QStackedWidget, QWidget

from app.panels import Panels
from app.settings import Settings
from app.window.docked_page import DockedPage

LEFT, RIGHT = Qt.DockWidgetArea.LeftDockWidgetArea, Qt.DockWidgetArea.RightDockWidgetArea


class Page(DockedPage):
    def __init__(self, *titles: str) -> None:
        super().__init__("page")
        self.restored: list[bytes] = []
        for title in titles:
            self._dock(title, QWidget(), LEFT)

    def restore_docks(self, state: QByteArray) -> None:
        self.restored.append(bytes(state.data()))


class Window:
    """What panels use of the window."""

    def __init__(self) -> None:
        self.pages: dict[str, QWidget] = {}
        self.stack, self.panels_menu = QStackedWidget(), QMenu()

    def add_page(self, name: str, page: QWidget) -> None:
        self.pages[name] = page
        self.stack.addWidget(page)


@pytest.fixture
def window(qtbot, tmp_path) -> Any:
    window = Window()
    qtbot.addWidget(window.stack)
    qtbot.addWidget(window.panels_menu)
    return window


@pytest.fixture
def settings(tmp_path) -> Settings:
    return Settings(QSettings(str(tmp_path / "s.ini"), QSettings.Format.IniFormat))


@pytest.fixture
def panels(window, settings) -> Panels:
    bench: Any = SimpleNamespace(window=window, settings=settings)
    return Panels(bench)


def test_a_page_comes_as_it_was_left_with_its_panels_in_the_menu(panels, window, settings) -> None:
    settings.set_bytes("model_docks", QByteArray(b"left so"))
    model, train, painted = Page("A", "B"), Page("C"), Page("D")
    window.stack.addWidget(painted)
    panels.add("model", model)
    assert [action.text() for action in window.panels_menu.actions()] == ["A", "B"]
    panels.add("train", train)
    window.pages["autograd"] = painted
    panels.add("autograd", painted)  # it was painted before
    texts = [action.text() for action in window.panels_menu.actions()]
    assert texts == ["A", "B", "", "C", "", "D"]
    assert (model.restored, train.restored, painted.restored) == ([b"left so"], [b""], [])
    assert list(window.pages) == ["model", "train", "autograd"]
    assert window.stack.count() == 3


def test_only_panels_of_the_page_in_front_are_folded_and_all_are_remembered(
    panels, window, settings
) -> None:
    page, other = Page("A"), Page("B")
    panels.add("model", page)
    panels.add("train", other)
    window.add_page("start", QWidget())
    window.stack.setCurrentWidget(page)
    panels.fold(RIGHT)
    assert not page.docks()[0].isHidden()
    panels.fold(LEFT)
    assert page.docks()[0].isHidden() and not other.docks()[0].isHidden()
    window.stack.setCurrentWidget(window.pages["start"])
    panels.fold(LEFT)  # the Start page has none
    assert page.docks()[0].isHidden()
    panels.remember()
    for name, made in (("model", page), ("train", other)):
        assert settings.bytes(f"{name}_docks") == made.dock_state()
    assert settings.bytes("start_docks").isEmpty()
