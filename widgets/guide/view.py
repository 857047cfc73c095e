"""The guides: their headings at the left, the page at the right, and a search in all of them."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from PySide6.QtCore import QEvent, QObject, QSignalBlocker, Qt, QUrl
from PySide6.QtGui import QKeyEvent, QKeySequence, QTextDocument
from PySide6.QtWidgets import QTreeWidget, QTreeWidgetItem, QWidget

from widgets import make
from widgets.guide.headings import headings_of
from widgets.guide.page import GuidePage, document_text
from widgets.theme import GRID

_PLACE_ROLE = Qt.ItemDataRole.UserRole


class Guide(Struct, frozen=True):
    """`name` is the file's (`learner.md`), by which links name it; `text` is Markdown."""

    name: str
    text: str


class Hit(Struct, frozen=True):
    """Where the searched text stands in a guide."""

    name: str
    position: int
    length: int


class GuideView(QWidget):
    """Shows guides. Esc clears the search; without one it is left to the window."""

    def __init__(self, guides: Sequence[Guide]) -> None:
        super().__init__()
        self.setObjectName("guide_view")
        self._guides = guides
        self._documents: dict[str, QTextDocument] = {}
        self.hits: list[Hit] = []
        self.place = 0
        """The number of the hit that is shown, from 1; 0 without one."""
        self.page = GuidePage({guide.name: guide.text for guide in guides})
        self.contents = make.named(
            QTreeWidget(), "guide_contents", "Contents", "Choose a heading to go to it."
        )
        self.contents.setHeaderHidden(True)
        self.contents.setFrameShape(QTreeWidget.Shape.NoFrame)
        for guide in guides:
            self._add_contents(guide)
        self.back = make.tool_button(
            "guide_back", "mdi6.arrow-left", "Go back (Alt+Left).", self.page.backward
        )
        self.forward = make.tool_button(
            "guide_forward", "mdi6.arrow-right", "Go forward again (Alt+Right).", self.page.forward
        )
        self.field = make.field(
            "guide_search",
            "Search in all guides",
            "Type a word. Enter goes to the next place, Shift+Enter to the one before, Esc clears.",
            placeholder="Search in all guides",
        )
        self.field.setClearButtonEnabled(True)
        self.count = make.label("", "muted", "guide_hits")
        self.previous = make.tool_button(
            "guide_previous", "mdi6.chevron-up", "Previous place (Shift+F3).", lambda: self.step(-1)
        )
        self.next = make.tool_button(
            "guide_next", "mdi6.chevron-down", "Next place (F3).", lambda: self.step(1)
        )
        found = (self.field, 1), self.count, self.previous, self.next
        bar = make.row(self.back, self.forward, *found, margins=(GRID, GRID, GRID, 0))
        split = make.splitter(self.contents, self.page, sizes=(264, 776), shares=(0, 1))
        make.column(bar, (split, 1), on=self)
        self.page.dressed.connect(self._on_dressed)
        self.page.backwardAvailable.connect(self.back.setEnabled)
        self.page.forwardAvailable.connect(self.forward.setEnabled)
        self.contents.currentItemChanged.connect(self._go)
        self.contents.itemClicked.connect(self._go_again)
        self.field.textChanged.connect(self._search)
        self.field.installEventFilter(self)
        scope = {"inside": True}
        make.shortcut(QKeySequence.StandardKey.Find, self, self._begin_search, **scope)
        make.shortcut(Qt.Key.Key_F3, self, lambda: self.step(1), **scope)
        make.shortcut(QKeySequence("Shift+F3"), self, lambda: self.step(-1), **scope)
        self.back.setEnabled(False)
        self.forward.setEnabled(False)
        self._search("")
        self.show_place(guides[0].name)

    def show_place(self, place: str) -> None:
        """Show a guide, or a heading of it: `learner.md#train-it`."""
        self.page.setSource(QUrl(place))

    def step(self, by: int) -> None:
        """Go to the next or previous hit; after the last comes the first."""
        if not self.hits:
            return
        self.place = (self.place - 1 + by) % len(self.hits) + 1
        hit = self.hits[self.place - 1]
        if hit.name != self.page.name:
            self.show_place(hit.name)
        self.page.select(hit.position, hit.length)
        self._show_count()

    # -- contents --------------------------------------------------------------------------------

    def _add_contents(self, guide: Guide) -> None:
        above: list[tuple[int, QTreeWidget | QTreeWidgetItem]] = [(0, self.contents)]
        for heading in headings_of(guide.text):
            while above[-1][0] >= heading.level:
                above.pop()
            item = QTreeWidgetItem(above[-1][1], [heading.title])
            place = guide.name if heading.level == 1 else f"{guide.name}#{heading.anchor}"
            item.setData(0, _PLACE_ROLE, place)
            item.setToolTip(0, heading.title)
            above.append((heading.level, item))

    def _go(self, item: QTreeWidgetItem | None) -> None:
        if item is not None:
            self.show_place(item.data(0, _PLACE_ROLE))

    def _go_again(self, item: QTreeWidgetItem) -> None:
        """Scroll to a heading that was chosen already."""
        self.page.scroll_to(QUrl(item.data(0, _PLACE_ROLE)).fragment())

    def _on_dressed(self, url: QUrl) -> None:
        self._mark_hits()
        items = self.contents.findItems(
            "", Qt.MatchFlag.MatchContains | Qt.MatchFlag.MatchRecursive
        )
        for item in items:
            if item.data(0, _PLACE_ROLE) == url.toString():
                with QSignalBlocker(self.contents):
                    self.contents.setCurrentItem(item)
                top = item
                while (above := top.parent()) is not None:
                    top = above
                top.setExpanded(True)

    # -- search ----------------------------------------------------------------------------------

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape and self.field.text():
            self.field.clear()
        else:
            super().keyPressEvent(event)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if (
            event.type() == QEvent.Type.KeyPress
            and isinstance(event, QKeyEvent)
            and event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
        ):
            back = event.modifiers() & Qt.KeyboardModifier.ShiftModifier
            self.step(-1 if back else 1)
            return True
        return super().eventFilter(watched, event)

    def _begin_search(self) -> None:
        self.field.setFocus()
        self.field.selectAll()

    def _search(self, text: str) -> None:
        """Find a text in all guides, and show the first place of the guide that is shown, else of
        the others."""
        self.hits = [hit for guide in self._guides for hit in self._found(guide, text)]
        here = [at for at, hit in enumerate(self.hits) if hit.name == self.page.name]
        self.place = here[0] if here else 0
        self._mark_hits()
        self.step(1)
        self._show_count()

    def _found(self, guide: Guide, text: str) -> list[Hit]:
        found: list[Hit] = []
        if not text.strip():
            return found
        if guide.name not in self._documents:
            document = QTextDocument(self)
            document.setMarkdown(document_text(guide.text))
            self._documents[guide.name] = document
        cursor = self._documents[guide.name].find(text)
        while not cursor.isNull():
            start, end = cursor.selectionStart(), cursor.selectionEnd()
            found.append(Hit(guide.name, start, end - start))
            cursor = self._documents[guide.name].find(text, cursor)
        return found

    def _mark_hits(self) -> None:
        here = [hit for hit in self.hits if hit.name == self.page.name]
        self.page.mark([(hit.position, hit.length) for hit in here])

    def _show_count(self) -> None:
        words = f"{self.place:,} of {len(self.hits):,}" if self.hits else "Nothing found"
        make.tell(self.count, words if self.field.text().strip() else "")
        for button in (self.previous, self.next):
            button.setEnabled(bool(self.hits))
