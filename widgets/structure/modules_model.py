"""The modules of a structure as rows of a tree."""

from __future__ import annotations

from collections.abc import Callable, Collection

from PySide6.QtCore import QModelIndex, QObject, Qt, Signal

from engine.protocol import ModuleRow, StructureSnapshot
from widgets import theme
from widgets.columns import Column
from widgets.structure.words import module_tip, shapes_words, state_words
from widgets.text import format_bytes, format_number
from widgets.tree_model import Index, TreeModel

ROW_ROLE = Qt.ItemDataRole.UserRole
SORT_ROLE = Qt.ItemDataRole.UserRole + 1


def _if_any(number: int) -> str:
    return f"{number:,}" if number else ""


COLUMNS = (
    Column(
        "Module",
        "Its name in the module around it. The first row is the subject.",
        lambda model, row: row.path.rpartition(".")[2] or model.title,
    ),
    Column(
        "Watch",
        "Watched: each step of Train, and of a loop in a cell, has plots of its output (mean, std,"
        " share of zeros, norm) and of the gradients of its output and parameters. A cell or file"
        " that makes the module again runs to its end before the new one is watched.",
        lambda model, row: "watched" if row.path in model.watched else "",
    ),
    Column("Class", "The class of the module.", lambda model, row: row.type),
    Column(
        "In → out",
        "The shapes of the tensors that its first call in a step takes and gives; all calls stand"
        " in the tooltip.",
        lambda model, row: shapes_words(row, model.ran),
    ),
    Column(
        "×",
        "How often a step calls its forward, if more than once.",
        lambda model, row: f"×{row.call_count:,}" if row.call_count > 1 else "",
        right=True,
    ),
    Column(
        "Parameters",
        "How many numbers it and the modules inside it learn or hold frozen. A shared parameter"
        " counts once.",
        lambda model, row: _if_any(row.parameters),
        right=True,
    ),
    Column(
        "MACs",
        "Multiply-accumulates of all its calls in a step's forward, by torch's flop counter.",
        lambda model, row: _if_any(row.macs),
        right=True,
    ),
    Column(
        "Activations",
        "Bytes that autograd keeps for the backward of its calls, each storage once, parameters and"
        " buffers aside. They add up over modules only where these share none.",
        lambda model, row: format_bytes(row.kept_bytes) if row.kept_bytes else "",
        right=True,
    ),
    Column(
        "Time, ms",
        "Milliseconds of its calls in one measured forward, by the wall clock: other runs differ."
        " On CUDA, torch.cuda.synchronize() stands before and after each call.",
        lambda model, row: format_number(row.ms, 3) if row.call_count else "",
        right=True,
    ),
    Column(
        "Size",
        "Bytes of these parameters.",
        lambda model, row: format_bytes(row.parameter_bytes) if row.parameter_bytes else "",
        right=True,
    ),
    Column(
        "Mode",
        "train or eval, as .train() and .eval() set it; frozen: its parameters need no gradient.",
        lambda model, row: state_words(row),
    ),
)
NAME, WATCH, CLASS, SHAPES, CALLS, PARAMETERS, MACS, KEPT, TIME, SIZE, MODE = range(len(COLUMNS))
OF_A_RUN = (SHAPES, CALLS, MACS, KEPT, TIME)
"""Columns that only a step fills."""

_KEYS: dict[int, Callable[[ModuleRow], float]] = {
    CALLS: lambda row: row.call_count,
    PARAMETERS: lambda row: row.parameters,
    SIZE: lambda row: row.parameter_bytes,
    MACS: lambda row: row.macs,
    KEPT: lambda row: row.kept_bytes or 0,
    TIME: lambda row: row.ms,
}
"""Columns that are sorted by a number; the others are sorted by their texts."""


class ModulesModel(TreeModel):
    """`title` is the name of the subject; `ran`: a step
    has run, so a module without calls is not called. `watched` are paths.
    `watch_wanted(path, on)`: the reader has set or taken away a mark."""

    watch_wanted = Signal(str, bool)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(COLUMNS, parent)
        self.rows: tuple[ModuleRow, ...] = ()
        self.title, self.ran = "", False
        self.watched: frozenset[str] = frozenset()

    def show_structure(self, whole: StructureSnapshot, title: str) -> bool:
        """Show the modules. True if they are others than before, by their paths."""
        is_new = [row.path for row in whole.modules] != [row.path for row in self.rows]
        if is_new:
            self.beginResetModel()
        self.rows, self.title = whole.modules, title
        self.watched = frozenset(whole.watched)
        self.ran = bool(whole.batch) and not whole.unrun
        if is_new:
            numbers = {row.path: number for number, row in enumerate(self.rows)}
            self.grow(numbers[row.path.rpartition(".")[0]] if row.path else -1 for row in self.rows)
            self.endResetModel()
        else:
            self._repaint()
        return is_new

    def show_watched(self, paths: Collection[str]) -> None:
        """Mark the modules that are watched."""
        self.watched = frozenset(paths)
        self._repaint()

    def _repaint(self) -> None:
        for number in range(len(self.rows)):
            self.dataChanged.emit(self.index_of(number), self.index_of(number, len(COLUMNS) - 1))

    def index_at(self, path: str) -> QModelIndex:
        """The index of a module by its path; an invalid one if there is none."""
        found = next((n for n, row in enumerate(self.rows) if row.path == path), -1)
        return self.index_of(found) if found >= 0 else QModelIndex()

    def text(self) -> str:
        """The tree as text, indented, with columns between tabs."""
        lines = []
        for row in self.rows:
            depth = row.path.count(".") + 1 if row.path else 0
            lines.append("  " * depth + "\t".join(column.text(self, row) for column in COLUMNS))
        return "\n".join(lines)

    # -- Qt's interface --------------------------------------------------------------------------

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        row, column = self.rows[index.internalId()], COLUMNS[index.column()]
        if role == Qt.ItemDataRole.CheckStateRole and index.column() == WATCH:
            is_watched = row.path in self.watched
            return Qt.CheckState.Checked if is_watched else Qt.CheckState.Unchecked
        if role == Qt.ItemDataRole.DisplayRole and index.column() == WATCH:
            return ""  # the mark says it
        if role == Qt.ItemDataRole.DisplayRole:
            return column.text(self, row)
        if role == ROW_ROLE:
            return row
        if role == SORT_ROLE:
            key = _KEYS.get(index.column())
            return key(row) if key else column.text(self, row)
        if role == Qt.ItemDataRole.ToolTipRole:
            return module_tip(row, self.title, self.ran)
        if role == Qt.ItemDataRole.TextAlignmentRole and column.right:
            return Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        if role == Qt.ItemDataRole.FontRole and index.column() in (NAME, SHAPES):
            return theme.mono_font(9)
        if role == Qt.ItemDataRole.ForegroundRole:
            return self._color(row, index.column())
        return None

    def flags(self, index: Index) -> Qt.ItemFlag:
        flags = super().flags(index)
        return flags | Qt.ItemFlag.ItemIsUserCheckable if index.column() == WATCH else flags

    def setData(self, index: Index, value: object, role: int = Qt.ItemDataRole.EditRole) -> bool:
        """A click on a mark asks to change it; `show_watched` shows what came of it."""
        if role != Qt.ItemDataRole.CheckStateRole or index.column() != WATCH:
            return False
        on = Qt.CheckState(value) == Qt.CheckState.Checked
        self.watch_wanted.emit(self.rows[index.internalId()].path, on)
        return True

    def _color(self, row: ModuleRow, column: int) -> object:
        colors = theme.current()
        plain = {NAME, PARAMETERS} | ({SHAPES} if row.calls else set())
        if column == MODE and row.training != self.rows[0].training:
            return colors.color("warning")
        return colors.color("text" if column in plain else "muted")
