"""The console's variables as the rows of a table."""

from __future__ import annotations

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QObject, Qt
from PySide6.QtGui import QFont

from engine.protocol import Variable
from widgets import theme
from widgets.columns import Column, header_data
from widgets.text import format_bytes, format_shape

VARIABLE_ROLE = Qt.ItemDataRole.UserRole
CHANGED_ROLE = Qt.ItemDataRole.UserRole + 1


def _shape(variable: Variable) -> str:
    if variable.shape is None:
        return variable.type
    return format_shape("ragged" if n == -1 else n for n in variable.shape)


def grad_words(variable: Variable) -> str:
    """The variable's autograd state: `leaf, grad`, the node that made it, or nothing."""
    if variable.grad_fn:
        return variable.grad_fn
    return "leaf, requires grad" if variable.requires_grad else ""


COLUMNS = (
    Column(
        "Mem",
        "The number of its storage. Variables with the same number and colour share one"
        " storage: writing to one changes the others.",
        lambda v: "" if v.storage is None else str(v.storage),
    ),
    Column("Name", "The variable's name in the console.", lambda v: v.name),
    Column("Shape", "The sizes of its dimensions; the class of other objects.", _shape),
    Column("dtype", "The type of each element.", lambda v: v.dtype),
    Column(
        "Ver",
        "The version counter (_version): how often its storage was written in place. Views"
        " share it. Bold: changed by the last cell.",
        lambda v: "" if v.version is None else str(v.version),
        right=True,
    ),
    Column("Value", "The value of a scalar; a summary of other objects.", lambda v: v.text),
    Column(
        "Grad",
        "A leaf that requires grad collects gradients in .grad; a tensor computed from one carries"
        " the node (grad_fn) that made it.",
        grad_words,
    ),
    Column("Size", "Bytes of its elements.", lambda v: format_bytes(v.size_bytes), right=True),
    Column("Device", "The device of its storage.", lambda v: v.device),
)
MEMORY, NAME, SHAPE, DTYPE, VERSION, VALUE = range(6)


class VariablesModel(QAbstractTableModel):
    """The variables as rows. A version that has changed since the last list is bold."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.variables: tuple[Variable, ...] = ()
        self._changed: frozenset[str] = frozenset()

    def set_variables(self, variables: tuple[Variable, ...]) -> None:
        """Set the rows. A variable that is still there keeps its row, so it stays selected."""
        before = {variable.name: variable.version for variable in self.variables}
        self._changed = frozenset(
            variable.name
            for variable in variables
            if variable.version is not None
            and before.get(variable.name, variable.version) != variable.version
        )
        if [v.name for v in variables] == [v.name for v in self.variables]:
            self.variables = variables
            if variables:
                last = self.index(len(variables) - 1, len(COLUMNS) - 1)
                self.dataChanged.emit(self.index(0, 0), last)
            return
        self.beginResetModel()
        self.variables = variables
        self.endResetModel()

    def rowCount(self, parent: QModelIndex | None = None) -> int:
        return 0 if parent is not None and parent.isValid() else len(self.variables)

    def columnCount(self, parent: QModelIndex | None = None) -> int:
        return 0 if parent is not None and parent.isValid() else len(COLUMNS)

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> object:
        return header_data(COLUMNS, section, orientation, role)

    def data(self, index: QModelIndex, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        variable, column = self.variables[index.row()], COLUMNS[index.column()]
        if role == Qt.ItemDataRole.DisplayRole:
            return column.text(variable)
        if role == VARIABLE_ROLE:
            return variable
        if role == CHANGED_ROLE:
            return variable.name in self._changed
        if role == Qt.ItemDataRole.ToolTipRole:
            return _tooltip(variable)
        if role == Qt.ItemDataRole.TextAlignmentRole and column.right:
            return Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        if role == Qt.ItemDataRole.FontRole:
            return self._font(variable, index.column())
        if role == Qt.ItemDataRole.ForegroundRole:
            return self._color(variable, index.column())
        return None

    def _font(self, variable: Variable, column: int) -> QFont | None:
        if column == VERSION and variable.name in self._changed:
            font = QFont()
            font.setBold(True)
            return font
        return theme.mono_font(9) if column == NAME else None

    def _color(self, variable: Variable, column: int) -> object:
        colors = theme.current()
        if column == VERSION and variable.name in self._changed:
            return colors.color("accent")
        if column == NAME:
            return colors.color("leaf" if variable.requires_grad and variable.is_leaf else "text")
        return colors.color("text" if variable.kind == "tensor" else "muted")


def _tooltip(variable: Variable) -> str:
    parts = [f"{variable.name}: {variable.type}"]
    if variable.shape is not None:
        parts.append(f"{format_shape(variable.shape)} · {variable.dtype} · {variable.device}")
    parts += [words for words in (grad_words(variable), variable.text) if words]
    if variable.storage is not None:
        parts.append(f"storage {variable.storage}: variables with this number share it")
    return "\n".join(parts)
