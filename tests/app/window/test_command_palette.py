"""The command palette: what it finds, and that keys alone drive it."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QWidget

from app.window.command_palette import CommandPalette, Entry, match_score, search


def entry(title: str, keywords: str = "", run=lambda: None) -> Entry:
    return Entry(title, "", "magnify", run, keywords)


def test_letters_must_come_in_order():
    assert match_score("cnv", "Conv2d") is not None
    assert match_score("vnc", "Conv2d") is None


@pytest.mark.parametrize(
    ("query", "better", "worse"),
    [
        ("li", "Linear", "Bilinear"),
        ("conv", "Conv2d", "Clone of vectors"),
        ("sa", "Save as", "Paste all"),
    ],
)
def test_the_nearer_match_comes_first(query, better, worse):
    found = search(query, [entry(worse), entry(better)])
    assert found[0].title == better


def test_keywords_find_what_the_title_does_not_say():
    entries = [entry("Dropout", "regularise random"), entry("Linear", "dense")]
    assert [e.title for e in search("regul", entries)] == ["Dropout"]


def test_an_empty_query_shows_all_in_order():
    entries = [entry("b"), entry("a")]
    assert search("  ", entries) == entries


@pytest.fixture
def palette(qtbot):
    window = QWidget()
    window.resize(800, 600)
    qtbot.addWidget(window)
    palette = CommandPalette(window)
    window.show()
    yield palette


def test_enter_runs_the_first_match_and_closes(palette, qtbot):
    ran = []
    palette.ask([entry("Open", run=lambda: ran.append("open")),
                 entry("Close", run=lambda: ran.append("close"))], "hint")  # fmt: skip
    qtbot.keyClicks(palette.field, "clo")
    qtbot.keyClick(palette.field, Qt.Key.Key_Return)
    assert ran == ["close"]
    assert palette.isHidden()


def test_arrows_choose(palette, qtbot):
    ran = []
    entries = [entry(str(i), run=lambda i=i: ran.append(i)) for i in range(3)]
    palette.ask(entries, "hint")
    qtbot.keyClick(palette.field, Qt.Key.Key_Down)
    qtbot.keyClick(palette.field, Qt.Key.Key_Up)
    qtbot.keyClick(palette.field, Qt.Key.Key_Up)
    qtbot.keyClick(palette.field, Qt.Key.Key_Return)
    assert ran == [2]


def test_nothing_found_says_so_and_enter_does_nothing(palette, qtbot):
    ran = []
    palette.ask([entry("Open", run=lambda: ran.append(1))], "hint")
    qtbot.keyClicks(palette.field, "zzz")
    qtbot.keyClick(palette.field, Qt.Key.Key_Return)
    assert palette.empty.isVisible()
    assert ran == []


def test_escape_closes(palette, qtbot):
    palette.ask([entry("Open")], "hint")
    qtbot.keyClick(palette.field, Qt.Key.Key_Escape)
    assert palette.isHidden()
