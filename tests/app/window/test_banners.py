"""Banners: one per key, with what to do; they stay until they are answered."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QLabel, QPushButton, QToolButton, QWidget

from app.window.banners import BannerArea
from tests.pictures import assert_same_picture
from widgets import theme
from widgets.model.code_editor import CodeEditor


@pytest.fixture
def area(qtbot) -> Iterator[BannerArea]:
    window = QWidget()
    qtbot.addWidget(window)
    window.resize(600, 200)
    area = BannerArea(window)
    area.resize(600, 100)
    window.show()
    yield area


def test_the_area_is_there_while_it_has_a_banner(area) -> None:
    assert area.isHidden() and area.banner("lost") is None
    area.show_banner("lost", "error", "The engine stopped.", "It starts again.", detail="log")
    area.show_banner("saved", "success", "Saved.")
    QApplication.processEvents()
    lost, saved = area.banner("lost"), area.banner("saved")
    assert area.isVisible() and lost.isVisible() and saved.isVisible()
    assert lost.accessibleName() == "The engine stopped.. It starts again."
    assert (lost.toolTip(), saved.toolTip()) == ("log", "")
    texts = [banner.findChildren(QLabel)[1].text() for banner in (lost, saved)]
    assert texts == ["The engine stopped.\nIt starts again.", "Saved."]
    area.dismiss("lost")
    assert area.isVisible() and lost.isHidden() and area.banner("lost") is None
    area.dismiss("lost")
    area.dismiss("saved")
    assert area.isHidden()


def test_a_word_of_any_length_leaves_the_window_its_width(area) -> None:
    area.show_banner("file", "error", "9" * 5_000)
    QApplication.processEvents()
    assert area.minimumSizeHint().width() < 600


def test_a_new_banner_takes_the_place_of_its_key(area) -> None:
    area.show_banner("lost", "error", "Once.")
    old = area.banner("lost")
    area.show_banner("lost", "error", "Twice.")
    assert old.isHidden() and not area.banner("lost").isHidden()
    assert area.banner("lost").title == "Twice."


def test_a_choice_closes_the_banner_and_then_acts(area, qtbot) -> None:
    done = []
    choices = (
        ("Restart now", "Start another engine.", lambda: done.append(area.banner("lost"))),
        ("Show log", "What it said last.", lambda: area.show_banner("lost", "accent", "Log")),
    )
    area.show_banner("lost", "error", "The engine stopped.", choices=choices)
    buttons = area.banner("lost").findChildren(QPushButton)
    assert [(b.objectName(), b.text(), b.toolTip()) for b in buttons] == [
        ("banner_restart_now", "Restart now", "Start another engine."),
        ("banner_show_log", "Show log", "What it said last."),
    ]
    assert buttons[0].property("role") == "primary" != buttons[1].property("role")
    qtbot.mouseClick(buttons[0], Qt.MouseButton.LeftButton)
    assert done == [None] and area.isHidden()
    area.show_banner("lost", "error", "The engine stopped.", choices=choices)
    qtbot.mouseClick(area.banner("lost").findChildren(QPushButton)[1], Qt.MouseButton.LeftButton)
    assert area.banner("lost").title == "Log" and area.isVisible()


def test_the_cross_closes_it(area, qtbot) -> None:
    area.show_banner("lost", "error", "The engine stopped.")
    close = area.banner("lost").findChild(QToolButton, "banner_close")
    assert close.toolTip() == "Close this message."
    qtbot.mouseClick(close, Qt.MouseButton.LeftButton)
    assert area.isHidden()


@pytest.mark.parametrize("tone", ["accent", "warning", "error", "success"])
def test_its_ground_has_the_colour_of_its_tone_in_both_themes(area, qapp, tone) -> None:
    area.show_banner("a", tone, "Words.")
    for colors in (theme.DARK, theme.LIGHT):
        theme.apply(qapp, colors)
        color = colors.color(tone)
        assert f"rgba({color.red()}, {color.green()}, {color.blue()}, 28)" in (
            area.banner("a").styleSheet()
        )
        picture = area.banner("a").findChildren(QLabel)[0].pixmap().toImage()
        points = [(x, y) for x in range(picture.width()) for y in range(picture.height())]
        inside = (picture.pixelColor(*point) for point in points)
        ink = {color.name() for color in inside if color.alpha() > 250}
        assert getattr(colors, tone) in ink


def test_a_long_text_wraps_and_does_not_widen_the_window(area, qapp) -> None:
    area.show_banner("a", "error", "Title", "many words " * 60)
    qapp.processEvents()
    banner = area.banner("a")
    assert banner.minimumSizeHint().width() < 600
    assert banner.findChildren(QLabel)[1].height() > 60


def test_picture(area, qapp) -> None:
    choices = [(text, f"{text}.", lambda: None) for text in ("Run again", "Not now")]
    area.show_banner("lost", "error", "The engine stopped.", "A new one starts.")
    code = "\n".join(f"x{n} = {n}" for n in range(3))
    area.show_banner("cells", "accent", "Python was run.", "Run it?", choices, code=code)
    area.show_banner("long", "warning", "Title", "many words " * 20)
    qapp.processEvents()
    area.resize(600, area.heightForWidth(600))
    assert_same_picture(area, "banners")


@pytest.mark.parametrize(("lines", "height"), [(1, 1), (2, 2), (8, 8), (9, 8), (40, 8)])
def test_code_of_more_than_eight_lines_is_scrolled(area, lines, height) -> None:
    area.show_banner("cells", "accent", "Python was run.", code="\n".join("x" * lines))
    area.show_banner("one", "accent", "Python was run.", code="x")
    editors = [area.banner(key).findChild(CodeEditor) for key in ("cells", "one")]
    line = editors[0].fontMetrics().lineSpacing()
    assert editors[0].height() - editors[1].height() == (height - 1) * line
