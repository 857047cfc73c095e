"""The guides: contents, links, search, and how a page looks."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QObject, Qt, QUrl, Slot
from PySide6.QtGui import QDesktopServices, QTextCursor
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QTreeWidgetItem

from tests.pictures import assert_same_picture
from widgets import theme
from widgets.guide.headings import anchor_of, headings_of
from widgets.guide.view import Guide, GuideView
from widgets.theme import GRID

FIRST = """\
# For the first

Some words, `code`, and [a link](second.md#a-b-and-c), [the web](https://pytorch.org).

## A part

- one entry
- another

```python
# not a heading
x = torch.ones(2, 3)  # the words here
x.shape
```

```text
torch.Size([2, 3])
```

![A picture](../screenshots/train.png)

A table:

| option | what it says |
|---|---|
| `--out FILE` | words in a table |
| `--json` | more |

## Another part

The end.
"""
SECOND = (
    "# For the second\n\nIt has Words, too.\n\n"
    + "Lines to scroll.\n\n" * 60
    + "## A, b and c\n\nHere.\n\n### Deep\n\nLow.\n"
    + "More.\n\n" * 60
)


@pytest.fixture
def view(qtbot) -> GuideView:
    view = GuideView([Guide("first.md", FIRST), Guide("second.md", SECOND)])
    qtbot.addWidget(view)
    view.resize(900, 640)
    view.show()
    return view


def shown(view: GuideView) -> tuple[str, str]:
    """The guide that is shown and the heading that is chosen in the contents."""
    item = view.contents.currentItem()
    return view.page.name, item.text(0)


def items(view: GuideView) -> dict[str, QTreeWidgetItem]:
    flags = Qt.MatchFlag.MatchContains | Qt.MatchFlag.MatchRecursive
    return {item.text(0): item for item in view.contents.findItems("", flags)}


def click(view: GuideView, word: str) -> None:
    """Click a word of the page."""
    cursor = view.page.document().find(word)
    cursor.setPosition(cursor.selectionStart() + 2)
    at = view.page.cursorRect(cursor).center()
    QTest.mouseClick(view.page.viewport(), Qt.MouseButton.LeftButton, pos=at)


def top_line(view: GuideView) -> str:
    """The line at the upper edge of the page, under its margin."""
    cursor = view.page.cursorForPosition(view.page.viewport().rect().topLeft())
    while not cursor.block().text() or view.page.cursorRect(cursor).top() < 0:
        cursor.movePosition(QTextCursor.MoveOperation.NextBlock)
    return cursor.block().text()


def test_headings_have_the_anchors_of_github() -> None:
    found = [(each.level, each.title, each.anchor) for each in headings_of(FIRST)]
    assert found == [
        (1, "For the first", "for-the-first"),
        (2, "A part", "a-part"),
        (2, "Another part", "another-part"),
    ]
    assert anchor_of("Attach, serve, run") == "attach-serve-run"
    assert anchor_of("What's `in_it`?") == "whats-in_it"


def test_the_contents_lead_to_each_heading(view) -> None:
    assert shown(view) == ("first.md", "For the first")
    assert list(items(view)) == [
        "For the first", "A part", "Another part", "For the second", "A, b and c", "Deep",
    ]  # fmt: skip
    assert items(view)["Deep"].parent() is items(view)["A, b and c"]
    view.contents.setCurrentItem(items(view)["A, b and c"])
    assert shown(view) == ("second.md", "A, b and c") and top_line(view) == "A, b and c"
    assert items(view)["For the second"].isExpanded()
    view.page.verticalScrollBar().setValue(0)
    at = view.contents.visualItemRect(items(view)["A, b and c"]).center()
    QTest.mouseClick(view.contents.viewport(), Qt.MouseButton.LeftButton, pos=at)
    assert top_line(view) == "A, b and c"
    view.contents.setCurrentItem(items(view)["For the second"])
    assert top_line(view) == "For the second"
    QTest.keyClick(view.contents, Qt.Key.Key_Up)
    assert shown(view) == ("first.md", "Another part")


class Browser(QObject):
    def __init__(self) -> None:
        super().__init__()
        self.opened: list[str] = []

    @Slot(QUrl)
    def open(self, url: QUrl) -> None:
        self.opened.append(url.toString())


def test_links_lead_to_guides_and_to_the_web(view) -> None:
    assert not view.back.isEnabled() and not view.forward.isEnabled()
    click(view, "a link")
    assert shown(view) == ("second.md", "A, b and c") and top_line(view) == "A, b and c"
    view.back.click()
    assert shown(view) == ("first.md", "For the first") and view.forward.isEnabled()
    view.forward.click()
    assert shown(view)[0] == "second.md"
    QTest.keyClick(view.page, Qt.Key.Key_Left, Qt.KeyboardModifier.AltModifier)
    assert shown(view)[0] == "first.md"
    browser = Browser()
    # PySide takes a str; its stub says otherwise.
    QDesktopServices.setUrlHandler("https", browser, "open")  # pyright: ignore[reportArgumentType]
    try:
        click(view, "the web")
    finally:
        QDesktopServices.unsetUrlHandler("https")
    assert browser.opened == ["https://pytorch.org"] and shown(view)[0] == "first.md"
    view.page.anchorClicked.emit(QUrl("file:///etc/passwd"))
    view.page.anchorClicked.emit(QUrl("third.md"))
    assert shown(view)[0] == "first.md"


def chosen(view: GuideView) -> str:
    return view.page.textCursor().selectedText()


def test_a_search_finds_in_all_guides_and_goes_from_place_to_place(view) -> None:
    field = view.field
    QTest.keyClick(view, Qt.Key.Key_F, Qt.KeyboardModifier.ControlModifier)
    assert field.hasFocus() and view.count.isHidden() and not view.next.isEnabled()
    QTest.keyClicks(field, "words")
    assert [(hit.name, hit.length) for hit in view.hits] == [("first.md", 5)] * 3 + [
        ("second.md", 5)
    ]
    assert (view.count.text(), chosen(view)) == ("1 of 4", "words")
    assert len(view.page.extraSelections()) == 3
    QTest.keyClick(field, Qt.Key.Key_Return)
    view.next.click()
    assert view.count.text() == "3 of 4" and view.page.textCursor().currentTable() is not None
    QTest.keyClick(field, Qt.Key.Key_F3)
    assert (view.count.text(), chosen(view)) == ("4 of 4", "Words")
    assert shown(view) == ("second.md", "For the second")
    assert len(view.page.extraSelections()) == 1
    QTest.keyClick(field, Qt.Key.Key_Return)
    assert (view.count.text(), shown(view)[0]) == ("1 of 4", "first.md")
    for back in (
        lambda: QTest.keyClick(field, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier),
        view.previous.click,
        lambda: QTest.keyClick(field, Qt.Key.Key_F3, Qt.KeyboardModifier.ShiftModifier),
    ):
        back()
    assert view.count.text() == "2 of 4"
    QTest.keyClicks(field, "xyz")
    assert view.count.text() == "Nothing found" and not view.page.extraSelections()
    QTest.keyClick(field, Qt.Key.Key_Return)
    QTest.keyClick(field, Qt.Key.Key_Escape)
    assert field.text() == "" and view.count.isHidden()


def test_a_search_begins_in_the_guide_that_is_shown(view) -> None:
    view.show_place("second.md")
    view.field.setText("words")
    assert (view.count.text(), chosen(view)) == ("4 of 4", "Words")


def test_a_hit_far_down_is_scrolled_into_the_upper_half(view) -> None:
    view.field.setText("Low.")
    at = view.page.cursorRect().center().y()
    assert 0 < at < view.page.viewport().height() / 2


def test_pictures_of_the_window_are_left_out(view) -> None:
    assert "screenshots" not in view.page.toMarkdown() and "\ufffc" not in view.page.toPlainText()


def test_a_change_of_theme_keeps_the_place(view, qapp) -> None:
    view.show_place("second.md#a-b-and-c")
    view.field.setText("Here")
    bar = view.page.verticalScrollBar()
    before = bar.value(), chosen(view), view.page.toPlainText()
    theme.apply(qapp, theme.DARK)
    assert (bar.value(), chosen(view), view.page.toPlainText()) == before
    (mark,) = view.page.extraSelections()
    assert mark.cursor.selectedText() == "Here"


def test_the_text_stays_narrow_in_a_wide_window(view) -> None:
    view.resize(1600, 640)
    shape = view.page.document().rootFrame().frameFormat()
    assert shape.leftMargin() == shape.rightMargin() > 10 * GRID
    view.resize(700, 640)
    assert view.page.document().rootFrame().frameFormat().leftMargin() == 3 * GRID


@pytest.mark.parametrize("kind", [theme.LIGHT, theme.DARK], ids=lambda kind: kind.name)
def test_a_page_looks_as_it_did(view, qapp, kind) -> None:
    theme.apply(qapp, kind)
    view.field.setText("words")
    view.page.setFocus()
    assert_same_picture(view, f"guide_{kind.name}")
