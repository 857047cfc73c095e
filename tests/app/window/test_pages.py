"""The pages of the workspaces by themselves, and the sheets of help."""

from __future__ import annotations

import platform
from importlib import metadata

import pytest
from PySide6.QtCore import QByteArray, Qt, qVersion
from PySide6.QtWidgets import QDialog, QLabel, QTextBrowser, QWidget

from app.actions import Actions
from app.window.autograd_page import AutogradPage
from app.window.model_page import ModelPage
from app.window.shortcut_sheet import about_html, shortcuts_html, show_sheet
from app.window.tensors_page import TensorsPage
from engine.project.document import Model
from engine.project.problems import Problem
from engine.protocol import Device, ReadySnapshot
from tests.words import assert_same_words
from widgets import theme


@pytest.mark.parametrize(
    ("make_page", "titles"),
    [
        (ModelPage, ["Blocks", "Properties", "Code", "Problems"]),
        (TensorsPage, ["Variables", "Create", "Console"]),
    ],
)
def test_panels_are_named_and_come_back_where_they_were(qtbot, qapp, make_page, titles) -> None:
    page = make_page()
    qtbot.addWidget(page)
    assert (page.width(), page.height()) == (1368, 832) and page.isDockNestingEnabled()
    page.show()
    qapp.processEvents()
    docks = {dock.windowTitle(): dock for dock in page.docks()}
    assert list(docks) == titles
    for title, dock in docks.items():
        assert dock.objectName() == f"{title.lower()}_dock"
        assert dock.toggleViewAction().toolTip() == f"Show or hide the panel “{title}”."
    first = docks[titles[0]]
    state = page.dock_state()
    first.hide()
    page.addDockWidget(Qt.DockWidgetArea.RightDockWidgetArea, first)
    page.restore_docks(QByteArray())
    assert page.dockWidgetArea(first) == Qt.DockWidgetArea.RightDockWidgetArea
    page.restore_docks(state)
    assert page.dockWidgetArea(first) == Qt.DockWidgetArea.LeftDockWidgetArea
    assert not first.isHidden()


def test_the_panel_of_problems_counts_them_or_says_that_there_are_none(qtbot) -> None:
    page = ModelPage()
    qtbot.addWidget(page)
    none = page.findChild(QLabel, "no_problems")
    for count in (0, 2, 0):
        page.show_problems([Problem(f"Problem {n}.") for n in range(count)], Model())
        assert none.isVisibleTo(page) == (count == 0)
        assert page.problems_dock.windowTitle() == ("Problems (2)" if count else "Problems")
        assert len(page.problems.problems()) == count
    assert page.canvas.minimumWidth() == 400
    assert page.focusProxy() is page.canvas


def test_the_properties_list_all_problems_while_their_panel_is_behind(qtbot, qapp) -> None:
    page = ModelPage()
    qtbot.addWidget(page)
    page.show()
    qapp.processEvents()
    moved = []
    page.problems_moved.connect(lambda: moved.append(page.properties.lists_all))
    for dock, lists_all in ((page.problems_dock, False), (page.code_dock, True)):
        dock.raise_()
        qapp.processEvents()
        assert page.properties.lists_all == lists_all == moved[-1]


def test_the_panels_of_the_model_are_as_wide_as_what_they_show(qtbot, qapp) -> None:
    page = ModelPage()
    qtbot.addWidget(page)
    page.show()
    qapp.processEvents()
    widths = [dock.width() for dock in (page.palette_dock, page.code_dock)]
    hints = [page.block_palette.sizeHint().width(), page.code.sizeHint().width()]
    assert widths == pytest.approx(hints, abs=8)
    assert page.tabifiedDockWidgets(page.code_dock) == [page.problems_dock]
    assert not page.code_dock.visibleRegion().isEmpty()
    assert page.problems_dock.visibleRegion().isEmpty()
    ratio = page.properties_dock.height() / page.code_dock.height()
    assert 0.6 < ratio < 1


def test_the_columns_of_the_tensors_page_have_their_sizes(qtbot, qapp) -> None:
    page = TensorsPage()
    qtbot.addWidget(page)
    page.show()
    qapp.processEvents()
    assert page.variables_dock.width() == pytest.approx(384, abs=8)
    assert page.create_dock.width() == page.variables_dock.width()
    assert page.console_dock.height() == pytest.approx(264, abs=8)
    heights = page.variables_dock.height(), page.create_dock.height()
    assert heights == pytest.approx((368, 464), abs=8)
    assert page.create_dock.geometry().top() > page.variables_dock.geometry().bottom()
    assert page.create_dock.geometry().bottom() > page.console_dock.geometry().top()
    assert page.console_dock.geometry().left() > page.create_dock.geometry().right()
    assert page.focusProxy() is page.console


@pytest.mark.parametrize("make_page", [TensorsPage, AutogradPage])
def test_every_tab_has_a_title_and_says_what_it_shows(qtbot, make_page) -> None:
    page = make_page()
    qtbot.addWidget(page)
    tabs = page.tabs if isinstance(page, TensorsPage) else page
    for number in range(tabs.count()):
        assert tabs.tabText(number) and tabs.tabToolTip(number).endswith(".")
    assert tabs.currentIndex() == 0
    assert_same_words(tabs.tabBar(), f"tabs_of_{page.objectName().removesuffix('_page')}")


def test_each_way_into_autograd_shows_its_tab(qtbot) -> None:
    page = AutogradPage()
    qtbot.addWidget(page)
    page.show()
    started = []
    page.trace.started.connect(started.append)
    page.trace.show_ready(True)
    page.show_trace()
    assert page.currentWidget() is page.trace
    page.show_mistake("leaf_in_place")
    assert page.currentWidget() is page.mistakes
    page.show_code("x = 1")
    assert page.currentWidget() is page.trace and started == ["x = 1"]
    page.show_node(0)
    assert page.currentWidget() is page.steps


def test_the_sheet_of_keys_has_every_key_with_its_words(qtbot) -> None:
    window = QWidget()
    qtbot.addWidget(window)
    actions = Actions(window)
    html = shortcuts_html(actions)
    for spec, action in actions:
        keys = action.shortcut().toString()
        assert (f"<b>{keys.replace('&', '&amp;').replace('<', '&lt;')}</b>" in html) or not keys
        if spec.shortcut:
            assert f"<h3>{spec.category}</h3>" in html
    for group in ("Canvas", "Autograd graph", "Console"):
        assert html.count(f"<h3>{group}</h3>") == 1
    assert "<b>Space+drag</b>" in html and theme.current().muted in html


def test_what_the_sheet_of_keys_says(qtbot) -> None:
    window = QWidget()
    qtbot.addWidget(window)
    assert_same_words(show_sheet(window, shortcuts_html(Actions(window))), "help_keys")


def test_a_sheet_of_help_stands_beside_the_window_until_it_is_closed(qtbot) -> None:
    window = QWidget()
    qtbot.addWidget(window)
    window.show()
    sheet = show_sheet(window, "<p>Some help.</p>")
    text = sheet.findChild(QTextBrowser, "help_text")
    assert text.toPlainText() == "Some help." and text.openExternalLinks()
    assert sheet.isVisible() and not sheet.isModal() and sheet.windowTitle() == "Tensor Lab"
    assert (sheet.width(), sheet.height()) == (640, 640)
    qtbot.keyClick(sheet, Qt.Key.Key_Escape)
    qtbot.waitUntil(lambda: window.findChild(QDialog, "help_sheet") is None)


@pytest.mark.parametrize("is_ready", [False, True])
def test_about_tells_the_versions(qtbot, monkeypatch, is_ready) -> None:
    devices = (Device("cpu", "CPU of 8 cores", 0), Device("cuda:0", "NVIDIA H200", 0))
    ready = ReadySnapshot(
        torch_version="2.13.0", python_version="3.11", pid=1, devices=devices, torch_threads=1
    )
    window = QWidget()
    qtbot.addWidget(window)

    def told() -> list[str]:
        sheet = show_sheet(window, about_html(ready if is_ready else None))
        lines = sheet.findChild(QTextBrowser).toPlainText().splitlines()
        sheet.close()
        return [line.strip() for line in lines if line]

    monkeypatch.setattr(metadata, "version", {"tensorlab": "1.2"}.__getitem__)
    assert told() == [
        "Tensor Lab",
        "A laboratory for tensors, graphs and models of PyTorch.",
        *("Tensor Lab", "1.2", "Python", platform.python_version(), "Qt", qVersion()),
        *("torch", "2.13.0" if is_ready else "the engine is not ready yet"),
        *("Devices", "CPU of 8 cores, NVIDIA H200" if is_ready else "–"),
    ]

    def not_installed(package: str) -> str:
        raise metadata.PackageNotFoundError(package)

    monkeypatch.setattr(metadata, "version", not_installed)
    assert told()[3] == "from a checkout"
