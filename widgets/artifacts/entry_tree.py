"""The tree of a file's keys, with a search over it."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from PySide6.QtCore import QModelIndex, QObject, Qt, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QWidget

from engine.protocol import ArtifactEntry
from widgets import make
from widgets.artifacts.rows import Row, rows_of
from widgets.columns import Column
from widgets.sorting import search_tree, sorting_tree, tree_filter
from widgets.theme import GRID
from widgets.tree_model import Index, TreeModel

OPEN_WHOLE = 200
"""A tree of at most this many rows opens with all of them in sight."""
ROW_ROLE = Qt.ItemDataRole.UserRole
SORT_ROLE = Qt.ItemDataRole.UserRole + 1
COLUMNS = (
    Column(
        "Key",
        "The names in the file; their parts, between dots and slashes, are the branches.",
        lambda model, row: row.name,
    ),
    Column(
        "Shape",
        "The sizes of a tensor's dimensions; of other entries, their value.",
        lambda model, row: row.shape,
    ),
    Column("Dtype", "The type of the numbers, or of the value.", lambda model, row: row.dtype),
    Column(
        "Size",
        "Bytes of the numbers. Tensors that share memory count once in the branches.",
        lambda model, row: row.size,
        right=True,
    ),
    Column(
        "Notes",
        "Of a branch, the module of torch.nn that names and shapes suggest; of a tensor, whether it"
        " is a parameter or buffer, which other one it shares memory with, and its file.",
        lambda model, row: row.notes,
    ),
)
_WIDTHS = (208, 88, 72, 72, 160)
_LEAST_KEY = 112
_SIZE = 3


class EntriesModel(TreeModel):
    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(COLUMNS, parent)
        self.rows: list[Row] = []

    def show_entries(self, entries: Iterable[ArtifactEntry]) -> None:
        self.beginResetModel()
        self.rows = rows_of(entries)
        self.grow(row.around for row in self.rows)
        self.endResetModel()

    def index_of_key(self, key: str) -> QModelIndex:
        """The index of an entry; an invalid one if there is none."""
        found = (n for n, row in enumerate(self.rows) if row.entry and row.entry.key == key)
        number = next(found, -1)
        return self.index_of(number) if number >= 0 else QModelIndex()

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        if not index.isValid():
            return None
        row, column = self.rows[index.internalId()], COLUMNS[index.column()]
        if role == ROW_ROLE:
            return row
        if role == SORT_ROLE:
            return row.size_bytes if index.column() == _SIZE else column.text(self, row)
        if role == Qt.ItemDataRole.DisplayRole:
            return column.text(self, row)
        if role == Qt.ItemDataRole.ToolTipRole:
            text = row.path if index.column() == 0 else column.text(self, row)
            return text or None
        if role == Qt.ItemDataRole.TextAlignmentRole and column.right:
            return Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        return None


class EntryTree(QWidget):
    """`row_chosen(Row)`: the reader has selected a tensor, a value or a branch."""

    row_chosen = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.model = EntriesModel(self)
        self._filter = tree_filter(self.model, SORT_ROLE, self)
        self._filter.setAutoAcceptChildRows(True)
        self.search = make.field(
            "entries_search",
            "Search keys",
            "Show only the rows that hold this text: a name, a shape, a dtype, a layer.",
            placeholder="Search keys…",
        )
        self.search.setClearButtonEnabled(True)
        self.tree = sorting_tree(
            "entries_tree", "Keys of the file", self._filter, _WIDTHS, self.copy
        )
        self.tree.selectionModel().currentChanged.connect(self._on_current)
        self.search.textChanged.connect(partial(search_tree, self.tree, self._filter))
        self.copy_button = make.tool_button(
            "entries_copy",
            "mdi6.content-copy",
            "Copy all keys as text, with tabs between the columns (Ctrl+C in the tree).",
            self.copy,
            accessible="Copy the keys",
        )
        top = make.row((self.search, 1), self.copy_button, gap=2)
        make.column(top, (self.tree, 1), on=self, gap=GRID // 2, margins=(GRID, 0, GRID, 0))

    @property
    def chosen(self) -> Row | None:
        index = self.tree.currentIndex()
        return index.data(ROW_ROLE) if index.isValid() else None

    def show_entries(self, entries: Iterable[ArtifactEntry]) -> None:
        """Show the keys of another file, and choose the first tensor."""
        self.search.clear()
        self.model.show_entries(entries)
        if len(self.model.rows) <= OPEN_WHOLE:
            self.tree.expandAll()
        else:
            self.tree.expandToDepth(0)
        # Short keys leave room for what stands beside them; long ones get no more than they had.
        wanted = self.tree.sizeHintForColumn(0) + 2 * GRID
        self.tree.setColumnWidth(0, min(max(wanted, _LEAST_KEY), _WIDTHS[0]))
        tensors = (row.path for row in self.model.rows if row.entry and row.entry.kind == "tensor")
        self.choose(next(tensors, ""))

    def choose(self, key: str) -> None:
        """Select an entry by its key, if there is one."""
        index = self._filter.mapFromSource(self.model.index_of_key(key))
        if index.isValid():
            self.tree.setCurrentIndex(index)
        else:
            self.row_chosen.emit(None)

    def copy(self) -> None:
        lines = ["\t".join(column.title for column in COLUMNS)]
        for row in self.model.rows:
            if row.entry is not None:
                lines.append("\t".join((row.path, row.shape, row.dtype, row.size, row.notes)))
        QGuiApplication.clipboard().setText("\n".join(lines))

    def _on_current(self, index: QModelIndex) -> None:
        if index.isValid():
            self.row_chosen.emit(index.data(ROW_ROLE))
