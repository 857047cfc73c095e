"""A page of the guides: Markdown, read by Qt and given the window's fonts and colours."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from PySide6.QtCore import QUrl, Signal
from PySide6.QtGui import (
    QDesktopServices,
    QFont,
    QResizeEvent,
    QTextBlock,
    QTextBlockFormat,
    QTextCharFormat,
    QTextCursor,
    QTextFormat,
    QTextFrameFormat,
    QTextLength,
    QTextTable,
)
from PySide6.QtWidgets import QTextBrowser, QTextEdit

from widgets import make, theme
from widgets.guide.headings import anchor_of
from widgets.model.python_highlighter import PythonHighlighter
from widgets.theme import GRID

_COLUMN_PX = 92 * GRID
"""The text is not wider, so that lines stay short enough to read."""
_HEADING_SIZES = {1: 1.8, 2: 1.4, 3: 1.15}
"""By level, beside the size of the text."""
_LINE_HEIGHT = 1.3
"""Of a line of text, beside the height of its font."""
_PICTURE = re.compile(r"^!\[.*?\]\(.*?\)\n\n?", re.MULTILINE)


def document_text(text: str) -> str:
    """The Markdown of a guide as it is shown in the window: without the pictures, which show the
    window."""
    return _PICTURE.sub("", text)


class GuidePage(QTextBrowser):
    """Shows the guides `texts`, by their file names: `setSource` with such a name, and an anchor to
    scroll to a heading. A link to the web is opened in the browser.

    `dressed(url)`: a place is shown, or has been given new colours. Marks are gone.
    """

    dressed = Signal(QUrl)

    def __init__(self, texts: Mapping[str, str]) -> None:
        super().__init__()
        make.named(self, "guide_page", "Guide")
        self._texts = texts
        self.name = ""
        """The file name of the guide that is shown."""
        self.setOpenLinks(False)
        self.setFrameShape(QTextBrowser.Shape.NoFrame)
        self.anchorClicked.connect(self._follow)
        self.sourceChanged.connect(self._on_source_changed)
        self._highlighter = _CodeHighlighter(self.document())
        theme.notifier.changed.connect(self._use_theme)

    def loadResource(self, kind: int, url: QUrl) -> object:
        return document_text(self._texts[url.fileName()])

    def scroll_to(self, anchor: str) -> None:
        """Scroll to the heading with this anchor, to the top without one."""
        bar = self.verticalScrollBar()
        block = self.document().begin()
        while anchor and block.isValid():
            if block.blockFormat().headingLevel() and anchor_of(block.text()) == anchor:
                top = self.document().documentLayout().blockBoundingRect(block).top()
                bar.setValue(round(top) - GRID)
                return
            block = block.next()
        bar.setValue(0)

    def select(self, position: int, length: int) -> None:
        """Select text and scroll so that it stands in the upper half."""
        cursor = QTextCursor(self.document())
        cursor.setPosition(position)
        cursor.setPosition(position + length, QTextCursor.MoveMode.KeepAnchor)
        self.setTextCursor(cursor)
        bar = self.verticalScrollBar()
        bar.setValue(bar.value() + self.cursorRect().top() - self.viewport().height() // 3)

    def mark(self, places: Sequence[tuple[int, int]]) -> None:
        """Mark texts: (position, length) of each."""
        marks = []
        for position, length in places:
            mark = QTextEdit.ExtraSelection()
            mark.cursor = QTextCursor(self.document())
            mark.cursor.setPosition(position)
            mark.cursor.setPosition(position + length, QTextCursor.MoveMode.KeepAnchor)
            mark.format.setBackground(theme.current().color("warning", 80))
            marks.append(mark)
        self.setExtraSelections(marks)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._set_margins()

    # -- links -----------------------------------------------------------------------------------

    def _follow(self, url: QUrl) -> None:
        if url.scheme() in ("http", "https"):
            QDesktopServices.openUrl(url)
        elif url.fileName() in self._texts:
            self.setSource(url)

    def _on_source_changed(self, url: QUrl) -> None:
        """Give the document that Qt has read, again where it was read before, its looks. Going
        back and forward, Qt then scrolls to where the reader was."""
        self.name = url.fileName()
        self._dress()
        self.scroll_to(url.fragment())
        self.dressed.emit(url)

    # -- looks -----------------------------------------------------------------------------------

    def _use_theme(self) -> None:
        if self.name:
            self._dress()
            self.dressed.emit(self.source())

    def _dress(self) -> None:
        document = self.document()
        document.setDefaultFont(self.font())
        line_px = self.fontMetrics().height() * _LINE_HEIGHT
        edit = QTextCursor(document)
        edit.beginEditBlock()  # it is laid out once, at the end
        block = document.begin()
        while block.isValid():
            _dress_block(block, line_px)
            block = block.next()
        for frame in document.rootFrame().childFrames():
            if isinstance(frame, QTextTable):
                _dress_table(frame)
        edit.endEditBlock()
        self._set_margins()

    def _set_margins(self) -> None:
        aside = max(3.0 * GRID, (self.viewport().width() - _COLUMN_PX) / 2)
        frame = self.document().rootFrame()
        kept = frame.frameFormat()
        kept.setLeftMargin(aside)
        kept.setRightMargin(aside)
        kept.setTopMargin(2.0 * GRID)
        kept.setBottomMargin(4.0 * GRID)
        frame.setFrameFormat(kept)


class _CodeHighlighter(PythonHighlighter):
    """Colours the blocks of Python."""

    def highlightBlock(self, text: str) -> None:
        if _language(self.currentBlock()) == "python":
            super().highlightBlock(text)


_OUTPUT = "text"
"""The language of a block that shows what the code before it prints."""


def _language(block: QTextBlock) -> str:
    """The language of a block of code; empty for other text."""
    return str(block.blockFormat().property(QTextFormat.Property.BlockCodeLanguage) or "")


def _dress_block(block: QTextBlock, line_px: float) -> None:
    cursor = QTextCursor(block)
    shape, points = block.blockFormat(), block.document().defaultFont().pointSizeF()
    level = shape.headingLevel()
    if _language(block):
        _dress_code(block, shape)
    elif level:
        shape.setTopMargin(0 if level == 1 else 3.0 * GRID)
        shape.setBottomMargin(GRID)
    else:
        shape.setLineHeight(line_px, QTextBlockFormat.LineHeightTypes.FixedHeight.value)
        if cursor.currentTable() is None:
            shape.setTopMargin(0)
            is_listed = block.textList() is not None and block.next().textList() is not None
            shape.setBottomMargin(GRID / 2 if is_listed else GRID)
    cursor.setBlockFormat(shape)
    for piece in block.textFormats():
        cursor.setPosition(block.position() + piece.start)
        cursor.setPosition(cursor.position() + piece.length, QTextCursor.MoveMode.KeepAnchor)
        cursor.mergeCharFormat(_changes(piece.format, level, _language(block), points))


def _dress_code(block: QTextBlock, shape: QTextBlockFormat) -> None:
    """The lines of one block of code are one box; what it prints stands under it."""
    language = _language(block)
    if language != _OUTPUT:
        shape.setBackground(theme.current().color("window"))
    shape.setNonBreakableLines(False)
    shape.setLeftMargin(0)
    shape.setTopMargin(0 if _language(block.previous()) == language else GRID / 2)
    is_last = not _language(block.next())
    shape.setBottomMargin(1.5 * GRID if is_last else 0)
    shape.setTextIndent(GRID)


def _changes(form: QTextCharFormat, level: int, language: str, points: float) -> QTextCharFormat:
    """What a piece of text with this format is given."""
    made, colors = QTextCharFormat(), theme.current()
    if level:
        font = theme.sans_font(points * _HEADING_SIZES.get(level, 1.0))
        font.setWeight(QFont.Weight.DemiBold)
        made.setFont(font)
    elif language or form.fontFixedPitch():
        made.setFont(theme.mono_font(points - 0.5))
        made.setFontFixedPitch(True)  # what Qt has marked as code stays marked
        if not language:
            made.setBackground(colors.color("window"))
        elif language == _OUTPUT:
            made.setForeground(colors.color("muted"))
    if form.isAnchor():
        made.setForeground(colors.color("accent"))
    return made


def _dress_table(table: QTextTable) -> None:
    shape = table.format()
    shape.setBorder(1)
    shape.setBorderBrush(theme.current().color("border"))
    shape.setBorderStyle(QTextFrameFormat.BorderStyle.BorderStyle_Solid)
    shape.setBorderCollapse(True)
    shape.setCellPadding(0.75 * GRID)
    shape.setCellSpacing(0)
    shape.setTopMargin(GRID / 2)
    shape.setBottomMargin(2 * GRID)
    shape.setWidth(QTextLength(QTextLength.Type.PercentageLength, 100))
    shape.setColumnWidthConstraints(
        [QTextLength(QTextLength.Type.PercentageLength, share) for share in (32, 68)]
    )
    table.setFormat(shape)
