"""The tree of modules, with a search over it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from PySide6.QtCore import (
    QModelIndex,
    QPersistentModelIndex,
    QSize,
    Qt,
    Signal,
)
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QStyledItemDelegate, QStyleOptionViewItem, QWidget

from engine.protocol import ModuleRow, StructureSnapshot
from widgets import make
from widgets.sorting import search_tree, sorting_tree, tree_filter
from widgets.structure.modules_model import (
    COLUMNS,
    NAME,
    OF_A_RUN,
    ROW_ROLE,
    SHAPES,
    SORT_ROLE,
    ModulesModel,
)
from widgets.theme import GRID

OPEN_WHOLE = 200
"""A tree of at most this many modules opens with all of them in sight."""
_WIDTHS = (152, 48, 104, 160, 32, 80, 72, 80, 64, 64, 56)
_WIDEST = 240
ROW_HEIGHT = 20


class ModuleTree(QWidget):
    """`module_chosen(ModuleRow)` when the reader selects a module by mouse or keys;
    `watch_wanted(paths)` when all modules to watch are to be these. What is open
    and what is selected stays, by path, when another structure is shown."""

    module_chosen = Signal(object)
    watch_wanted = Signal(tuple)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.model = ModulesModel(self)
        self.model.watch_wanted.connect(self._want_watch)
        self._title = ""
        self._is_told = False  # true while the code, not the reader, changes the current row
        self._filter = tree_filter(self.model, SORT_ROLE, self)
        self.search = make.field(
            "modules_search",
            "Search modules",
            "Show only the modules whose row holds this text, and those around them.",
            placeholder="Search modules…",
        )
        self.search.setClearButtonEnabled(True)
        self.tree = sorting_tree(
            "modules_tree", "Modules of the subject", self._filter, _WIDTHS, self.copy
        )
        self.tree.setItemDelegate(_Row(self.tree))
        self.tree.selectionModel().currentChanged.connect(self._on_current)
        self.search.textChanged.connect(partial(search_tree, self.tree, self._filter))
        self.expand_button = make.tool_button(
            "modules_expand",
            "mdi6.unfold-more-horizontal",
            "Open all modules. In the tree, * opens all below the selected one.",
            self.tree.expandAll,
            accessible="Open all modules",
        )
        self.collapse_button = make.tool_button(
            "modules_collapse",
            "mdi6.unfold-less-horizontal",
            "Close all modules but the subject.",
            self._collapse,
            accessible="Close all modules",
        )
        self.copy_button = make.tool_button(
            "modules_copy",
            "mdi6.content-copy",
            "Copy the whole tree as text, with tabs between its columns (Ctrl+C in the tree).",
            self.copy,
            accessible="Copy the tree",
        )
        tools = (self.expand_button, self.collapse_button, self.copy_button)
        top = make.row((self.search, 1), *tools, gap=2)
        make.column(top, (self.tree, 1), on=self, gap=GRID // 2, margins=(GRID, 0, GRID, 0))

    @property
    def chosen(self) -> ModuleRow | None:
        """The selected module; at first the subject itself."""
        index = self.tree.currentIndex()
        return index.data(ROW_ROLE) if index.isValid() else None

    def show_structure(self, whole: StructureSnapshot, title: str) -> None:
        """Show the modules; `title` is the name of the subject. Emits nothing."""
        self._is_told = True
        chosen = self.chosen
        is_other = whole.title != self._title
        self._title = whole.title
        opened = set() if is_other else {row.path for row in self._opened()}
        if self.model.show_structure(whole, title):
            self._open(opened)
            wanted = min(self.tree.sizeHintForColumn(NAME) + GRID, _WIDEST)
            self.tree.setColumnWidth(NAME, max(_WIDTHS[NAME], wanted))
        for column in OF_A_RUN:
            self.tree.setColumnHidden(column, not self.model.ran)
        if self.model.ran:
            wanted = min(self.tree.sizeHintForColumn(SHAPES) + GRID, _WIDEST)
            self.tree.setColumnWidth(SHAPES, max(self.tree.columnWidth(SHAPES), wanted))
        index = self.model.index_at(chosen.path if chosen else "")
        index = index if index.isValid() else self.model.index_at("")
        self.tree.setCurrentIndex(self._filter.mapFromSource(index))
        self._is_told = False

    def choose(self, path: str) -> None:
        """Select a module by its path, if there is one, and open those around it. Emits nothing,
        and scrolls only while the tree does not have the focus."""
        index = self._filter.mapFromSource(self.model.index_at(path))
        if index.isValid():
            self._is_told = True
            self.tree.setAutoScroll(not self.tree.hasFocus())
            self.tree.setCurrentIndex(index)
            self.tree.setAutoScroll(True)
            self._is_told = False

    def _want_watch(self, path: str, on: bool) -> None:
        rest = tuple(row.path for row in self.model.rows if row.path in self.model.watched - {path})
        self.watch_wanted.emit((*rest, path) if on else rest)

    def copy(self) -> None:
        QGuiApplication.clipboard().setText(self.model.text())

    def _open(self, paths: set[str]) -> None:
        if not paths and len(self.model.rows) <= OPEN_WHOLE:
            self.tree.expandAll()
            return
        for path in paths or {""}:
            self.tree.expand(self._filter.mapFromSource(self.model.index_at(path)))

    def _opened(self) -> Iterator[ModuleRow]:
        for number, row in enumerate(self.model.rows):
            if self.tree.isExpanded(self._filter.mapFromSource(self.model.index_of(number))):
                yield row

    def _collapse(self) -> None:
        self.tree.collapseAll()
        self.tree.expand(self._filter.index(0, 0))

    def _on_current(self, index: QModelIndex) -> None:
        if index.isValid() and not self._is_told:
            self.module_chosen.emit(index.data(ROW_ROLE))


class _Row(QStyledItemDelegate):
    """Rows are as high as those of the table beside; of long shapes, the last is seen too."""

    def sizeHint(
        self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> QSize:
        return QSize(super().sizeHint(option, index).width(), ROW_HEIGHT)

    def initStyleOption(
        self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        super().initStyleOption(option, index)
        if index.column() == SHAPES:
            option.textElideMode = Qt.TextElideMode.ElideMiddle  # pyright: ignore


assert len(_WIDTHS) == len(COLUMNS)
