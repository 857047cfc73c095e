"""The parameters and buffers of a structure as the rows of a table."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from PySide6.QtCore import (
    QAbstractTableModel,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    QSortFilterProxyModel,
    Qt,
)

from engine.protocol import InitialValues, StructureSnapshot, WeightRow
from widgets import theme
from widgets.columns import Column, header_data
from widgets.structure.words import weight_tip
from widgets.text import format_bytes, format_number, format_shape

Index = QModelIndex | QPersistentModelIndex
ROW_ROLE = Qt.ItemDataRole.UserRole
SORT_ROLE = Qt.ItemDataRole.UserRole + 1


def _kind(row: WeightRow) -> str:
    return row.kind if row.persistent else f"{row.kind}, not saved"


def _trainable(row: WeightRow) -> str:
    if row.kind == "buffer":
        return ""
    return "yes" if row.trainable else "frozen"


def _optimizer(row: WeightRow) -> str:
    return "" if row.kind == "buffer" else ", ".join(row.fed_by) or "none"


def _gradient(row: WeightRow) -> str:
    if row.gradient is None:
        return "none" if row.trainable else ""
    return format_number(row.gradient)


COLUMNS = (
    Column("Name", "The name in named_parameters() and named_buffers().", lambda row: row.name),
    Column("Shape", "The sizes of its dimensions.", lambda row: format_shape(row.shape)),
    Column("Mean", "The mean of its elements.", lambda row: format_number(row.mean), right=True),
    Column(
        "Std",
        "The standard deviation of its elements, as torch.std computes it.",
        lambda row: format_number(row.std),
        right=True,
    ),
    Column(
        "Histogram",
        "How its finite elements lie between the least and the greatest, counted by torch.histc."
        " It is sorted by the width of its bins.",
        lambda row: " ".join(map(str, row.histogram.counts)) if row.histogram else "",
    ),
    Column(
        "Gradient",
        "The 2-norm of its .grad. none: no backward has given it one. That is red where others"
        " have one.",
        _gradient,
        right=True,
    ),
    Column(
        "Update",
        "How far one optimizer step moved it: the 2-norm of the change as a share of its own."
        " Around 0.001 is usual.",
        lambda row: "–" if row.update is None else format_number(row.update, 3),
        right=True,
    ),
    Column(
        "Trainable",
        "Whether it requires grad. A frozen parameter gets no gradient and stays as it is.",
        _trainable,
    ),
    Column(
        "Optimizer",
        "The optimizers of the console or file that hold it. none: no step changes it.",
        _optimizer,
    ),
    Column("Count", "How many elements it has.", lambda row: f"{row.elements:,}", right=True),
    Column("Size", "Bytes of its elements.", lambda row: format_bytes(row.bytes), right=True),
    Column("dtype", "The type of each element.", lambda row: row.dtype),
    Column(
        "Kind",
        "A parameter learns; a buffer is state that does not. not saved: the state_dict leaves it"
        " out.",
        _kind,
    ),
    Column(
        "Shared with",
        "Other names of the same tensor: it counts once, and a change is seen under all names.",
        lambda row: ", ".join(row.shared_with),
    ),
)
(
    NAME,
    SHAPE,
    MEAN,
    STD,
    HISTOGRAM,
    GRADIENT,
    UPDATE,
    TRAINABLE,
    OPTIMIZER,
    COUNT,
    SIZE,
    DTYPE,
    KIND,
    SHARED,
) = range(len(COLUMNS))

_KEYS: dict[int, Callable[[WeightRow], float]] = {
    SHAPE: lambda row: row.elements,
    COUNT: lambda row: row.elements,
    SIZE: lambda row: row.bytes,
    MEAN: lambda row: _number(row.mean),
    STD: lambda row: _number(row.std),
    HISTOGRAM: lambda row: row.histogram.width if row.histogram else -1,
    GRADIENT: lambda row: _number(row.gradient),
    UPDATE: lambda row: _number(row.update),
}
"""Columns that are sorted by a number; the others are sorted by their texts."""
_FIGURES = {MEAN: "mean", STD: "std", GRADIENT: "gradient"}
"""Columns whose digits are limited in a narrow table, and their fields."""


def _number(value: float | None) -> float:
    return -math.inf if value is None or math.isnan(value) else value


class WeightsModel(QAbstractTableModel):
    """The rows in the order of the structure. `show_preview` gives the mean and deviation that
    some rows would get; each is shown after the row's own. `digits` limits those of numbers."""

    def __init__(self, parent: QObject | None = None, digits: int | None = None) -> None:
        super().__init__(parent)
        self._digits = digits
        self.rows: tuple[WeightRow, ...] = ()
        self._has_gradients = False
        self.is_in_pass = False
        """Whether a backward pass is being stepped: parameters get their gradients one by one."""
        self._preview: Mapping[str, InitialValues] = {}

    def show_structure(self, whole: StructureSnapshot) -> None:
        """Show the rows. They stay selected if their names are the same as before."""
        is_new = [row.name for row in whole.weights] != [row.name for row in self.rows]
        if is_new:
            self.beginResetModel()
        self.rows = whole.weights
        self._has_gradients = any(row.gradient is not None for row in whole.weights)
        if is_new:
            self.endResetModel()
        else:
            self._repaint()

    def show_preview(self, preview: Mapping[str, InitialValues]) -> None:
        if preview != self._preview:
            self._preview = preview
            self._repaint()

    def _repaint(self) -> None:
        if self.rows:
            last = self.index(len(self.rows) - 1, len(COLUMNS) - 1)
            self.dataChanged.emit(self.index(0, 0), last)

    # -- Qt's interface --------------------------------------------------------------------------

    def rowCount(self, parent: Index | None = None) -> int:
        return 0 if parent is not None and parent.isValid() else len(self.rows)

    def columnCount(self, parent: Index | None = None) -> int:
        return 0 if parent is not None and parent.isValid() else len(COLUMNS)

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> object:
        return header_data(COLUMNS, section, orientation, role)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        row, column = self.rows[index.row()], COLUMNS[index.column()]
        if role == Qt.ItemDataRole.DisplayRole:
            return self._text(row, index.column())
        if role == ROW_ROLE:
            return row
        if role == SORT_ROLE:
            key = _KEYS.get(index.column())
            return key(row) if key else column.text(row)
        if role == Qt.ItemDataRole.ToolTipRole:
            return weight_tip(row)
        if role == Qt.ItemDataRole.TextAlignmentRole and column.right:
            return Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        if role == Qt.ItemDataRole.FontRole and index.column() in (NAME, SHAPE):
            return theme.mono_font(9)
        if role == Qt.ItemDataRole.ForegroundRole:
            return self._color(row, index.column())
        return None

    def _text(self, row: WeightRow, column: int) -> str:
        tried = self._preview.get(row.name)
        if tried is None or tried.problem or column not in (MEAN, STD):
            value = getattr(row, _FIGURES[column]) if column in _FIGURES else None
            if self._digits is not None and value is not None:
                return format_number(value, self._digits)
            return COLUMNS[column].text(row)
        field = "mean" if column == MEAN else "std"
        before, after = (format_number(getattr(of, field), 3) for of in (row, tried))
        return f"{before} → {after}"

    def _color(self, row: WeightRow, column: int) -> object:
        colors = theme.current()
        if column == OPTIMIZER and row.trainable and not row.fed_by:
            return colors.color("error")
        if column == GRADIENT and row.trainable and row.gradient is None:
            is_missed = self._has_gradients and not self.is_in_pass
            return colors.color("error" if is_missed else "text")
        if column in (MEAN, STD) and row.name in self._preview:
            return colors.color("accent")
        if column == NAME:
            return colors.color("leaf" if row.trainable else "muted")
        return colors.color(
            "text" if column in (SHAPE, COUNT, MEAN, STD, GRADIENT, UPDATE) else "muted"
        )


class WeightFilter(QSortFilterProxyModel):
    """Passes the rows inside a module whose name, shape, dtype or kind contains a text, whatever
    the case of letters; a click on a heading sorts them."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._module, self._searched = "", ""
        self.setSortRole(SORT_ROLE)

    def show_module(self, path: str) -> None:
        """Pass only what is inside this module; all for the path ""."""
        self._module = path
        self.invalidate()

    def search(self, text: str) -> None:
        self._searched = text.casefold()
        self.invalidate()

    def filterAcceptsRow(self, source_row: int, source_parent: Index) -> bool:
        model = self.sourceModel()
        assert isinstance(model, WeightsModel)
        row = model.rows[source_row]
        if self._module and not row.name.startswith(f"{self._module}."):
            return False
        texts = (row.name, format_shape(row.shape), row.dtype, _kind(row), _trainable(row))
        return any(self._searched in text.casefold() for text in texts)
