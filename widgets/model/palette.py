"""The palette: all kinds of blocks, with a search, explanations, and drags onto the canvas."""

from __future__ import annotations

from collections.abc import Iterable

from PySide6.QtCore import QEvent, QObject, QPoint, QSize, Qt, Signal
from PySide6.QtGui import QAction, QKeyEvent
from PySide6.QtWidgets import QApplication, QLineEdit, QWidget

from engine.project.catalogue import BlockKind
from widgets import make, theme
from widgets.icons import set_icon
from widgets.model.palette_list import MOVE_KEYS, BlockList
from widgets.model.palette_row import KIND_ROLE


class BlockPalette(QWidget):
    """A searchable list of block kinds in the groups of the catalogue.

    Typing filters, arrows move, Enter or a double click chooses. A drag emits signals with
    positions in global pixels, because its target paints the block itself; Esc cancels it.
    """

    block_chosen = Signal(str)
    drag_started = Signal(str)
    drag_moved = Signal(str, QPoint)
    drag_dropped = Signal(str, QPoint)
    drag_cancelled = Signal()

    def __init__(self, kinds: Iterable[BlockKind], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("block_palette")
        self.setMinimumWidth(22 * theme.GRID)
        self.search = make.field("palette_search", "Search blocks", placeholder="Search blocks")
        self.search.setClearButtonEnabled(True)
        self.search.setToolTip(
            "Search by name, torch name or purpose, e.g. conv, nn.Linear, regularise.\n"
            "Up and Down move in the list, Enter adds the block, Esc clears."
        )
        self.list = BlockList()
        self.empty = make.empty("", "palette_empty")
        self.empty.setAlignment(Qt.AlignmentFlag.AlignTop | Qt.AlignmentFlag.AlignHCenter)
        self.empty.setContentsMargins(16, 24, 16, 16)
        self.empty.hide()

        header = make.column(self.search, margins=theme.GRID)
        make.column(header, (self.list, 1), (self.empty, 1), on=self, gap=0)

        magnifier = QAction(self.search)
        set_icon(magnifier, "mdi6.magnify", "muted")
        self.search.addAction(magnifier, QLineEdit.ActionPosition.LeadingPosition)
        self.search.textChanged.connect(self._filter)
        self.search.installEventFilter(self)
        self.list.chosen.connect(self.block_chosen)
        self.list.drag_started.connect(self.drag_started)
        self.list.drag_moved.connect(self.drag_moved)
        self.list.drag_dropped.connect(self.drag_dropped)
        self.list.drag_cancelled.connect(self.drag_cancelled)
        self.list.typed.connect(self._type_into_search)
        self.setFocusProxy(self.search)
        self.list.show_kinds(kinds)
        self._filter("")

    def sizeHint(self) -> QSize:
        """Room for the longest title."""
        return QSize(26 * theme.GRID, super().sizeHint().height())

    def shown_kinds(self) -> list[str]:
        """The keys of the kinds that pass the search, from top to bottom."""
        return [kind.key for _, kind in self.list.visible_kinds()]

    def current_kind(self) -> str | None:
        kind = self.list.currentIndex().data(KIND_ROLE)
        return kind.key if kind else None

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if watched is self.search and event.type() == QEvent.Type.KeyPress:
            assert isinstance(event, QKeyEvent)
            if event.key() in MOVE_KEYS or event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
                QApplication.sendEvent(self.list, event)
                if event.key() not in MOVE_KEYS:
                    self.search.selectAll()  # typing then replaces the text
                return True
            if event.key() == Qt.Key.Key_Escape and self.search.text():
                self.search.clear()
                return True
        return super().eventFilter(watched, event)

    def _filter(self, text: str) -> None:
        found = self.list.filter(text)
        self.list.setVisible(found)
        self.empty.setVisible(not found)
        self.empty.setText(
            f"No block matches “{text.strip()}”.\n\n"
            "Try a part of its torch name (conv, norm, lstm) or what it is for (activation, "
            "pooling). Esc shows all blocks."
        )

    def _type_into_search(self, text: str) -> None:
        self.search.setFocus(Qt.FocusReason.OtherFocusReason)
        self.search.setText(self.search.text() + text)
