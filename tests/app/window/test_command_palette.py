"""The command palette: what it finds, and that keys alone drive it."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import QLineEdit, QWidget

from app.window.command_palette import CommandPalette, Entry, match_score, search
from tests.pictures import assert_same_picture
from tests.words import assert_same_words
from widgets import theme


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


def titles(palette: CommandPalette) -> list[str]:
    return [palette.list.item(row).text() for row in range(palette.list.count())]


def test_it_is_asked_anew_with_an_empty_field(palette, qtbot):
    palette.ask([entry("Open"), entry("Close")], "Search for a command")
    qtbot.keyClicks(palette.field, "clo")
    assert titles(palette) == ["Close"]
    palette.ask([entry("Open"), entry("Close")], "Search for a block")
    assert palette.field.text() == "" and titles(palette) == ["Open", "Close"]
    assert palette.field.placeholderText() == "Search for a block"
    assert palette.list.currentRow() == 0


@pytest.mark.parametrize(
    ("at", "place"),
    [
        (None, ((800 - 560) // 2, 64)),
        (QPoint(100, 50), (100, 50)),
        (QPoint(-20, -20), (0, 0)),
        (QPoint(700, 10), (800 - 560, 10)),
    ],
)
def test_it_opens_inside_the_window(palette, at, place):
    palette.ask([entry("Open")], "hint", at)
    assert (palette.x(), palette.y(), palette.width()) == (*place, 560)
    palette.ask([entry(str(n)) for n in range(30)], "hint", QPoint(0, 500))
    assert palette.geometry().bottom() < 600


def test_it_opens_over_what_was_made_after_it(palette):
    cover = QWidget(palette.parentWidget())
    cover.resize(800, 600)
    cover.show()
    palette.ask([entry("Open")], "hint")
    assert palette.isAncestorOf(palette.parentWidget().childAt(palette.geometry().center()))


def test_the_list_is_as_high_as_its_matches_up_to_eleven(palette, qtbot):
    heights = []
    for count in (1, 2, 11, 12, 40):
        palette.ask([entry(f"a{n}") for n in range(count)], "hint")
        heights.append(palette.list.height())
    row = heights[0]
    assert heights == [row, 2 * row, 11 * row, 11 * row, 11 * row] and row == 32
    assert palette.list.isVisible() and not palette.empty.isVisible()
    qtbot.keyClicks(palette.field, "zz")
    assert not palette.list.isVisible() and palette.empty.isVisible()


def test_a_row_has_its_title_tip_and_hint(palette):
    palette.ask([Entry("Open", "File  Ctrl+O", "folder", lambda: None, tip="Open a file.")], "hint")
    item = palette.list.item(0)
    assert (item.text(), item.toolTip()) == ("Open", "Open a file.")
    assert item.data(Qt.ItemDataRole.UserRole) == "File  Ctrl+O"
    assert not item.icon().isNull()


def test_the_hint_is_painted_at_the_right_in_its_colour(palette, qapp):
    def ink(hint: str, row: int) -> set[str]:
        entries = [Entry("A", hint, "folder", lambda: None) for _ in range(2)]
        palette.ask(entries, "hint")
        qapp.processEvents()
        image = palette.list.viewport().grab().toImage()
        rect = palette.list.visualItemRect(palette.list.item(row))
        points = ((x, y) for x in range(rect.right() - 70, rect.right())
                  for y in range(rect.top(), rect.bottom()))  # fmt: skip
        return {image.pixelColor(x, y).name() for x, y in points}

    colors = theme.current()
    assert colors.on_accent in ink("HHHH", 0) - ink("", 0)
    assert colors.muted in ink("HHHH", 1) - ink("", 1)


@pytest.mark.parametrize("query", ["", "li", "zz"])
def test_picture_and_words(palette, query):
    rows = (("Linear", "torch.nn.Linear"), ("Bilinear", "torch.nn.Bilinear"), ("Open", "Ctrl+O"))
    palette.ask([Entry(title, hint, "layers", lambda: None) for title, hint in rows], "hint")
    palette.field.setText(query)
    assert_same_picture(palette, f"command_palette_{query}".removesuffix("_"))
    palette.field.clear()
    assert_same_words(palette, "command_palette")


def test_it_stands_out_as_a_card_in_both_themes(palette, qapp):
    palette.ask([entry("Open")], "hint")
    for colors in (theme.DARK, theme.LIGHT):
        theme.apply(qapp, colors)
        image, middle = palette.grab().toImage(), palette.height() // 2
        assert image.pixelColor(0, middle).name() == colors.border
        assert image.pixelColor(4, middle).name() == colors.surface != colors.window


@pytest.mark.parametrize("way", ["escape", "enter"])
def test_the_keys_go_back_to_where_they_were(palette, qtbot, way):
    other = QLineEdit(palette.parentWidget())
    other.show()
    palette.parentWidget().activateWindow()
    qtbot.waitUntil(palette.parentWidget().isActiveWindow)
    other.setFocus()
    palette.ask([entry("Open")], "hint")
    assert palette.field.hasFocus()
    qtbot.keyClick(palette.field, Qt.Key.Key_Escape if way == "escape" else Qt.Key.Key_Return)
    assert palette.isHidden() and other.hasFocus()
    palette.ask([entry("Open")], "hint")
    other.setFocus()  # looking elsewhere closes it
    assert palette.isHidden() and other.hasFocus()


def test_a_click_runs_the_row(palette, qtbot):
    ran = []
    palette.ask([entry(str(i), run=lambda i=i: ran.append(i)) for i in range(3)], "hint")
    palette.parentWidget().activateWindow()
    qtbot.waitUntil(palette.field.hasFocus)
    place = palette.list.visualItemRect(palette.list.item(1)).center()
    qtbot.mousePress(palette.list.viewport(), Qt.MouseButton.LeftButton, pos=place)
    assert palette.field.hasFocus() and palette.isVisible()
    qtbot.mouseRelease(palette.list.viewport(), Qt.MouseButton.LeftButton, pos=place)
    assert ran == [1] and palette.isHidden()


def test_keys_typed_there_are_no_shortcuts_of_the_window(palette, qtbot):
    ran = []
    window = palette.parentWidget()
    QShortcut(QKeySequence("F5"), window, lambda: ran.append("F5"))
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow)
    palette.ask([entry("Open")], "hint")
    qtbot.keyClick(palette.field, Qt.Key.Key_F5)
    assert ran == []
    palette.close_palette()
    qtbot.keyClick(window, Qt.Key.Key_F5)
    assert ran == ["F5"]


def test_arrows_go_round(palette, qtbot):
    palette.ask([entry(str(i)) for i in range(3)], "hint")
    rows = []
    for key in (Qt.Key.Key_Up, Qt.Key.Key_Down, Qt.Key.Key_Down, Qt.Key.Key_Left):
        qtbot.keyClick(palette.field, key)
        rows.append(palette.list.currentRow())
    assert rows == [2, 0, 1, 1]


@pytest.mark.parametrize(
    ("query", "text", "score"),
    [
        ("", "abc", 0),
        ("a", "abc", 4 + 6),
        ("b", "abc", 4 - 1),
        ("ab", "abc", (4 + 6) + 8),
        ("ac", "abc", (4 + 6) + (4 - 1)),
        ("c", "ab c", (4 + 6) - 3),
        ("a c", "ab c", (4 + 6) + (4 + 6) - 2),
        ("a b", "ab", (4 + 6) + 4),
        ("z", "abcdefghijz", (4 - 6) - 1),
        ("AB", "aB", (4 + 6) + 8),
        ("abd", "abc", None),
    ],
)
def test_how_well_letters_match(query, text, score):
    assert match_score(query, text) == score


def test_keywords_match_by_the_beginnings_of_all_words_after_the_titles():
    entries = [entry("X", "convolution layer"), entry("Conv"), entry("Y", "layer")]
    assert [e.title for e in search("conv", entries)] == ["Conv", "X"]
    assert [e.title for e in search("lay conv", entries)] == ["X"]
    assert [e.title for e in search("layer", entries)] == ["X", "Y"]
    assert search("volution", entries) == []
